"""Findings for people, as a table, and for programs, as JSON."""

import json
import math
from collections.abc import Sequence
from typing import Any

from protocol.decimals import canonical
from studies.audit.run import EXACT, Finding
from studies.audit.subjects import NotOffered
from studies.audit.transcript import Received
from studies.terminal import print_entries, print_line, small

COLUMNS = ("subject", "claimed", "delta", "found", "by", "verdict", "inputs", "event", "draws", "seconds", "CPU")
LEFT = ("subject", "by", "verdict", "inputs", "event")
HOW = """\
found: epsilon is at least this. exact: over all events and all coins, for the inputs tried. sampled: at the stated
confidence, by draws that the search did not see; of Gaussian noise by how far apart two normal laws are. "x would be"
found: the least epsilon that these draws show in the easiest case, with probability 0.99; a leak in rare outputs takes
more draws (--draws). Nothing here proves a claim."""


def show(findings: Sequence[Finding], refused: Sequence[tuple[str, str, NotOffered]], confidence: float) -> None:
    """Print a table, what was not offered, and how to read it."""
    if findings:
        print_entries(COLUMNS, [_cells(one) for one in findings], LEFT)
    for name, epsilon, error in refused:
        print_line(f"{name} at epsilon {epsilon}: not offered: {error.why}")
    print_line(HOW)
    sampled = [one for one in findings if one.way != EXACT]
    if sampled:
        several = f", so that one of these {len(sampled)} sound ones is called broken" if len(sampled) > 1 else ""
        chance = min(1.0, len(sampled) * (1 - confidence))
        print_line(
            f"confidence of each sampled bound: {confidence:.12g}{several} with probability at most {chance:.2g}"
        )
    broken = [one.subject for one in findings if one.broken]
    left = f"; not audited: {len(refused)}" if refused else ""
    print_line((f"broken: {', '.join(broken)}" if broken else "no claim was refuted") + left)


def as_markdown(findings: Sequence[Finding]) -> str:
    """A table for a page: a line a subject, at each level what was found, what would have been, and CPU seconds of all.

    Exact bounds have no second number.
    """
    levels = list(dict.fromkeys(canonical(one.asked or one.claim.epsilon) for one in findings))
    head = ["subject", "δ", "by", "draws", *(f"ε = {level}" for level in levels), "CPU, s"]
    lines = [f"| {' | '.join(head)} |", "|---|---|---|" + "---:|" * (len(levels) + 2)]
    for name in dict.fromkeys(one.subject for one in findings):
        own = [one for one in findings if one.subject == name]
        first = own[0]
        cells = [f"`{name}`", small(first.claim.delta), first.way, str(first.draws) if first.draws else "-"]
        cells += [_bound(one) for one in own]
        lines.append(f"| {' | '.join([*cells, f'{sum(one.cpu for one in own):.1f}'])} |")
    return "\n".join(lines)


def _bound(one: Finding) -> str:
    """Found, and in brackets the least level that would have been; a claim that is a part of the whole is named."""
    claim = float(one.claim.epsilon)
    part = "" if one.asked in (None, one.claim.epsilon) else f" of {claim:g}"
    told = f"{one.found:.3f}{part}" + (" BROKEN" if one.broken else "")
    told += "" if one.normal is None else f" / {one.normal:.3f}"
    if one.way == EXACT:
        return told
    return f"{told} ({one.detects:.2f})" if math.isfinite(one.detects) else f"{told} (none)"


def as_json(findings: Sequence[Finding], refused: Sequence[tuple[str, str, NotOffered]], seed: int) -> dict[str, Any]:
    """All that was found; numbers that are infinite are null."""
    return {
        "seed": seed,
        "broken": any(one.broken for one in findings),
        "findings": [_plain(one) for one in findings],
        "not_offered": [{"subject": name, "epsilon": level, "why": error.why} for name, level, error in refused],
    }


def show_received(found: Received, *, as_json: bool) -> None:
    """What a transcript holds, and what of it was not promised."""
    told: dict[str, Any] = {
        "messages": found.messages,
        "tasks": dict(found.tasks),
        "reports": dict(found.reports),
        "refusals": dict(found.refusals),
        "coins": dict(found.coins),
        "level": canonical(found.level),
        "broken": dict(found.broken),
    }
    if as_json:
        print_line(json.dumps(told, indent=2))
        return
    for name, value in told.items():
        words = ", ".join(f"{key}: {count}" for key, count in value.items()) if isinstance(value, dict) else value
        print_line(f"{name}: {words if words != '' else 'none'}")


def _plain(one: Finding) -> dict[str, Any]:
    return {
        "subject": one.subject,
        "unit": one.claim.unit,
        "epsilon": canonical(one.claim.epsilon),
        "delta": canonical(one.claim.delta),
        "found": _number(one.found),
        "broken": one.broken,
        "way": one.way,
        "confidence": one.confidence,
        "least_delta": one.delta,
        "more_likely_under": one.inputs[0],
        "less_likely_under": one.inputs[1],
        "event": one.event,
        "hits": one.hits,
        "others": one.others,
        "draws": one.draws,
        "detects": _number(one.detects),
        "ceiling": _number(one.ceiling),
        "found_of_normal_noise": one.normal,
        "verdict": one.verdict,
        "seconds": one.seconds,
        "cpu": one.cpu,
        "note": one.note,
    }


def _cells(one: Finding) -> tuple[object, ...]:
    event = one.event if one.way == EXACT else f"{one.event}: {one.hits} against {one.others}"
    return (
        one.subject,
        canonical(one.claim.epsilon),
        small(one.claim.delta),
        "infinite" if math.isinf(one.found) else f"{max(one.found, one.normal or 0.0):.4f}",
        one.way,
        one.verdict,
        " against ".join(one.inputs),
        event,
        one.draws or "-",
        f"{one.seconds:.1f}",
        f"{one.cpu:.1f}",
    )


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
