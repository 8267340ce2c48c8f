"""A look at a file of rankings: who ranked what, how many share ranks, and which items hang together."""

import argparse
from collections import Counter
from itertools import combinations, pairwise

import numpy as np

from client.sources.ranking_columns import RankingWanted, choose_ranking
from client.sources.ranking_labels import ranking_identity
from client.sources.rankings import BELOW, Ranking, read_rankings
from client.sources.reading import Records
from studies.data.findings import Finding
from studies.data.look_features import features_of, look_at_features
from studies.data.look_graph import Pairs, look_at_graph
from studies.data.look_names import found_at, look_at_names, look_at_spellings
from studies.data.report import Report

FEW = 12  # items of a ranking that are compared with all others of it; in longer ones neighbours stand for them


def look_at_rankings(report: Report, records: Records, wanted: RankingWanted, args: argparse.Namespace) -> None:
    """Look at all of it. Raises SourceError where it can be read no further."""
    columns = choose_ranking(records.path, records.names, wanted)
    report.kind = "rankings"
    report.mapping = [("rankings", [columns.form], wanted.form is not None), ("columns", list(columns.named()), False)]
    report.flags = columns.describe()
    names = tuple(name for name in (columns.labeler, *(columns.items if columns.form != "wide" else ())) if name)
    report.findings += look_at_spellings(records, names)
    rankings, left = read_rankings(records, columns)
    sizes = sorted(len(ranking.items) for ranking in rankings)
    report.counts = {
        "rankings": len(rankings),
        "items": len({item for ranking in rankings for item in ranking.items}),
        "labelers": len({ranking.owner for ranking in rankings}),
        "items of a ranking": {"least": sizes[0], "median": float(np.median(sizes)), "most": sizes[-1]},
        "left out": left,
    }
    _look_at_answers(report, records, rankings)
    items = {item: ranking.place for ranking in reversed(rankings) for item in ranking.items}
    look_at_features(report, records, features_of(report, args), items)
    report.findings += look_at_names(records, items)
    report.findings += look_at_names(records, {ranking.owner: ranking.place for ranking in reversed(rankings)})
    report.findings += look_at_graph(*_wins(rankings))


def _look_at_answers(report: Report, records: Records, rankings: tuple[Ranking, ...]) -> None:
    tied = [
        ranking.place for ranking in rankings if not ranking.missing and len(set(ranking.ranks)) < len(ranking.ranks)
    ]
    if tied:
        report.findings.append(found_at("tied-ranks", records, tied, []))
    if missing := [ranking.place for ranking in rankings if ranking.missing]:
        report.findings.append(found_at("no-winner", records, missing, []))
    counts = Counter(map(ranking_identity, rankings))
    if repeated := sum(count - 1 for count in counts.values()):
        report.findings.append(Finding("repeated", repeated))


def _wins(rankings: tuple[Ranking, ...]) -> tuple[list[str], Pairs, Pairs]:
    """Items by name, pairs of them that some ranking compares, and who stands above whom."""
    names = sorted({item for ranking in rankings for item in ranking.items})
    number = {name: index for index, name in enumerate(names)}
    pairs: set[tuple[int, int]] = set()
    won: set[tuple[int, int]] = set()
    for ranking in rankings:
        order = sorted(zip(ranking.ranks, map(number.__getitem__, ranking.items), strict=True))
        near = combinations(order, 2) if len(order) <= FEW else pairwise(order)
        for (best, one), (worse, other) in near:
            pairs.add((min(one, other), max(one, other)))
            if best < worse:
                won.add((one, other))
            elif best < BELOW:
                won |= {(one, other), (other, one)}
    return names, _array(pairs), _array(won)


def _array(found: set[tuple[int, int]]) -> Pairs:
    return np.array(sorted(found), dtype=np.int32).reshape(-1, 2)
