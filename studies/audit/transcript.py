"""What a server received, against what was promised: every message that a transcript holds.

A server that is told to keep a transcript appends every byte string that arrived. Whether coins were fair no bytes can
say: the laws behind them are audited by `halftruth audit`.
"""

import struct
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from protocol.choice_law import CHOICE_LOCAL, ChoiceLaw
from protocol.codec import Signed, decode_bundle, decode_reply
from protocol.decimals import canonical
from protocol.errors import WireError
from protocol.mechanisms import LOCAL, channel
from protocol.messages import Coins, Kind, Mechanism, Refusal, Report
from protocol.record_terms import channel_of
from protocol.strict import StudyError
from protocol.terms import with_coin
from protocol.trust import Trust

HEAD = struct.Struct("<Q")
FILE = "transcript.bin"
_TOLD = {Trust.LOCAL: 0, Trust.CENTRAL: 1, Trust.CLEAR: 2}  # how much a server is told
ANY_PAIRS = "random-pair"  # its table names the study's pairs, which a report does not


@dataclass
class Received:
    """What a transcript holds: counts of what was read, and `broken`: what the promise does not allow, in words."""

    messages: int = 0
    reports: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    coins: Counter[str] = field(default_factory=Counter)
    level: Decimal = Decimal(0)
    broken: Counter[str] = field(default_factory=Counter)


def stored(path: Path) -> list[bytes]:
    """The byte strings of a transcript, a file or its folder. Raises StudyError for what is none."""
    file = path / FILE if path.is_dir() else path
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise StudyError(f"{file}: expected a transcript, got none: {error.strerror}") from None
    found, place = [], 0
    while place < len(raw):
        start = place + HEAD.size
        size = HEAD.unpack(raw[place:start])[0] if start <= len(raw) else len(raw)
        if start + size > len(raw):
            raise StudyError(f"{file}: expected whole messages, got one that is cut off at byte {place}")
        found.append(raw[start : start + size])
        place = start + size
    return found


def received(messages: list[bytes], trust: Trust, epsilon: Decimal | None) -> Received:
    """Read all messages, and compare each report with a promise: whom labelers trust, and the largest level allowed.

    Broken are messages that do not read, more trust than promised, a table that is not its mechanism's, and a level
    above `epsilon` (None: any).
    """
    found = Received(messages=len(messages))
    for raw in messages:
        for reply in _replies(raw, found):
            if isinstance(reply, Refusal):
                found.refusals[reply.code.name] += 1
            else:
                _read(reply.report, trust, epsilon, found)
    return found


def _replies(raw: bytes, found: Received) -> list[Signed | Refusal]:
    """What is in a message: a reply, or a bundle of them; on the wire one could be taken for the other's frame."""
    try:
        return _opened(raw)
    except WireError:
        pass
    replies: list[Signed | Refusal] = []
    try:
        for part in decode_bundle(raw):
            replies += _opened(part)
    except WireError:
        found.broken["a message that does not read: nobody knows what it tells"] += 1
    return replies


def _opened(raw: bytes) -> list[Signed | Refusal]:
    reply = decode_reply(raw)
    return [reply] if isinstance(reply, Refusal) else list(reply)


def _read(report: Report, trust: Trust, epsilon: Decimal | None, found: Received) -> None:
    mechanism = report.mechanism
    found.reports[_named(mechanism)] += 1
    found.coins[report.coins.label] += 1
    if report.coins is Coins.ADDRESSED:
        found.broken["coins that whoever knows a seed can recompute"] += 1
    shown = _trust(report)
    if _TOLD[shown] > _TOLD[trust]:
        found.broken[f"{shown.label}: {_named(mechanism)} where {trust.label} was promised"] += 1
        return
    asked = mechanism.get("epsilon")
    if asked is not None and epsilon is not None and asked > epsilon:
        found.broken[f"a claim of {canonical(asked)} above {canonical(epsilon)}"] += 1
    if shown is not Trust.LOCAL:
        return
    level = _level(mechanism, report.table)
    if level is None:
        found.broken[f"a table that is not that of {_named(mechanism)}"] += 1
    elif epsilon is not None and level > epsilon:
        found.broken[f"a level of {canonical(level)} above {canonical(epsilon)}"] += 1
    else:
        found.level = max(found.level, level)


def _trust(report: Report) -> Trust:
    """Whom a report trusts, by what is in it: a table is there exactly where values went through one."""
    if report.table:
        return Trust.LOCAL
    sums = report.payload.kind is Kind.EXACT_SUMS or report.mechanism.name != "none"
    return Trust.CENTRAL if sums else Trust.CLEAR


def _level(mechanism: Mechanism, table: bytes) -> Decimal | None:
    """The level of the mechanism's own law, where the table's hash is that law's; None where it is not."""
    given = dict(mechanism.parameters)
    try:
        if mechanism.name == ANY_PAIRS:
            return given["epsilon"]
        if mechanism.name in LOCAL and set(given) == LOCAL[mechanism.name][0]:
            plain = channel(mechanism.name, given)
            laws = [plain, with_coin(plain)] if len(plain.table) == 2 else [plain]
            if table in [law.digest for law in laws]:
                return plain.level
        if mechanism.name in CHOICE_LOCAL:
            law = ChoiceLaw(mechanism.name, given["epsilon"], (2, 63))
            return given["epsilon"] if table == law.digest else None
        numbers = channel_of(mechanism)
        return numbers.level if table == numbers.digest else None
    except (ValueError, KeyError):
        return None


def _named(mechanism: Mechanism) -> str:
    level = mechanism.get("epsilon")
    return mechanism.name if level is None else f"{mechanism.name} at {canonical(level)}"
