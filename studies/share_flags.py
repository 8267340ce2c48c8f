"""Flags of noise in shares: how many rows a sum under masks is opened of, and how many of these are counted on."""

import argparse
from decimal import Decimal

from protocol.arms import USUAL_HONEST, USUAL_SURVIVORS
from protocol.decimals import canonical, decimal
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.own_flags import refuse_flags

SHARES = ("survivors", "honest")


def add_shares_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `--trust distributed`."""
    group = parser.add_argument_group("sums under masks (--trust distributed)")
    group.add_argument(
        "--survivors",
        metavar="S",
        help=f"share of the rows that have to stay for a sum to be opened ({canonical(USUAL_SURVIVORS)}: all of them); "
        "with 0.8 a fifth may drop out, and noise is larger",
    )
    group.add_argument(
        "--honest",
        metavar="H",
        help="share of the rows whose noise has to be enough by itself, since holders of others may tell theirs to the "
        f"server; at most S ({canonical(USUAL_HONEST)} of S)",
    )


def check_shares(args: argparse.Namespace, trust: Trust) -> None:
    """Raise StudyError for flags of noise in shares where there is none, or that do not go together."""
    if trust is not Trust.DISTRIBUTED:
        refuse_flags(args, SHARES, "only --trust distributed has noise in shares: leave it out")
        return
    survivors, honest = shares_of(args).values()
    if honest is not None and honest > (most := USUAL_SURVIVORS if survivors is None else survivors):
        raise StudyError(f"--honest: expected at most the {canonical(most)} of --survivors, got {canonical(honest)}")


def shares_of(args: argparse.Namespace) -> dict[str, Decimal | None]:
    """What the flags say, in the order of `SHARES`. Raises StudyError."""
    return {name: _share(getattr(args, name), f"--{name}") for name in SHARES}


def _share(text: str | None, flag: str) -> Decimal | None:
    """A share of rows, above 0 and at most 1; None where nothing is said. Raises StudyError."""
    if text is None:
        return None
    try:
        share = decimal(text, flag)
    except ValueError as error:
        raise StudyError(str(error)) from None
    if not 0 < share <= 1:
        raise StudyError(f"{flag}: expected a share of the rows, above 0 and at most 1, got {text}")
    return share
