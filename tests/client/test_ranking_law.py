"""The exact law of whole messages about rankings of three items, through `answer`: all classes of coins, all rankings.

A ranking is replaced by any other, ties and missing ones included: no message may become more than e^epsilon times as
likely. Coins are classes with integer weights, as in `tests/client/test_message_law.py`.
"""

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from client.labeler import Node, answer
from client.ledger import DiskLedger, MemoryLedger
from client.policy import Policy
from client.sources.choice_table import ChoiceTable
from client.sources.ranking_columns import RankingWanted
from client.sources.ranking_labels import RankingAs, read_ranking_table
from client.sources.table import Table
from protocol.channel import TOTAL, DiscreteChannel
from protocol.choice_law import ChoiceLaw
from protocol.codec import decode_reply, encode_task
from protocol.mechanisms.randomized_response import randomized_response
from protocol.messages import Coins, Mechanism, Refusal, Task, Ties
from protocol.privacy import Unit
from protocol.store import FeatureStore
from protocol.terms import share, with_coin
from protocol.trust import Trust

STRICT = [",".join(map(str, ranks)) for ranks in itertools.permutations((1, 2, 3))]
WEAK = ["1,1,2", "2,1,2", "1,1,1", "1,2,", ",1,", ",,"]  # tied, and with items that are ranked last or not at all
TOPS = [*STRICT, "1,2,", ",,"]
Law = Counter[bytes]


class Listed:
    """Coins of rows 0, 1, ..., given."""

    coins = Coins.OS

    def __init__(self, coins: Sequence[int]) -> None:
        self._coins = np.array(coins, dtype=np.uint64)

    def lanes(self, rows: NDArray[np.int64]) -> NDArray[np.uint16]:
        return (self._coins[rows] >> np.uint64(47)).astype(np.uint16)

    def escalations(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        return self._coins[rows] & np.uint64((1 << 47) - 1)

    def fair(self, rows: NDArray[np.int64]) -> NDArray[np.uint8]:
        raise AssertionError("expected one draw a label")

    def steps(self, rows: NDArray[np.int64], count: int) -> NDArray[np.uint64]:
        raise AssertionError("expected no shuffle")


class Forgetful:
    """A table's labels without a ledger's memory, so that many laws are quick; the memory has a test of its own."""

    synthetic, public = True, False

    def __init__(self, table: Table) -> None:
        self.check, self.rows, self.labels = table.check, table.rows, table.labels

    def facts(self, rows: NDArray[np.int64]) -> None:
        return None

    def levels(self, task: Task, rows: NDArray[np.int64]) -> None:
        return None


def table_of(folder: Path, ranks: str, what: str) -> Table:
    path = folder / "one.csv"
    path.write_text(f"judge,x,y,z\nann,{ranks}\n", encoding="utf-8")
    return read_ranking_table(path, False, RankingWanted("wide", unranked="last"), RankingAs.parse(what))


def task_of(table: Table, level: Decimal) -> Task:
    top = isinstance(table, ChoiceTable)
    menu = Mechanism.of("k-randomized-response" if top else "randomized-response", epsilon=level)
    ties = Ties.NONE if top else Ties.COIN
    task = Task(b"s" * 32, Trust.LOCAL, Unit.LABEL, table.problem, (menu,), len(table.pairs), level, None, 0, 1)
    return Task(**{**vars(task), "ties": ties})


def law_of(table: Table, channel: DiscreteChannel, patch: pytest.MonkeyPatch, level: Decimal) -> Law:
    """How many of the TOTAL^rows coins give each reply."""
    cuts = sorted({0, TOTAL, *channel.thresholds.ravel().tolist()})
    classes = [(start, stop - start) for start, stop in itertools.pairwise(cuts)]
    raw, law = encode_task(task_of(table, level)), Counter[bytes]()
    node = Node(Forgetful(table), Policy(max_epsilon=None), MemoryLedger(), "os", FeatureStore(None))
    for chosen in itertools.product(classes, repeat=len(table.pairs)):
        draws = Listed([coin for coin, _ in chosen])
        patch.setattr("client.labeler.SecretDraws", lambda draws=draws: draws)
        reply = answer(raw, node)
        assert not isinstance(decode_reply(reply), Refusal)
        law[reply] += math.prod(size for _, size in chosen)
    assert sum(law.values()) == TOTAL ** len(table.pairs)
    return law


@pytest.mark.parametrize(
    ("what", "epsilon", "rankings"),
    [
        ("top", "1", TOPS),
        ("top", "0.1", TOPS),
        ("pair", "1", [*STRICT, *WEAK]),
        ("pair", "20", [*STRICT, *WEAK]),
        ("pairs:2", "1", [*STRICT, "1,1,2", ",,"]),
        ("pairs:3", "1", [*STRICT, *WEAK]),
    ],
)
def test_whole_messages(
    what: str, epsilon: str, rankings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = RankingAs.parse(what)
    level = share(Decimal(epsilon), max(1, asked.pairs))
    tables = {ranks: table_of(tmp_path, ranks, what) for ranks in rankings}
    channel = ChoiceLaw("k-randomized-response", level, (3,)).table(3)
    if asked.pairs:
        channel = with_coin(randomized_response(level))
    laws = {ranks: law_of(table, channel, monkeypatch, level) for ranks, table in tables.items()}
    labels = max(1, asked.pairs)
    assert channel.level * labels <= Decimal(epsilon)
    high, low = max(channel.table[0]), min(channel.table[0])
    bound = Fraction(high, low) ** labels
    worst = Fraction(0)
    for one, other in itertools.permutations(rankings, 2):
        assert set(laws[one]) == set(laws[other])
        worst = max(worst, *(Fraction(weight, laws[other][message]) for message, weight in laws[one].items()))
    assert worst <= bound
    assert Decimal(worst.numerator) / Decimal(worst.denominator) <= Decimal(epsilon).exp()
    if labels == 1:
        assert worst == bound  # nothing is wasted
    for ranks, law in laws.items():  # the product of the tables' rows, each label through its own
        values = tables[ranks].values.reveal().tolist()
        for message, weight in law.items():
            reply = decode_reply(message)
            assert not isinstance(reply, Refusal)
            symbols = reply[0].report.payload.values[0].tolist()
            assert weight == math.prod(channel.table[v][s] for v, s in zip(values, symbols, strict=True))


def test_three_comparisons_of_opposite_rankings_reach_the_level() -> None:
    """The bound of composition is no slack: the reverse of a ranking turns every comparison round."""
    channel = randomized_response(share(Decimal(3), 3))
    (keep, flip), _ = channel.table
    assert 0.999 * 3 < 3 * math.log(keep / flip) <= 3


@pytest.mark.parametrize("theta", [(0.3, -1.2, 0.5), (2.0, 0.0, -2.0)])
def test_a_comparison_within_a_ranking_is_one_of_btl(theta: tuple[float, ...]) -> None:
    """Plackett-Luce: sum of P(ranking) over rankings with j before k is sigma(theta_j - theta_k), exactly."""
    weights = [math.exp(value) for value in theta]
    law = {}
    for order in itertools.permutations(range(3)):
        left, chance = sum(weights), 1.0
        for item in order:
            chance *= weights[item] / left
            left -= weights[item]
        law[order] = chance
    for j, k in itertools.combinations(range(3), 2):
        before = math.fsum(chance for order, chance in law.items() if order.index(j) < order.index(k))
        assert before == pytest.approx(1 / (1 + math.exp(theta[k] - theta[j])), abs=1e-14)
    for top in range(3):
        first = math.fsum(chance for order, chance in law.items() if order[0] == top)
        assert first == pytest.approx(weights[top] / sum(weights), abs=1e-14)


def test_asked_again_a_ranking_says_the_same(tmp_path: Path) -> None:
    """Its answers are remembered under its name: neither another study nor a changed ranking draws them anew."""
    node_of = {}
    for ranks in ("1,2,3", "3,2,1"):
        table = table_of(tmp_path, ranks, "pairs:3")
        node_of[ranks] = Node(table, Policy(), DiskLedger(tmp_path / "l.sqlite"), "os", FeatureStore(None))
    task = task_of(table, Decimal(1))
    replies = [
        answer(encode_task(Task(**{**vars(task), "study": bytes([number]) * 32})), node_of[ranks])
        for number, ranks in enumerate(("1,2,3", "3,2,1", "1,2,3"))
    ]
    symbols = set()
    for reply in map(decode_reply, replies):
        assert not isinstance(reply, Refusal)
        symbols.add(reply[0].report.payload.values.tobytes())
    assert len(symbols) == 1
