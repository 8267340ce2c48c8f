"""`halftruth plan`: how many labelers a target error needs, and what privacy costs; with its doubts."""

import argparse
from dataclasses import replace
from decimal import Decimal

from protocol.decimals import delta, epsilon
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.plan.assumed import number
from studies.plan.show import Plan, as_json, show
from studies.plan.sources import assume
from studies.plan.ways import MOST_LABELS, WAYS, Setting, Way, epsilon_needed, labels_needed, predict
from studies.share_flags import add_shares_arguments, check_shares, shares_of
from studies.theory.sandwich import Theory

EXAMPLES = """\
examples:
  halftruth plan --error 0.1 --epsilon 1 --trust local            how many labels?
  halftruth plan --error 0.1 --labels 20000 --trust central       which epsilon is enough?
  halftruth plan --labels 20000 --epsilon 1                       how large is the error?
  halftruth plan --error 0.1 --epsilon 1 --trust distributed --honest 0.8
  halftruth plan --error 0.1 --epsilon 1 --study studies/toml/quick.toml
  halftruth plan --error 0.1 --epsilon 1 --features sphere --dimension 3 --theta 1,0,-1 --sum-zero --bound 3
  halftruth plan --error 0.1 --epsilon 1 --covariance covariance.csv --theta 1,0.5
  halftruth fit votes.csv --trust local --epsilon 2 --json > pilot.json
  halftruth plan --error 0.3 --epsilon 1 --pilot pilot.json

Name two of --error, --epsilon and --labels; the third is computed, for every trust model. The error is the root mean
square L2 error of the parameter, by the sandwich formula: first order in n. The plan says where that does not hold;
docs/PLANNING.md has the measurements. One label counts for each labeler, and epsilon protects it.

A pilot is the output of halftruth fit --json, whose items are then compared equally often; or an .npz file with
arrays x (differences of features, one row a label) and theta (an estimate)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of `halftruth plan`."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = EXAMPLES
    asked = parser.add_argument_group("two of these")
    asked.add_argument("--error", metavar="E", help="target: root mean square L2 error")
    asked.add_argument("--epsilon", metavar="E", help="level of privacy of each label")
    asked.add_argument("--labels", metavar="N", help="labels, one a labeler")
    parser.add_argument(
        "--delta", metavar="D", default="1e-5", help="slack of central and distributed guarantees (1e-5)"
    )
    parser.add_argument("--trust", choices=list(WAYS), default="local", help="the way that is answered for (local)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_shares_arguments(parser)
    assumption = parser.add_argument_group("what is assumed (the problem of studies/toml/figure1.toml)")
    assumption.add_argument("--study", metavar="FILE", help="the problem of a study file, or of a results folder")
    assumption.add_argument("--pilot", metavar="FILE", help="features and estimate of a pilot: .npz or .json")
    assumption.add_argument("--covariance", metavar="FILE", help="of normal rows x: .npy, or lines with commas")
    assumption.add_argument("--features", metavar="LAW", help='"gaussian", "sphere", or a file of rows x')
    assumption.add_argument("--dimension", metavar="D", type=int, help="of --features")
    assumption.add_argument("--theta", metavar="T,T,...", help="the parameter: --theta=-1,0,1")
    assumption.add_argument("--bound", metavar="B", help="radius of the ball in which estimates are looked for")
    assumption.add_argument("--sum-zero", action="store_true", help="coordinates of theta sum to 0")


def main(args: argparse.Namespace) -> int:
    """Run `halftruth plan`: exit code 0; StudyError is wrong use."""
    plan = make(args)
    print(as_json(plan)) if args.json else show(plan)
    return 0


def make(args: argparse.Namespace) -> Plan:
    """The plan that the flags ask for. Raises StudyError where they do not fit together, or a file does not read."""
    ways = _ways(args)
    try:
        slack = delta(args.delta, "--delta")
        level = None if args.epsilon is None else epsilon(args.epsilon, "--epsilon")
    except StudyError:
        raise
    except ValueError as error:
        raise StudyError(str(error)) from None
    target, n = _error(args.error), _labels(args.labels)
    if sum(value is not None for value in (target, level, n)) != 2:
        raise StudyError("expected two of --error, --epsilon and --labels: the third is computed")
    assumed = assume(args)
    settings = {name: _setting(assumed.theory, one, target, level, n, slack) for name, one in ways.items()}
    answers = {name: None if at is None else predict(assumed.theory, ways[name], at) for name, at in settings.items()}
    return Plan(assumed, ways, ways[args.trust], target, level, n, slack, answers)


def _ways(args: argparse.Namespace) -> dict[str, Way]:
    """All ways, with noise in shares as the flags say."""
    check_shares(args, Trust.DISTRIBUTED)
    told = tuple((name, share) for name, share in sorted(shares_of(args).items()) if share is not None)
    own = WAYS["distributed"]
    return WAYS | {own.name: replace(own, arm=replace(own.arm, options=told))}


def _setting(
    theory: Theory, way: Way, target: float | None, level: Decimal | None, n: int | None, slack: Decimal
) -> Setting | None:
    """Where a way reaches the target; None where it never does. Clear labels have no level to look for."""
    own = None if way.name == "clear" else level
    if n is None:
        assert target is not None
        n = labels_needed(theory, way, target, own, slack)
        return None if n is None else Setting(n, own, slack)
    if target is None or way.name == "clear":
        return Setting(n, own, slack)
    found = epsilon_needed(theory, way, target, n, slack)
    return None if found is None else Setting(n, found, slack)


def _error(text: str | None) -> float | None:
    return None if text is None else float(number(text, "--error"))


def _labels(text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MOST_LABELS):
        raise StudyError(f"--labels: expected an integer from 1 to {MOST_LABELS:,}, got {text!r}")
    return int(text)
