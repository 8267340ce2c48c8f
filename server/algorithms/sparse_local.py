"""Sparse learning from holders who trust nobody: nothing is as cheap as with a curator, for every coordinate pays.

No method by which holders randomise their own answers finds the large ones of d coordinates at a price of log d.
"""

import math
from dataclasses import replace
from decimal import Decimal

from protocol.messages import Runs
from protocol.record_terms import L2, Bounded
from protocol.strict import StudyError
from server.algorithms.bounds import FAILURE, assumed, local_bound, rounded
from server.algorithms.local import local_parameters, local_task, worst_variance
from server.algorithms.sparse_terms import Indices, SparsePath, batches, largest, terms_of
from server.algorithms.steps import Room, Steps
from server.thresholds import bias_constant

UNBOUNDED = 1e50  # a vote for the largest coordinate has no size


def local_hard_thresholding(room: Room) -> Steps:
    """w <- the s largest coordinates of w - eta (mean report at w), each holder in one of T disjoint batches.

    Reports are of whole gradients, by the arm's mechanism; what is kept of their mean costs nothing more.

    Guarantee: local epsilon, or (epsilon, delta), of every holder over all rounds; unit: what a row is; neighbours:
    replace it. Source: derived, see docs/HEAVY_TAILS.md.
    """
    terms, path = terms_of(room), SparsePath(room)
    for t, rows in enumerate(batches(room, range(room.n), terms.rounds)):
        how = _bound(room, len(rows), room.dimension, terms.rounds)
        (heard,) = yield [local_task(room, len(rows), theta=path.at, round=t, rows=rows, how=how)]
        moved = path.at - float(terms.step) * room.means(heard)
        supports = [largest(each, terms.sparsity) for each in moved]
        path.move([(support, each[support]) for support, each in zip(supports, moved, strict=True)])
    return path.found


def two_phase(room: Room) -> Steps:
    """The first half of the holders find the support: each sends one coordinate of its gradient at 0, drawn by itself.

    By Duchi's mechanism; the s largest means are kept. The others send those s coordinates only, in T disjoint batches,
    by the arm's mechanism, and steps are taken along them.

    Guarantee: local epsilon, or (epsilon, delta), of every holder, who answers once; unit: what a row is; neighbours:
    replace it. Source: derived, see docs/HEAVY_TAILS.md; Duchi, Jordan, Wainwright 2018.
    """
    halves = _halves(room)
    asking = _first(room, "duchi")
    how = _bound(asking, len(halves[0]), room.dimension, 1)
    (heard,) = yield [local_task(asking, len(halves[0]), rows=halves[0], how=how)]
    sparsity = terms_of(room).sparsity
    return (yield from _along(room, [largest(each, sparsity) for each in asking.means(heard)], halves[1]))


def votes(room: Room) -> Steps:
    """The first half of the holders vote, each for its largest |g_j| at 0 and its sign; the s largest sums are kept.

    By optimised unary encoding; the second half as in `two_phase`. Votes without signs say nothing of theta in a
    regression: gradients at 0 are multiples of x, and the largest is that of the largest feature.

    Guarantee, source: as `two_phase`; votes: Wang, Blocki, Li, Jha 2017.
    """
    halves = _halves(room)
    asking, sparsity = _first(room, "unary"), terms_of(room).sparsity
    (heard,) = yield [local_task(asking, len(halves[0]), rows=halves[0], how=Bounded(UNBOUNDED))]
    return (yield from _along(room, [largest(each, sparsity) for each in asking.means(heard)], halves[1]))


def _along(room: Room, supports: list[Indices], rows: range) -> Steps:
    """Steps along a support of each repetition, which is public by now: one task a repetition asks for no more."""
    terms, path = terms_of(room), SparsePath(room)
    alone = [
        replace(room, cell=replace(room.cell, first_repetition=room.cell.first_repetition + index, repetitions=1))
        for index in range(len(supports))
    ]
    for t, part in enumerate(batches(room, rows, terms.rounds), start=1):
        how = _bound(room, len(part), terms.sparsity, terms.rounds)
        heard = yield [
            local_task(
                each,
                len(part),
                theta=path.at[index : index + 1],
                round=t,
                rows=part,
                only=Runs.of(supports[index]),
                how=how,
            )
            for index, each in enumerate(alone)
        ]
        moved = []
        for index, support in enumerate(supports):
            mean = alone[index].means(heard[index])[0]
            moved.append((support, path.at[index, support] - float(terms.step) * mean))
        path.move(moved)
    return path.found


def _bound(room: Room, n: int, dimension: int, rounds: int) -> Bounded:
    """The arm's bound, or one at which the bias is what noise adds to the largest of the coordinates that are compared.

    c u B^-v = B sqrt(2 w log(2 d T / xi) / n), w the worst variance of a report of [-1, 1]: where the s largest of d
    means are kept, it is the largest noise that decides, not the mean square. Source: derived, see docs/HEAVY_TAILS.md.
    """
    assert room.epsilon is not None
    how = local_bound(room, n, room.epsilon, **local_parameters(room, dimension))
    if room.arm.get("threshold") is not None:
        return how
    moment, tail = assumed(room)
    noise = math.sqrt(2 * worst_variance(room, dimension) * math.log(2 * dimension * rounds / FAILURE) / n)
    threshold = float((bias_constant(how.shape, tail) * moment / noise) ** (1 / (1 + tail)))
    return replace(how, threshold=rounded(threshold * (math.sqrt(dimension) if how.norm == L2 else 1.0)))


def _first(room: Room, mechanism: str) -> Room:
    """The room of the first half: another mechanism, a pure one, and one coordinate a holder where it has a choice."""
    kept = tuple((name, value) for name, value in room.arm.options if name != "coordinates")
    one = (("coordinates", Decimal(1)),) if mechanism == "duchi" else ()
    return replace(room, arm=replace(room.arm, mechanism=mechanism, options=(*kept, *one)), delta=None)


def _halves(room: Room) -> tuple[range, range]:
    if room.n < 2:
        raise StudyError(f"{room.arm.name}: expected at least two rows, one for each phase")
    return range(room.n // 2), range(room.n // 2, room.n)
