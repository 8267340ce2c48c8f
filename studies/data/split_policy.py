"""What nodes of a split let be spent: lines of their policy, and what says so."""

import argparse
import json

from protocol.decimals import canonical, decimal
from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.terms import share
from protocol.trust import Trust
from studies.data.split_members import POLICY
from studies.federate.facts import Terms

SAID = {
    "label_cap": "  # epsilon of a label over all tasks: halftruth data split --label-cap",
    "labeler_cap": "  # the same of a labeler: --labeler-cap",
}


def policy_of(args: argparse.Namespace, terms: Terms) -> str:
    """Lines of a node's policy: it answers to these terms and to no others."""
    lines = {"trust": json.dumps([terms.trust.label]), "units": json.dumps([terms.unit.label])}
    if terms.unit is Unit.LABEL and args.labeler_cap is not None:
        raise StudyError("--labeler-cap: only --unit labeler has one: leave it out")
    labeler = args.labeler_cap or "1"
    sharing = terms.asked.pairs if terms.asked is not None and terms.unit is Unit.LABEL else 0
    lines["label_cap"] = cap_of(args.label_cap or labeler, "--label-cap", max(sharing, 1))
    if terms.unit is Unit.LABELER:
        lines["labeler_cap"] = cap_of(labeler, "--labeler-cap")
    lines["ties_public"] = json.dumps(terms.ties_public)
    named = "".join(f"{key} = {value}{SAID.get(key, '')}\n" for key, value in lines.items())
    return named + (POLICY if terms.trust is Trust.DISTRIBUTED else "")


def spending(args: argparse.Namespace, terms: Terms) -> str:
    """What nodes of a split let be spent, and what says so."""
    if terms.trust is Trust.CLEAR:
        return "Clear labels have no budget."
    name, flag, most = "label", "--label-cap", args.label_cap or args.labeler_cap or "1"
    if terms.unit is Unit.LABELER:
        name, flag, most = "labeler", "--labeler-cap", args.labeler_cap or "1"
    if terms.asked is not None and terms.unit is Unit.LABEL:
        name = "ranking"
    return f"Over all tasks a {name} spends at most epsilon = {most} ({flag})."


def cap_of(text: str, flag: str, sharing: int = 1) -> str:
    """A cap as TOML writes it, or the part of it that each of so many labels has."""
    if text == "unlimited":
        return json.dumps(text)
    try:
        value = decimal(text, flag)
    except ValueError as error:
        raise StudyError(str(error)) from None
    if value <= 0:
        raise StudyError(f"{flag}: expected a number > 0 or unlimited, got {text!r}")
    return canonical(value if sharing == 1 else share(value, sharing))
