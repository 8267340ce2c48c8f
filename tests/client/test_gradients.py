"""What a record says of a point: gradients of losses against differences, and independence of rows."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.gradients import GRADIENTS, gradients
from client.records import Records
from protocol.problem import MODELS

LOSSES = {
    "mean": lambda w, x, y: 0.5 * ((w - x) ** 2).sum(),
    "linear": lambda w, x, y: 0.5 * (w @ x - y) ** 2,
    "logistic": lambda w, x, y: np.logaddexp(0, w @ x) - y * (w @ x),
}


def drawn(rows: int, most: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    return random.normal(size=(rows, most, 3)), (random.random((rows, most)) < 0.5).astype(float)


def test_every_model_of_records_has_a_gradient() -> None:
    assert set(GRADIENTS) == set(MODELS["records"])


@pytest.mark.parametrize("model", sorted(GRADIENTS))
def test_gradients_are_those_of_the_loss(model: str) -> None:
    x, y = drawn(4, 3)
    point, step = np.array([0.3, -1.0, 0.5]), 1e-6
    found = gradients(model, Records(x, y), point)
    for row in range(4):
        for j in range(3):
            ends = [point + sign * step * np.eye(3)[j] for sign in (1, -1)]
            values = [np.mean([LOSSES[model](end, *each) for each in zip(x[row], y[row], strict=True)]) for end in ends]
            assert found[row, j] == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("model", sorted(GRADIENTS))
def test_a_row_has_the_same_bits_alone(model: str) -> None:
    x, y = drawn(40, 2)
    point = np.array([0.3, -1.0, 0.5])
    whole = gradients(model, Records(x, y), point)
    parts = [gradients(model, Records(x[row : row + 1], y[row : row + 1]), point) for row in range(40)]
    assert (whole == np.concatenate(parts)).all()


def test_holders_of_fewer_records_answer_with_the_mean_of_theirs() -> None:
    x, y = drawn(3, 4)
    counts, point = np.array([4, 1, 2]), np.array([1.0, 2.0, 3.0])
    found = gradients("linear", Records(x, y, counts), point)
    for row, count in enumerate(counts):
        own = gradients("linear", Records(x[row : row + 1, :count], y[row : row + 1, :count]), point)
        assert found[row] == pytest.approx(own[0], rel=1e-14)


@given(st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_what_overflows_does_not_raise(x: float, y: float) -> None:
    records = Records(np.full((1, 1, 3), x), np.full((1, 1), y))
    for model in GRADIENTS:
        assert gradients(model, records, np.ones(3)).shape == (1, 3)


def test_records_hide_what_they_hold() -> None:
    x, y = drawn(2, 1)
    held = Records(x, y)
    assert repr(held) == "Records(2 rows, content hidden)"
    with pytest.raises(TypeError, match="stay in the process"):
        pickle.dumps(held)
    with pytest.raises(ValueError, match="read-only"):
        held.reveal()[0][0, 0, 0] = 1.0
    for wrong in (x[0], x.astype(np.float32)):
        with pytest.raises(ValueError, match="float64 features of three axes"):
            Records(wrong, None)
    with pytest.raises(ValueError, match="responses of shape"):
        Records(x, y[:1])
