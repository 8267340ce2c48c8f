"""`halftruth fit`: a ranking from a file of comparisons, over the same border as every study."""

import argparse
import sys
from decimal import Decimal
from pathlib import Path

from protocol.decimals import decimal, delta, epsilon
from protocol.strict import StudyError
from protocol.trust import RANDOMIZED, Trust
from studies.fit.claim import HOLD_OUT, add_claim_arguments, read_estimator, read_ties, read_trust, read_unit
from studies.fit.request import ALL_MECHANISMS, AUTO, CHOICE_WAYS, NONE, OWN, SLACK, WAYS, Request
from studies.holder_file import (
    FORMATS,
    RANKINGS,
    add_column_arguments,
    add_embed_argument,
    add_ranking_arguments,
    new_ledger,
    read_file,
    tell,
    wanted,
)
from studies.own_flags import seed_of, state_of
from studies.share_flags import add_shares_arguments, check_shares, shares_of
from studies.terminal import printable

EXAMPLES = f"""\
examples:
  halftruth fit votes.csv --trust local --epsilon 1
  halftruth fit votes.csv --trust central --epsilon 1 --delta 1e-6 --state ~/votes-state
  halftruth fit votes.csv --trust distributed --epsilon 1 --survivors 0.8
  halftruth fit votes.csv --trust local --epsilon 4 --unit labeler --cap 20
  halftruth fit votes.csv --trust local --epsilon 4 --ties randomized
  halftruth fit benchmark.csv --trust clear
  halftruth fit benchmark.csv --compare --epsilon 1
  halftruth fit benchmark.csv --trust local --epsilon 2 --public-data --coins addressed --seed 7
  halftruth fit rankings.csv --ranking wide --ranking-as pairs:3 --trust local --epsilon 2

{FORMATS}

{RANKINGS}

Names stay on this machine. With a claim the first of a labeler's answers about one pair and question
counts for all of them, with --trust clear every row counts, and --compare takes the first everywhere. What labelers
spend is kept in the state folder: use one folder for all files about the same people, and another for other people.
Running again with the same epsilon gives the same answers and costs nothing, also where a winner was changed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth fit`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("file", metavar="FILE", help="comparisons: CSV, TSV, JSONL or Parquet, also as gz or zst")
    trusts = [trust.label for trust in OWN]
    parser.add_argument("--trust", choices=trusts, help="whom the labelers trust with their labels")
    parser.add_argument("--epsilon", metavar="E", help="level for each label, or each labeler; needed unless clear")
    parser.add_argument("--delta", metavar="D", help="slack of a guarantee by noise on a sum (1e-5)")
    parser.add_argument(
        "--bound", metavar="B", default=AUTO, help="scores of norm at most B, or none (clear: none; else 2 sqrt(items))"
    )
    add_claim_arguments(parser)
    local = WAYS[Trust.LOCAL][1]
    parser.add_argument("--estimator", choices=local, help=f"for --trust local ({local[0]})")
    add_mechanism_argument(parser)
    add_shares_arguments(parser)
    parser.add_argument("--state", metavar="DIR", help="folder of the ledgers (the user's state folder)")
    parser.add_argument("--public-data", action="store_true", help="the labels are no secret: allows addressed coins")
    parser.add_argument("--coins", choices=["os", "addressed"], default="os", help="addressed: the same at every run")
    parser.add_argument("--seed", metavar="N", help="of addressed coins")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_column_arguments(parser)
    add_embed_argument(parser)
    add_ranking_arguments(parser)


def add_mechanism_argument(parser: argparse.ArgumentParser) -> None:
    """The flag of what a ranking's top choice goes through."""
    usual, law = CHOICE_WAYS[Trust.LOCAL][0], WAYS[Trust.DISTRIBUTED][0]
    parser.add_argument(
        "--mechanism",
        choices=ALL_MECHANISMS,
        help=f"for a ranking's top choice and --trust local ({usual}); law of the noise of --trust distributed ({law})",
    )


def main(args: argparse.Namespace) -> int:
    """Run `halftruth fit`: exit code 0 done, 1 no estimate; StudyError is wrong use or a file that does not read."""
    request = read_request(args)
    from client.ledger_store import LedgerUnavailable
    from client.sources.ranking_labels import RankingAs
    from server.estimators.newton import EstimationError
    from server.listening import RoundFailed
    from server.release_file import LedgerError
    from studies.fit.compare import compare, comparison_as_json, show_comparison
    from studies.fit.ranking import of_rankings
    from studies.fit.round import fit
    from studies.fit.show import as_json, show
    from studies.fit.state import LEDGER

    table = read_file(args)
    tell(table, wanted(args))
    request = of_rankings(request, table, RankingAs.parse(args.ranking_as or "top"))
    try:
        if args.compare:
            compared = compare(request, table, by_labeler=args.hold_out != HOLD_OUT[1])
            print(comparison_as_json(compared)) if args.json else show_comparison(compared)
            return 0
        if request.budgeted and (note := new_ledger(request.state / LEDGER, "folder")):
            print(printable(note), file=sys.stderr)
        found = fit(request, table)
    except (EstimationError, LedgerError, LedgerUnavailable, RoundFailed) as error:
        print(f"halftruth: {error}", file=sys.stderr)
        return 1
    if args.json:
        print(as_json(found))
    else:
        show(found)
    return 0


def read_request(args: argparse.Namespace) -> Request:
    """The flags as one checked request; raises StudyError where they do not fit together."""
    path = Path(args.file)
    trust = read_trust(args)
    _refuse_unfitting(args, trust)
    ties, (unit, cap) = read_ties(args, trust), read_unit(args, trust)
    shares = shares_of(args)
    try:
        return Request(
            path=path,
            trust=trust,
            epsilon=None if trust is Trust.CLEAR else epsilon(args.epsilon, "--epsilon"),
            delta=_delta(args.delta) if trust in SLACK or args.compare else None,
            bound=_bound(args.bound),
            estimator=read_estimator(args, trust, ties),
            state=state_of(args.state),
            public=args.public_data,
            seed=None if args.seed is None else seed_of(args.seed),
            ties=ties,
            ties_public=args.ties_public,
            unit=unit,
            cap=cap,
            mechanism=args.mechanism or "",
            survivors=shares["survivors"],
            honest=shares["honest"],
        )
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(str(error)) from None


def _refuse_unfitting(args: argparse.Namespace, trust: Trust) -> None:
    if trust is Trust.CLEAR and args.epsilon is not None:
        raise StudyError("--epsilon: a clear fit makes no claim: leave it out, or choose another --trust")
    if trust is not Trust.CLEAR and args.epsilon is None:
        raise StudyError(f"--epsilon: expected a level for --trust {trust.label}, such as --epsilon 1")
    if trust not in SLACK and args.delta is not None and not args.compare:
        raise StudyError("--delta: only a central, distributed or shuffled guarantee has one: leave it out")
    check_shares(args, Trust.DISTRIBUTED if args.compare else trust)
    if trust not in RANDOMIZED and args.estimator is not None:
        raise StudyError("--estimator: there is a choice for --trust local only: leave it out")
    if args.coins == "addressed" and not (args.public_data and args.seed is not None):
        raise StudyError("--coins addressed: protects nobody, so it needs --public-data, and --seed N")
    if args.coins == "os" and args.seed is not None and not args.compare:
        raise StudyError("--seed: the system's coins have none: add --public-data --coins addressed, or leave it out")


def _delta(text: str | None) -> Decimal:
    return delta("1e-5" if text is None else text, "--delta")


def _bound(text: str) -> Decimal | str:
    if text in (AUTO, NONE):
        return text
    bound = decimal(text, "--bound")
    if bound <= 0:
        raise StudyError(f'--bound: expected a number > 0 or "none", got {text!r}')
    return bound
