"""What a fit claims and what becomes of ties: the flags, and what of them fits together."""

import argparse

from client.sources.columns import NONE
from protocol.messages import Ties
from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.trust import RANDOMIZED, Trust
from studies.fit.request import OF_THREE, WAYS

TIES = {ties.name.lower(): ties for ties in (Ties.COIN, Ties.HALF, Ties.DROP, Ties.RANDOMIZED)}
UNITS = {unit.label: unit for unit in (Unit.LABEL, Unit.LABELER)}
HOLD_OUT = ("labelers", "labels")
MOST_LABELS = (1 << 32) - 1


def add_claim_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ties and of the unit."""
    parser.add_argument(
        "--ties",
        choices=list(TIES),
        help="a tie is decided by a fair coin (default under a claim), is half a win each (default in clear), "
        "is left out, or is a third value of randomised response (local; says more than a coin where ties are many)",
    )
    parser.add_argument(
        "--ties-public", action="store_true", help="it is no secret which answers are ties: allows --ties drop"
    )
    parser.add_argument(
        "--unit", choices=list(UNITS), default="label", help="what the claim protects: one label, or all of a labeler"
    )
    parser.add_argument("--cap", metavar="M", help="for --unit labeler: M labels of each labeler count")
    parser.add_argument(
        "--compare",
        action="store_true",
        help="clear, central, distributed and local side by side, with held-out accuracy: not private, and says so",
    )
    parser.add_argument(
        "--hold-out", choices=HOLD_OUT, help="for --compare: one in five labelers, or labels (labelers)"
    )


def read_trust(args: argparse.Namespace) -> Trust:
    """Whom labelers trust; a comparison goes through all, and is read as what asks most of its flags: local."""
    if not args.compare:
        if args.hold_out:
            raise StudyError("--hold-out: only --compare holds answers out: leave it out")
        if args.trust is None:
            raise StudyError(
                "--trust: expected clear, local, central or distributed (or --compare, which is not private)"
            )
        return Trust.parse(args.trust)
    if args.trust or args.state or args.coins != "os":
        raise StudyError(
            "--compare: goes through all trust models with addressed coins and keeps nothing: leave out --trust, "
            "--state and --coins"
        )
    return Trust.LOCAL


def read_ties(args: argparse.Namespace, trust: Trust) -> Ties:
    """What becomes of ties; raises StudyError where it would break the claim or cannot be done."""
    clear = trust is Trust.CLEAR
    ties = TIES[args.ties] if args.ties else Ties.HALF if clear else Ties.COIN
    if ties is Ties.HALF and trust in RANDOMIZED:
        raise StudyError("--ties half: half a win cannot be randomised: use coin, which costs nothing, or randomized")
    if ties is Ties.RANDOMIZED and trust is not Trust.LOCAL:
        raise StudyError("--ties randomized: only --trust local randomises answers one by one: use half")
    if ties is Ties.DROP and not clear and not args.ties_public:
        raise StudyError(
            "--ties drop: which answers are missing would tell which are ties: use coin, or say --ties-public if that "
            "is no secret"
        )
    return ties


def read_estimator(args: argparse.Namespace, trust: Trust, ties: Ties) -> str:
    """The estimator, one that randomised ties have a meaning for; raises StudyError."""
    three = ties is Ties.RANDOMIZED
    known = OF_THREE if three else WAYS[trust][1]
    chosen: str = args.estimator or known[0]
    if three and chosen not in known:
        raise StudyError(
            f"--estimator {chosen}: how likely a report of three values is depends on how likely ties are, which no "
            f"model here says: with --ties randomized use {' or '.join(known)}, or else --ties coin"
        )
    return chosen


def read_unit(args: argparse.Namespace, trust: Trust) -> tuple[Unit, int]:
    """The unit and its cap, 0 for none; raises StudyError where they do not fit."""
    unit = UNITS[args.unit]
    if unit is Unit.LABEL:
        if args.cap is not None:
            raise StudyError("--cap: only --unit labeler has one: leave it out")
        return unit, 0
    if getattr(args, "labeler", None) == NONE:  # not every command names columns
        raise StudyError(
            "--unit labeler: expected labelers, got --labeler none, which says that every row is somebody else's: "
            "leave --unit out, since a claim for each label then protects all that anybody answered"
        )
    if trust is Trust.SHUFFLED:
        raise StudyError("--unit labeler: a shuffled group protects one label of each: leave it out")
    if trust is Trust.CLEAR:
        raise StudyError("--unit labeler: a clear fit makes no claim: leave it out, or choose another --trust")
    if args.cap is None:
        raise StudyError("--unit labeler: expected --cap M, how many labels of each labeler count, such as --cap 20")
    if not (args.cap.isascii() and args.cap.isdecimal() and 1 <= int(args.cap) <= MOST_LABELS):
        raise StudyError(f"--cap: expected an integer >= 1, got {args.cap!r}")
    return unit, int(args.cap)
