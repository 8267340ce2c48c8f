"""Sparse learning with a trusted curator: steps of which only the largest coordinates leave, noisy, every round."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from protocol.record_terms import CLIP, TRUNCATE, Bounded, bounded, moves
from protocol.strict import StudyError
from protocol.trust import Trust
from server.algorithms.bounds import FAILURE, assumed, rounded
from server.algorithms.sparse_local import local_hard_thresholding
from server.algorithms.sparse_terms import Indices, SparsePath, Terms, batches, largest, terms_of
from server.algorithms.steps import Floats, Room, Steps, mean_of_rows
from server.evidence import Heard
from server.mechanisms.selection_rounds import Rounds, shared_rounds
from server.release_record import in_real_units
from server.thresholds import bias_constant, mse_threshold, sparse_threshold


def hard_thresholding(room: Room) -> Steps:
    """w <- the s largest coordinates of w - eta (mean bounded gradient at w), from 0, over T rounds.

    In clear they are taken as they are (gradients are bounded only where the arm has a threshold). A curator chooses
    them and their values with noise, by the arm's mechanism; `batches` "all" (the default): every row answers in every
    round, and T releases share the claim; "disjoint": each answers in one. Local: `local_hard_thresholding`.

    Guarantee: central (epsilon, delta), or epsilon where the mechanism is pure, over all rounds; unit: what a row is;
    neighbours: replace it.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithm 5; clipping, reuse and one-shot noise: derived, see
    docs/HEAVY_TAILS.md.
    """
    if room.arm.trust is Trust.LOCAL:
        return (yield from local_hard_thresholding(room))
    terms, everyone = terms_of(room), room.word("batches", "all") == "all"
    cut = [range(room.n)] * terms.rounds if everyone else batches(room, range(room.n), terms.rounds)
    if room.arm.trust is Trust.CLEAR:
        return (yield from _clear(room, terms, cut))
    return (yield from _peeled(room, terms, cut, room.word("threshold", "paper"), room.word("shape", CLIP)))


def algorithm_5(room: Room) -> Steps:
    """Algorithm 5 as printed: disjoint batches, gradients truncated to zero at the printed B, Peeling as printed.

    Guarantee: (epsilon, delta), for a row is in one batch; unit: what a row is; neighbours: replace it.
    Source: Tao, Wu, Cheng, Wang 2022, Algorithms 4 and 5.
    """
    terms = terms_of(room)
    return (yield from _peeled(room, terms, batches(room, range(room.n), terms.rounds), "paper", TRUNCATE))


def _clear(room: Room, terms: Terms, cut: list[range]) -> Steps:
    path, given = SparsePath(room), room.number("threshold", 0.0)
    how = Bounded(given, shape=room.word("shape", CLIP)) if given else None
    if room.arm.get("threshold") is not None and how is None:
        raise StudyError(f"{room.arm.name}: expected a number as threshold where there is no claim")
    for t, rows in enumerate(cut):
        (heard,) = yield [room.task(theta=path.at, round=t, rows=rows)]
        values = heard.collected.values
        assert values is not None
        means = np.stack([mean_of_rows(each if how is None else bounded(each, how)) for each in values])
        moved = path.at - float(terms.step) * means
        supports = [largest(each, terms.sparsity) for each in moved]
        path.move([(support, each[support]) for support, each in zip(supports, moved, strict=True)])
    return path.found


def _peeled(room: Room, terms: Terms, cut: list[range], rule: str, shape: str) -> Steps:
    size, share = len(cut[0]), room.arm.get("split")
    selections = _selections(room, terms, len(cut) if size == room.n else 1)
    how = Bounded(_threshold(room, terms, selections, size, rule, shape), shape=shape, rounds=selections.rounds)
    more: dict[str, Any] = {"sparsity": Decimal(terms.sparsity), "step": terms.step}
    more |= {"split": share} if isinstance(share, Decimal) else {}
    path = SparsePath(room)
    for t, rows in enumerate(cut):
        (heard,) = yield [room.task(how, theta=path.at, round=t, rows=rows, **more)]
        path.move([_chosen(room, heard, path.at[index], index, terms) for index in range(len(path.at))])
    return path.found


def _chosen(room: Room, heard: Heard, at: Floats, index: int, terms: Terms) -> tuple[Indices, Floats]:
    """The support of a step and the values there: scores are at / step times the number of rows, less their exact sum.

    In units of the sum's grid a row moves each of them by 2 floor(B / 2^e), whoever answers; `at` is public.
    """
    task, sums = heard.task, heard.collected.sums
    assert sums is not None and task.exponent is not None
    unit, how = Fraction(2) ** task.exponent, Bounded.of(task.menu[0])
    scale = len(heard.collected.rows) / (Fraction(terms.step) * unit)
    exact = [int(value) for value in np.ldexp(sums[index], -task.exponent)]
    scores = [round(Fraction(place) * scale) - value for place, value in zip(at.tolist(), exact, strict=True)]
    moved, share = moves(task.unit) * math.floor(Fraction(how.threshold) / unit), room.arm.get("split")
    more = {"sparsity": terms.sparsity, "share": share if isinstance(share, Decimal) else None}
    choice = room.chosen(heard, index, scores, task.exponent, moved, task.menu[0].name, **more)
    values = in_real_units(choice) * float(terms.step) / choice.request.count
    return np.array(choice.places, dtype=np.int64), values


def _selections(room: Room, terms: Terms, rounds: int) -> Rounds:
    assert room.epsilon is not None
    share = room.arm.get("split")
    try:
        return shared_rounds(
            room.arm.mechanism,
            room.epsilon,
            room.delta,
            terms.sparsity,
            rounds,
            share if isinstance(share, Decimal) else None,
        )
    except ValueError as error:
        raise StudyError(f"{room.arm.name}: {error}") from None


def _threshold(room: Room, terms: Terms, selections: Rounds, size: int, rule: str, shape: str) -> float:
    """B for `size` rows a round by the arm's number or a rule.

    "paper" balances bias with the noise of Algorithm 5, in disjoint batches, also where noise is less: then noise falls
    and the bias, whose bound is a worst case, stays where it was. "bound" balances it with the arm's own noise; so does
    "paper" for pure claims. "mse" minimises the error of one released value, which is not what errors come from.
    """
    given = room.arm.get("threshold")
    if isinstance(given, Decimal):
        return rounded(float(given))
    assert room.epsilon is not None
    moment, tail = assumed(room)
    if rule == "mse":
        return rounded(mse_threshold(moment, tail, size, 2 * selections.deviation / size, shape))
    logs = math.log(terms.sparsity * room.dimension * terms.rounds / FAILURE)
    if rule == "bound" or room.delta is None:
        least = 2 * max(selections.scale * logs, selections.value_scale * math.sqrt(2 * logs)) / size
        return rounded(float((bias_constant(shape, tail) * moment / least) ** (1 / (1 + tail))))
    batch, level = room.n // terms.rounds, (float(room.epsilon), float(room.delta))
    return rounded(sparse_threshold(moment, tail, batch, *level, terms.sparsity, room.dimension, terms.rounds, FAILURE))
