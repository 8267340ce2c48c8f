"""One labeler's session: pairs, answers, and what the page is told of them. The page holds nothing of its own."""

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from client.answers import FIRST, SECOND, SKIP, Answers
from client.ledger_store import LedgerUnavailable
from client.ledger_view import read_entries, read_labelers
from client.node_file import NodeFile
from protocol.decimals import canonical
from studies.label import words
from studies.label.joining import Joined, words_of
from studies.label.pairs import Pair, Pairs
from studies.label.release import Content, publish

Told = dict[str, Any]


class OtherCounts(ValueError):
    """The counts that a person saw before a release are no longer those that there are."""


@dataclass
class Session:
    """What a person does on the page, and what it shows. Raises OSError where a file cannot be written."""

    folder: Path
    pairs: Pairs
    answers: Answers
    node: NodeFile
    content: Content
    joined: Joined
    _keys: Mapping[str, Pair] = field(init=False, repr=False)
    _due: bool = field(init=False, default=False)  # released answers that the node's files do not have yet

    def __post_init__(self) -> None:
        self._keys = self.pairs.keys
        if self.answers.released:
            self._publish()  # what a crash left half done is done again

    def answer(self, key: str, kind: str) -> None:
        """Answer a pair, for the first time or otherwise. Raises ValueError for no pair of this file, Frozen."""
        if key not in self._keys:
            raise ValueError("expected a pair of this file, got another")
        self.answers.put(key, kind)

    def undo(self) -> str | None:
        """Take the latest answer back, where its pair is in the file, and return its key, to be shown again."""
        return self.answers.undo() if self.answers.latest in self._keys else None

    def release(self, answered: int, skipped: int) -> None:
        """Freeze the answers and let the node answer from them. Raises OtherCounts where others were seen."""
        counts = self._counts()
        if (counts["answered"], counts["skipped"]) != (answered, skipped) or not answered:
            raise OtherCounts("expected the answers that were shown: they changed, look again")
        self.answers.release()
        self._publish()

    def state(self, key: str | None = None) -> Told:
        """What the page shows: the pair to answer (`key`, or the first without an answer), counts, node and budget.

        A release that the disk did not take whole is done again: its answers are frozen already.
        """
        if self._due:
            with suppress(OSError):
                self._publish()
        return {
            "labeler": self.pairs.labeler,
            "counts": self._counts(),
            "pair": self._shown(key),
            "undo": self.answers.latest in self._keys,
            "node": self._node(),
            "spent": self._spent(),
        }

    def about(self) -> Told:
        """What does not change: what leaves this machine, in words."""
        said = words.leaves(self.node.policy, self.pairs.labeler, str(self.folder))
        return {
            "leaves": [asdict(one) for one in said],
            "tie": "stays hidden" if words.hides_ties(self.node.policy) else "may be seen",
            "sure": words.before_release(self.node.policy, self.pairs.labeler),
        }

    def review(self) -> list[Told]:
        """All pairs with what was answered, in the order of the file."""
        now, released = self.answers.now, self.answers.released
        return [
            {"key": pair.key, "sides": pair.texts, "answer": now.get(pair.key), "released": pair.key in released}
            for pair in self.pairs.all
        ]

    def _counts(self) -> dict[str, int]:
        """Pairs of the file: all, answered since the last release, skipped and not released, left, released."""
        now, released = self.answers.now, self.answers.released
        own = {key: now[key] for key in self._keys if key in now}
        gone = sum(key in released for key in own)
        skipped = sum(kind == SKIP for kind in own.values())
        return {
            "all": len(self._keys),
            "answered": len(own) - gone - skipped,
            "skipped": skipped,
            "left": len(self._keys) - len(own),
            "released": gone,
        }

    def _shown(self, key: str | None) -> Told | None:
        now = self.answers.now
        places = {pair.key: place for place, pair in enumerate(self.pairs.all, 1)}
        if key is None or key not in places or key in self.answers.released:
            key = next((name for name in places if name not in now), None)
        if key is None:
            return None
        pair = self._keys[key]
        sides = [{"answer": FIRST, "text": pair.texts[0]}, {"answer": SECOND, "text": pair.texts[1]}]
        if int(key[0], 16) % 2:  # names would else say which side is which: the alphabet's first always stood left
            sides.reverse()
        question = [{"head": head, "text": text} for head, text in pair.question]
        return {"key": key, "number": places[key], "question": question, "sides": sides, "answer": now.get(key)}

    def _node(self) -> Told:
        somewhere = "" if self.node.superlink is not None else " --superlink HOST:PORT"
        return {
            "runs": self.joined.runs,
            "address": self.joined.address,
            "ended": list(self.joined.ended),
            "command": shlex.join(["halftruth", *words_of(self.folder, None)]) + somewhere,
        }

    def _spent(self) -> Told:
        """What the ledger has charged, in words."""
        bounds = words.Bounds.of(self.node.policy, self.pairs.labeler)
        told: Told = {"answer": "0", "of": None if bounds.answer is None else canonical(bounds.answer), "asked": []}
        ledger = self.node.ledger
        if ledger is None or not ledger.is_file() or not ledger.stat().st_size:
            return told
        try:
            mine = next((one for one in read_labelers(ledger) if one.labeler == self.pairs.labeler), None)
            told["asked"] = [words.asked(entry) for entry in read_entries(ledger)]
        except LedgerUnavailable as error:
            return {**told, "trouble": str(error)}
        return told if mine is None else {**told, "answer": canonical(mine.most), "all": canonical(mine.epsilon)}

    def _publish(self) -> None:
        self._due = True
        node = publish(self.folder, self.pairs, self.answers.released, self.node, self.content)
        self.joined.start(node)
        self._due = False
