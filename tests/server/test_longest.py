"""The most bytes that replies may have: no honest one has more, and none that has much more is read."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from protocol.codec import decode_task, encode_bundle, sign_reply
from protocol.study import cells
from server.longest import REPORT, longest
from server.rounds import play
from studies.in_process import in_process
from studies.load import build

N, CLIENTS, REPETITIONS = 300, 3, 3
PAIRS = {"kind": "pairwise", "features": "gaussian", "dimension": 4, "theta": [0.5, 0.0, 0.0, -0.5], "bound": 3}
CHOICE = {**PAIRS, "kind": "choice", "choices": 5}
RECORDS = {"kind": "records", "model": "mean", "dimension": 3}
LAW = {"features": "pareto(1.6)", "tail": Decimal("0.5"), "moment": 16}
MEAN, MLE = {"estimator": "mean"}, {"estimator": "mle"}
STUDIES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "clear pairs": (PAIRS, {"trust": "clear", **MLE}),
    "local pairs": (PAIRS, {"trust": "local", "estimator": "rr-mle"}),
    "sums of pairs": (PAIRS, {"trust": "central", "mechanism": "gaussian-statistic", **MLE}),
    "clear choices": (CHOICE, {"trust": "clear", **MLE}),
    "sets of choices": (CHOICE, {"trust": "local", "mechanism": "subset-selection", "estimator": "rr-mle"}),
    "chosen choices": (CHOICE, {"trust": "local", "mechanism": "k-randomized-response", "estimator": "rr-mle"}),
    "records": (RECORDS, {"trust": "clear", **MEAN}),
    "local records": (RECORDS, {"trust": "local", "mechanism": "piecewise", **MEAN}),
    "sums of records": (RECORDS, {"trust": "central", **MEAN}),
    "rows of records": (RECORDS, {"trust": "central", "aggregate": "trimmed-mean", "trim": Decimal("0.25"), **MEAN}),
}


def rounds(name: str) -> Iterator[tuple[list[bytes], Sequence[list[bytes]]]]:
    """Tasks of each round of a study, and what each client answers."""
    problem, arm = STUDIES[name]
    content = {
        "study": {"name": "lengths", "seed": 5, "repetitions": REPETITIONS},
        "problem": problem,
        "grid": {"n": [N], "epsilon": [1], "delta": [Decimal("1e-5")]},
        "arm": [arm],
        **({"records": LAW} if problem is RECORDS else {}),
    }
    loaded = build(content, Path())
    room = in_process(loaded.study, loaded.theta, CLIENTS)
    seen: list[tuple[list[bytes], Sequence[list[bytes]]]] = []

    def ask(raws: list[bytes]) -> list[bytes]:
        replies = [replace(room, nodes=(node,)).ask(raws) for node in room.nodes]
        seen.append((raws, replies))
        return [reply for own in replies for reply in own]

    (cell,) = cells(loaded.study)
    assert list(play(loaded.study, cell, ask, room.server))
    yield from seen


@pytest.mark.parametrize("name", STUDIES)
def test_no_honest_reply_is_longer_signed_or_not(name: str) -> None:
    """Signatures as long as they get: 104 bytes of DER for P-384."""
    for raws, replies in rounds(name):
        tasks = [decode_task(raw) for raw in raws]
        for own in replies:
            sent = len(encode_bundle([sign_reply(reply, lambda report: bytes(104)) for reply in own]))
            assert sent <= longest(tasks, N // CLIENTS) <= longest(tasks)
            assert longest(tasks, N // CLIENTS) < 8 * sent + 3 * REPORT * len(tasks), "nor is there much room beside it"
