"""The map of shaped noise: it whitens public features, and gives a row the same bits whatever stands beside it."""

from decimal import Decimal

import numpy as np
import pytest

from protocol.codec import decode_task, encode_task
from protocol.coins import Address, Stream
from protocol.errors import WireError
from protocol.features import default_radius, differences, norms, project, reduced_rows, row_bound
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.shaping import default_mechanism, mapped, second_moments, shaping, triangular_inverse
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Grid, Study, describe
from protocol.study_file import parse_problem
from protocol.trust import Trust

SCALES = tuple(map(Decimal, ("0.5", "0.15", "0.05", "0.015", "0.005")))
DRAWN = Problem(5, "gaussian", False, None, scales=SCALES)
SUMMING = Problem(5, "gaussian", True, None, scales=SCALES)
CHAIN = np.array([[0, 1]] * 40 + [[1, 2]] * 30 + [[2, 3]] * 5, dtype=np.int32)
ITEMS = Problem(4, "items", True, None, CHAIN)


@pytest.mark.parametrize("problem", [DRAWN, SUMMING])
def test_scales_are_the_variances_of_drawn_coordinates(problem: Problem) -> None:
    """Of 2^16 rows: entries of Sigma within 6 standard errors, at most sqrt(2) Sigma_jj / 256 each: 2e-9 an entry."""
    rows = reduced_rows(problem, 7, 1 << 16, 0, 0, 1 << 16)
    expected = second_moments(problem, 1 << 16)
    size = np.sqrt(expected.diagonal())
    assert (np.abs(rows.T @ rows / len(rows) - expected) <= 6 * np.sqrt(2) / 256 * size[:, None] * size).all()
    assert default_radius(problem, 1) == pytest.approx(np.sqrt(expected.trace()))
    assert norms(rows).max() < row_bound(problem, None)


def test_a_scale_of_four_doubles_a_coordinate_and_leaves_the_others() -> None:
    address = Address(3, Stream.PROBLEM, 9, 0)
    plain = differences(Problem(3, "gaussian", False, None), address, 0, 9)
    scaled = differences(
        Problem(3, "gaussian", False, None, scales=(Decimal(1), Decimal(4), Decimal(1))), address, 0, 9
    )
    assert (scaled[:, [0, 2]] == plain[:, [0, 2]]).all()
    np.testing.assert_allclose(scaled[:, 1], 2 * plain[:, 1], rtol=1e-15)


@pytest.mark.parametrize(
    "scales", [("1", "1", "1"), ("0", "1", "1"), ("-1", "1", "1"), ("NaN", "1", "1"), ("1e13", "1", "1"), ("2", "1")]
)
def test_scales_that_are_none_are_refused(scales: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="scales"):
        Problem(3, "gaussian", False, None, scales=tuple(map(Decimal, scales)))
    asked = [Decimal(scale) for scale in scales]
    with pytest.raises(StudyError, match="scales"):
        parse_problem({"kind": "pairwise", "dimension": 3, "features": "gaussian", "scales": asked})


def test_only_gaussian_pairs_have_scales() -> None:
    with pytest.raises(ValueError, match="scales"):
        Problem(2, "sphere", False, None, scales=(Decimal(1), Decimal(2)))


def test_scales_name_another_problem() -> None:
    digests = {Problem(2, "gaussian", False, None, scales=(Decimal(1), Decimal(2))).digest}
    digests |= {Problem(2, "gaussian", False, None, scales=(Decimal(2), Decimal(1))).digest}
    assert len(digests | {Problem(2, "gaussian", False, None).digest}) == 3


@pytest.mark.parametrize("problem", [DRAWN, SUMMING, ITEMS])
def test_a_map_makes_second_moments_the_identity(problem: Problem) -> None:
    n = len(CHAIN)
    matrix, moments = shaping(problem, n), second_moments(problem, n)
    np.testing.assert_allclose(matrix @ moments @ matrix.T, np.eye(len(moments)), atol=1e-12)
    np.testing.assert_allclose(triangular_inverse(matrix) @ matrix, np.eye(len(moments)), atol=1e-12)
    assert not np.triu(matrix, 1).any()


def test_moments_of_given_features_are_means_over_rows() -> None:
    rows = project(np.eye(4)[CHAIN[:, 1]] - np.eye(4)[CHAIN[:, 0]])
    np.testing.assert_allclose(second_moments(ITEMS, len(CHAIN)), rows.T @ rows / len(rows), atol=1e-15)
    np.testing.assert_allclose(second_moments(ITEMS, 10), rows[:10].T @ rows[:10] / 10, atol=1e-15)


def test_mapped_rows_have_the_same_bits_in_any_company() -> None:
    rows, matrix = np.random.default_rng(1).standard_normal((50, 5)), shaping(DRAWN, 1)
    whole = mapped(rows, matrix)
    assert all((mapped(rows[i : i + 1], matrix) == whole[i]).all() for i in range(50))
    np.testing.assert_allclose(whole, rows @ matrix.T, rtol=1e-12)


def test_a_store_maps_before_it_weighs() -> None:
    store, matrix = FeatureStore(3), shaping(DRAWN, 8)
    made = store.rounded(DRAWN, 8, 0, 0, 8, -40, 2.0, matrix)
    assert made.weights is not None
    whole = mapped(store.reduced(DRAWN, 8, 0, 0, 8), matrix)
    np.testing.assert_allclose(made.weights, np.minimum(1.0, 2.0 / norms(whole)), rtol=1e-15)
    np.testing.assert_allclose(made.rows, made.weights[:, None] * whole, atol=2.0**-40)
    assert norms(made.rows).max() <= 2.0
    assert (store.rounded(DRAWN, 8, 0, 0, 8, -40, 2.0).rows != made.rows).any()


@pytest.mark.parametrize("matrix", [np.ones((3, 3)), np.full((5, 5), np.nan), np.full((5, 5), 1e308)])
def test_a_map_that_fits_no_row_is_refused(matrix: np.ndarray) -> None:
    with pytest.raises(ValueError, match="map"), np.errstate(over="ignore", invalid="ignore"):
        mapped(np.full((2, 5), 1e10), matrix)


def test_noise_is_shaped_by_default_exactly_where_features_are_anisotropic() -> None:
    def ratio(scale: str) -> str:
        return default_mechanism(Problem(2, "gaussian", False, None, scales=(Decimal(1), Decimal(scale))))

    assert ratio("3.99") == ratio("0.26") == default_mechanism(Problem(5, "gaussian", True, None))
    assert ratio("4.01") == ratio("0.24") == default_mechanism(ITEMS) == "gaussian-statistic-shaped"
    apart = Problem(4, "items", True, None, np.array([[0, 1], [2, 3]], dtype=np.int32))  # no comparison in between
    assert default_mechanism(apart) == default_mechanism(Problem(5, "sphere", False, None)) == ratio("3")
    with pytest.raises(ValueError, match="span"):
        shaping(apart, 2)


def test_a_study_file_s_scales_come_back_from_its_description() -> None:
    table = {"kind": "pairwise", "dimension": 5, "features": "gaussian", "scales": list(SCALES)}
    study = Study("s", 0, 1, parse_problem(table), Grid((1,), (), ()), ())
    assert parse_problem(table).scales == SCALES
    assert describe(study)["problem"]["scales"] == ["0.5", "0.15", "0.05", "0.015", "0.005"]


def task(**changed: object) -> Task:
    asked = {
        "study": bytes(32),
        "trust": Trust.CENTRAL,
        "unit": Unit.LABEL,
        "problem": DRAWN,
        "menu": (Mechanism("gaussian-statistic-shaped"),),
        "n": 4,
        "epsilon": Decimal(1),
        "delta": Decimal("1e-5"),
        "first_repetition": 0,
        "repetitions": 1,
        "exponent": -40,
        "map": shaping(DRAWN, 4),
    }
    return Task(**(asked | changed))  # type: ignore[arg-type]


def test_a_map_and_scales_travel_as_the_same_bits() -> None:
    sent = task()
    read = decode_task(encode_task(sent))
    assert sent.map is not None and read.map is not None
    assert read.map.tobytes() == sent.map.tobytes()
    assert read.problem.scales == SCALES and read.problem.digest == DRAWN.digest


@pytest.mark.parametrize("matrix", [np.eye(4), np.zeros(5), np.full((5, 5), np.inf), np.eye(5, dtype=np.int32)])
def test_a_map_of_another_shape_or_kind_does_not_parse(matrix: np.ndarray) -> None:
    with pytest.raises(WireError):
        decode_task(encode_task(task(map=matrix)))
