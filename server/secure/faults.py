"""Why a node's answer in a session may not count, from what the register knows of the node."""

from collections.abc import Mapping

from protocol.codec import decode_input, decode_task, identity
from protocol.errors import WireError
from protocol.messages import Refusal, Task
from protocol.secure.codec import decode_session_reply
from protocol.secure.messages import SessionAsk, of_session
from server.register import Known
from server.secure.signers import name_of
from server.sent import fault_in, stranger


def session_fault(known: Known | None, raw: bytes, asked: SessionAsk) -> str:
    """Why a node's answer to a question of a session may not count; empty where nothing speaks against it.

    An entry has to be under the key that the register has for the node, and so have the reports of an input, which
    are about its rows. What is no answer at all is for its reader to say.
    """
    why = stranger(known)
    if why or known is None:
        return why
    try:
        if not of_session(raw):
            found, _ = decode_input(raw)
            return "" if isinstance(found, Refusal) else fault_in(known, found, _tasks(asked))
        entry = decode_session_reply(raw).entry
    except WireError:
        return ""
    if entry is not None and entry.key != name_of(known.key):
        return "an entry that is not under the node's key"
    return ""


def _tasks(asked: SessionAsk) -> Mapping[bytes, Task]:
    return {identity(raw): decode_task(raw) for raw in asked.tasks}
