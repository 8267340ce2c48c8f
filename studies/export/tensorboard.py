"""Results for TensorBoard: a run for each arm and level, errors over n with their intervals, settings to sort by."""

import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from protocol.strict import StudyError
from studies.export.runs import Run, Tracked, parameters
from studies.results import METRICS

if TYPE_CHECKING:
    pass

MISSING = "--for tensorboard: expected the package tensorboard: pip install 'halftruth[tensorboard]'"
EVENTS = "events.out.tfevents.*"
STUDY = "study"  # the run that holds the settings of all, and the layout


def check_installed() -> None:
    """Raise StudyError where the package is missing."""
    try:
        import tensorboard.summary.writer.event_file_writer  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "tensorboard":
            raise
        raise StudyError(MISSING) from None


def write_runs(one: Tracked, out: Path) -> int:
    """Write event files into a new folder, or in place of an earlier export's, and return how many runs there are.

    Raises StudyError where the folder holds anything else; an old export stays until the new one is whole.
    """
    if out.exists() and not _ours(out):
        raise StudyError(f"--out: {out}: expected a new folder or an earlier export, got one with other files")
    draft = out.with_name(f".{out.name}.part")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        _write_study(one, draft / STUDY)
        for run, name in zip(one.runs, _names(one.runs), strict=True):
            _write_run(run, draft / name)
        shutil.rmtree(out, ignore_errors=True)
        draft.rename(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return len(one.runs)


def _ours(out: Path) -> bool:
    files = [path for path in out.rglob("*") if not path.is_dir()]
    return out.is_dir() and all(path.match(EVENTS) and path.parent.parent == out for path in files)


def _names(runs: Sequence[Run]) -> list[str]:
    """Names as those of folders, in which nothing nests."""
    found: list[str] = []
    for run in runs:
        name = re.sub(r"[^\w.=, \[\]-]+", "-", run.name)
        found.append(name if name not in {*found, STUDY} else f"{name} {len(found)}")
    return found


def _write_study(one: Tracked, folder: Path) -> None:
    from tensorboard.plugins.text.summary_v2 import text_pb

    loaded = one.view.loaded
    said = parameters(loaded.study, loaded.resolved) | {"state": one.state}
    rows = [f"| {key} | {_cell(value)} |" for key, value in said.items()]
    with _events(folder) as add:
        add(text_pb("study", "\n".join(["| key | value |", "|---|---|", *rows])), 0)
        add(_layout(METRICS[loaded.study.problem.kind]), 0)


def _write_run(run: Run, folder: Path) -> None:
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb

    numbers = {key: float(run.parameters[key]) for key in ("epsilon", "delta") if key in run.parameters}
    with _events(folder) as add:
        add(hparams_pb({**run.parameters, **numbers}, trial_id=run.name), 0)
        for name, values in run.metrics.items():
            for n, value in values:
                add(scalar_pb(name, value), n)


def _layout(metrics: Sequence[str]) -> Any:
    """A page of each metric with its interval, for the dashboard "custom scalars"."""
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.custom_scalar import layout_pb2, metadata
    from tensorboard.util.tensor_util import make_tensor_proto

    charts = []
    for name in metrics:
        series = layout_pb2.MarginChartContent.Series(value=name, lower=f"{name}_low", upper=f"{name}_high")
        charts.append(layout_pb2.Chart(title=name, margin=layout_pb2.MarginChartContent(series=[series])))
    category = layout_pb2.Category(title="means over repetitions with 95 % intervals, by n", chart=charts)
    layout = layout_pb2.Layout(category=[category])
    tensor = make_tensor_proto(layout.SerializeToString())
    about = metadata.create_summary_metadata()
    return Summary(value=[Summary.Value(tag=metadata.CONFIG_SUMMARY_TAG, metadata=about, tensor=tensor)])


@contextmanager
def _events(folder: Path) -> Iterator[Any]:
    """A file of events: a function that adds a summary at a step. The package would name the file after the host."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    folder.mkdir(parents=True)
    writer: EventFileWriter = EventFileWriter(str(folder))
    try:
        yield lambda summary, step: writer.add_event(Event(wall_time=time.time(), step=step, summary=summary))
    finally:
        writer.close()
        for path in folder.glob(EVENTS):
            path.rename(folder / f"{EVENTS[:-1]}{time.time_ns() // 1_000_000_000}.halftruth")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
