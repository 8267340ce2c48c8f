"""A client over several tasks: what all its replies say together, from one ledger on disk under a cap."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from client.draws import Draws
from client.labeler import Node, answer
from client.ledger import DiskLedger
from client.policy import Policy
from client.sources.loading import read_table
from client.sources.table import Table
from protocol.codec import encode_task
from protocol.coins import Words
from protocol.mechanisms.randomized_response import randomized_response
from protocol.messages import Mechanism, Task
from protocol.privacy import Unit
from protocol.problem import Problem
from protocol.store import FeatureStore
from protocol.trust import Trust
from studies.audit.exact import Axis, Law, enumerated
from studies.audit.given import GivenDraws
from studies.audit.subject import Claim, Subject, all_pairs

FILES = {"first": "item_a", "second": "item_b"}  # who wins the only comparison
# Of the cap, a menu a task: paid, the same question in another study, the larger one that is left, refused.
SHARES = (("0.75",), ("0.75",), ("0.25", "0.5"), ("0.5",))
COINS = (0, 1, 2, 2)  # which word is a task's coin: a refusal needs none
WIDTH = 1024
Menu = tuple[Decimal, ...]
_NOTE = "client.labeler:answer to four tasks in turn, on all classes of coins, one ledger on disk"


@dataclass(frozen=True)
class EachItsCoins(Node):
    """A node that has coins of its own for each study: one that remembered nothing would use them."""

    given: Mapping[bytes, Draws] = field(default_factory=dict, repr=False)

    def draws(self, task: Task, repetition: int) -> Draws:
        """Those of the task's study."""
        return self.given[task.study]


def of_tasks(epsilon: Decimal, ledger: type[DiskLedger] = DiskLedger) -> Subject:
    """A label with a cap of `epsilon` in all, asked four times: the law of the four replies together."""
    menus = [tuple(epsilon * Decimal(share) for share in shares) for shares in SHARES]
    cuts: list[set[int]] = [set() for _ in range(1 + max(COINS))]
    for word, menu in zip(COINS, menus, strict=True):
        thresholds = (randomized_response(level).thresholds.ravel().tolist() for level in menu)
        cuts[word] |= {threshold << 1 for table in thresholds for threshold in table}
    boxes = [[Axis.cut(each) for each in cuts]]

    def laws() -> Mapping[str, Law]:
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # else every answer waits for a disk
        with tempfile.TemporaryDirectory(prefix="halftruth-audit-", dir=memory) as folder:
            asked = partial(_replies, Path(folder), ledger, menus, epsilon)
            return {name: enumerated(partial(asked, winner), boxes) for name, winner in FILES.items()}

    return Subject("node/tasks", Claim(epsilon, Decimal(0), "label"), FILES, all_pairs(FILES), _NOTE, laws=laws)


def _replies(
    folder: Path, ledger: type[DiskLedger], menus: Sequence[Menu], cap: Decimal, winner: str, words: Words
) -> NDArray[np.uint8]:
    """What a new ledger's node answers to all tasks, for each row of coins, with every reply's length."""
    votes, new, own = folder / "votes.csv", folder / "new.sqlite", folder / "ledger.sqlite"
    votes.write_text(f"labeler,item_a,item_b,winner\nr,x,y,{winner}\n", encoding="utf-8")
    table, features, found = read_table(votes, False), FeatureStore(None), []
    raws = [_task(table, place, menu) for place, menu in enumerate(menus)]
    policy = Policy(max_epsilon=None, label_cap=cap)
    if not new.exists():
        DiskLedger(new)
    for row in words:
        shutil.copyfile(new, own)
        given = {_study(place): GivenDraws(row[None, word : word + 1]) for place, word in enumerate(COINS)}
        replies = []
        for raw in raws:
            node = EachItsCoins(table, policy, ledger(own, start=False), "os", features, given=given)
            reply = answer(raw, node)
            replies.append(len(reply).to_bytes(4, "big") + reply.ljust(WIDTH, b"\0"))
        found.append(b"".join(replies))
    return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(len(found), -1)


def _study(place: int) -> bytes:
    return bytes([place]) * 32


def _task(table: Table, place: int, menu: Menu) -> bytes:
    problem = Problem(len(table.items), "items", True, None, table.pairs)
    offered = tuple(Mechanism.of("randomized-response", epsilon=level) for level in menu)
    return encode_task(Task(_study(place), Trust.LOCAL, Unit.LABEL, problem, offered, 1, max(menu), None, 0, 1))
