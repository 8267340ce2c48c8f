"""An ordinary Flower app and the same with two lines: what leaves a node, what it costs, what the server makes of it.

Messages, records, apps and strategies are Flower's own; a Grid in memory carries them.
"""

import sqlite3
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAdam, FedAvg
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity

from client.ledger_view import read_entries, read_labelers
from deploy.plugin.mod import PrivateUpdates, private_updates
from deploy.plugin.strategy import Debiased
from deploy.plugin.updates import channel_of, packed
from protocol.privacy import Unit

SECRET = "claim 4711"
NODES, EACH = 20, 100
SLOPES = np.array([2.0, -2.0, 1.0])


class Room(Grid):
    """Nodes that answer as soon as they are asked, as Flower's client process has them answer; keeps all replies."""

    def __init__(self, app: ClientApp, nodes: int, **run_config: Any) -> None:
        self.app, self.replies = app, list[Message]()
        self.contexts = {
            node: Context(1, node, {"partition-id": node, "num-partitions": nodes}, RecordDict(), dict(run_config))
            for node in range(100, 100 + nodes)
        }

    def set_run(self, run: Run) -> None:
        """Nothing to do."""

    @property
    def run(self) -> Run:
        """There is none."""
        raise NotImplementedError

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        """Deprecated in Flower."""
        raise NotImplementedError

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Not used by strategies."""
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Not used by strategies."""
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        """All nodes."""
        return list(self.contexts)

    def send_and_receive(self, messages: Iterable[Message], *, timeout: float | None = None) -> Iterable[Message]:
        """Each node's reply."""
        replies = [self.ask(message) for message in messages]
        self.replies += replies
        return replies

    def ask(self, message: Message) -> Message:
        """One node's reply, an exception's text included."""
        message.metadata.__dict__["_message_id"] = message.object_id
        try:
            return self.app(message, self.contexts[message.metadata.dst_node_id])
        except Exception as error:
            return Message(Error(code=2, reason=f"{type(error)}:<'{error}'>"), reply_to=message)


@pytest.fixture(autouse=True)
def task_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages can be made, as inside a task of Flower's."""
    for name in ("_run_id", "_node_id", "_task_id"):
        monkeypatch.setattr(TaskIdentity, name, 1)


def data_of(context: Context) -> tuple[np.ndarray, np.ndarray]:
    coins = np.random.default_rng(context.node_id)
    x = coins.normal(size=(EACH, len(SLOPES)))
    return x, coins.random(EACH) < 1 / (1 + np.exp(-x @ SLOPES))


def ordinary(mods: list[Any]) -> ClientApp:
    """Logistic regression: twenty steps on the node's own rows; tells how it went."""
    app = ClientApp(mods=mods)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        x, y = data_of(context)
        slopes, shift = (array.astype(np.float64) for array in message.content["arrays"].to_numpy_ndarrays()[:2])
        for _ in range(20):
            miss = 1 / (1 + np.exp(-x @ slopes - shift)) - y
            slopes, shift = slopes - 0.2 * x.T @ miss / EACH, shift - 0.2 * miss.mean(keepdims=True)
        seen = message.content["arrays"]["seen"].numpy() + int(y.sum())
        arrays = {"slopes": slopes.astype(np.float32), "shift": shift.astype(np.float32), "seen": seen}
        metrics = MetricRecord({"num-examples": int(y.sum()), "loss": float(np.abs(miss).mean())})
        content = {"arrays": ArrayRecord({key: Array(value) for key, value in arrays.items()}), "metrics": metrics}
        return Message(RecordDict({**content, "note": ConfigRecord({"text": SECRET})}), reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context: Context) -> Message:
        return Message(RecordDict({"metrics": MetricRecord({"num-examples": 1, "loss": 0.5})}), reply_to=message)

    @app.train("raising")
    def raising(message: Message, context: Context) -> Message:
        raise RuntimeError(SECRET)

    @app.train("strange")
    def strange(message: Message, context: Context) -> Message:
        value = np.array([np.nan, np.inf, -np.inf], dtype=np.float32)
        arrays = {"slopes": value, "shift": np.ones(1), "seen": np.arange(3)}
        return Message(RecordDict({"x": ArrayRecord({k: Array(v) for k, v in arrays.items()})}), reply_to=message)

    @app.train("misshapen")
    def misshapen(message: Message, context: Context) -> Message:
        return Message(RecordDict({"x": ArrayRecord({"slopes": Array(np.zeros(7))})}), reply_to=message)

    @app.query("raising")
    def asking(message: Message, context: Context) -> Message:
        raise RuntimeError(SECRET)

    @app.query()
    def query(message: Message, context: Context) -> Message:
        return Message(RecordDict({"note": ConfigRecord({"text": SECRET})}), reply_to=message)

    return app


def start_arrays(value: float = 0.0) -> ArrayRecord:
    arrays = {"slopes": np.full(3, value, dtype=np.float32), "shift": np.zeros(1, dtype=np.float32)}
    return ArrayRecord({**{k: Array(v) for k, v in arrays.items()}, "seen": Array(np.zeros(1, dtype=np.int64))})


def private(tmp_path: Path, **changes: Any) -> PrivateUpdates:
    return private_updates(**{"epsilon": 4, "threshold": 0.5, "total": 20, "ledger": tmp_path / "n.sqlite", **changes})


def asked(kind: str = "train", content: RecordDict | None = None, node: int = 100) -> Message:
    content = RecordDict({"arrays": start_arrays(), "config": ConfigRecord()}) if content is None else content
    return Message(content, message_type=kind, dst_node_id=node)


def report_of(reply: Message) -> np.ndarray:
    return reply.content["report"]["report"].numpy()


def test_the_private_app_learns_and_nothing_but_reports_leaves(tmp_path: Path) -> None:
    """By the channel's law the noise of a round has a standard deviation of at most 0.0969 along the truth (coordinates
    of a report are independent, since all are sent), that of five 0.217, and later rounds contract it: 6 of these
    below what is learned without noise is 1e-9 a run.
    """
    plain = FedAvg(fraction_evaluate=0.0).start(Room(ordinary([]), NODES), start_arrays(), num_rounds=5)
    room = Room(ordinary([private(tmp_path, epsilon=10, total=50)]), NODES)
    strategy = Debiased(FedAvg(fraction_evaluate=0.0), epsilon=10, threshold=0.5)
    result = strategy.start(room, start_arrays(), num_rounds=5)
    along = SLOPES / np.linalg.norm(SLOPES)
    clear, noisy = (float(each.arrays["slopes"].numpy() @ along) for each in (plain, result))
    channel = channel_of(Decimal(10), Decimal("0.5"), 4)
    assert channel.terms.coordinates == 4
    noise = np.sqrt(5 * channel.worst_mse / 4 / NODES)
    assert noisy > clear - 6 * noise > 0.5
    for reply in room.replies:
        assert set(reply.content) == {"report", "channel"}
        assert channel.legal(report_of(reply)[None]).all()
    assert result.arrays["seen"].numpy() == 0 and result.arrays["slopes"].numpy().dtype == np.float32
    metrics = result.train_metrics_clientapp[1]
    assert (metrics["reports"], metrics["refused"], metrics["rejected"]) == (NODES, 0, 0)
    assert [each.epsilon for each in read_labelers(tmp_path / "n.sqlite")] == [Decimal(50)] * NODES


def test_a_spent_budget_refuses_and_a_question_asked_again_gets_its_answer(tmp_path: Path) -> None:
    room = Room(ordinary([private(tmp_path, total=8)]), 1)
    first = [room.ask(asked(content=RecordDict({"arrays": start_arrays(value)}))) for value in (0.0, 1.0)]
    third = room.ask(asked(content=RecordDict({"arrays": start_arrays(2.0)})))
    assert third.error.reason == "refused: the budget is spent"
    again = room.ask(asked(content=RecordDict({"arrays": start_arrays(1.0)})))
    assert (report_of(again) == report_of(first[1])).all()
    (entry, *_), (holder,) = read_entries(tmp_path / "n.sqlite"), read_labelers(tmp_path / "n.sqlite")
    assert entry.unit is Unit.HOLDER and entry.epsilon == 4 and holder.epsilon == 8


def test_a_run_that_starts_again_repeats_its_answers_and_a_partition_has_its_own(tmp_path: Path) -> None:
    rooms = [Room(ordinary([private(tmp_path)]), 2) for _ in range(2)]
    (one, other), (again, _) = ([report_of(room.ask(asked(node=node))) for node in (100, 101)] for room in rooms)
    assert (one == again).all() and (one != other).any()
    ledger = tmp_path / "n.sqlite"
    assert [each.epsilon for each in read_labelers(ledger)] == [4, 4]
    Room(ordinary([private(tmp_path)]), 2, rate=0.5).ask(asked())
    Room(ordinary([private(tmp_path, epsilon=3)]), 2).ask(asked())
    assert sorted(each.epsilon for each in read_labelers(ledger)) == [4, 11], "another question, another answer"


@pytest.mark.parametrize("kind", ["train.raising", "train.strange", "train.misshapen"])
def test_whether_training_fails_is_not_seen(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    reply = Room(ordinary([private(tmp_path)]), 1).ask(asked(kind))
    assert channel_of(Decimal(4), Decimal("0.5"), 4).legal(report_of(reply)[None]).all()
    assert len(read_entries(tmp_path / "n.sqlite")) == 1
    assert SECRET not in caplog.text


@pytest.mark.parametrize("kind", ["evaluate", "query"])
def test_other_messages_are_refused_unless_the_node_says_so(tmp_path: Path, kind: str) -> None:
    reply = Room(ordinary([private(tmp_path)]), 1).ask(asked(kind))
    assert reply.has_error() and reply.error.reason.startswith("refused: this node answers training only")
    assert Room(ordinary([private(tmp_path, public={kind})]), 1).ask(asked(kind)).has_content()


def test_the_text_of_an_exception_stays_here(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    reply = Room(ordinary([private(tmp_path, public=["query"])]), 1).ask(asked("query.raising"))
    assert reply.error.reason == "refused: internal error" and SECRET not in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        RecordDict({"a": start_arrays(), "b": start_arrays()}),
        RecordDict({"a": ArrayRecord()}),
        RecordDict({"a": ArrayRecord({"x": Array(np.arange(3))})}),
        RecordDict({"a": ArrayRecord({"x": Array("float64", (1,), "numpy.ndarray", b"no array")})}),
        RecordDict({"a": ArrayRecord({"x": Array(np.zeros((1 << 20) + 1, dtype=np.float16))})}),
    ],
)
def test_a_malformed_question_costs_nothing(tmp_path: Path, content: RecordDict) -> None:
    reply = Room(ordinary([private(tmp_path)]), 1).ask(asked(content=content))
    assert reply.error.reason.startswith("refused: expected one record of arrays")
    assert not (tmp_path / "n.sqlite").exists()


def test_a_server_that_shrinks_the_model_pays_as_much(tmp_path: Path) -> None:
    app = ClientApp(mods=[private(tmp_path, total=8)])

    @app.train()
    def train(message: Message, context: Context) -> Message:
        arrays = {key: Array(array.numpy() + 0.1) for key, array in message.content["a"].items()}
        return Message(RecordDict({"a": ArrayRecord(arrays)}), reply_to=message)

    room = Room(app, 1)
    sizes = [room.ask(asked(content=RecordDict({"a": ArrayRecord({"x": Array(np.zeros(d))})}))) for d in (1, 2, 3)]
    assert [reply.has_error() for reply in sizes] == [False, False, True]


def test_a_ledger_that_gets_lost_during_a_run_is_missed(tmp_path: Path) -> None:
    room = Room(ordinary([private(tmp_path)]), 1)
    assert room.ask(asked()).has_content()
    (tmp_path / "n.sqlite").unlink()
    reply = room.ask(asked())
    assert reply.error.reason == "refused: the ledger is not available" and not (tmp_path / "n.sqlite").exists()


def test_what_left_is_on_disk_before(tmp_path: Path) -> None:
    """A second connection sees the charge when the reply exists."""
    reply = Room(ordinary([private(tmp_path)]), 1).ask(asked())
    with sqlite3.connect(tmp_path / "n.sqlite") as connection:
        ((labels, kept),) = connection.execute("SELECT labels, reply FROM task").fetchall()
    assert labels == 1 and kept and reply.has_content()


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"threshold": -1},
        {"threshold": float("inf")},
        {"total": 3.9},
        {"ledger": "node.sqlite"},
        {"public": "evaluate"},
        {"public": ["train"]},
    ],
)
def test_a_mod_out_of_range_is_not_made(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        private(tmp_path, **changes)


def replies_of(reports: Iterable[np.ndarray], change: Callable[[Message], None] = lambda reply: None) -> list[Message]:
    channel = channel_of(Decimal(4), Decimal("0.5"), 4)
    found = []
    for node, report in enumerate(reports):
        message = asked(node=node + 1)
        message.metadata.__dict__["_message_id"] = message.object_id
        reply = Message(packed(report, channel), reply_to=message)
        reply.metadata.__dict__["_src_node_id"] = node + 1
        change(reply)
        found.append(reply)
    return found


def around(inner: Any, **changes: Any) -> Debiased:
    strategy = Debiased(inner, **{"epsilon": 4, "threshold": 0.5, **changes})
    strategy.configure_train(1, start_arrays(), ConfigRecord(), Room(ordinary([]), 4))
    return strategy


def drawn(count: int, row: np.ndarray) -> np.ndarray:
    channel = channel_of(Decimal(4), Decimal("0.5"), 4)
    words = np.random.default_rng(5).integers(1 << 64, size=(count, channel.words), dtype=np.uint64)
    return channel.report(np.broadcast_to(row, (count, 4)).copy(), words)


def test_the_mean_is_that_of_the_changes_and_so_is_its_error() -> None:
    """Fixed coins; 6 standard errors a coordinate would be 8e-9 with fresh ones."""
    row = np.array([0.5, -0.2, 0.0, 0.1])
    strategy = around(FedAvg())
    arrays, metrics = strategy.aggregate_train(1, replies_of(drawn(400, row)))
    assert arrays is not None and metrics is not None and strategy.standard_errors is not None
    got = np.concatenate([arrays[key].numpy() for key in ("slopes", "shift")])
    assert (np.abs(got - row) < 6 * strategy.standard_errors).all()
    exact = np.sqrt(channel_of(Decimal(4), Decimal("0.5"), 4).mse(row[None])[0] / 4 / 400)
    assert metrics["standard-error"] == pytest.approx(exact, rel=0.1)


def test_what_the_channel_can_not_report_is_rejected_and_counted() -> None:
    good = drawn(3, np.zeros(4))
    bad = [good[0] * 1.01, np.full(4, np.nan), np.zeros(3), np.full(4, 1e300)]
    arrays, metrics = around(FedAvg()).aggregate_train(1, replies_of([*good, *bad]))
    assert metrics is not None and (metrics["reports"], metrics["rejected"]) == (3, 4)

    def renamed(reply: Message) -> None:
        reply.content["channel"] = ConfigRecord({"digest": b"other"})

    def talkative(reply: Message) -> None:
        reply.content["metrics"] = MetricRecord({"num-examples": 1000})

    def twice(reply: Message) -> None:
        reply.metadata.__dict__["_src_node_id"] = 9

    for change, kept in ((renamed, 0), (talkative, 0), (twice, 1)):
        arrays, metrics = around(FedAvg()).aggregate_train(1, replies_of(good, change))
        assert metrics is not None and (metrics["reports"], metrics["rejected"]) == (kept, 3 - kept)
        assert (arrays is None) == (kept == 0)


def test_the_median_of_means_outvotes_liars_within_the_channel() -> None:
    """Seven of 70 nodes always report the largest value that is legal. Fixed coins."""
    channel = channel_of(Decimal(4), Decimal("0.5"), 4)
    honest = drawn(70, np.zeros(4))
    largest = np.zeros(4)
    largest[: channel.terms.coordinates] = np.abs(honest).max()
    lies = np.array([*([largest] * 7), *honest[7:]])
    errors = {}
    for name, options in (("mean", {}), ("median", {"aggregate": "median-of-means", "groups": 15})):
        arrays, _ = around(FedAvg(), **options).aggregate_train(1, replies_of(lies))
        assert arrays is not None
        errors[name] = np.abs(arrays["slopes"].numpy()).max()
    assert errors["median"] < errors["mean"]


def test_strategies_that_step_take_it_and_options_that_do_not_fit_are_refused() -> None:
    arrays, _ = around(FedAdam(eta=0.1)).aggregate_train(1, replies_of(drawn(9, np.full(4, 0.5))))
    assert arrays is not None and np.abs(arrays["slopes"].numpy()).max() <= 1.0
    for options in ({"aggregate": "krum"}, {"groups": 3}, {"aggregate": "median-of-means"}, {"epsilon": 0}):
        with pytest.raises(ValueError, match="expected"):
            around(FedAvg(), **options)


def test_a_server_without_the_strategy_does_not_mistake_reports_for_models(tmp_path: Path) -> None:
    room = Room(ordinary([private(tmp_path)]), 2)
    with pytest.raises(Exception, match=r"MetricRecord|num-examples"):
        FedAvg(fraction_evaluate=0.0).start(room, start_arrays(), num_rounds=1)
