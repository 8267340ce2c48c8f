"""How many rounds a descent has, how long its steps are and where it bounds, as the arm says or as the theorems do."""

from dataclasses import replace

from protocol.decimals import decimal
from protocol.record_terms import L2, LINF, MOST_ROUNDS
from protocol.strict import StudyError
from protocol.trust import Trust
from server.algorithms.aggregates import clips_around
from server.algorithms.bounds import FAILURE, assumed, rounded
from server.algorithms.sparse_terms import Curvature, restricted_curvature
from server.algorithms.steps import Room
from server.descent_thresholds import convex_descent, strong_descent, theorem_threshold

ROUNDS = 20
THEORY = "theory"


def rounds_of(room: Room) -> int:
    """T of the arm, 20 where it says none; "theory": of Theorem 7 where batches are disjoint, else of Theorem 6.

    The diameter is twice the problem's bound, R = smoothness times that, for the gradient at the minimiser is 0.
    Raises StudyError where a constant is missing or T is more than a run can have.
    Source: Tao, Wu, Cheng, Wang 2022, Theorems 6 and 7; R: derived, see docs/HEAVY_TAILS.md.
    """
    if room.word("rounds", "") != THEORY:
        return room.whole("rounds", ROUNDS)
    assert room.epsilon is not None and room.delta is not None
    (moment, tail), found, d = assumed(room), curvature_of(room), room.dimension
    epsilon, delta, wide = float(room.epsilon), float(room.delta), diameter(room)
    try:
        if strongly(room):
            paper, both = room.arm.estimator != "descent", (found.strength, found.smoothness)
            rounds = strong_descent(moment, tail, room.n, epsilon, delta, d, FAILURE, both, wide, paper).rounds
        else:
            rounds = convex_descent(moment, tail, room.n, epsilon, d, found.smoothness * wide, wide).rounds
    except ValueError as error:
        raise StudyError(f"{room.arm.name}: {error}") from None
    if rounds > MOST_ROUNDS:
        raise StudyError(f"{room.arm.name}: expected at most {MOST_ROUNDS} rounds, got {rounds}: say a number")
    return rounds


def step_of(room: Room, rounds: int) -> float:
    """eta of the arm, 1 where it says none; "theory": 1 / (a + b) where batches are disjoint, else 1 / (b sqrt(T)).

    a and b are curvature and smoothness; the latter is diameter / (R sqrt(T)), R as in `rounds_of`.
    Raises StudyError where a constant is missing. Source: Tao, Wu, Cheng, Wang 2022, Theorems 6 and 7.
    """
    if room.word("step", "") != THEORY:
        return room.number("step", 1.0)
    found = curvature_of(room)
    return rounded(1 / (found.strength + found.smoothness) if strongly(room) else 1 / (found.smoothness * rounds**0.5))


def bounded_by_theory(room: Room, rounds: int) -> Room:
    """The room itself; where its arm's threshold is "theory", one whose threshold is the number that this stands for.

    tau of Theorem 7 where batches are disjoint, over T = `rounds` of them, else of Theorem 6; times sqrt(d) where the
    length is bounded. Raises StudyError where nothing is known of the tail.
    Source: Tao, Wu, Cheng, Wang 2022, Theorems 6 and 7.
    """
    if room.word("threshold", "") != THEORY:
        return room
    assert room.epsilon is not None
    over = rounds if strongly(room) else 1
    threshold = theorem_threshold(*assumed(room), room.n, float(room.epsilon), room.dimension, over)
    length = clips_around(room) or room.word("norm", LINF) == L2
    number = decimal(rounded(threshold * (room.dimension**0.5 if length else 1.0)), "threshold")
    options = tuple((name, number if name == "threshold" else value) for name, value in room.arm.options)
    return replace(room, arm=replace(room.arm, options=options))


def strongly(room: Room) -> bool:
    """Whether Theorem 7 is the arm's, for strongly convex losses: that of disjoint batches."""
    usual = "disjoint" if room.arm.trust is Trust.LOCAL else "all"
    return room.arm.estimator == "algorithm-2-strong" or room.word("batches", usual) == "disjoint"


def diameter(room: Room) -> float:
    """Of the ball that theta is in. Raises StudyError where the problem has no bound."""
    if room.study.problem.bound is None:
        raise StudyError(f"{room.arm.name}: expected a bound in [problem]: theory takes the ball's diameter from it")
    return 2 * float(room.study.problem.bound)


def curvature_of(room: Room) -> Curvature:
    """The arm's `curvature` and `smoothness`; those not said are 1 for means, else follow from the law of features.

    Logistic losses have no curvature of their own: where Theorem 7 asks for one, the arm has to say it. A ridge adds to
    both. Raises StudyError.
    """
    model, law, ridge = room.study.problem.model, room.study.records, room.number("ridge", 0.0)
    strength, smoothness = room.number("curvature", 0.0), room.number("smoothness", 0.0)
    if not strength and strongly(room) and model == "logistic":
        raise StudyError(f"{room.arm.name}: expected curvature beside 'theory': a logistic loss has none of its own")
    if model == "mean":
        strength, smoothness = strength or 1.0, smoothness or 1.0
    elif not smoothness or (strongly(room) and not strength):
        try:
            if law is None:
                raise ValueError("nothing is known of these features")
            found = restricted_curvature(model, law.features, room.dimension)
        except ValueError as error:
            raise StudyError(f"{room.arm.name}: expected curvature and smoothness beside 'theory': {error}") from None
        strength, smoothness = strength or found.strength, smoothness or found.smoothness
    return Curvature(strength + ridge, smoothness + ridge)
