"""How many clients have to answer a round: a number of them, or a share of those who are asked."""

import math
import re
from decimal import Decimal

from protocol.strict import StudyError

NUMBER, SHARE = re.compile("[1-9][0-9]{0,9}"), re.compile(r"0?\.[0-9]{1,9}|1\.0{1,9}")


def check_quorum(text: str, place: str) -> str:
    """The text, "" for at least one client. Raises StudyError for what is neither a number nor a share.

    >>> [check_quorum(text, "quorum") for text in ("", "3", "0.75")]
    ['', '3', '0.75']
    """
    if text and not NUMBER.fullmatch(text) and not (SHARE.fullmatch(text) and Decimal(text)):
        raise StudyError(
            f"{place}: expected a number of clients such as 3, or a share with a point such as 0.75, got {text[:40]!r}"
        )
    return text


def needed(text: str, asked: int) -> int:
    """How many clients out of those `asked` have to answer, at least one.

    >>> [needed(text, 10) for text in ("", "3", "0.75", "1.0")]
    [1, 3, 8, 10]
    """
    if not text:
        return 1
    return math.ceil(Decimal(text) * asked) if "." in text else int(text)
