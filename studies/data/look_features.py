"""A file of features beside a file of comparisons or rankings: whether it describes every item that is compared."""

import argparse
from collections.abc import Mapping
from pathlib import Path

from client.sources.item_features import ItemFeatures, read_item_features
from client.sources.reading import Records, SourceError
from studies.data.findings import MOST_SHOWN, Finding
from studies.data.look_names import found_at
from studies.data.report import Report
from studies.holder_file import column_names


def features_of(report: Report, args: argparse.Namespace) -> ItemFeatures | None:
    """What the flags say describes the items; None where nothing does, or where that cannot be read: a finding."""
    if args.features is None:
        return None
    try:
        features = read_item_features(Path(args.features), column_names(args.features_columns))
    except SourceError as error:
        report.findings.append(Finding("no-features-file", 1, (), (str(error),)))
        return None
    report.counts |= {"features": len(features.columns), "items described": len(features.items)}
    return features


def look_at_features(report: Report, records: Records, features: ItemFeatures | None, items: Mapping[str, int]) -> None:
    """Items, with the first record of each, that nothing describes; and described ones that nobody compares."""
    if features is None:
        return
    described = set(features.items)
    missing = [name for name in items if name not in described]
    if missing:
        report.findings.append(found_at("no-features", records, [items[name] for name in missing], missing))
    if unused := [name for name in features.items if name not in items]:
        report.findings.append(Finding("features-unused", len(unused), (), tuple(unused[:MOST_SHOWN])))
