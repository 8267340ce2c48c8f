"""A cell that goes on after a crash: rounds that were answered are read from its journal, and not asked again."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from protocol.codec import encode_bundle, identity
from protocol.counting import counted
from protocol.secure.messages import of_session
from protocol.study import Cell, Study
from protocol.trust import RANDOMIZED
from server.evidence import Heard
from server.journal import Journal
from server.listening import Ask, Check, RoundFailed
from server.outcome_record import cell_name
from server.register import Register
from server.sent import Sent, fault_now, restored, stored

JOURNAL = "HALFTRUTH_JOURNAL"  # names the folder of journals on the server's machine, else there is one in the state's
IN_STATE = "journal"
SAID_ONCE = (
    "members say each stage of a session once: ask again with another attempt, or, where labels are made up, delete"
)
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
    register: Register | None = None
    replayed: int = 0
    _round: tuple[bytes, list[bytes]] | None = None  # asked and not yet in the journal
    _before: list[bytes] = field(default_factory=list)  # replies of a round that is in it
    _sessions: bool = False  # whether a stage of a session was asked since a round was accepted

    def ask(self, tasks: list[bytes]) -> list[bytes]:
        """The replies of the nodes, or those that the journal has. Raises JournalError, and what asking raises."""
        name = identity(encode_bundle(tasks))
        before = self.journal.find(name)
        if any(of_session(raw) for raw in tasks):
            return self._stage(name, before, tasks)
        if before is None:
            self._round, self._before = (name, list(self.ask_nodes(tasks))), []
            return self._round[1]
        self._round, self._before = None, [restored(raw) for raw in before]
        self.replayed += 1
        return self._before

    def _stage(self, name: bytes, before: list[bytes] | None, tasks: list[bytes]) -> list[bytes]:
        """The answers to a stage of sessions, in the journal as soon as they came: the next stage is made of them.

        Members say each stage once: asked otherwise by a server that forgot, they would refuse. What is written is
        masked, or what takes masks off a sum that is opened.
        """
        self._sessions = True
        if before is not None:
            self.replayed += 1
            return [restored(raw) for raw in before]
        replies = list(self.ask_nodes(tasks))
        self.journal.append(name, [stored(reply) for reply in replies])
        return replies

    def check(self, heard: Sequence[Heard], unread: Sequence[str]) -> None:
        """Accept what a round brought, now or before, by what is asked of it now; a new one is then written.

        Raises JournalError, and what accepting raises: of a round that is in the journal with how to be rid of it, as
        where a live run wrote it and a strict one reads it. So does one with a report that counted and may not any
        more, of a node that was revoked since, say: without it the rounds that follow would be others.
        """
        try:
            self._check_senders(heard)
            self.accept(heard, unread)
        except RoundFailed as error:
            if self._sessions:
                raise RoundFailed(f"{error}; {SAID_ONCE} {self.journal.path}") from None
            if self._round is None:
                how = f"an earlier run wrote this: delete {self.journal.path} to ask again"
                raise RoundFailed(f"{error}; {how}") from None
            raise
        self._before, self._sessions = [], False
        if self._round is None:
            return
        (name, replies), self._round = self._round, None
        if all(_may_be_kept(each) for each in heard):
            self.journal.append(name, [stored(reply) for reply in replies])

    def _check_senders(self, heard: Sequence[Heard]) -> None:
        """Raise RoundFailed where a report of the journal counts, and may not under the present register."""
        if self.register is None:
            return
        asked = {each.task_id: each.task for each in heard}
        counting = {name for each in heard for name in each.collected.senders}
        for reply in self._before:
            if isinstance(reply, Sent) and reply.sender in counting and (why := fault_now(self.register, reply, asked)):
                raise RoundFailed(f"expected reports that still count, got one of {reply.sender}: {why}")


def _may_be_kept(heard: Heard) -> bool:
    """Whether a task has an answer, else it is asked again, and not an exact one about somebody's labels."""
    collected = heard.collected
    return bool(len(collected.rows)) and not (collected.heard_live and heard.task.trust not in RANDOMIZED)


@dataclass(frozen=True)
class Journals:
    """The journals of a server: one for each cell that is played, in `folder`; None where nothing is kept.

    What is read of them has to count under the `register`.
    """

    folder: Path | None
    register: Register | None = None

    @classmethod
    def of(cls, named: str | None, state: str | None, register: Register | None = None) -> "Journals":
        """Those in a folder that was named, else within the state's where that is there; made for its owner only."""
        folder = Path(named) if named else Path(state) / IN_STATE if state and Path(state).is_dir() else None
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(folder, register)

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
        with resumed(self.folder, study, cell, ask, accept, self.register) as own:
            if own.journal.torn:
                _log.warning(
                    "%s: dropped %d bytes of a round that a crash cut short", own.journal.path, own.journal.torn
                )
            yield own.ask, own.check
        if own.replayed:
            _log.info("%s: %s not asked again", cell_name(cell), counted(own.replayed, "round"))


@contextmanager
def resumed(
    folder: Path, study: Study, cell: Cell, ask: Ask, accept: Check, register: Register | None = None
) -> Iterator[Resumed]:
    """Play a cell through its journal in `folder`; a block that ends well has delivered the cell, and deletes it.

    Raises JournalError.
    """
    with Journal.open(journal_path(folder, study, cell)) as journal:
        yield Resumed(journal, ask, accept, register)
        journal.remove()


def journal_path(folder: Path, study: Study, cell: Cell) -> Path:
    """Where the journal of a cell is: runs of other studies may share the folder."""
    return folder / f"{study.fingerprint.hex()[:16]}-{cell_name(cell)}.journal"
