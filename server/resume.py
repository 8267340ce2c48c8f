"""A cell that goes on after a crash: rounds that were answered are read from its journal, and not asked again."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from protocol.codec import encode_bundle, identity
from protocol.counting import counted
from protocol.messages import Task
from protocol.study import Cell, Study
from protocol.trust import Trust
from server.collect import Collected
from server.journal import Journal
from server.listening import Ask, Check, RoundFailed
from server.outcome_record import cell_name
from server.sent import restored, stored

JOURNAL = "HALFTRUTH_JOURNAL"  # names the folder of journals on the server's machine, else there is one in the state's
IN_STATE = "journal"
_log = logging.getLogger("flwr.halftruth")


@dataclass
class Resumed:
    """Asks through a journal. A round that was checked is in the journal before anything is made of it.

    Every algorithm asks the same bytes again when it is given the same answers, so a round's name is the hash of the
    bundle that was asked. What is kept is what the server may keep: rounds of local tasks, randomised before they left,
    and of labels that are made up. Exact answers about somebody's labels are never written: their nodes repeat them at
    no cost, and the curator's ledger replays what was released.
    """

    journal: Journal
    ask_nodes: Ask
    accept: Check
    replayed: int = 0
    _round: tuple[bytes, list[bytes]] | None = None  # asked and not yet in the journal
    _left: int = 0  # its tasks that are still to be checked
    _old: bool = False  # whether what is checked is in the journal

    def ask(self, tasks: list[bytes]) -> list[bytes]:
        """The replies of the nodes, or those that the journal has. Raises JournalError, and what asking raises."""
        name = identity(encode_bundle(tasks))
        self._round, self._left = None, len(tasks)
        before = self.journal.find(name)
        self._old = before is not None
        if before is not None:
            self.replayed += 1
            return [restored(raw) for raw in before]
        replies = self.ask_nodes(tasks)
        self._round = name, replies
        return replies

    def check(self, task: Task, collected: Collected, unread: Sequence[str]) -> None:
        """Accept what was collected for a task; after the last one the round is written.

        Raises JournalError, and what accepting raises: of a round that is in the journal with how to be rid of it, as
        where a live run wrote it and a strict one reads it.
        """
        try:
            self.accept(task, collected, unread)
        except RoundFailed as error:
            if not self._old:
                raise
            raise RoundFailed(f"{error}; an earlier run wrote this: delete {self.journal.path} to ask again") from None
        if self._round is None:
            return
        if not len(collected.rows) or (collected.heard_live and task.trust is not Trust.LOCAL):
            self._round = None  # a round without an answer is asked again, and an exact one leaves nothing here
            return
        self._left -= 1
        if not self._left:
            name, replies = self._round
            self.journal.append(name, [stored(reply) for reply in replies])
            self._round = None


@dataclass(frozen=True)
class Journals:
    """The journals of a server: one for each cell that is played, in `folder`; None where nothing is kept."""

    folder: Path | None

    @classmethod
    def of(cls, named: str | None, state: str | None) -> "Journals":
        """Those in a folder that was named, else within the state's where that is there; made for its owner only."""
        folder = Path(named) if named else Path(state) / IN_STATE if state and Path(state).is_dir() else None
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder)

    def clear(self, study: Study, finished: Iterable[Cell]) -> None:
        """Delete what finished cells left: a server may die between delivering one and deleting its journal."""
        for cell in finished:
            if self.folder is not None:
                journal_path(self.folder, study, cell).unlink(missing_ok=True)

    @contextmanager
    def kept(self, study: Study, cell: Cell, ask: Ask, accept: Check) -> Iterator[tuple[Ask, Check]]:
        """How a cell is asked and its answers accepted. A block that ends well has delivered it.

        Raises JournalError.
        """
        if self.folder is None:
            yield ask, accept
            return
        with resumed(self.folder, study, cell, ask, accept) as own:
            if own.journal.torn:
                _log.warning(
                    "%s: dropped %d bytes of a round that a crash cut short", own.journal.path, own.journal.torn
                )
            yield own.ask, own.check
        if own.replayed:
            _log.info("%s: %s not asked again", cell_name(cell), counted(own.replayed, "round"))


@contextmanager
def resumed(folder: Path, study: Study, cell: Cell, ask: Ask, accept: Check) -> Iterator[Resumed]:
    """Play a cell through its journal in `folder`; a block that ends well has delivered the cell, and deletes it.

    Raises JournalError.
    """
    with Journal.open(journal_path(folder, study, cell)) as journal:
        yield Resumed(journal, ask, accept)
        journal.remove()


def journal_path(folder: Path, study: Study, cell: Cell) -> Path:
    """Where the journal of a cell is: runs of other studies may share the folder."""
    return folder / f"{study.fingerprint.hex()[:16]}-{cell_name(cell)}.journal"
