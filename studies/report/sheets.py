"""summary.csv and paired.csv: what the terminal tables and plots show, and the rest, for other tools."""

from collections.abc import Iterable
from pathlib import Path

from studies.files import write_sheet
from studies.folder import Folder
from studies.report.view import View
from studies.results import METRICS
from studies.summary import Moments, Setting, paired, summarise

_MOMENTS = ("repetitions", "mean", "standard_error", "interval_low", "interval_high")
_SPREAD = ("median", "lower_quartile", "upper_quartile", "boundary_rate", "interval_coverage")


def write_sheets(folder: Folder, view: View) -> list[Path]:
    """Write both files; numbers have all their digits, what does not exist is empty."""
    settings = ("metric", "n", "epsilon", "delta")
    write_sheet(folder.summary, (*settings, "arm", *_MOMENTS, *_SPREAD), _summary_rows(view))
    write_sheet(folder.paired, (*settings, "left", "right", *_MOMENTS), _paired_rows(view))
    return [folder.summary, folder.paired]


def _summary_rows(view: View) -> Iterable[tuple[object, ...]]:
    for metric in METRICS[view.loaded.study.problem.kind]:
        for one in summarise(view.table, metric, view.loaded.theta):
            spread = (one.median, one.lower_quartile, one.upper_quartile, one.boundary_rate, one.coverage)
            yield (metric, *_setting(one.setting), one.arm, *_moments(one.moments), *spread)


def _paired_rows(view: View) -> Iterable[tuple[object, ...]]:
    for metric in METRICS[view.loaded.study.problem.kind]:
        for one in paired(view.table, metric):
            yield (metric, *_setting(one.setting), one.left, one.right, *_moments(one.moments))


def _setting(setting: Setting) -> tuple[object, ...]:
    return setting.n, setting.epsilon, setting.delta


def _moments(moments: Moments) -> tuple[object, ...]:
    values = (moments.mean, moments.se, moments.low, moments.high)
    return (moments.count, *(value if value == value else None for value in values))
