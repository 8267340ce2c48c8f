"""What every registered randomiser of numbers keeps: mean, MSE, level, legal outputs, bits of its own row."""

import math
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.numeric import NUMERIC, numeric_channel
from protocol.numeric.channel import NumericChannel
from protocol.numeric.coordinates import SCALARS, Coordinates, usual_coordinates
from protocol.numeric.rules import usual_mechanism

Make = Callable[..., NumericChannel]
NAMES = sorted(NUMERIC)
LIVE = {"discrete-laplace", "duchi", "piecewise", "hybrid", "duchi-cube"}  # the others are for simulations


def words(seed: int, rows: int, channel: NumericChannel) -> np.ndarray:
    return np.random.Generator(np.random.Philox(seed)).integers(0, 1 << 64, size=(rows, channel.words), dtype=np.uint64)


def value(channel: NumericChannel, share: float) -> np.ndarray:
    """A row at `share` of the bound, all coordinates different."""
    row = np.linspace(-1, 0.5, channel.dimension)
    return row * (share * channel.bound / (1.0 if channel.norm == "linf" else float(np.sqrt(row @ row))))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("d", "epsilon"), [(2, "0.3"), (7, "5")])
def test_mean_and_mse(name: str, d: int, epsilon: str, make: Make) -> None:
    """Within 6.2 standard errors of the mean and 7 of the MSE, over d + 1 numbers: false alarm below 1e-8 together."""
    channel, rows = make(name, d, epsilon, "3"), 40_000
    for seed, share in enumerate((0.0, 0.7)):
        x = value(channel, share)
        drawn = channel.report(np.tile(x, (rows, 1)), words(seed, rows, channel))
        assert channel.legal(drawn).all()
        error = np.abs(drawn.mean(axis=0) - x)
        assert (error <= 6.2 * drawn.std(axis=0) / math.sqrt(rows) + 1e-12).all()
        squares = ((drawn - x) ** 2).sum(axis=1)
        mse = channel.mse(x[None, :])[0]
        assert abs(squares.mean() - mse) <= 7 * squares.std() / math.sqrt(rows) + 1e-9 * mse
        assert mse <= channel.worst_mse * (1 + 1e-12)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=15)
@given(
    st.integers(2, 40),
    st.decimals(min_value=Decimal("0.001"), max_value=20, allow_nan=False, places=4).filter(lambda e: e > 0),
)
def test_levels_never_exceed_what_was_asked(name: str, d: int, epsilon: Decimal) -> None:
    parameters = {"epsilon": epsilon, "threshold": Decimal("0.3"), "dimension": Decimal(d)}
    channel = numeric_channel(name, parameters | ({"delta": Decimal("1e-6")} if name == "gaussian" else {}))
    assert Decimal("0.999") * epsilon <= channel.level <= epsilon
    assert channel.live == (name in LIVE)
    assert (channel.delta > 0) == (name == "gaussian")
    assert Decimal(channel.bound) <= channel.threshold
    assert len(channel.digest) == 32


@pytest.mark.parametrize("name", NAMES)
def test_a_report_depends_on_its_own_row_alone(name: str, make: Make) -> None:
    channel, rows = make(name, 5, "4", "2"), 40
    x = np.stack([value(channel, share) for share in np.linspace(0, 1, rows)])
    drawn = words(3, rows, channel)
    whole = channel.report(x, drawn)
    single = [channel.report(x[i : i + 1], drawn[i : i + 1]) for i in range(rows)]
    assert np.concatenate(single).tobytes() == whole.tobytes()
    assert channel.report(x[::-3], drawn[::-3]).tobytes() == whole[::-3].tobytes()
    assert channel.report(np.asfortranarray(x), drawn).tobytes() == whole.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_other_outputs_are_not_legal(name: str, make: Make) -> None:
    """NaN, inf, half a step off, another size: what no coin leads to."""
    channel = make(name, 5, "4", "2")
    own = channel.report(np.zeros((1, 5)), words(4, 1, channel))
    assert channel.legal(own).all()
    for wrong in (math.nan, math.inf, -math.inf, 1.7e308):
        mutated = own.copy()
        mutated[0, 2] = wrong
        assert not channel.legal(mutated).any()
    if name != "priv-unit-gaussian":  # its reports are all vectors
        assert not channel.legal(own * (1 + 1e-8)).any()
    if name not in ("gaussian", "laplace", "priv-unit-gaussian"):
        assert not channel.legal(np.zeros((1, 5))).any()
        assert not channel.legal(own * 2).any()


@pytest.mark.parametrize("name", ["gaussian", "laplace", "priv-unit-gaussian"])
def test_the_most_extreme_coins_lead_to_legal_outputs_and_no_further(name: str, make: Make) -> None:
    """Words of all zeros or ones at rows on the bound; ten times the largest of these reports is none."""
    channel = make(name, 3, "1", "2")
    size = 2.0 / (math.sqrt(3) if channel.norm == "l2" else 1.0) * (1 - 2.0**-45)
    rows = np.repeat(np.array([[1.0, 1, 1], [-1, -1, -1], [0, 0, 0]]) * size, 3, axis=0)
    ends = np.array([0, (1 << 64) - 1, 1 << 63] * 3, dtype=np.uint64)
    reports = channel.report(rows, np.repeat(ends[:, None], channel.words, axis=1))
    assert channel.legal(reports).all()
    reports = reports[(reports != 0).any(axis=1)]
    far = np.where(reports != 0, 2.0 ** np.ceil(np.log2(10 * np.abs(reports).max())), 0.0)
    assert not channel.legal(far).any()


@pytest.mark.parametrize("name", sorted(SCALARS))
def test_sampled_coordinates_are_uniform_and_the_rest_is_zero(name: str, make: Make) -> None:
    """Each of 6 coordinates in half of the reports, within 6.2 standard deviations: false alarm 4e-9."""
    channel, rows = make(name, 6, "2", "1", 3), 20_000
    assert channel.words == 3 * (1 + SCALARS[name](Decimal(1)).words)
    sent = channel.report(np.zeros((rows, 6)), words(5, rows, channel)) != 0
    assert (sent.sum(axis=1) <= 3).all()
    assert (np.abs(sent.mean(axis=0) - 0.5) <= 6.2 * 0.5 / math.sqrt(rows)).all()
    report = channel.report(np.zeros((1, 6)), words(6, 1, channel))
    for changed in (report[:, ::-1] + report, report * (np.cumsum(report != 0) < 3)):
        assert channel.legal(changed).all() == (name == "laplace" and (changed != 0).sum() <= 3)
    assert channel.report(np.zeros((1, 6)), words(6, 1, channel)).tolist() == report.tolist()


def test_all_coordinates_share_the_level(make: Make) -> None:
    for name, scalar in SCALARS.items():
        channel = make(name, 4, "2", "1", 4)
        assert isinstance(channel, Coordinates)
        assert channel.words == 4 * scalar(Decimal("0.5")).words
        assert channel.scalar == scalar(Decimal("0.5"))
        assert Decimal("1.999999") < channel.level <= 2


# Rules and the table of the literature


PRINTED = {
    (10, 1): (8000, 890, 468, 519, 607, 607, 5567),
    (10, 4): (500, 140, 108, 112, 103, 46.7, 468),
    (10, 8): (125, 102, 100, 42.1, 94.0, 18.4, 144),
    (50, 1): (1.0e6, 22450, 11707, 13172, 16696, 15693, 1.39e5),
    (50, 4): (62500, 3700, 2690, 2997, 3394, 1103, 11689),
    (50, 8): (15625, 2763, 2503, 1252, 3131, 355, 3603),
}


@pytest.mark.parametrize(("d", "epsilon"), sorted(PRINTED))
def test_worst_cases_by_dimension_and_level(d: int, epsilon: int, make: Make) -> None:
    """To the digits of an independent computation of the continuous laws; rows in a cube have norms up to sqrt(d)."""
    e, root = str(epsilon), repr(math.sqrt(d))
    found = (
        make("laplace", d, e, "1", d),
        make("laplace", d, e, "1", 1),
        make("duchi", d, e, "1", 1),
        make("hybrid", d, e, "1", max(1, int(epsilon / 2.5))),
        make("duchi-cube", d, e),
        make("priv-unit", d, e, root),
        make("gaussian", d, e, root),
    )
    assert [channel.worst_mse for channel in found] == pytest.approx(PRINTED[d, epsilon], rel=5e-3)


@pytest.mark.parametrize("name", sorted(SCALARS))
def test_the_usual_number_of_coordinates_is_the_best_of_all(name: str, make: Make) -> None:
    for d in (1, 2, 9, 30):
        for epsilon in ("0.1", "1", "3.5", "8", "12"):
            costs = [make(name, d, epsilon, "1", k).worst_mse for k in range(1, d + 1)]
            assert usual_coordinates(name, Decimal(epsilon), d) == 1 + int(np.argmin(costs))
            assert make(name, d, epsilon).worst_mse == min(costs)


def test_fewer_coordinates_where_numbers_are_small(make: Make) -> None:
    """Against the mean MSE of rows drawn with that mean square, for all k; at 0 piecewise takes one."""
    rows = np.random.Generator(np.random.Philox(9)).pareto(1.6, size=(400, 12)).clip(max=40) / 40
    mean_square = float((rows * rows).mean())
    for name in sorted(SCALARS):
        for epsilon in ("1", "4", "9"):
            costs = [make(name, 12, epsilon, "1", k).mse(rows).mean() for k in range(1, 13)]
            best = usual_coordinates(name, Decimal(epsilon), 12, mean_square)
            assert costs[best - 1] <= min(costs) * (1 + 1e-3)
    assert {usual_coordinates("piecewise", Decimal(e), 12, 0.0) for e in (1, 4, 9, 16)} == {1}
    with pytest.raises(ValueError, match="expected 0 <= mean_square"):
        usual_coordinates("duchi", Decimal(1), 12, -0.5)


def test_the_usual_mechanism(make: Make) -> None:
    assert usual_mechanism(20, Decimal("0.3")).name == "duchi"
    assert usual_mechanism(20, Decimal("0.7")).name == "piecewise"
    assert usual_mechanism(20, Decimal(2)).name == "priv-unit"
    assert usual_mechanism(1, Decimal(2)).name == "piecewise"
    for epsilon in map(Decimal, ("0.3", "1", "4", "9")):
        usual = usual_mechanism(20, epsilon, live=True)
        assert make(usual.name, 20, str(epsilon), "1", usual.coordinates).live


def test_every_level_is_computed_somewhere() -> None:
    """By enumeration for integers, by ratios of densities for others: a mechanism that no test knows is a failure."""
    enumerated = {"discrete-laplace", "duchi", "piecewise", "hybrid", "duchi-cube"}
    densities = {"laplace", "gaussian", "duchi-ball", "priv-unit", "priv-unit-gaussian"}
    assert enumerated | densities == set(NUMERIC)
    assert enumerated == LIVE


# Parameters


@pytest.mark.parametrize("name", NAMES)
def test_wrong_parameters_are_refused(name: str) -> None:
    good = {"epsilon": Decimal(1), "threshold": Decimal(1), "dimension": Decimal(3)}
    if name == "gaussian":
        good["delta"] = Decimal("1e-5")
    numeric_channel(name, good)
    nan = Decimal("NaN")
    wrong = [{"epsilon": Decimal(v)} for v in ("0", "-1", "1001", "NaN", "Infinity")]
    wrong += [{"threshold": Decimal(v)} for v in ("0", "-1", "NaN", "Infinity", "1e101")]
    wrong += [{"dimension": Decimal(v)} for v in ("0", "2.5", "NaN", "1e9")] + [{"unknown": Decimal(1)}]
    wrong += [{"coordinates": v} for v in (Decimal(0), Decimal(4), nan)] + [{"delta": Decimal(0)}, {"delta": nan}]
    for changed in wrong:
        with pytest.raises(ValueError, match="expected"):
            numeric_channel(name, good | changed)
    for key in good:
        with pytest.raises(ValueError, match="expected parameters"):
            numeric_channel(name, {k: v for k, v in good.items() if k != key})


def test_unknown_mechanisms_are_refused() -> None:
    with pytest.raises(ValueError, match="expected a mechanism of numbers"):
        numeric_channel("no-noise", {})


def test_digests_name_mechanism_and_parameters(make: Make) -> None:
    made = [make(name, d, e, t) for name in NAMES for d in (2, 3) for e in ("1", "2") for t in ("1", "2")]
    assert len({channel.digest for channel in made}) == len(made)
    assert make("duchi", 3, "1.0", "2.00").digest == make("duchi", 3, "1", "2", 1).digest
