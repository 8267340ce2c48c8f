"""What can be awkward about a holder's file: codes, what each means for privacy or for estimates, and what to do."""

from dataclasses import dataclass
from typing import Any

ERROR, WARNING, NOTE = "error", "warning", "note"
MOST_SHOWN = 5  # lines and examples of a finding


@dataclass(frozen=True)
class Kind:
    """A kind of finding. An error keeps the file from being used as it is read; a note asks for nothing."""

    severity: str
    means: str
    todo: str


@dataclass(frozen=True)
class Finding:
    """One finding: its code out of `KINDS`, how many there are, lines (or rows) of the first, and what was found."""

    code: str
    count: int
    lines: tuple[int, ...] = ()
    examples: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """What its code means."""
        return KINDS[self.code]

    def as_json(self) -> dict[str, Any]:
        """The finding with its meaning, for machines."""
        told = {"code": self.code, "severity": self.kind.severity, "count": self.count}
        return told | {
            "lines": list(self.lines),
            "examples": list(self.examples),
            "means": self.kind.means,
            "do": self.kind.todo,
        }


_SEEN = "several programs (spreadsheets, pandas) change such ids when they read them; here they are text"
KINDS = {
    # the file
    "cannot-be-used": Kind(ERROR, "the file is not read any further than this", "as it says"),
    "other-keys": Kind(NOTE, "records have other keys than the first one; the columns that are read are in all", ""),
    "no-comparisons": Kind(NOTE, "the columns do not look like comparisons: only numbers are looked at", "as it says"),
    # who answered, and about what
    "no-labelers": Kind(
        ERROR,
        "nothing says who answered, so nothing can protect a labeler; what follows takes each row as a labeler",
        "--labeler NAME; --labeler none where every row is somebody else's",
    ),
    "no-name": Kind(ERROR, "a row without its labeler would be nobody's to protect", "fill it in, or --labeler none"),
    "unnamed": Kind(
        ERROR, "a row without one of its items compares nothing", "fill it in; --unnamed drop-public leaves them out"
    ),
    "unnamed-left-out": Kind(NOTE, "rows without one of their items are left out, and which they are is public", ""),
    "same-item": Kind(NOTE, "a row that compares an item with itself says nothing, and is left out", ""),
    "empty-text": Kind(NOTE, "an empty (or blank) text is an answer like any other: one item", ""),
    "long-text": Kind(NOTE, "texts beyond 160 characters are known by their beginning and their hash", ""),
    "several-spellings": Kind(
        NOTE, "names that differ in Unicode's form or outer spaces only are one name", "spell them alike"
    ),
    "near-equal": Kind(
        WARNING,
        "names that look alike are different ones: their comparisons, and budgets, are not together",
        "spell them alike where they mean the same",
    ),
    "invisible": Kind(WARNING, "names hold characters that nobody sees", "take them out where they are no part of it"),
    "beyond-2^53": Kind(NOTE, _SEEN, "keep the file as it is; do not save it from such a program"),
    "like-nothing": Kind(NOTE, f"names such as NA or None are names; {_SEEN}", ""),
    "read-as-items": Kind(NOTE, "items whose names are words for an answer too are read as items", ""),
    # what describes items
    "no-features-file": Kind(ERROR, "the features cannot be read, and were not looked at", "as it says"),
    "no-features": Kind(
        ERROR,
        "items that the file of features does not describe; a guess would be a guess about an item",
        "add a line for each, spelled alike",
    ),
    "features-unused": Kind(NOTE, "items that are described, and that nobody compares here: not used", ""),
    # answers
    "unknown-outcome": Kind(ERROR, "these answers mean nothing that is known", "--winner-coding, or mend them"),
    "ties": Kind(NOTE, "a tie is a value of the label: a fair coin at the labeler decides it", "--ties, --ties-public"),
    "no-winner": Kind(
        NOTE, "a missing answer is a value of the label: it is sent like others, as nobody may see it", ""
    ),
    "repeated": Kind(
        WARNING,
        "rows of one labeler about one pair and question are one label: the first counts and pays, once",
        "--question NAMES where other columns tell them apart",
    ),
    "swapped": Kind(
        WARNING, "the same with the items the other way round: still one label", "--question NAMES, as above"
    ),
    "contradictions": Kind(WARNING, "labels whose rows answer differently: a claim counts the first row alone", ""),
    "one-answer": Kind(NOTE, "labelers of several rows who always gave one answer: perhaps they did not look", ""),
    "position": Kind(
        WARNING,
        "one side wins far more often than chance lets it: a home advantage, or labelers who do not look. No model "
        "here has a term for the side; where sides are not drawn by lot, it moves the scores",
        "",
    ),
    "sorted-by-answer": Kind(
        WARNING, "the order of rows is public: one that follows from the answers publishes them", "shuffle the rows"
    ),
    # the graph of comparisons
    "unconnected": Kind(
        WARNING, "no comparison goes between these groups of items: their scores cannot be compared", "rank them apart"
    ),
    "one-way": Kind(
        WARNING,
        "between these groups wins go one way or not at all: clear scores have no maximum without a ball or a prior",
        "--bound R, or --estimator rr-map",
    ),
    "never-wins": Kind(NOTE, "items that never won", ""),
    "never-loses": Kind(NOTE, "items that never lost", ""),
    "few-comparisons": Kind(WARNING, "fewer comparisons than items: scores are mostly the prior's or the ball's", ""),
    # rankings
    "tied-ranks": Kind(NOTE, "rankings in which items share a rank", "--ranking-as pair, which takes ties"),
    # numbers
    "no-number": Kind(ERROR, "cells of a column of numbers that are none", "mend them, or empty the cell"),
    "not-finite": Kind(
        ERROR, "NaN or an infinity in a sum makes it useless, and tells that it was there", "empty the cell: --missing"
    ),
    "thousands": Kind(ERROR, "a separator of thousands or a decimal comma is no part of a number here", "take it out"),
    "three-digits": Kind(
        NOTE,
        "all fractions of a column have three digits: a point is a decimal point here, also where thousands were meant",
        "take points out where they part thousands",
    ),
    "dressed": Kind(ERROR, "a currency, a percent sign or brackets are no part of a number here", "take them off"),
    "too-large": Kind(ERROR, "numbers beyond 1e100: their squares leave no room for sums", "scale the column"),
    "empty-cells": Kind(
        WARNING, "records lack a value: which ones do can be as private as the values", "--missing drop-public, or zero"
    ),
    "no-variance": Kind(
        WARNING, "a tail index below 2: means converge slowly, and no second moment is to be assumed", "--tail below 1"
    ),
    "no-mean": Kind(
        WARNING,
        "a tail index below 1: there is no mean to estimate",
        "estimate another quantity, such as a logarithm's",
    ),
}
