"""`python -m studies.bench.child`: one figure in a process of its own, on as many cores as it may have."""

import argparse
import os
import sys
from pathlib import Path


def main() -> int:
    """Measure one figure and write its rows."""
    parser = argparse.ArgumentParser(prog="python -m studies.bench.child")
    parser.add_argument("name")
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    _restrict(args.cores)
    from studies.bench.figures import FIGURES  # after that: libraries count cores when they are imported
    from studies.bench.measure import measure
    from studies.bench.row import dump

    dump(measure(FIGURES[args.name], args.runs, args.small), {}, args.out)
    return 0


def _restrict(cores: int) -> None:
    """Let this process and its threads use some cores only, where the system can say so; 0: all."""
    if cores and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])


if __name__ == "__main__":
    sys.exit(main())
