"""Models of pairs against 60 digits, and against the laws that every symmetric distribution function obeys."""

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import log_ndtr

from protocol.links import LINKS, Link, Probit
from protocol.problem import MODELS

Function = Callable[[mp.mpf], mp.mpf]
# F and f by definition.
EXACT: dict[str, tuple[Function, Function]] = {
    "btl": (lambda z: 1 / (1 + mp.exp(-z)), lambda z: mp.exp(-z) / (1 + mp.exp(-z)) ** 2),
    "thurstone": (lambda z: mp.erfc(-z / mp.sqrt(2)) / 2, mp.npdf),
    "laplace": (lambda z: mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2, lambda z: mp.exp(-abs(z)) / 2),
    "cauchy": (lambda z: mp.atan2(1, -z) / mp.pi, lambda z: 1 / (mp.pi * (1 + z * z))),
}
PLACES = (-300.0, -38.5, -9.25, -2.0, -0.375, 0.0, 0.25, 1.5, 8.0, 30.0)
each_link = pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
moderate = st.floats(-30, 30)


def at(function: Callable[[NDArray[np.float64]], NDArray[np.float64]], z: float) -> float:
    return float(function(np.array([z]))[0])


def test_every_model_of_pairs_has_a_link() -> None:
    assert MODELS["pairwise"] == tuple(LINKS) == tuple(EXACT)


@pytest.mark.parametrize("z", PLACES)
@pytest.mark.parametrize("name", LINKS)
def test_values_are_those_of_the_definition(name: str, z: float) -> None:
    """To 1e-13, relative; where a number is below the smallest normal double, absolutely."""
    link, (exact, density) = LINKS[name], EXACT[name]
    with mp.workdps(230):  # F(30) is 1 - 5e-198
        place = mp.mpf(z)
        chance, slope = exact(place), density(place)
        expected = {
            "cdf": chance,
            "log_cdf": mp.log(chance),
            "density": slope,
            "hazard": slope / chance,
            "variance": chance * exact(-place),
            "information": slope**2 / (chance * exact(-place)),
        }
    for attribute, value in expected.items():
        assert at(getattr(link, attribute), z) == pytest.approx(float(value), rel=2e-13, abs=1e-300), attribute
    with mp.workdps(30):
        whole = mp.quad(lambda t: exact(t) - mp.mpf(1) / 2, [0, mp.mpf(z) / 8, mp.mpf(z)]) if abs(z) < 10 else None
    assert whole is None or at(link.primitive, z) == pytest.approx(float(whole), rel=1e-13, abs=1e-16)


@pytest.mark.parametrize("z", [-1e6, -250.0, -150.0, -40.0, -3.0, 0.0, 2.0, 8.0])
def test_the_bend_of_the_normal_law_keeps_its_digits(z: float) -> None:
    with mp.workdps(40):
        place = mp.mpf(z)
        # lambda by its continued fraction 1 / (x + 1 / (x + 2 / (x + ...))) of Mills' ratio, x = -z, far below
        rate = mp.npdf(place) / mp.ncdf(place) if z > -30 else 1 / _mills(-place)
        exact = float(rate * (place + rate))
    assert at(Probit().bend, z) == pytest.approx(exact, rel=1e-11)


def _mills(x: mp.mpf) -> mp.mpf:
    value = x
    for k in range(400, 0, -1):
        value = x + k / value
    return 1 / value


@given(z=moderate, step=st.floats(1e-3, 5))
@each_link
def test_symmetric_and_monotone(link: Link, z: float, step: float) -> None:
    assert at(link.cdf, -z) == pytest.approx(1 - at(link.cdf, z), abs=4.5e-16)  # a few roundings below 1
    assert at(link.cdf, z) <= at(link.cdf, z + step)
    assert at(link.log_cdf, z) <= at(link.log_cdf, z + step) <= 0
    for even in (link.density, link.primitive, link.variance, link.information):
        assert at(even, z) == pytest.approx(at(even, -z), rel=1e-12)
    assert at(link.tilt, -z) == -at(link.tilt, z)
    assert abs(at(link.tilt, z)) <= link.drift(abs(z)) and link.drift(abs(z)) >= 1


@given(z=st.floats(-20, 20))
@each_link
def test_integrals_and_derivatives_belong_together(link: Link, z: float) -> None:
    whole, _ = quad(lambda t: at(link.cdf, t) - 0.5, 0, z, epsabs=1e-13, epsrel=1e-12)
    assert at(link.primitive, z) == pytest.approx(whole, rel=1e-9, abs=1e-12)
    if abs(z) > 1e-3:  # the Laplace law has a corner at 0
        h = 1e-4 * min(1.0, abs(z))
        for function, slope in ((link.cdf, link.density), (link.log_cdf, link.hazard), (link.primitive, link.cdf)):
            found = (at(function, z + h) - at(function, z - h)) / (2 * h)
            expected = at(slope, z) - (0.5 if slope == link.cdf else 0.0)
            assert found == pytest.approx(expected, rel=1e-5, abs=1e-10)
        bend = -(at(link.hazard, z + h) - at(link.hazard, z - h)) / (2 * h)
        assert bend == pytest.approx(at(link.bend, z), rel=1e-4, abs=1e-9)


def test_normal_tails_are_those_of_log_ndtr() -> None:
    z = np.linspace(-35, 8, 200)
    assert (Probit().log_cdf(z) == log_ndtr(z)).all()
    assert Probit().hazard(z) == pytest.approx(
        np.exp(-0.5 * z * z - 0.5 * math.log(2 * math.pi) - log_ndtr(z)), rel=1e-11
    )


def test_which_laws_are_log_concave() -> None:
    """On |z| <= w the bend is least at w, which is what bounds take for gamma: not so for heavy tails."""
    z = np.linspace(-30, 30, 4001)
    for name in ("btl", "thurstone"):
        bends = LINKS[name].bend(z)
        assert (
            bends.min() > 0 and (np.diff(bends[z > 0]) < 0).all() and (bends[z < 0] >= bends[z > 0][::-1] * 0.999).all()
        )
    assert LINKS["laplace"].bend(z).min() == 0 and LINKS["cauchy"].bend(z).min() < -0.2
