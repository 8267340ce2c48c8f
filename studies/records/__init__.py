"""`halftruth records`: means and models of a file's own records, over the same border as every study."""

import argparse
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from protocol.strict import StudyError
from protocol.trust import SIGHT, Trust
from studies.own_flags import seed_of, state_of
from studies.records.columns import add_record_arguments, decimal_of
from studies.records.words import in_flags
from studies.share_flags import SHARES, add_shares_arguments
from studies.terminal import printable

if TYPE_CHECKING:  # a command's --help need not wait for numpy
    from client.sources.record_columns import RecordColumns
    from studies.records.facts import RecordFacts
    from studies.records.request import Request

MODELS = ("mean", "linear", "logistic")
OPTIONS = {
    "rounds": "T, how often records are asked (of descent: 20)",
    "step": "of descent; 1 / (smoothness of the loss) is what to ask for (of a mean: 1)",
    "curvature": "beside --rounds theory or --step theory; of sparse estimators in place of --step and --rounds",
    "smoothness": "beside --curvature",
    "ridge": "weight of the squared norm (0)",
    "groups": "of a median of means, in the order of rows",
    "sparsity": "how many coordinates are kept",
    "support": "how many the answer has, beside --curvature and --smoothness: in place of --sparsity",
    "split": "the share of the budget that choosing them takes (0.5)",
    "aggregate": "in place of a mean: of a curator trimmed-mean or centred-clipping (mean)",
    "trim": "of a trimmed mean: the share of records left out at each end",
    "coordinates": "how many sampled coordinates a local report has",
    "shape": "clip to the threshold, or truncate to 0 (clip)",
    "norm": "what is bounded: linf, each coordinate; or l2, the length (linf)",
    "rotate": "of sums under masks bounded in length: hadamard, which makes messages shorter, or none (none)",
    "batches": "all records in every round, or disjoint ones (central: all; local: disjoint)",
    "average": "of the iterates: all, the last half, or the last",
    "project": "after every step: ball, box, simplex, sum-zero or none (with --bound: ball)",
}
EXAMPLES = """\
examples:
  halftruth records losses.csv --columns loss --id claim --trust central --epsilon 1 --tail 0.5 --moment 20
  halftruth records losses.csv --columns loss --id claim --trust local --epsilon 2 --threshold 50
  halftruth records losses.csv --columns loss --id claim --trust distributed --epsilon 1 --threshold 50
  halftruth records losses.csv --columns loss --trust clear --threshold 50
  halftruth records claims.csv --columns paid --holder state --unit holder --trust central --epsilon 1 --threshold 3000
  halftruth records visits.csv --columns age,gender=female --response visits --model linear --intercept --id person \\
    --centre age=7 --trust central --epsilon 1 --threshold 20 --rounds 20 --step 0.1

FILE is CSV, TSV, JSONL or Parquet, as it is or as gz or zst; cells are plain decimal numbers. How records are bounded
has to be known beforehand: a threshold, or a tail v and a moment u with E|g|^(1+v) <= u for every coordinate of a
record's gradient (of a mean: of the record). A rule that looks at records pays for it: --threshold private, for means,
and for descent with a curator, who also knows histogram and adaptive. How many rows there are is public; with --unit
holder, how many records a holder has is not. What was spent is kept in the state folder: use one folder for all files
about the same people. The same question gets the same answer and
costs nothing, also where a value was changed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth records`."""
    parser.formatter_class, parser.epilog = argparse.RawDescriptionHelpFormatter, EXAMPLES
    parser.add_argument("file", metavar="FILE", help="records: CSV, TSV, JSONL or Parquet, also as gz or zst")
    parser.add_argument("--model", choices=MODELS, default=MODELS[0], help="what is estimated (mean)")
    trusts = [trust.label for trust in SIGHT if trust is not Trust.SHUFFLED]
    parser.add_argument("--trust", choices=trusts, required=True, help="whom the holders trust with their records")
    parser.add_argument("--epsilon", metavar="E", help="level for each record, or each holder; needed unless clear")
    parser.add_argument("--delta", metavar="D", help="slack of a guarantee by noise on sums (1e-5)")
    parser.add_argument("--tail", metavar="V", help="v in (0, 1]: assume E|g|^(1+v) <= u of every coordinate")
    parser.add_argument("--moment", metavar="U", help="the u of --tail")
    parser.add_argument("--threshold", metavar="B", help="bound of a coordinate; in clear, what it would cut is told")
    parser.add_argument("--estimator", metavar="NAME", help="algorithm (of a mean: mean; else descent)")
    parser.add_argument(
        "--mechanism",
        metavar="NAME",
        help="randomiser or noise (local: piecewise, or duchi below 0.5; central: gaussian; distributed: skellam)",
    )
    parser.add_argument("--bound", metavar="R", help="estimates of norm at most R")
    add_options(parser)
    add_shares_arguments(parser)
    parser.add_argument("--state", metavar="DIR", help="folder of the ledgers (the user's state folder)")
    parser.add_argument("--public-data", action="store_true", help="the records are no secret: allows addressed coins")
    parser.add_argument("--coins", choices=["os", "addressed"], default="os", help="addressed: the same at every run")
    parser.add_argument("--seed", metavar="N", help="of addressed coins")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_record_arguments(parser)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The flags of what estimators have options for."""
    group = parser.add_argument_group("options of algorithms", "docs/RECORDS.md says which algorithm has which")
    for name, text in OPTIONS.items():
        group.add_argument(f"--{name}", metavar=name[0].upper(), help=text)


def main(args: argparse.Namespace) -> int:
    """Run `halftruth records`: exit code 0 done, 1 no estimate; StudyError is wrong use or a bad file."""
    try:
        return _run(args)
    except StudyError as error:
        raise in_flags(error) from None


def _run(args: argparse.Namespace) -> int:
    from client.ledger_store import LedgerUnavailable
    from server.listening import RoundFailed
    from server.release_file import LedgerError
    from studies.fit.state import LEDGER
    from studies.holder_file import new_ledger
    from studies.records.columns import described, read_file
    from studies.records.facts import facts_of
    from studies.records.play import estimate, first_tasks, study_of
    from studies.records.show import as_json, show

    table = read_file(args)
    print(printable(described(table)), file=sys.stderr)
    request = read_request(args, table.columns)
    if request.budgeted and not (table.lasting or table.public):
        raise StudyError(
            "--id: expected a column of ids that stay with their records, whatever file or line they are in: without "
            "it the ledger cannot know who paid. A file without one can be --trust clear, or --unit holder"
        )
    if request.budgeted:
        first_tasks(study_of(request, facts_of(table)))
    try:
        if request.budgeted and (note := new_ledger(request.state / LEDGER, "folder")):
            print(printable(note), file=sys.stderr)
        found = estimate(request, table)
    except (LedgerError, LedgerUnavailable, RoundFailed) as error:
        print(f"halftruth: {error}", file=sys.stderr)
        return 1
    print(as_json(found)) if args.json else show(found)
    return 0


def read_request(args: argparse.Namespace, about: "RecordColumns | RecordFacts") -> "Request":
    """The flags as one checked request, of a model and its coordinates. Raises StudyError where they do not fit."""
    from protocol.decimals import delta, epsilon
    from studies.records.request import Request, arm_of, needs_delta, problem_of

    trust = Trust.parse(args.trust)
    _refuse_unfitting(args, trust)
    bound, cut = _number(args, "bound"), _number(args, "threshold") if trust is Trust.CLEAR else None
    problem = problem_of(about.model, len(about.names), bound)
    try:
        level = None if trust is Trust.CLEAR else epsilon(args.epsilon, "--epsilon")
        arm = arm_of(_arm(args, trust, level, problem.dimension), "arm", problem)
        failing = delta(args.delta or "1e-5", "--delta") if needs_delta(arm) else None
        if failing is None and args.delta is not None:
            raise StudyError(f"--delta: the claim of {arm.mechanism} has none: leave it out")
        seed = None if args.seed is None else seed_of(args.seed)
        tail, moment = _number(args, "tail"), _number(args, "moment")
        if tail is not None and tail > 1:
            raise StudyError(f"--tail: expected v in (0, 1], got {args.tail}: with a variance, say 1")
        return Request(arm, level, failing, tail, moment, bound, state_of(args.state), seed, cut)
    except ValueError as error:
        raise StudyError(str(error)) from None


def _arm(args: argparse.Namespace, trust: Trust, level: Decimal | None, dimension: int) -> dict[str, Any]:
    """The arm as a table, of the options that were given; locally the usual mechanism with exact draws."""
    from protocol.numeric.rules import usual_mechanism

    names = [*OPTIONS, *SHARES, *(() if trust is Trust.CLEAR else ("threshold",))]
    given = {name: getattr(args, name) for name in ("mechanism", *names) if getattr(args, name) is not None}
    if trust is Trust.LOCAL and args.estimator != "votes" and level is not None:
        given = {"mechanism": usual_mechanism(dimension, level, live=True).name, **given}
    usual = "mean" if args.model == "mean" else "descent"
    return {"trust": trust.label, "estimator": args.estimator or usual, **given}


def _refuse_unfitting(args: argparse.Namespace, trust: Trust) -> None:
    clear = trust is Trust.CLEAR
    if clear and (args.epsilon is not None or args.delta is not None):
        raise StudyError("--epsilon, --delta: a clear estimate makes no claim: leave them out")
    if not clear and args.epsilon is None:
        raise StudyError(f"--epsilon: expected a level for --trust {trust.label}, such as --epsilon 1")
    if clear and (args.tail is not None or args.moment is not None):
        raise StudyError("--tail, --moment: a clear estimate bounds nothing: leave them out")
    if args.coins == "addressed" and not (args.public_data and args.seed is not None):
        raise StudyError("--coins addressed: protects nobody, so it needs --public-data, and --seed N")
    if args.coins == "os" and args.seed is not None:
        raise StudyError("--seed: the system's coins have none: add --public-data --coins addressed, or leave it out")


def _number(args: argparse.Namespace, name: str) -> Decimal | None:
    text = getattr(args, name)
    if text is None:
        return None
    value = decimal_of(text, f"--{name}")
    if value <= 0:
        raise StudyError(f"--{name}: expected a number > 0, got {text!r}")
    return value
