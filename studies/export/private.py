"""`halftruth export --for trl`: preference data, each label randomised by its labeler first."""

import argparse
import sys
from pathlib import Path

from client.ledger_store import LedgerUnavailable
from protocol.decimals import epsilon
from protocol.strict import StudyError
from server.listening import RoundFailed
from studies.export.reports import reported
from studies.export.texts import prompt_column
from studies.export.trl import check_columns, write_trl
from studies.fit.state import LEDGER
from studies.holder_file import new_ledger, read_file, tell, wanted
from studies.own_flags import seed_of, state_of
from studies.terminal import printable


def write_private(args: argparse.Namespace) -> int:
    """Ask the labels, and write what they report: 0 done, 1 no answer; StudyError is wrong use."""
    if args.to is not None or args.experiment is not None:
        raise StudyError("--to and --experiment: --for trl writes a folder, --out")
    if args.epsilon is None or args.out is None:
        raise StudyError("--for trl: expected --epsilon and --out")
    if (args.coins == "addressed") != (args.seed is not None) or (args.seed is not None and not args.public_data):
        raise StudyError("--coins addressed: protects nobody, so it needs --public-data, and --seed N")

    try:
        out, level, state = Path(args.out), epsilon(args.epsilon, "--epsilon"), state_of(args.state)
    except ValueError as error:
        raise StudyError(str(error)) from None
    if out.exists():
        raise StudyError(f"--out: {out}: expected a new folder, got one that is there")
    args.prompt = prompt_column(Path(args.file), args.prompt)
    table = read_file(args)
    tell(table, wanted(args))
    check_columns(table)
    seed = None if args.seed is None else seed_of(args.seed)
    if seed is None and (note := new_ledger(state / LEDGER, "folder")):
        print(printable(note), file=sys.stderr)
    try:
        found = reported(table, level, state, seed)
    except (LedgerUnavailable, RoundFailed) as error:
        print(f"halftruth: {error}", file=sys.stderr)
        return 1
    count = write_trl(out, table, found, args.format)
    said = f"{out}: {count:,} preferences, each label at epsilon = {args.epsilon}"
    print(printable(f"{said}. How to train: {out / 'README.md'}"))
    return 0
