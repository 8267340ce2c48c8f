"""Flower's ClientApp: a cell's tasks in one message, their replies in one back. Nothing else ever leaves."""

import logging
import traceback

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from client.node import keys_of, node_of
from client.replies import reply
from client.signing import Sign
from protocol.codec import decode_tasks, encode_bundle, encode_refusal, identity, sign_reply
from protocol.messages import Code, Refusal
from protocol.parcel import FEW, RECORD, VALUE, parcel_of
from protocol.secure.messages import of_session

app = ClientApp()
_log = logging.getLogger("halftruth.client")


@app.query()
def query(message: Message, context: Context) -> Message:
    """Replies to the tasks of a bundle, in their order; never raises, since Flower sends an exception's text.

    A node that cannot be built refuses every task with one code, and so does one that answers another server's key;
    bytes that are no bundle get an empty bundle. Reports are signed where the node has a key.
    """
    tasks: list[bytes] = []
    try:
        tasks, signature = decode_tasks(parcel_of(message.content))
        keys = keys_of(context.node_config)
        if keys.vouched is not None and not keys.vouched(tasks, signature):
            _log.warning("refused %d tasks: not signed by the server's key", len(tasks))
            return _reply(_refused(tasks, Code.NOT_SIGNED), message)
        node = node_of(context.node_config, context.run_config)
        replies = [reply(raw, node) for raw in tasks]
        return _reply([signed(raw, keys.sign) for raw in replies] if keys.sign else replies, message)
    except Exception as error:  # its text could hold a label: it is neither sent nor logged
        frame = traceback.extract_tb(error.__traceback__)[-1]
        _log.warning("no answer: %s at %s:%s", type(error).__name__, frame.filename, frame.lineno)
        return _reply(_refused(tasks, Code.INTERNAL), message)


def signed(raw: bytes, sign: Sign) -> bytes:
    """A reply with its reports signed; what a session asks for bears the signatures that it needs."""
    return raw if of_session(raw) else sign_reply(raw, sign)


def _refused(tasks: list[bytes], code: Code) -> list[bytes]:
    return [encode_refusal(Refusal(identity(raw), code)) for raw in tasks]


def _reply(messages: list[bytes], message: Message) -> Message:
    return Message(RecordDict({RECORD: _record(encode_bundle(messages))}), reply_to=message)


def _record(raw: bytes) -> ArrayRecord | ConfigRecord:
    if len(raw) <= FEW:
        return ConfigRecord({VALUE: raw})
    return ArrayRecord({VALUE: Array(np.frombuffer(raw, dtype=np.uint8))})
