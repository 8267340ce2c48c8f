"""Items that are answers to prompts: one text under two prompts is two items, each described by numbers of its own.

How a label is named, and so what it pays, does not depend on it.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

from client.sources.comparisons import Comparisons
from client.sources.reading import EMPTY, Records, name_of

Answers = Mapping[str, tuple[str, str]]


def answer_to(answer: str, prompt: str | None) -> str:
    """The name of an answer to a prompt, both by name; an empty prompt is one too.

    >>> answer_to("Yes", "Is it?"), answer_to("Yes", None)[:16]
    ('["Yes", "Is it?"]', '["Yes", "(empty)')
    """
    return name_of(json.dumps([answer, prompt or EMPTY], ensure_ascii=False))


def with_prompts(records: Records, prompt: str | None, found: Comparisons) -> tuple[Comparisons, Answers]:
    """The same comparisons of answers to what the column `prompt` says, and each one's (answer, prompt).

    Pairs stay in the order of their answers' names: a ledger knows a label's answer by the side that it is for, and by
    names of answers and prompts another side could come first. Without such a column items are what they were.
    """
    if prompt is None:
        return found, {}
    prompts = records.column(prompt)
    known: dict[str, tuple[str, str]] = {}
    sides: list[list[str]] = []
    for side in (found.first, found.second):
        sides.append([])
        for answer, place in zip(side, found.places, strict=True):
            asked = prompts[place] or EMPTY
            sides[-1].append(name := answer_to(answer, asked))
            known[name] = (answer, asked)
    return replace(found, first=sides[0], second=sides[1]), known
