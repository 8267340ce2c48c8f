"""What came out of a study of real records: how far private estimates are from what the file says."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from client.labeler import Node
from client.ledger import MemoryLedger
from client.policy import Policy
from client.sources.reading import SourceError
from client.sources.record_table import RecordTable, by_hash
from protocol.decimals import canonical
from protocol.store import FeatureStore
from protocol.strict import StudyError
from protocol.study import Cell
from server.curator import SimulatedCurator
from server.evidence import Server
from server.outcome import Outcome
from server.rounds import play
from studies.in_process import InProcess
from studies.real_records.source import PublicRecords
from studies.real_records.study_file import NO_CLAIM, Cells, RecordStudy
from studies.records.exact import Flat, Floats, flat, loss, minimiser
from studies.tails import tail_index
from studies.terminal import printable

UPPER = 0.9  # the share of coins below the second number of a cell


@dataclass(frozen=True)
class Right:
    """What the file says: the right answer, and the mean loss there and at 0."""

    records: Flat
    answer: Floats
    least: float
    at_zero: float


@dataclass(frozen=True)
class Far:
    """How far the estimates of one line are, one number for each coin, and their mean.

    `error` is |estimate - right| / |right|; `excess` the loss above the least one, in units of what 0 loses: at 1 an
    estimate is worth no more than 0. `warnings` has those of each estimate.
    """

    error: Floats
    excess: Floats
    mean: Floats
    warnings: tuple[tuple[str, ...], ...] = ()


def read(study: RecordStudy) -> RecordTable:
    """The study's file, its rows in the order of hashes. Raises StudyError that names the place."""
    try:
        return by_hash(study.data.read())
    except (SourceError, OSError) as error:
        raise StudyError(printable(str(error))) from None


def without_mean(study: RecordStudy, table: RecordTable) -> list[str]:
    """Why no mean is estimated: features whose tails are too heavy to have one; empty where there is none."""
    if table.columns.model != "mean":
        return []
    columns = flat(table).features.T
    tails = [(name, tail_index(values)) for name, values in zip(table.columns.names, columns, strict=True)]
    return [f"{name}: {tail}" for name, tail in tails if tail is not None and tail.no_mean]


def outcomes(study: RecordStudy, table: RecordTable, clients: int = 1) -> Iterator[Outcome]:
    """All outcomes, of the round loop over messages as anywhere; `clients` share the rows, and change nothing."""
    asked = study.study(len(table.identities))
    features = FeatureStore(asked.seed)
    nodes = tuple(
        Node(PublicRecords(part), Policy.simulation(), MemoryLedger(), "addressed", features, asked.seed)
        for part in parts(table, clients)
    )
    room = InProcess(nodes, Server(features, asked.seed, SimulatedCurator(asked.seed)))
    yield from play(asked, Cell(len(table.identities), 0, asked.repetitions), room.ask, room.server)


def parts(table: RecordTable, clients: int) -> list[RecordTable]:
    """The table, cut into runs of rows for so many clients."""
    return [table] if clients == 1 else [table.part(rows) for rows in np.array_split(table.rows_held, clients)]


def right(study: RecordStudy, table: RecordTable, found: dict[Cells, Floats]) -> Right:
    """What estimates are compared with."""
    records, model, ridge = flat(table), table.columns.model, float(study.ridge)
    named = study.reference
    answer = minimiser(model, records, ridge) if named is None else found[named, NO_CLAIM][0]
    zero = np.zeros(len(answer))
    return Right(records, answer, loss(model, records, answer, ridge), loss(model, records, zero, ridge))


def measured(study: RecordStudy, table: RecordTable) -> tuple[Right, dict[Cells, Far]]:
    """The right answer, and how far each line is from it. Raises StudyError, and RoundFailed."""
    found: dict[Cells, list[Outcome]] = {}
    names = {arm.name: name for name, arm in study.ways}
    for outcome in outcomes(study, table):
        line = (names[outcome.arm.name], level_text(outcome.epsilon))
        found.setdefault(line, []).append(outcome)
    stacked = {line: np.stack([one.theta for one in estimates]) for line, estimates in found.items()}
    is_right = right(study, table, stacked)
    said = {line: tuple(one.warnings for one in estimates) for line, estimates in found.items()}
    return is_right, {line: _far(study, table, is_right, each, said[line]) for line, each in stacked.items()}


def level_text(level: Decimal | None) -> str:
    """A level in a cell."""
    return NO_CLAIM if level is None else canonical(level)


def _far(
    study: RecordStudy, table: RecordTable, is_right: Right, estimates: Floats, warnings: tuple[tuple[str, ...], ...]
) -> Far:
    gap = np.linalg.norm(estimates - is_right.answer, axis=1) / np.linalg.norm(is_right.answer)
    ridge, model = float(study.ridge), table.columns.model
    seen = {each.tobytes(): loss(model, is_right.records, each, ridge) for each in estimates}
    losses = np.array([seen[each.tobytes()] for each in estimates])
    excess = (losses - is_right.least) / (is_right.at_zero - is_right.least)
    return Far(gap, excess, estimates.mean(axis=0), warnings)
