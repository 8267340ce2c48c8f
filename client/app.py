"""Flower's ClientApp: a cell's tasks in one message, their replies in one back. Nothing else ever leaves."""

import logging
import traceback

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Message, RecordDict
from flwr.clientapp import ClientApp

from client.labeler import answer
from client.node import node_of
from protocol.codec import decode_bundle, encode_bundle, encode_refusal, identity
from protocol.messages import Code, Refusal
from protocol.runconfig import BUNDLE_ARRAY, BUNDLE_RECORD

app = ClientApp()
_log = logging.getLogger("halftruth.client")


@app.query()
def query(message: Message, context: Context) -> Message:
    """Replies to the tasks of a bundle, in their order; never raises, since Flower sends an exception's text.

    A node that cannot be built refuses every task with one code, and bytes that are no bundle get an empty bundle.
    """
    tasks: list[bytes] = []
    try:
        tasks = decode_bundle(_bytes(message))
        node = node_of(context.node_config, context.run_config)
        return _reply([answer(raw, node) for raw in tasks], message)
    except Exception as error:  # its text could hold a label: it is neither sent nor logged
        frame = traceback.extract_tb(error.__traceback__)[-1]
        _log.warning("no answer: %s at %s:%s", type(error).__name__, frame.filename, frame.lineno)
        return _reply([encode_refusal(Refusal(identity(raw), Code.INTERNAL)) for raw in tasks], message)


def _bytes(message: Message) -> bytes:
    array = message.content.array_records[BUNDLE_RECORD][BUNDLE_ARRAY].numpy()
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ValueError("expected one array of bytes")
    return array.tobytes()


def _reply(messages: list[bytes], message: Message) -> Message:
    array = Array(np.frombuffer(encode_bundle(messages), dtype=np.uint8))
    return Message(RecordDict({BUNDLE_RECORD: ArrayRecord({BUNDLE_ARRAY: array})}), reply_to=message)
