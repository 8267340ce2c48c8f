"""A mean or a model of records that stay on their nodes, asked in rounds by a server that knows public facts only."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from client.ledger_store import LedgerUnavailable
from client.node_file import NodeFileError, read_node
from client.record_file import RecordFile
from client.sources.reading import SourceError
from protocol.aggregates import TRIMMED
from protocol.codec import encode_task
from protocol.decimals import canonical
from protocol.failure import RunFailed
from protocol.record_arms import RECORD_ESTIMATORS
from protocol.strict import StudyError
from protocol.study import Study
from protocol.trust import Trust
from server.listening import RoundFailed
from server.release_file import LedgerError
from studies.federate import OF_LABELS, where_of
from studies.federate.caps import advice
from studies.federate.progress import Progress, kept_in
from studies.federate.record_split import RecordSplit, read_record_split
from studies.federate.rooms import Question, ask, node_files
from studies.fit.request import AUTO, NONE
from studies.fit.state import CURATOR
from studies.own_flags import refuse_flags
from studies.records import read_request
from studies.records.play import Estimated, first_tasks, study_of
from studies.records.request import Request
from studies.records.show import as_json, show
from studies.records.told import accuracy
from studies.records.words import in_flags
from studies.terminal import print_line, printable

MOVING = ("recentred-mean", "two-phase", "votes")  # later rounds are bounded elsewhere than the first


def main(args: argparse.Namespace) -> int:
    """Run `halftruth federate` about records: exit code 0 done, 1 no estimate; StudyError is wrong use."""
    try:
        return _run(args)
    except StudyError as error:
        raise in_flags(error) from None


def _run(args: argparse.Namespace) -> int:
    split = read_record_split(Path(args.server))
    request = read_terms(args, split)
    study = study_of(request, split.facts, split.seed or 0)
    told = _accuracy(study)
    print(printable(described(split)), file=sys.stderr)
    question, where = Question(study, split.facts.unit, simulated=split.seed is not None), where_of(args)
    progress = Progress.of(study, Path(args.server), len(split.held), split.facts.rows, where.in_process)
    try:
        with kept_in(where.out, progress) as kept:
            outcome = ask(question, len(split.held), where, request.state)
            found = Estimated(request, split.facts, outcome, outcome.warnings, told)
            kept.result(as_json(found))
    except NodeFileError as error:
        raise StudyError(str(error)) from None
    except (LedgerError, LedgerUnavailable, RoundFailed, RunFailed, SourceError) as error:
        files = node_files(Path(args.nodes), len(split.held)) if args.nodes else []
        more = advice(str(error), split.facts.unit, files) + changed(files, split.held)
        print(f"halftruth: {error}{more}", file=sys.stderr)
        return 1
    if args.json:
        print(as_json(found))
        return 0
    show(found)
    if question.released and args.nodes:
        print_line(f"The curator's ledger, which keeps what was released: {request.state / CURATOR}")
    return 0


def read_terms(args: argparse.Namespace, split: RecordSplit) -> Request:
    """The flags as a checked request; what they leave open is as the split says. Raises StudyError."""
    agreed = {"trust": split.trust.label, "unit": split.facts.unit.label}
    for flag, value in agreed.items():
        if getattr(args, flag) not in (None, value):
            raise StudyError(
                f"--{flag} {getattr(args, flag)}: the nodes of this split answer {split}: leave it out, or split again"
            )
    refuse_flags(args, OF_LABELS, "the nodes of this split have records, and no labels: leave it out")
    released = split.trust is Trust.CENTRAL and split.seed is None
    if args.state is not None and (args.nodes is None or not released):
        raise StudyError("--state: only for the curator of --trust central that is started here: leave it out")
    if split.trust is Trust.CLEAR and args.threshold is not None:
        raise StudyError("--threshold: a clear estimate bounds nothing, and nodes do not tell what it would cut")
    seed = None if split.seed is None else str(split.seed)
    coins = {"public_data": seed is not None, "coins": "os" if seed is None else "addressed", "seed": seed}
    named = vars(args) | agreed | coins | {"model": split.facts.model} | _bounds(args, split)
    request = read_request(argparse.Namespace(**named), split.facts)
    if request.arm.trust is Trust.CENTRAL and request.arm.get("aggregate") == TRIMMED and not split.central_rows:
        raise StudyError(f"--aggregate {TRIMMED}: nodes of this split show no rows to a curator: --central-rows there")
    return request


def described(split: RecordSplit) -> str:
    """What the coordinates of an estimate are, and how many rows there are."""
    facts = split.facts
    response = "" if split.response is None else f"; response {_moved(split, split.response)}"
    held = ", ".join(map(str, split.held))
    features = ", ".join(_moved(split, name) for name in facts.names)
    return f"Columns: features {features}{response}. Rows: one a {facts.unit.label}; of each node: {held}"


def _moved(split: RecordSplit, name: str) -> str:
    numbers = (("-", split.scales.centre), ("/", split.scales.scale))
    told = [f"{sign} {canonical(known[name])}" for sign, known in numbers if name in known]
    return f"{name} ({', '.join(told)})" if told else name


def changed(files: Sequence[Path], held: Sequence[int]) -> str:
    """What to add to an error where nodes have other rows than those of the split; nothing where all are there."""
    told = ""
    for file, count in zip(files, held, strict=False):
        try:
            source = read_node(file).source
            own = len(source.read().rows_held) if isinstance(source, RecordFile) else 0
        except (ValueError, OSError) as error:
            told += f"\n{file.parent.name}: {printable(str(error))}"
            continue
        if own != count:
            told += f"\n{file.parent.name} has {own} rows, and had {count} when the file was split"
    return told


def _bounds(args: argparse.Namespace, split: RecordSplit) -> dict[str, Any]:
    """How contributions are bounded: as the flags say, or as was known when the file was split."""
    known = {name: canonical(value) for name, value in split.assumed.items()}
    ball = known.pop("bound", None)
    found: dict[str, Any] = {"bound": {AUTO: ball, NONE: None}.get(args.bound, args.bound)}
    if split.trust is Trust.CLEAR or {args.threshold, args.tail, args.moment} != {None}:
        return found
    estimator = args.estimator or ("mean" if split.facts.model == "mean" else "descent")
    knows = RECORD_ESTIMATORS.get((split.trust, estimator))
    if knows is not None and "threshold" not in knows.options:
        known.pop("threshold", None)
    return found | known


def _accuracy(study: Study) -> str | None:
    """Bounds and noise of the first round, where later ones have the same. Raises StudyError where none can start."""
    tasks, (arm,) = first_tasks(study), study.arms
    if arm.estimator in MOVING or arm.get("threshold") == "adaptive":
        return None
    return accuracy(encode_task(task) for task in tasks)
