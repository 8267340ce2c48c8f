"""A study's results as trackers of experiments keep them: a run for each arm and level, errors by the number n."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from protocol.arms import Arm
from protocol.decimals import canonical
from protocol.strict import StudyError
from protocol.study import Study, cells
from studies import results
from studies.files import write_text
from studies.folder import Folder, one_run, open_study
from studies.parts import part_path
from studies.report.page import report
from studies.report.sheets import write_sheets
from studies.report.view import View
from studies.results import METRICS
from studies.summary import Summary, summarise

LONGEST = 250  # characters of a parameter: what is longer stands in study.json
Values = dict[str, list[tuple[int, float]]]  # (n, value) by the name of a metric


@dataclass(frozen=True)
class Run:
    """An arm at a level. `metrics`: each mean, with `_low` and `_high` of its 95 % interval where there is one."""

    name: str
    parameters: Mapping[str, str]
    metrics: Values


@dataclass(frozen=True, eq=False)
class Tracked:
    """A study for a tracker: `state` says how much of it is finished, `digest` tells equal results from others."""

    folder: Folder
    view: View
    state: str
    digest: str
    runs: tuple[Run, ...]

    @property
    def finished(self) -> bool:
        """Whether nothing is to come."""
        return self.state == "finished"

    @property
    def name(self) -> str:
        """The study's."""
        return self.view.loaded.study.name


def tracked(path: Path) -> Tracked:
    """What a results folder has by now; of a run that is not finished, the units that are.

    Errors, settings and claims alone: no label and no report is in a results folder.
    Raises StudyError or ValueError where it is none, or where no unit is finished.
    """
    folder = one_run(path)
    loaded = open_study(folder)
    view, state = _view(folder, cells(loaded.study, folder.record()["block"]))
    digest = hashlib.sha256(f"{loaded.sha256} {state} {view.table.num_rows}".encode())
    for column in ("error_l2", "repetition"):
        digest.update(view.table[column].combine_chunks().to_numpy().tobytes())
    return Tracked(folder, view, state, digest.hexdigest(), tuple(_runs(view)))


def attachments(one: Tracked, to: Path) -> list[Path]:
    """Write into a folder what goes along: study.json, the sheets, and the report where the run is finished."""
    made = Folder(to)
    write_text(made.study, one.folder.study.read_text("utf-8"))
    paths = [made.study, *write_sheets(made, one.view)]
    if one.finished:
        page = to / "report.html"
        write_text(page, report([one.folder]))
        paths.append(page)
    return paths


def parameters(study: Study, resolved: Mapping[str, Any]) -> dict[str, str]:
    """The study's settings as text, by their keys; arrays and long texts are left to study.json."""
    tables = {key: value for key, value in resolved.items() if key != "arms" and isinstance(value, Mapping)}
    said = {f"{table}.{key}": _text(value) for table, keys in tables.items() for key, value in keys.items()}
    fingerprint = {"study.fingerprint": study.fingerprint.hex()}
    return {key: text for key, text in said.items() if 0 < len(text) <= LONGEST} | fingerprint


def _view(folder: Folder, units: list[Any]) -> tuple[View, str]:
    if folder.results.exists():
        return View.open(folder), "finished"
    loaded = open_study(folder)
    paths = [path for cell in units if (path := part_path(folder.parts, cell)).exists()]
    if not paths:
        raise StudyError(f"{folder.path}: expected results, found no finished unit yet")
    table = results.merge([results.read(path) for path in paths], loaded.study.arms)
    if table["study_fingerprint"].unique().to_pylist() != [loaded.study.fingerprint.hex()]:
        raise StudyError(f"{folder.parts}: expected units of one study, got those of another one too")
    return View(loaded, table), f"{len(paths)} of {len(units)} units"


def _runs(view: View) -> Iterator[Run]:
    found: dict[tuple[str, float | None, float | None], Values] = {}
    for metric in METRICS[view.loaded.study.problem.kind]:
        for one in summarise(view.table, metric, view.loaded.theta):
            key = one.arm, one.setting.epsilon, one.setting.delta
            for name, value in _values(metric, one):
                if value is not None and value == value:
                    found.setdefault(key, {}).setdefault(name, []).append((one.setting.n, value))
    arms = {arm.name: arm for arm in view.arms}
    claims = _claims(view.table)
    for (name, epsilon, delta), metrics in found.items():
        level = {key: f"{value:.12g}" for key, value in (("epsilon", epsilon), ("delta", delta)) if value is not None}
        shown = ", ".join(f"{key} {value}" for key, value in level.items())
        described = _arm(arms[name]) | level | claims.get((name, epsilon, delta), {})
        yield Run(f"{name}, {shown}" if shown else name, described, metrics)


def _values(metric: str, one: Summary) -> Iterator[tuple[str, float | None]]:
    moments = one.moments
    yield from ((metric, moments.mean), (f"{metric}_low", moments.low), (f"{metric}_high", moments.high))
    if metric == "error_l2":
        yield from (("boundary_rate", one.boundary_rate), ("interval_coverage", one.coverage))
        yield "repetitions", float(moments.count)


def _arm(arm: Arm) -> dict[str, str]:
    options = {f"arm.{key}": _text(value) for key, value in arm.options}
    return {"trust": arm.trust_name, "mechanism": arm.mechanism, "estimator": arm.estimator, **options}


def _claims(table: pa.Table) -> dict[tuple[str, float | None, float | None], dict[str, str]]:
    """What is said of privacy, by arm and level."""
    names = ("arm", "epsilon", "delta", "unit", "neighbours", "coins")
    rows = zip(*(table[name].to_pylist() for name in names), strict=True)
    return {
        (arm, epsilon, delta): {k: v for k, v in zip(names[3:], said, strict=True) if v is not None}
        for arm, epsilon, delta, *said in dict.fromkeys(rows)
    }


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_text(each) for each in value)
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    return canonical(value) if hasattr(value, "as_tuple") else str(value)
