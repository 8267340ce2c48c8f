"""What of an estimate's accuracy is public: where contributions were bounded, and how much noise was added."""

import math
from collections.abc import Iterable, Sequence

from protocol.codec import decode_task
from protocol.messages import Task
from protocol.noise.record_terms import terms_of_records
from protocol.numeric import NUMERIC
from protocol.record_terms import L2, SUMS, Bounded, channel_of, squared_sensitivity, width
from protocol.secure.codec import decode_ask
from protocol.secure.messages import Stage, of_session
from protocol.trust import Trust
from server.mechanisms.rounds import ROUNDS
from server.outcome import asked_rows


def accuracy(raws: Iterable[bytes]) -> str | None:
    """Bounds and noise of all that was asked, in one sentence; None where nothing was bounded, or noise has no scale.

    Of a curator: the standard deviation of Gaussian noise in each coordinate of a mean. Of noise in shares: that of the
    shares of all rows. Of holders who randomise: at most so much in the mean of all reports, whatever records are.
    """
    tasks = [decode_task(part) for raw in raws for part in _tasks(raw)]
    told = [one for one in map(_told, tasks) if one is not None]
    if not told:
        return None
    bounds, deviations, lengths = zip(*told, strict=True)
    where = "in length" if all(lengths) else "a coordinate"
    most = "at most " if tasks[-1].trust is Trust.LOCAL else ""
    return f"Bounded at {_span(bounds)} {where}; noise of standard deviation {most}{_span(deviations)} in each mean"


def _tasks(raw: bytes) -> Sequence[bytes]:
    """The task that was asked, or those that a session begins with; later stages name the same ones again."""
    if not of_session(raw):
        return (raw,)
    asked = decode_ask(raw)
    return asked.tasks if asked.stage is Stage.KEYS else ()


def _told(task: Task) -> tuple[float, float, bool] | None:
    mechanism, n = task.menu[0], asked_rows(task)
    if task.trust is Trust.CENTRAL and mechanism.name in ROUNDS and task.exponent is not None:
        how = Bounded.of(mechanism)
        assert task.epsilon is not None and task.delta is not None and how.kind == SUMS
        moved = math.sqrt(squared_sensitivity(how, task.exponent, task.problem.dimension, task.unit))
        noise = ROUNDS[mechanism.name](task.epsilon, task.delta, how.rounds)
        return how.threshold, math.ldexp(noise * moved, task.exponent) / n, how.norm == L2
    if task.trust is Trust.DISTRIBUTED:
        terms = terms_of_records(task, mechanism)
        noise = math.ldexp(math.sqrt(terms.shares.share * n), terms.power)
        return terms.how.threshold, noise / n, terms.how.norm == L2
    if task.trust is Trust.LOCAL and mechanism.name in NUMERIC and mechanism.get("lowest") is None:
        channel = channel_of(mechanism)
        return channel.bound, math.sqrt(channel.worst_mse / width(task) / n), channel.norm == L2
    return None


def _span(values: tuple[float, ...]) -> str:
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"
