"""Print the tables of docs/REAL_STUDIES.md: `python -m studies.real FOLDER [--only NAME] [--seeds N]`."""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from studies.real.studies import STUDIES

HEADS = "| accuracy | log-loss |"


def main() -> int:
    """Print one Markdown table a study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of the data, with pairwise/, rankings/ and embedding/")
    parser.add_argument("--only", choices=list(STUDIES), action="append", help="some of the studies (all)")
    parser.add_argument("--seeds", type=int, default=10, help="splits and coins of each cell (10)")
    args = parser.parse_args()
    if args.seeds < 2:
        parser.error(f"--seeds: expected at least 2, for a standard error, got {args.seeds}")
    for name in args.only or STUDIES:
        heads, lines = STUDIES[name]
        _print(name, heads, lines, args.folder, args.seeds)
    return 0


def _print(
    name: str, heads: tuple[str, ...], lines: Callable[[Path, int], Iterator[str]], folder: Path, seeds: int
) -> None:
    print(f"\n{name}\n\n| {' | '.join(heads)} {HEADS}\n" + "|---" * (len(heads) + 2) + "|")
    for text in lines(folder, seeds):
        print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
