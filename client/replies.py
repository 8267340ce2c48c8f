"""What a runtime calls with whatever it carried: a task, or a question of a session."""

from client.labeler import Node, answer
from client.secure.member import respond
from protocol.secure.messages import of_session


def reply(raw: bytes, node: Node) -> bytes:
    """The node's reply; never raises. Guarantee: that of `client.labeler.answer`, or `client.secure.member.respond`."""
    return respond(raw, node) if of_session(raw) else answer(raw, node)
