"""A mod for a Flower ClientApp: of what training learned one randomised row leaves, after it was paid for."""

import logging
import traceback
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, Context, Error, Message, RecordDict
from flwr.clientapp.typing import ClientAppCallable

from client.account import BudgetExhausted
from client.ledger_store import LedgerUnavailable
from deploy.plugin.paid import Purse
from deploy.plugin.updates import Form, channel_of, dimension_of, form_of, packed, row_of
from protocol import decimals
from protocol.numeric.channel import Floats

TRAIN, OTHERS = "train", ("evaluate", "query")
FAILED = 6  # Flower's code for a mod that does not go on
Number = int | float | str | Decimal
_log = logging.getLogger("halftruth.client")


class Refused(Exception):
    """The node does not answer; the text is fixed, and goes to the server."""


@dataclass(frozen=True)
class PrivateUpdates:
    """Made by `private_updates`; Flower calls it with each message."""

    epsilon: Decimal
    threshold: Decimal
    purse: Purse
    public: frozenset[str] = frozenset()

    def __call__(self, message: Message, context: Context, call_next: ClientAppCallable) -> Message:
        """A report, a public reply, or an error whose text is fixed. Never raises: Flower sends an exception's text.

        Guarantee: that of `private_updates`.
        """
        try:
            return Message(self._content(message, context, call_next), reply_to=message)
        except Refused as refused:
            reason = str(refused)
        except BudgetExhausted:
            reason = "the budget is spent"
        except LedgerUnavailable as error:
            reason = "the ledger is not available"
            _log.warning("%s", error)
        except Exception as error:  # its text could hold data: it is neither sent nor logged
            reason = "internal error"
            _log.warning("no answer: %s", _place(error))
        _log.warning("refused: %s", reason)
        return Message(Error(FAILED, f"refused: {reason}"), reply_to=message)

    def _content(self, message: Message, context: Context, call_next: ClientAppCallable) -> RecordDict:
        kind = message.metadata.message_type.partition(".")[0]
        if kind in self.public:
            return call_next(message, context).content
        if kind != TRAIN:
            raise Refused("this node answers training only: what else it knows is not declared public")
        try:
            arrays = only(message.content)
            form = form_of(arrays)
            before = row_of(arrays, form)
            channel = channel_of(self.epsilon, self.threshold, dimension_of(form))
        except Exception as error:  # of the server's own message: no data have been looked at
            raise Refused("expected one record of arrays with 1 to 2^20 floating-point numbers") from error

        def learn() -> Floats:
            return bounded(learned(message, context, call_next, before, form), channel.bound)

        return packed(self.purse.answer(message, context, channel, learn), channel)


def private_updates(
    *, epsilon: Number, threshold: Number, total: Number, ledger: str | Path, public: Collection[str] = ()
) -> PrivateUpdates:
    """A mod that has a ClientApp send what training changed as one randomised row, and nothing else.

    Each coordinate of the change of all floating-point arrays is cut to [-threshold, threshold] (NaN counts as 0), and
    the row goes through the usual mechanism for its length, with the system's coins. A question that was answered
    before gets the same report from the ledger, for nothing; any other costs `epsilon`, until `total` is spent.
    Metrics, counts of examples and arrays of integers do not leave. Training that fails reports a change of 0, since
    whether it fails depends on data. Replies to "evaluate" and "query" leave, as they are, only where `public` names
    them. The ledger is made with the first message of a run, and missed afterwards. The mod stands first among mods.

    Guarantee: (epsilon, 0) for a report, (total, 0) for all that leave; unit: one holder, who is the node, or in a
    simulation the partition; neighbours: replace all data of the holder. Not what an app does elsewhere: time that
    training takes, files, logs, a process that it ends.
    Raises ValueError for numbers out of range, a total below epsilon, a ledger path that depends on the working folder,
    and anything in `public` but "evaluate" and "query".
    """
    level, cap = decimals.epsilon(epsilon), decimals.epsilon(total, "total")
    if cap < level:
        raise ValueError(f"expected total >= epsilon {level}, got {cap}: no report could be paid")
    path = Path(ledger).expanduser()
    if not path.is_absolute():
        raise ValueError(f"expected an absolute path of the ledger, or one from ~, got {str(ledger)!r}")
    if isinstance(public, str) or not set(public) <= set(OTHERS):
        raise ValueError(f"expected public out of {OTHERS}, got {public!r}")
    bound = decimals.decimal(threshold, "threshold")
    channel_of(level, bound, 1)  # raises where these numbers make none
    return PrivateUpdates(level, bound, Purse(path, cap), frozenset(public))


def only(content: RecordDict) -> ArrayRecord:
    """The one record of arrays; raises ValueError where there is none, or several."""
    if len(content.array_records) != 1:
        raise ValueError(f"expected one record of arrays, got {len(content.array_records)}")
    (found,) = content.array_records.values()
    return found


def learned(message: Message, context: Context, call_next: ClientAppCallable, before: Floats, form: Form) -> Floats:
    """What training changed (d,); 0 where it fails or replies with something else: that depends on data."""
    try:
        content = call_next(message, context).content
        after = row_of(only(content), form)
    except Exception as error:  # its text could hold data: it is neither sent nor logged
        _log.error("training failed, so a change of 0 is reported, and charged: %s", _place(error))
        return np.zeros_like(before)
    if len(content) > 1:
        _say("metrics, counts of examples and all but arrays of floating-point numbers stay here")
    with np.errstate(over="ignore", invalid="ignore"):
        change: Floats = after - before
    return change


def bounded(change: Floats, bound: float) -> Floats:
    """Each coordinate cut to [-bound, bound]; NaN is 0."""
    cut: Floats = np.clip(np.nan_to_num(change, nan=0.0, posinf=bound, neginf=-bound), -bound, bound)
    return cut


@cache
def _say(text: str) -> None:
    """Once a process."""
    _log.info("%s", text)


def _place(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename}:{frame.lineno}"
