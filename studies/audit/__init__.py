"""`halftruth audit`: what epsilon is at least, for whatever claims one; a claim that is false is found, or it is said
what would have been found.
"""

import argparse
import json
from decimal import Decimal
from pathlib import Path

from protocol import decimals
from protocol.failure import RunFailed
from protocol.strict import StudyError
from protocol.trust import SIGHT, Trust
from studies.audit.run import Finding, audit
from studies.audit.subject import Subject
from studies.audit.subjects import SUBJECTS, NotOffered, build

EXAMPLES = """\
examples:
  halftruth audit                                       every mechanism, at epsilon 1
  halftruth audit label/ node/ --epsilon 0.1,1,4        all whose names start so, at three levels
  halftruth audit numbers/laplace/1 --draws 1000000     more draws find smaller excesses, and rarer leaks
  halftruth audit --file own.py                         your own mechanism: EPSILON, INPUTS, randomise(value, generator)
  halftruth audit transcript DIR --epsilon 1            what a server received, against what was promised
  halftruth audit --list

exit codes: 0 no claim was refuted, 1 one was, 2 wrong use. docs/AUDIT.md says what is looked at, and what is not."""
DRAWS, CONFIDENCE, SEED = 100_000, "0.999", 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth audit`."""
    from studies.cli import count

    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("names", metavar="NAME", nargs="*", help="subjects, or how their names start (all)")
    parser.add_argument("--epsilon", metavar="E,E,...", help="levels to ask for (1; of a file its own)")
    parser.add_argument("--delta", metavar="D", help="of a file's mechanism, in place of its own")
    parser.add_argument("--draws", metavar="N", type=count, default=DRAWS, help=f"outputs of an input ({DRAWS:,})")
    parser.add_argument("--confidence", metavar="C", default=CONFIDENCE, help=f"of each sampled bound ({CONFIDENCE})")
    parser.add_argument(
        "--seed", metavar="S", default=str(SEED), help=f"of the coins ({SEED}); another is another audit"
    )
    parser.add_argument("--file", metavar="FILE", help="a Python file with a mechanism of your own")
    parser.add_argument(
        "--trust", choices=[trust.label for trust in SIGHT], default="local", help="of a transcript (local)"
    )
    parser.add_argument(
        "--coins",
        choices=["os", "addressed"],
        default="os",
        help="of a transcript: those of a seed as well (os)",
    )
    parser.add_argument("--list", action="store_true", help="list the subjects")
    printed = parser.add_mutually_exclusive_group()
    printed.add_argument("--json", action="store_true", help="print JSON")
    printed.add_argument("--markdown", action="store_true", help="print the table of docs/AUDIT.md")


def main(args: argparse.Namespace) -> int:
    """Run `halftruth audit`: exit code 0 where no claim was refuted, 1 where one was; StudyError is wrong use."""
    from studies.audit.show import as_json, as_markdown, show
    from studies.own_flags import seed_of

    if args.list:
        print(json.dumps(list(SUBJECTS)) if args.json else "\n".join(SUBJECTS))
        return 0
    if args.names[:1] == ["transcript"]:
        return _transcript(args)
    confidence, seed = _confidence(args.confidence), seed_of(args.seed)
    asked, refused = _asked(args)
    findings = _audited(asked, args.draws, confidence, seed)
    if args.json:
        print(json.dumps(as_json(findings, refused, seed), indent=2, ensure_ascii=False))
    elif args.markdown:
        print(as_markdown(findings))
    else:
        show(findings, refused, confidence)
    return int(any(one.broken for one in findings))


def _transcript(args: argparse.Namespace) -> int:
    """What a server's transcript holds: exit code 1 for what was not promised. Raises StudyError for no transcript."""
    from studies.audit.show import show_received
    from studies.audit.stored import stored
    from studies.audit.transcript import Promise, received

    if len(args.names) != 2:
        raise StudyError("expected halftruth audit transcript and one folder or file")
    level = _level(args.epsilon) if args.epsilon else None
    promise = Promise(Trust.parse(args.trust), level, args.coins == "addressed")
    found = received(stored(Path(args.names[1])), promise)
    show_received(found, as_json=args.json)
    return int(bool(found.broken))


def _asked(args: argparse.Namespace) -> tuple[list[Subject], list[tuple[str, str, NotOffered]]]:
    """What flags ask for, and what the program does not offer. Raises StudyError."""
    levels = [_level(text) for text in args.epsilon.split(",")] if args.epsilon else []
    if args.file:
        if args.names or len(levels) > 1:
            raise StudyError("--file: expected no names and at most one --epsilon beside a file")
        from studies.audit.own import read_own

        delta = None if args.delta is None else _delta(args.delta)
        return [read_own(Path(args.file), levels[0] if levels else None, delta)], []
    if args.delta is not None:
        raise StudyError("--delta: expected a --file beside it: mechanisms of the program have a delta of their own")
    names = [name for name in SUBJECTS if not args.names or name.startswith(tuple(args.names))]
    for start in args.names:
        if not any(name.startswith(start) for name in names):
            raise StudyError(f"expected a subject of halftruth audit --list, or how one starts, got {start!r}")
    found: list[Subject] = []
    refused = []
    for level in levels or [Decimal(1)]:
        for name in names:
            try:
                found.append(build(name, level))
            except NotOffered as error:
                refused.append((name, decimals.canonical(level), error))
    return found, refused


def _audited(asked: list[Subject], draws: int, confidence: float, seed: int) -> list[Finding]:
    """All findings, with a bar on the terminal. Raises RunFailed for a subject that cannot be run."""
    from rich.progress import track

    from studies.terminal import Terminal

    console, found = Terminal(stderr=True), []
    for subject in track(asked, "auditing", console=console, disable=not console.is_terminal, transient=True):
        try:
            found.append(audit(subject, draws, confidence, seed))
        except Exception as error:
            raise RunFailed(f"{subject.name}: {type(error).__name__}: {error}") from error
    return found


def _confidence(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.5 <= value < 1:
        raise StudyError(f"--confidence: expected a number from 0.5 to below 1, got {text!r}")
    return value


def _level(text: str) -> Decimal:
    try:
        return decimals.epsilon(text.strip(), "--epsilon")
    except ValueError as error:
        raise StudyError(str(error)) from None


def _delta(text: str) -> Decimal:
    try:
        return decimals.delta(text, "--delta")
    except ValueError as error:
        raise StudyError(str(error)) from None
