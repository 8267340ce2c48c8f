"""`halftruth federate`: an estimate from files that stay on their nodes; the server knows public facts only."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from protocol.runconfig import DEADLINE, MOST_ATTEMPTS
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.cli import add_mode_arguments, seconds
from studies.fit import read_request
from studies.fit.claim import TIES, UNITS
from studies.fit.request import ALL_MECHANISMS, AUTO, WAYS, Request
from studies.own_flags import refuse_flags
from studies.records import OPTIONS, add_options
from studies.records.columns import UNITS as RECORD_UNITS
from studies.share_flags import add_shares_arguments
from studies.terminal import print_line
from studies.transcript_flag import add_transcript_argument, transcript_of

if TYPE_CHECKING:  # a command's --help need not wait for the server's kernels
    from studies.federate.facts import Facts
    from studies.federate.rooms import Where
    from studies.fit.round import Fit

ON = ("deployment", "in-process")
LOCAL = WAYS[Trust.LOCAL][1]
OF_LABELS = ("ties", "cap")
OF_RECORDS = ("threshold", "tail", "moment", *OPTIONS)
EXAMPLES = """\
examples:
  halftruth data split votes.csv --nodes 4 --out nodes
  halftruth federate nodes/server --nodes nodes --epsilon 1                 starts and ends a whole federation here
  halftruth federate nodes/server --nodes nodes --epsilon 1 --on in-process     a quick look: the same, in one process
  halftruth federate nodes/server --nodes nodes --epsilon 1 --out ranking & halftruth watch ranking
  halftruth up --nodes nodes && halftruth federate nodes/server --federation --epsilon 1       nodes in the background
  halftruth federate server --superlink lab --epsilon 1         nodes that run halftruth node somewhere, through the
                                                                connection "lab" of your Flower configuration
  halftruth data split votes.csv --nodes 4 --out nodes --trust distributed
  halftruth federate nodes/server --nodes nodes --epsilon 1 --survivors 0.8      sums under masks; a fifth may drop out
  halftruth data split losses.csv --records --columns loss --id claim --nodes 4 --out nodes --trust central
  halftruth federate nodes/server --nodes nodes --epsilon 1 --tail 0.5 --moment 20      of records: a mean, or a model

SERVER is the folder of public facts that halftruth data split made: which items each row compares, and under which
trust model and unit the nodes of this split answer. Nodes decide for themselves: by their own files, ledgers and coins.
With --trust central the curator's noise is in --state before anyone sees a result (with --federation in that one's
folder, with --superlink in the folder that HALFTRUTH_STATE names on the server's machine). Running again gives the same
result at no cost."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth federate`: those of a fit that a server can know, and where the nodes are."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    parser.add_argument("server", metavar="SERVER", help="the server's folder of a split")
    _add_where_arguments(parser)
    parser.add_argument("--trust", choices=[trust.label for trust in WAYS], help="what nodes answer (as split)")
    parser.add_argument("--epsilon", metavar="E", help="level for each unit; needed unless clear")
    parser.add_argument("--delta", metavar="D", help="slack of a guarantee by noise on a sum, or by a crowd (1e-5)")
    parser.add_argument(
        "--bound",
        metavar="B",
        default=AUTO,
        help="estimates of norm at most B, or none (scores: none in clear, else 2 sqrt(items); records: as split)",
    )
    parser.add_argument(
        "--ties",
        choices=list(TIES),
        help="a coin (default under a claim), half a win, left out, or a third value (local)",
    )
    parser.add_argument("--unit", choices=[*UNITS, *RECORD_UNITS], help="what the claim protects (as split)")
    parser.add_argument("--cap", metavar="M", help="how many labels of a labeler count (as split)")
    parser.add_argument(
        "--estimator", metavar="NAME", help=f"for labels and --trust local: {', '.join(LOCAL)}; of records an algorithm"
    )
    choices = ", ".join(ALL_MECHANISMS)
    parser.add_argument(
        "--mechanism",
        metavar="NAME",
        help=f"for a ranking's top choice and --trust local, and for --trust distributed: {choices}; of records a "
        "randomiser or noise",
    )
    parser.add_argument("--state", metavar="DIR", help="folder of the curator's ledger (the user's state folder)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_shares_arguments(parser)
    _add_record_arguments(parser)


def _add_where_arguments(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--nodes", metavar="DIR", help="start the nodes of a split: DIR/node-0, DIR/node-1, ...")
    where.add_argument(
        "--superlink", metavar="NAME", help="ask nodes that run, by a connection of your Flower configuration"
    )
    where.add_argument(
        "--federation", metavar="DIR", nargs="?", const="", help="ask those of halftruth up or server, by its --state"
    )
    parser.add_argument("--on", choices=ON, default=ON[0], help="runtime of --nodes: processes (default), or this one")
    parser.add_argument("--deadline", metavar="S", type=seconds, help=f"seconds that nodes have ({DEADLINE:g})")
    add_mode_arguments(parser)
    add_transcript_argument(parser)
    parser.add_argument("--out", metavar="DIR", help="keep the estimate, and how far it is, for halftruth watch DIR")
    parser.add_argument("--attempt", metavar="N", default="0", help="another release than the first (0): charged again")


def _add_record_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("records")
    group.add_argument(
        "--threshold", metavar="B", help="bound of a coordinate of what is sent, known beforehand (as split)"
    )
    group.add_argument("--tail", metavar="V", help="v in (0, 1]: assume E|g|^(1+v) <= u of every coordinate (as split)")
    group.add_argument("--moment", metavar="U", help="the u of --tail (as split)")
    add_options(parser)


def main(args: argparse.Namespace) -> int:
    """Run `halftruth federate`: exit code 0 done, 1 no estimate; StudyError is wrong use."""
    from studies.federate.record_split import holds_records

    if holds_records(Path(args.server)):
        from studies.federate.records import main as main_of_records

        return main_of_records(args)
    refuse_flags(args, OF_RECORDS, "only for nodes with records, and those of this split have labels: leave it out")
    return _rank(args)


def _rank(args: argparse.Namespace) -> int:
    from client.ledger_store import LedgerUnavailable
    from client.node_file import NodeFileError
    from client.sources.reading import SourceError
    from protocol.failure import RunFailed
    from server.estimators.newton import EstimationError
    from server.listening import RoundFailed
    from server.release_file import LedgerError
    from studies.federate.caps import advice
    from studies.federate.folder import read_facts
    from studies.federate.rooms import node_files
    from studies.fit.show import as_json, show
    from studies.fit.state import CURATOR

    facts = read_facts(Path(args.server))
    request = read_terms(args, facts)
    try:
        found = _found(args, request, facts)
    except NodeFileError as error:
        raise StudyError(str(error)) from None
    except (EstimationError, LedgerError, LedgerUnavailable, RoundFailed, RunFailed, SourceError) as error:
        files = node_files(Path(args.nodes), facts.nodes) if args.nodes else []
        print(f"halftruth: {error}{advice(str(error), facts.terms.unit, files)}", file=sys.stderr)
        return 1
    if args.json:
        print(as_json(found))
        return 0
    show(found)
    if request.trust is Trust.CENTRAL and args.nodes:
        print_line(f"The curator's ledger, which keeps the release: {request.state / CURATOR}")
    return 0


def _found(args: argparse.Namespace, request: Request, facts: "Facts") -> "Fit":
    """What nodes and server make of the question; kept in --out. Raises what `studies.federate.rooms:ask` does."""
    from studies.federate.ask import study_and_task
    from studies.federate.progress import Progress, kept_in
    from studies.federate.rooms import Question, ask
    from studies.fit.ranking import ranking_note
    from studies.fit.round import Fit, warnings
    from studies.fit.show import as_json

    study, task = study_and_task(request, facts)
    where, rows = where_of(args), task.n if task.rows is None else task.rows.count
    progress = Progress.of(study, Path(args.server), facts.nodes, rows, where.in_process)
    with kept_in(where.out, progress) as kept:
        outcome = ask(Question(study, task.unit, task), facts.nodes, where, request.state)
        misleading = warnings(facts, outcome, request.ties)
        found = Fit(request, facts, task, outcome, study.problem.bound, misleading, None, ranking_note(request))
        kept.result(as_json(found))
        return found


def read_terms(args: argparse.Namespace, facts: "Facts") -> Request:
    """The flags as a checked request; what they leave open is as the split says. Raises StudyError."""
    terms = facts.terms
    agreed = {"trust": terms.trust.label, "unit": terms.unit.label, "cap": str(terms.cap) if terms.cap else None}
    for flag, value in agreed.items():
        if getattr(args, flag) not in (None, value):
            raise StudyError(
                f"--{flag} {getattr(args, flag)}: the nodes of this split answer {terms}: leave it out, or split again"
            )
    for flag, known in (("estimator", LOCAL), ("mechanism", ALL_MECHANISMS)):
        if getattr(args, flag) not in (None, *known):
            raise StudyError(f"--{flag}: expected one of {', '.join(known)}, got {getattr(args, flag)}")
    if args.ties == "drop" and facts.ties is None:
        raise StudyError(
            "--ties drop: which answers are missing would tell which are ties: use coin, or split the file with "
            "--ties-public if that is no secret"
        )
    if args.state is not None and (args.nodes is None or terms.trust is not Trust.CENTRAL):
        raise StudyError("--state: only for the curator of --trust central that is started here: leave it out")
    fixed = {"file": args.server, "ties_public": terms.ties_public, "public_data": False, "coins": "os", "seed": None}
    named = argparse.Namespace(**vars(args) | agreed | fixed | {"compare": False, "hold_out": None})
    from studies.fit.ranking import of_asked

    return of_asked(read_request(named), terms.asked)


def where_of(args: argparse.Namespace) -> "Where":
    """Where the nodes are, as the flags say. Raises StudyError."""
    from studies.federate.rooms import Where
    from studies.flower.patience import patience_of

    here = args.on == "in-process"
    if here and (args.nodes is None or args.deadline or args.mode or args.quorum):
        raise StudyError("--on in-process: expected --nodes with it, and no --deadline, --mode or --quorum")
    nodes = None if args.nodes is None else Path(args.nodes)
    kept = transcript_of(args, starts=nodes is not None)
    out = None if args.out is None else Path(args.out)
    return Where(nodes, args.superlink, here, patience_of(args), args.federation, _attempt(args.attempt), kept, out)


def _attempt(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST_ATTEMPTS:
        raise StudyError(f"--attempt: expected a number, 0 or more, got {text[:40]!r}")
    return int(text)
