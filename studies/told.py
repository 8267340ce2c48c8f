"""Warnings of many estimates in a few lines, for a reader of their tables."""

from collections import Counter
from collections.abc import Iterable, Iterator

from protocol.warned import code_of, spoken


def told(warnings: Iterable[Iterable[str]], what: str = "estimates") -> Iterator[str]:
    """Warnings, a list for each estimate, by code, each with its commonest sentence and how many estimates have it.

    Those of older results have no code.

    >>> list(told([["few-rows: 2 answers for 3 parameters"], []]))
    ['Warning (few-rows) in 1 of 2 estimates: 2 answers for 3 parameters.']
    """
    found: dict[str, Counter[str]] = {}
    total = 0
    for texts in warnings:
        total += 1
        for warning in texts:
            found.setdefault(code_of(warning) or warning, Counter())[warning] += 1
    for _, counts in sorted(found.items()):
        warning, more = counts.most_common(1)[0][0], ", for instance" if len(counts) > 1 else ""
        where = f"in {counts.total():,} of {total:,} {what}{more}"
        yield f"{spoken(warning).replace(': ', f' {where}: ', 1)}."
