"""A counterexample is looked for in one half of the draws, and counted in the other, which nobody looked at."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from studies.audit.bound import epsilon_bound, epsilon_bounds
from studies.audit.coins import AuditCoins
from studies.audit.subject import Floats, Outputs, Subject, View, outputs_of

Score = Callable[[Outputs], Floats]
Worth = Callable[[int, Floats, Floats], Floats]  # of draws of each input, and how many are in events
BINS, CUTS, MOST_COORDINATES = 32, 200, 8
FEWEST = 64  # draws of a half of the search
ENOUGH = 1 << 13  # and a sixteenth of the draws: more chooses hardly better
_HINT, _SHOWN = 1e-6, 0.01


@dataclass(frozen=True)
class Event:
    """Outputs whose score is at least `least`; `words` say so."""

    words: str
    score: Score
    least: float

    def hits(self, outputs: Outputs) -> int:
        """How many outputs are in it."""
        return int((self.score(outputs) >= self.least).sum())


@dataclass(frozen=True)
class Counted:
    """What the second half of the draws says of an event that the first half chose, likelier under `more`."""

    more: str
    less: str
    event: str
    hits: int
    others: int
    draws: int
    epsilon: float


def search(subject: Subject, draws: int, alpha: float, coins: AuditCoins) -> Counted:
    """The event and the pair of inputs with the largest bound in one half of the draws, and the bound of the other.

    Of each input twice at most `draws` / 2 outputs are drawn for the search, to learn scores from and to choose by;
    then `draws` of each of the two inputs chosen. Whatever the search did, the bound is wrong with probability at most
    alpha.
    Raises ValueError for too few draws.
    """
    part = min(draws // 2, ENOUGH + draws // 16)
    if part < FEWEST:
        raise ValueError(f"expected at least {2 * FEWEST} draws, got {draws}")
    known = {name: tuple(outputs_of(subject, name, part, coins) for _ in range(2)) for name in subject.inputs}
    delta = float(subject.claim.delta)
    worth = _apart if subject.normal else partial(_bound, draws, delta, alpha)
    best = (-1.0, "", "", Event("", _constant, 0.0))
    for one, other in subject.pairs:
        for score, words in scores(known[one][0], known[other][0], subject.views):
            values = score(known[one][1]), score(known[other][1])
            for sign, more, less in ((1, one, other), (-1, other, one)):
                high, low = (sign * values[0], sign * values[1])[::sign]
                found, least = _threshold(high, low, worth)
                if found > best[0]:
                    best = found, more, less, _event(score, sign, least, words)
    _, more, less, event = best
    hits, others = (event.hits(outputs_of(subject, name, draws, coins)) for name in (more, less))
    return Counted(more, less, event.words, hits, others, draws, epsilon_bound(hits, others, draws, delta, alpha))


def scores(one: Outputs, other: Outputs, views: Mapping[str, View]) -> Iterator[tuple[Score, str]]:
    """Scores that may tell two inputs apart, learnt from outputs of both: high speaks for `one`, or for neither."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        for words, feature in _features(one, other):
            yield _histogram(feature, one, other), f"a set of values of {words}"
            yield feature, words
        sample = _rows(one[:: max(1, len(one) // 256)])
        if len(set(sample)) < 0.9 * len(sample):  # values repeat
            yield _table(_rows, one, other), "a set of values"
        return
    for words, view in {"the output": _itself, **views}.items():

        def keys(outputs: Outputs, view: View = view) -> Sequence[Hashable]:
            return [view(output) for output in outputs]

        yield _table(keys, one, other), f"a set of values of {words}"


def _features(one: Floats, other: Floats) -> Iterator[tuple[str, Callable[[Outputs], Floats]]]:
    width = one.shape[1]
    for j in range(min(width, MOST_COORDINATES)):
        yield f"coordinate {j}", partial(_coordinate, j)
        yield f"the last bits of coordinate {j}", partial(_last_bits, j)
    if width == 1:
        return
    yield "the length", lambda outputs: np.sqrt((np.nan_to_num(np.asarray(outputs)) ** 2).sum(axis=1))
    yield "the place of the largest", lambda outputs: np.nan_to_num(np.asarray(outputs)).argmax(axis=1).astype(float)
    yield "how many are not 0", lambda outputs: (np.asarray(outputs) != 0).sum(axis=1).astype(float)
    known = np.nan_to_num(np.concatenate([one, other]))
    gap = np.nan_to_num(one).mean(axis=0) - np.nan_to_num(other).mean(axis=0)
    spread = np.maximum(known.var(axis=0), 1e-300)
    direction = gap / spread
    yield "a weighted sum", lambda outputs: np.nan_to_num(np.asarray(outputs)) @ direction


def _coordinate(j: int, outputs: Outputs) -> Floats:
    found: Floats = np.nan_to_num(np.asarray(outputs)[:, j])
    return found


def _last_bits(j: int, outputs: Outputs) -> Floats:
    return _grain(np.asarray(outputs)[:, j])


def _grain(values: Floats) -> Floats:
    """The place of the last bit of a double that is 1; marks of their own for 0, -0, NaN and infinity."""
    mantissa, power = np.frexp(np.where(np.isfinite(values), values, 0.0))
    whole = np.ldexp(np.abs(mantissa), 53).astype(np.int64)
    last = np.log2((whole & -whole).astype(np.float64), where=whole != 0, out=np.zeros(len(values)))
    found = np.where(whole != 0, last + power, 4000.0 + np.signbit(values))
    return np.where(np.isnan(values), 5000.0, np.where(np.isinf(values), 5001.0 + (values > 0), found))


def _histogram(feature: Score, one: Outputs, other: Outputs) -> Score:
    """The logarithm of how much likelier a bin of the feature is under the first input."""
    values = feature(one), feature(other)
    edges = np.unique(np.quantile(np.concatenate(values), np.linspace(0, 1, BINS + 1)[1:-1], method="lower"))
    edges = np.concatenate([edges, np.nextafter(edges, np.inf)])  # a value that repeats has a bin of its own
    edges.sort()
    counts = [np.bincount(np.searchsorted(edges, value, side="right"), minlength=len(edges) + 1) for value in values]
    ratio = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
    return lambda outputs: ratio[np.searchsorted(edges, feature(outputs), side="right")]


def _table(keys: Callable[[Outputs], Sequence[Hashable]], one: Outputs, other: Outputs) -> Score:
    """The same for values that are compared as they are; 0 for those that neither input had."""
    first, second = Counter(keys(one)), Counter(keys(other))
    ratio = {key: float(np.log((first[key] + 0.5) / (second[key] + 0.5))) for key in first.keys() | second.keys()}
    return lambda outputs: np.array([ratio.get(key, 0.0) for key in keys(outputs)])


def _threshold(high: Floats, low: Floats, worth: Worth) -> tuple[float, float]:
    """(worth, score) of the best event {score >= c}."""
    high, low = np.sort(high), np.sort(low)
    cuts = np.quantile(np.concatenate([high, low]), np.linspace(0, 1, CUTS), method="lower")
    tails = np.unique(np.concatenate([cuts, high[-8:]]))
    hits = (len(high) - np.searchsorted(high, tails, side="left")).astype(np.float64)
    others = (len(low) - np.searchsorted(low, tails, side="left")).astype(np.float64)
    bounds = worth(len(high), hits, others)
    bounds += _HINT * (hits - others) / np.sqrt(hits + others + 1)  # where no bound is above 0
    place = int(bounds.argmax())
    return float(bounds[place]), float(tails[place])


def _bound(draws: int, delta: float, alpha: float, size: int, hits: Floats, others: Floats) -> Floats:
    """What shares of `size` promise of `draws`: no more than they show, for the rarest look best by chance."""
    more = draws / size
    promised = epsilon_bounds(hits * more, others * more, draws, delta, alpha)
    found: Floats = np.minimum(promised, epsilon_bounds(hits, others, size, delta, max(alpha, _SHOWN)))
    return found


def _apart(size: int, hits: Floats, others: Floats) -> Floats:
    """How many standard errors two shares are apart: of normal laws an event in the middle tells most."""
    spread = hits * (size - hits) + others * (size - others)
    found: Floats = np.maximum(hits - others, 0.0) / np.sqrt(spread / size + 1)
    return found


def _event(score: Score, sign: int, least: float, words: str) -> Event:
    named = words if words.startswith("a set") else f"{words} {'>=' if sign > 0 else '<='} {sign * least:.6g}"
    return Event(named, lambda outputs: sign * score(outputs), least)


def _rows(outputs: Outputs) -> list[bytes]:
    return [row.tobytes() for row in np.ascontiguousarray(outputs)]


def _itself(output: Hashable) -> Hashable:
    return output


def _constant(outputs: Outputs) -> NDArray[np.float64]:
    return np.ones(len(outputs))
