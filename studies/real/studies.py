"""The real studies by name: the heads of a table, and its lines."""

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path

from client.sources.table import Table
from protocol.privacy import Unit
from protocol.trust import Trust
from studies.real import files
from studies.real.evaluate import Claim, Way, guessed, line, split

Lines = Callable[[Path, int], Iterator[str]]
LEVELS = ("0.5", "1", "2", "4")
ANY = Claim("1")  # of clear fits, which claim nothing

CLEAR = Way("clear: mle", Trust.CLEAR, "mle")
CENTRAL = Way("central: mle", Trust.CENTRAL, "mle")
RR_MLE = Way("local: rr-mle", Trust.LOCAL, "rr-mle")
RR_MAP = Way("local: rr-map", Trust.LOCAL, "rr-map")
DEBIASED = Way("local: debiased", Trust.LOCAL, "debiased")

# Vectors of length one: a prior of this width gives scores that differ by about one.
WIDTH = ("tau", Decimal(2))
RIDGE = (("ridge", "tempered"), WIDTH)
VECTORS = (
    Way("central: mle, ridge", Trust.CENTRAL, "mle", RIDGE),
    DEBIASED,
    Way("local: debiased, ridge", Trust.LOCAL, "debiased", RIDGE),
    Way("local: rr-map", Trust.LOCAL, "rr-map", (WIDTH,)),
)


def by_way(ways: tuple[Way, ...], clear: Way, levels: tuple[str, ...], read: Callable[[Path], Table]) -> Lines:
    """A clear fit, then all ways at every level, for each label."""

    def lines(folder: Path, seeds: int) -> Iterator[str]:
        parts = [split(read(folder), seed) for seed in range(seeds)]
        yield line((clear.name, "-"), [guessed(clear, ANY, seed, *part) for seed, part in enumerate(parts)])
        for way in ways:
            for level in levels:
                found = [guessed(way, Claim(level), seed, *part) for seed, part in enumerate(parts)]
                yield line((way.name, level), found)

    return lines


def by_cap(folder: Path, seeds: int) -> Iterator[str]:
    """Claims for labelers who answered 15 sensitive questions each, of whom some or all count."""
    parts = [split(files.parties(folder), seed) for seed in range(seeds)]
    yield line((CLEAR.name, "-", "-"), [guessed(CLEAR, ANY, seed, *part) for seed, part in enumerate(parts)])
    for way in (CENTRAL, RR_MAP):
        for level in ("1", "2", "4", "8"):
            for cap in (1, 5, 15):
                claim = Claim(level, Unit.LABELER, cap)
                found = [guessed(way, claim, seed, *part) for seed, part in enumerate(parts)]
                yield line((way.name, level, str(cap)), found)


def by_question(name: str, folder: Path, seeds: int) -> Iterator[str]:
    """What three ways to ask a ranking of three are worth. All guess the best variety of farmers who were kept out."""
    asked = {"top": 0, "pair": 1, "pairs:3": 3}
    tests = [split(files.triads(folder, name, 0), seed)[1] for seed in range(seeds)]
    for what, count in asked.items():
        table = files.triads(folder, name, count)
        trains = [split(table, seed)[0] for seed in range(seeds)]
        central = (CENTRAL,) if count < 2 else ()
        for way in (CLEAR, *central, RR_MAP):
            way = Way(way.name, way.trust, way.estimator, way.options, count)
            for level in ("-",) if way.trust is Trust.CLEAR else ("1", "2", "4"):
                claim = ANY if level == "-" else Claim(level)
                pairs = enumerate(zip(trains, tests, strict=True))
                yield line((what, way.name, level), [guessed(way, claim, seed, *part) for seed, part in pairs])


PLAIN = (CENTRAL, RR_MLE, RR_MAP, DEBIASED)
STUDIES: dict[str, tuple[tuple[str, ...], Lines]] = {
    "judges": (("way", "epsilon"), by_way(PLAIN, CLEAR, LEVELS, files.judges)),
    "workers": (("way", "epsilon"), by_way(PLAIN, CLEAR, LEVELS, files.workers)),
    "embedding": (
        ("way", "epsilon"),
        by_way(VECTORS, Way("clear: mle, ridge", Trust.CLEAR, "mle", RIDGE), ("1", "2", "4"), files.embedded),
    ),
    "parties": (("way", "epsilon", "cap"), by_cap),
    "breadwheat": (("asked", "way", "epsilon"), partial(by_question, "breadwheat")),
    "beans": (("asked", "way", "epsilon"), partial(by_question, "beans")),
}
