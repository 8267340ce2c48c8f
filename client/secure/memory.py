"""What a node remembers of sessions, in its ledger's file: so that after a crash it says the same, or nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from sqlite3 import Connection

from client.draws import session_secret
from client.ledger_store import writing
from client.secure.keys import KEY
from client.secure.membership import SessionRefused
from protocol.secure.messages import Stage

MOST_OPEN = 256  # sessions whose secret is kept: of older ones that nobody ended it is forgotten
NOTHING = bytes(KEY)  # in place of a secret that was forgotten


@dataclass(frozen=True)
class DiskMemory:
    """Sessions in the ledger's file; several processes may share it.

    Guarantee: each stage of a session has one answer, whatever crashes between; a secret is overwritten when its
    session ends, or when `MOST_OPEN` others were begun after it. Raises LedgerUnavailable like `client.ledger`.
    """

    path: Path
    timeout: float = 60.0

    def begin(self, session: bytes) -> bytes:
        """The secret of a session, made where it is new. Raises SessionRefused for one that is closed."""
        with writing(self.path, self.timeout) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("INSERT OR IGNORE INTO session (id, root) VALUES (?, ?)", (session, session_secret()))
            newest = connection.execute("SELECT max(number) FROM session").fetchone()[0]
            connection.execute(
                "UPDATE session SET root = ? WHERE number <= ? AND root <> ?", (NOTHING, newest - MOST_OPEN, NOTHING)
            )
            return _open(connection, session)[1]

    def root(self, session: bytes) -> bytes:
        """The secret of a session that was begun. Raises SessionRefused."""
        with writing(self.path, self.timeout) as connection:
            return _open(connection, session)[1]

    def kept(self, session: bytes, stage: Stage, question: bytes) -> bytes | None:
        """The answer that this question got before; None where there is none."""
        with writing(self.path, self.timeout) as connection:
            found = _stage(connection, session, stage)
            return found[2] if found is not None and found[0] == question else None

    def once(self, session: bytes, stage: Stage, question: bytes, subject: bytes, make: Callable[[], bytes]) -> bytes:
        """The answer to a stage: the question is on disk before it is made, and the answer before it leaves.

        Raises SessionRefused where the stage was asked another question, also where its answer never left.
        """
        with writing(self.path, self.timeout) as connection:
            number = _open(connection, session)[0]
            connection.execute(
                "INSERT OR IGNORE INTO stage (session, stage, question, subject) VALUES (?, ?, ?, ?)",
                (number, int(stage), question, subject),
            )
            _same(connection, session, stage, question)
        made = make()
        with writing(self.path, self.timeout) as connection:
            connection.execute(
                "UPDATE stage SET reply = ? WHERE session = ? AND stage = ? AND reply IS NULL",
                (made, number, int(stage)),
            )
            reply = _same(connection, session, stage, question)
        assert reply is not None
        return reply

    def same(self, session: bytes, stage: Stage, subject: bytes) -> bool:
        """Whether a stage was asked, and about this."""
        with writing(self.path, self.timeout) as connection:
            found = _stage(connection, session, stage)
            return found is not None and found[1] == subject

    def close(self, session: bytes) -> None:
        """Overwrite the secret of a session."""
        with writing(self.path, self.timeout) as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("UPDATE session SET root = ? WHERE id = ?", (NOTHING, session))


def _open(connection: Connection, session: bytes) -> tuple[int, bytes]:
    """Number and secret of a session that was begun, and not ended."""
    found = connection.execute("SELECT number, root FROM session WHERE id = ?", (session,)).fetchone()
    if found is None or found[1] == NOTHING:
        raise SessionRefused("expected a session that was begun, and not ended")
    return int(found[0]), bytes(found[1])


def _stage(connection: Connection, session: bytes, stage: Stage) -> tuple[bytes, bytes, bytes | None] | None:
    """Question, subject and answer of a stage that was asked."""
    found: tuple[bytes, bytes, bytes | None] | None = connection.execute(
        "SELECT question, subject, reply FROM stage JOIN session ON stage.session = session.number"
        " WHERE session.id = ? AND stage = ?",
        (session, int(stage)),
    ).fetchone()
    return found


def _same(connection: Connection, session: bytes, stage: Stage, question: bytes) -> bytes | None:
    """The answer so far of a stage that was asked this. Raises SessionRefused where it was asked something else."""
    found = _stage(connection, session, stage)
    if found is None or found[0] != question:
        raise SessionRefused("expected what this stage was asked before, got another question")
    return found[2]
