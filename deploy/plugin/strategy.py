"""A Flower strategy around another one: what `deploy.plugin.mod` reports becomes one update without bias."""

import logging
from collections.abc import Iterable
from copy import copy
from decimal import Decimal

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from deploy.plugin.updates import Form, added, channel_of, dimension_of, form_of, retyped, unpacked
from protocol import decimals
from protocol.numeric.channel import Floats, NumericChannel
from server.aggregators import AGGREGATORS
from server.aggregators.base import Options

WAYS = ("mean", "median-of-means")
_log = logging.getLogger("halftruth.server")
Number = int | float | str | Decimal


class Debiased(Strategy):
    """A strategy that hands `inner` the round's arrays plus the mean of the reports, as if one node had sent them.

    A report's expectation is the holder's change, cut to the threshold, so without liars the mean is unbiased for the
    mean of these; every report counts once. `inner` chooses nodes, and makes the next arrays of what it gets: FedAvg
    takes it, FedAvgM, FedAdam and others step towards it. What is no value of the channel of `epsilon` and `threshold`
    is rejected, and counted. With `aggregate = "median-of-means"`, the median of the means of `groups` groups by
    coordinate, fewer than half of the groups may hold liars; it has a bias of its own.

    `standard_errors`: those of the last round's mean, by coordinate, (d,); None before, below two reports and for
    medians. The metrics of a round are its numbers of reports, refused and rejected replies, and the root mean
    square of the standard errors.

    Guarantee: none by itself: reports are private already, so all of this is post-processing.
    Raises ValueError for numbers out of range, another aggregate, or groups where there is none to use them.
    """

    def __init__(
        self, inner: Strategy, *, epsilon: Number, threshold: Number, aggregate: str = "mean", groups: int = 1
    ) -> None:
        if aggregate not in WAYS:
            raise ValueError(f"expected aggregate out of {WAYS}, got {aggregate!r}")
        if (groups == 1) != (aggregate == "mean"):
            raise ValueError(f"expected groups > 1 exactly for median-of-means, got {groups} for {aggregate}")
        self._inner, self._aggregate, self._options = inner, aggregate, Options(groups=groups)
        self._epsilon, self._threshold = decimals.epsilon(epsilon), decimals.decimal(threshold, "threshold")
        channel_of(self._epsilon, self._threshold, 1)
        self._asked: ArrayRecord | None = None
        self.standard_errors: Floats | None = None

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The inner strategy's messages; the arrays are those that reports are added to."""
        self._asked = arrays
        return self._inner.configure_train(server_round, arrays, config, grid)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """The arrays that the inner strategy makes of the reports, None without any; and what came."""
        if self._asked is None:
            raise RuntimeError("expected configure_train before aggregate_train")
        form = form_of(self._asked)
        reports, carriers, counts = _heard(replies, self._channel(form))
        metrics = MetricRecord(dict(counts))
        _log.info("round %d: %s", server_round, counts)
        self.standard_errors = None
        if len(reports) < self._options.groups:
            return None, metrics
        rows = np.stack(reports)
        if self._aggregate == "mean" and len(rows) > 1:
            self.standard_errors = rows.std(axis=0, ddof=1) / np.sqrt(len(rows))
            metrics["standard-error"] = float(np.sqrt(np.mean(self.standard_errors**2)))
        change = AGGREGATORS[self._aggregate].function(rows, self._options)
        carrier = copy(carriers[0])
        weight = getattr(self._inner, "weighted_by_key", "num-examples")
        carrier.content = RecordDict({"arrays": added(self._asked, change, form), "metrics": MetricRecord({weight: 1})})
        made = self._inner.aggregate_train(server_round, [carrier])[0]
        return None if made is None else retyped(made, self._asked, form), metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """The inner strategy's; nodes refuse unless they declare "evaluate" public."""
        return self._inner.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """The inner strategy's."""
        return self._inner.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        """The parameters, then the inner strategy's summary."""
        _log.info("randomised updates: epsilon %s, threshold %s, %s", self._epsilon, self._threshold, self._aggregate)
        self._inner.summary()

    def _channel(self, form: Form) -> NumericChannel:
        return channel_of(self._epsilon, self._threshold, dimension_of(form))


def _heard(replies: Iterable[Message], channel: NumericChannel) -> tuple[list[Floats], list[Message], dict[str, int]]:
    """Reports and their messages in the order of nodes, one of a node, and how many replies were what."""
    found: dict[int, tuple[Floats, Message]] = {}
    counts = {"reports": 0, "refused": 0, "rejected": 0}
    for reply in replies:
        node = reply.metadata.src_node_id
        if reply.has_error():
            counts["refused"] += 1
            _log.info("node %d: %s", node, reply.error.reason)
            continue
        try:
            report = unpacked(reply.content, channel)
        except Exception as error:  # whatever a node sent
            counts["rejected"] += 1
            _log.warning("node %d: rejected: %s", node, error)
            continue
        if node in found:
            counts["rejected"] += 1
            continue
        found[node] = report, reply
    counts["reports"] = len(found)
    ordered = [found[node] for node in sorted(found)]
    return [report for report, _ in ordered], [reply for _, reply in ordered], counts
