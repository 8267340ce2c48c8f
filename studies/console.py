"""What `halftruth run` and `halftruth report` say to a person."""

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from protocol.failure import RunFailed
from protocol.strict import StudyError
from studies.files import write_text
from studies.folder import Folder, one_run
from studies.load import Loaded, load
from studies.machine import kernels_kept
from studies.report import tables
from studies.report.view import View
from studies.terminal import Terminal
from studies.transcript_flag import transcript_of

WIDE = 120


def run_command(args: argparse.Namespace) -> int:
    """`halftruth run`: exit code 0 done, 1 the run failed, 130 interrupted; StudyError is wrong use."""
    from studies.run import Interrupted

    _check_flags(args)
    loaded, out = load(Path(args.study), args.overrides), Path(args.out)
    if args.on == "in-process" and not kernels_kept():
        print("Compiles its kernels first, once: some seconds.", file=sys.stderr)
    try:
        with _bar(loaded) as bar:
            task = bar.add_task(loaded.study.name, total=None)
            table = _run(args, loaded, out, lambda done, whole: bar.update(task, completed=done, total=whole))
    except Interrupted as stopped:
        print(
            f"Stopped: {stopped.done} of {stopped.total} units are finished and kept in {out}. Go on with:\n"
            f"  {_again(args)}",
            file=sys.stderr,
        )
        return stopped.code
    except RunFailed as error:
        print(f"halftruth: the run failed: {error}\nFinished units are kept in {out}.", file=sys.stderr)
        if Folder(out).logs.is_dir():
            print(f"Logs of its processes: {Folder(out).logs}", file=sys.stderr)
        return 1
    console, view = _console(), View(loaded, table)
    console.print(tables.by_epsilon(view))
    _print_answer(console, view)
    console.print(f"Results: {Folder(out).results}\nTables and plots: halftruth report {out}", highlight=False)
    console.print(f"A page to explore: halftruth report {out} --html", highlight=False)
    return 0


def _print_answer(console: Console, view: View) -> None:
    """What privacy costs, in a sentence, where the study compares trust models."""
    from studies.report.answer import NO_PRICE, answer

    said = answer(view)
    if said != NO_PRICE:
        console.print(Text(f"{said}\n", style="bold"))


def _check_flags(args: argparse.Namespace) -> None:
    """Raise StudyError for flags that exclude each other."""
    if args.resume and args.overwrite:
        raise StudyError("expected --resume or --overwrite, got both")
    if args.on == "in-process" and args.superlink is not None:
        raise StudyError("expected --on simulation or --on deployment with --superlink, got --on in-process")
    if args.federation is not None and (args.on != "deployment" or args.superlink is not None):
        raise StudyError("expected --on deployment and no --superlink with --federation, which names its own server")
    if args.on == "in-process" and args.deadline is not None:
        raise StudyError("expected --deadline with --on simulation or --on deployment, got --on in-process")
    if args.on == "in-process" and (args.mode or args.quorum):
        raise StudyError("expected --mode and --quorum with --on simulation or --on deployment, got --on in-process")
    if args.on != "in-process" and args.jobs is not None:
        raise StudyError(f"expected --jobs with --on in-process only, got --on {args.on}")


def _run(args: argparse.Namespace, loaded: Loaded, out: Path, progress: Callable[[int, int], None]) -> pa.Table:
    kept = {"resume": args.resume, "overwrite": args.overwrite, "block": args.block, "progress": progress}
    transcript = transcript_of(args, starts=args.superlink is None and args.federation is None)
    if args.on == "in-process":
        from studies.run import run

        return run(loaded, out, jobs=args.jobs, clients=args.clients or 1, transcript=transcript, **kept)
    from studies.flower import run as flower
    from studies.flower.patience import patience_of

    patience = patience_of(args)
    if args.federation is None:
        where = flower.Flower(args.on, args.clients or 1, args.superlink, patience, transcript=transcript)
        return flower.run(loaded, out, where, **kept)
    from studies.flower.federation import join

    federation, online = join(args.federation, args.clients)
    return flower.run(loaded, out, flower.Flower(args.on, online, None, patience, federation), **kept)


def report_command(args: argparse.Namespace) -> int:
    """`halftruth report`: tables in the terminal, plots and CSV files in the folder; or one page of all folders.

    A folder behind --html is one of a run, and no file to write to.
    """
    outs = list(args.out)
    if args.html and (Folder(Path(args.html)).study.exists() or (not outs and Path(args.html).is_dir())):
        outs, args.html = [*outs, args.html], ""
    if not outs:
        raise StudyError(
            "expected OUT, the folder of a finished run: halftruth report OUT, or halftruth report OUT --html"
        )
    folders = [one_run(Path(out)) for out in outs]
    if args.html is not None:
        return _page(folders, Path(args.html) if args.html else folders[0].path / "report.html")
    for folder in folders:
        _report(folder)
    return 0


def _page(folders: Sequence[Folder], path: Path) -> int:
    """Write the page of some runs. Raises StudyError where `path` cannot be a file."""
    from studies.report.page import report

    if path.is_dir() or not path.parent.is_dir():
        raise StudyError(f"--html: expected a file in a folder that exists, got {path}")
    write_text(path, report(folders))
    _console().print(f"Report: {path}", highlight=False, soft_wrap=True)
    return 0


def _report(folder: Folder) -> None:
    from studies.report.facts import facts
    from studies.report.figures import draw_all
    from studies.report.sheets import write_sheets

    view = View.open(folder)
    console = _console()
    for level in view.levels:
        console.print(tables.by_count(view, level))
        console.print(tables.details(view, level))
    console.print(tables.by_epsilon(view))
    _print_answer(console, view)
    for line in facts(view, folder.record()):
        console.print(line, highlight=False)
    figures = draw_all(view, folder.figures)
    sheets = write_sheets(folder, view)
    for path in [*(path for path in figures if path.suffix == ".png"), *sheets]:
        console.print(str(path), highlight=False, soft_wrap=True)
    console.print(f"Every plot is there as .svg too. A page to explore: halftruth report {folder.path} --html")


def _bar(loaded: Loaded) -> Progress:
    console = Terminal(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    return Progress(
        *columns, TextColumn("left:"), TimeRemainingColumn(), console=console, disable=not console.is_terminal
    )


def _console() -> Terminal:
    console = Terminal()
    return console if console.is_terminal else Terminal(width=max(console.width, WIDE))


def _again(args: argparse.Namespace) -> str:
    """The command that resumes this run."""
    words = ["halftruth", "run", args.study, "--out", args.out, "--resume"]
    words += ["--on", args.on] if args.on != "in-process" else []
    words += ["--superlink", args.superlink] if args.superlink else []
    words += ["--federation", *filter(None, [args.federation])] if args.federation is not None else []
    words += ["--clients", str(args.clients)] if args.clients else []
    words += ["--deadline", f"{args.deadline:g}"] if args.deadline else []
    words += ["--mode", args.mode] if args.mode else []
    words += ["--transcript", args.transcript] if args.transcript else []
    words += ["--quorum", args.quorum] if args.quorum else []
    words += ["--jobs", str(args.jobs)] if args.jobs else []
    for override in args.overrides:
        words += ["--set", override]
    return shlex.join(words)
