"""Laws with heavy tails: oracles, every formula against quadrature, samplers against their laws, one spelling each."""

import math
from collections.abc import Callable
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import kolmogi

from protocol.coins import Address, Stream, words
from protocol.law_moments import Family
from protocol.laws import Law
from protocol.stable_tail import stable_tail

ROWS = 1 << 14
MOVED = (
    "pareto(1.6)",
    "pareto(0.9, 2)",
    "pareto(1)",
    "centred pareto(1.6)",
    "centred pareto(2.5) + 4",
    "lomax(1.6)",
    "lomax(1.6, 2) - 1",
    "centred lomax(1.3)",
    "student-t(1.5)",
    "student-t(1)",
    "student-t(2.5) + 1.5",
    "log-normal(0, 1.5)",
    "centred log-normal(0, 1.5)",
    "burr(2, 0.8)",
    "centred burr(2, 0.8)",
    "uniform(-1, 3)",
    "centred uniform(0, 2) + 0.25",
    "normal",
    "normal(1, 2)",
    "stable(2, 0.5) + 1",
)
STABLE = ("stable(1.5)", "stable(1.5) + 1", "stable(0.8, 2) - 1", "stable(1) + 1")
law_of = pytest.mark.parametrize("spelling", MOVED)


CLOSED: dict[str, Callable[[], float]] = {
    "Pareto(a=1.6,xm=1) E X^1.5": lambda: Law.parse("pareto(1.6)").absolute_moment(1.5),
    "Pareto(1.6) mean": lambda: Law.parse("pareto(1.6)").mean,
    "Pareto(1.6) E[X;X<=50]": lambda: Law.parse("pareto(1.6)").truncated_mean(50),
    "Pareto(1.6) E min(X,50)": lambda: Law.parse("pareto(1.6)").clipped_mean(50),
    "Pareto(1.6) E[X^2;X<=50]": lambda: Law.parse("pareto(1.6)").truncated_square(50),
    "Lomax(1.6,1) E X^1.5": lambda: Law.parse("lomax(1.6)").absolute_moment(1.5),
    "Lomax(1.6,1) E[X;X<=50]": lambda: Law.parse("lomax(1.6)").truncated_mean(50),
    "Lomax(1.6,1) E min(X,50)": lambda: Law.parse("lomax(1.6)").clipped_mean(50),
    "Student t(1.5) E|X|^1.2": lambda: Law.parse("student-t(1.5)").absolute_moment(1.2),
    "SaS(1.5) E|X|^1.2": lambda: Law.parse("stable(1.5)").absolute_moment(1.2),
    "LogNormal(0,1.5) E X^1.5": lambda: Law.parse("log-normal(0, 1.5)").absolute_moment(1.5),
    "LogNormal(0,1.5) E[X;X<=20]": lambda: Law.parse("log-normal(0, 1.5)").truncated_mean(20),
    "BurrXII(c=2,k=.8) E X^1.5": lambda: Law.parse("burr(2, 0.8)").absolute_moment(1.5),
}


@pytest.mark.parametrize("name", CLOSED)
def test_oracles(name: str, heavy_oracle: Callable[[str], float]) -> None:
    assert CLOSED[name]() == pytest.approx(heavy_oracle(name), rel=1e-13)


# The same families by scipy.stats, in its parameters.
ELSEWHERE: dict[str, Callable[..., stats.rv_continuous]] = {
    "pareto": lambda a, x_m: stats.pareto(a, scale=x_m),
    "lomax": lambda a, scale: stats.lomax(a, scale=scale),
    "student-t": stats.t,
    "log-normal": lambda mu, s: stats.lognorm(s, scale=math.exp(mu)),
    "burr": stats.burr12,
    "uniform": lambda low, high: stats.uniform(low, high - low),
    "normal": stats.norm,
    "stable": lambda alpha, scale: stats.norm(0, math.sqrt(2) * scale),  # alpha = 2
}


class Elsewhere:
    """E f(X) by quadrature of a density that scipy.stats has."""

    def __init__(self, law: Law) -> None:
        self.base = ELSEWHERE[law.name](*(float(value) for _, value in law.parameters))
        self.move = float(law.shift) - (float(self.base.mean()) if law.centred else 0.0)
        self.edges = [float(end) + self.move for end in self.base.support() if math.isfinite(end)]

    def within(self, function: Callable[[float], float], b: float) -> float:
        """E[f(X); |X| <= b]."""
        places = [
            -b,
            0.0,
            self.move,
            *self.edges,
            *(self.move + sign * 10.0**j for sign in (-1, 1) for j in (-2, -1, 0, 1)),
            b,
        ]
        return sum(self._part(function, *ends) for ends in pairwise(sorted({p for p in places if abs(p) <= b})))

    def beyond(self, q: float, b: float, rate: float) -> float:
        """E[|X|^q; |X| > b], in log |x|, where the integrand falls as e^(-rate s) at least."""
        total = 0.0
        for sign in (-1.0, 1.0):
            for start, stop in pairwise(math.log(b) + max(20.0, min(40 / rate, 300.0)) * np.linspace(0, 1, 7) ** 2):
                total += quad(
                    lambda s, sign=sign: math.exp(
                        (q + 1) * s + float(self.base.logpdf(sign * math.exp(s) - self.move))
                    ),
                    start,
                    stop,
                    epsabs=1e-300,
                    epsrel=1e-11,
                    limit=200,
                    full_output=1,
                )[0]
        return total

    def _part(self, function: Callable[[float], float], start: float, stop: float) -> float:
        return float(
            quad(
                lambda x: function(x) * float(self.base.pdf(x - self.move)),
                start,
                stop,
                epsabs=1e-15,
                epsrel=1e-11,
                limit=200,
                full_output=1,
            )[0]
        )


@law_of
@pytest.mark.parametrize("b", [0.75, 60.0])
def test_truncated_and_clipped_moments_are_those_of_quadrature(spelling: str, b: float) -> None:
    law = Law.parse(spelling)
    other = Elsewhere(law)
    right, left = float(other.base.sf(b - other.move)), float(other.base.cdf(-b - other.move))
    truncated = other.within(lambda x: x, b)
    assert law.truncated_mean(b) == pytest.approx(truncated, rel=1e-9, abs=1e-10)
    assert law.truncated_square(b) == pytest.approx(other.within(lambda x: x * x, b), rel=1e-9, abs=1e-10)
    assert law.clipped_mean(b) == pytest.approx(truncated + b * (right - left), rel=1e-9, abs=1e-10)
    assert law.beyond(b) == pytest.approx(right + left, rel=1e-10, abs=1e-15)
    assert law.survival(b) == pytest.approx(right, rel=1e-10, abs=1e-15)


@law_of
def test_absolute_moments_are_those_of_quadrature(spelling: str) -> None:
    law = Law.parse(spelling)
    other = Elsewhere(law)
    for q in (0.5, min(1.9, 0.93 * law.index)):
        value = other.within(lambda x, q=q: abs(x) ** q, 50.0) + other.beyond(q, 50.0, law.index - q)
        assert law.absolute_moment(q) == pytest.approx(value, rel=1e-8), q


@law_of
def test_means_and_variances(spelling: str) -> None:
    law = Law.parse(spelling)
    if law.index > 1:
        assert law.mean == pytest.approx(Elsewhere(law).base.mean() + Elsewhere(law).move, rel=1e-12, abs=1e-15)
    else:
        with pytest.raises(ValueError, match="expected a law with a mean"):
            _ = law.mean
    if law.index > 2:
        assert law.variance == pytest.approx(Elsewhere(law).base.var(), rel=1e-11)
        assert law.moment_about(law.mean, 2) == pytest.approx(law.variance, rel=1e-8)
    else:
        assert law.variance == math.inf


@pytest.mark.parametrize("spelling", [*MOVED, *STABLE])
def test_a_clipped_mean_is_the_integral_of_tails(spelling: str) -> None:
    """E C_b(X) = int_0^b P(X > t) - P(X < -t) dt, for stable laws too."""
    law, b = Law.parse(spelling), 3.0
    tails = quad(
        lambda t: law.survival(t) - (law.beyond(t) - law.survival(t)), 0, b, epsabs=1e-10, limit=80, full_output=1
    )
    assert law.clipped_mean(b) == pytest.approx(tails[0], abs=1e-7)


@pytest.mark.parametrize("near", [1e-3, 1e-6])
@pytest.mark.parametrize("spelling", ["pareto(1.6)", "lomax(1.3, 2)", "student-t(1.5)", "burr(2, 0.8)", "stable(1.5)"])
def test_quadrature_holds_its_accuracy_up_to_the_index(spelling: str, near: float) -> None:
    """Where E|X|^q is about to become infinite; against the closed forms, which moved laws do not have."""
    law = Law.parse(spelling)
    q = law.index - near
    assert Family.moment_about(law.family, 0.0, q) == pytest.approx(law.absolute_moment(q), rel=1e-8)
    assert law.absolute_moment(law.index) == math.inf
    assert law.moment_about(1.0, law.index) == math.inf


@pytest.mark.parametrize("alpha", [0.85, 1.01, 1.5, 1.95])
def test_stable_tails_invert_the_characteristic_function(alpha: float) -> None:
    """P(Y > x) = 1/2 - (1/pi) int_0^inf sin(t x) e^(-t^alpha) / t dt, by mpmath."""
    for x in (mp.mpf("0.3"), mp.mpf(3)):
        with mp.workdps(25):

            def integrand(t: mp.mpf, x: mp.mpf = x) -> mp.mpf:
                return mp.sin(t * x) / t * mp.exp(-(t**alpha))

            # Dense near 0, where t^alpha bends, then from zero to zero of the sine until e^(-t^alpha) is below 1e-18.
            last = int(42 ** (1 / alpha) * x / mp.pi) + 3
            ends = [mp.mpf(0), *(mp.pi / x / 10**j for j in range(12, 0, -1)), *(k * mp.pi / x for k in range(1, last))]
            exact = float(mp.mpf(1) / 2 - mp.quad(integrand, ends, maxdegree=5) / mp.pi)
        assert stable_tail(alpha, float(x)) == pytest.approx(exact, rel=1e-8)


def test_stable_tails_at_both_ends() -> None:
    for alpha in (0.3, 0.9, 1.0, 1.2, 1.9):
        far = math.sin(math.pi * alpha / 2) * math.gamma(alpha) / math.pi
        x = (far * 1e10) ** (1 / alpha)
        assert stable_tail(alpha, x) == pytest.approx(1e-10, rel=1e-5)
        assert stable_tail(alpha, 0.0) == pytest.approx(0.5)
    assert stable_tail(1.7, 1.0000001e-9) == pytest.approx(stable_tail(1.7, 0.9999999e-9), rel=1e-9)
    assert stable_tail(1.0 + 1e-6, 2.0) == pytest.approx(stable_tail(1.0, 2.0), rel=1e-5)


@law_of
def test_samples_follow_the_law(spelling: str) -> None:
    """Kolmogorov and Smirnov's distance; false alarm 1e-9 for each of 20 laws."""
    law = Law.parse(spelling)
    drawn = words(Address(20221, Stream.LABELS), 0, ROWS * law.words).reshape(ROWS, law.words)
    sample = np.sort(law.sample(drawn))
    chance = 1 - np.array([law.survival(x) for x in sample.tolist()])
    ranks = np.arange(ROWS + 1) / ROWS
    distance = max((ranks[1:] - chance).max(), (chance - ranks[:-1]).max())
    assert math.sqrt(ROWS) * distance < kolmogi(1e-9)


@pytest.mark.parametrize("spelling", STABLE)
def test_stable_samples_follow_the_law(spelling: str) -> None:
    """Shares beyond fixed places within 6.5 standard deviations: false alarm 8e-11 for each of 44."""
    law, rows = Law.parse(spelling), 1 << 17
    sample = law.sample(words(Address(20222, Stream.LABELS), 0, rows * 2).reshape(rows, 2))
    for place in (-300.0, -20.0, -4.0, -1.5, -0.5, 0.0, 0.4, 1.2, 5.0, 30.0, 400.0):
        chance = law.survival(place)
        deviation = math.sqrt(chance * (1 - chance) / rows)
        assert abs(float((sample > place).mean()) - chance) < 6.5 * deviation, place


@pytest.mark.parametrize("spelling", [*MOVED, *STABLE, "constant(3)"])
def test_a_value_depends_on_its_own_words_only(spelling: str) -> None:
    law = Law.parse(spelling)
    drawn = words(Address(3, Stream.LABELS), 0, 101 * law.words).reshape(101, law.words)
    together = law.sample(drawn)
    assert together.shape == (101,)
    assert together.tobytes() == np.concatenate([law.sample(drawn[i : i + 1]) for i in range(101)]).tobytes()
    assert law.sample(drawn[:100].reshape(4, 25, law.words)).tobytes() == together[:100].tobytes()


def test_symmetric_samples_are_odd_in_their_coin() -> None:
    drawn = words(Address(4, Stream.LABELS), 0, 1000).reshape(1000, 1)
    law = Law.parse("student-t(1.5)")
    assert (law.sample(drawn) == -law.sample(~drawn)).all()
    both = words(Address(4, Stream.LABELS), 0, 2000).reshape(1000, 2)
    mirrored = np.stack([~both[:, 0], both[:, 1]], axis=1)
    law = Law.parse("stable(1.5)")
    assert law.sample(both) == pytest.approx(-law.sample(mirrored), rel=1e-12)
    assert law.truncated_mean(7.5) == 0 == law.clipped_mean(7.5) == law.mean


def test_a_constant() -> None:
    law = Law.parse("constant(3)")
    assert law.mean == 3 == law.truncated_mean(3) == law.clipped_mean(4)
    assert law.truncated_mean(2.99) == 0
    assert law.clipped_mean(2) == 2
    assert law.variance == 0 == law.survival(3)
    assert law.absolute_moment(0.5) == math.sqrt(3)
    assert (Law.parse("centred constant(3) - 1").sample(np.zeros((2, 1), dtype=np.uint64)) == -1).all()
