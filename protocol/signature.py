"""What keys sign: a domain string, then the exact bytes that travel. The cryptography is each side's own.

A domain keeps a signature from being taken for another kind's, and for one of Flower's, which are over a time.
"""

from collections.abc import Sequence

from protocol.codec import encode_bundle

DOMAIN_REPORT = b"halftruth report v1\n"
DOMAIN_TASKS = b"halftruth tasks v1\n"


def report_words(raw: bytes) -> bytes:
    """What a node signs: all fields of a report, its task's id and its rows among them.

    >>> report_words(b"")
    b'halftruth report v1\\n'
    """
    return DOMAIN_REPORT + raw


def tasks_words(messages: Sequence[bytes]) -> bytes:
    """What a server signs: the tasks of one message, how many they are, and their order."""
    return DOMAIN_TASKS + encode_bundle(messages)
