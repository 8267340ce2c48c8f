"""`python -m studies.flower.measure`: what rounds of private convex optimisation over real processes take."""

import argparse
import os
import sys
from collections.abc import Sequence

import numpy as np

from protocol.failure import RunFailed
from studies.flower.looks import Floats, Measured
from studies.flower.measured import Setting, Work, measure
from studies.terminal import print_line, print_table

SETTINGS = {
    "stock": Setting("stock", careful=False),
    "warm": Setting("warm", careful=False),
    "stock-careful": Setting("stock", careful=True),
    "warm-careful": Setting("warm", careful=True),
}


def main(words: Sequence[str] | None = None) -> int:
    """Measure and print: exit code 0 done, 1 a run failed."""
    parser = argparse.ArgumentParser(prog="python -m studies.flower.measure", description=__doc__)
    for name, value in (("rounds", 20), ("records", 20_000), ("dimension", 20)):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"({value})")
    parser.add_argument("--nodes", type=_counts, default=[4], metavar="N,...", help="how many nodes (4)")
    parser.add_argument(
        "--settings", type=_settings, default=list(SETTINGS), metavar="NAME,...", help=f"of {', '.join(SETTINGS)} (all)"
    )
    parser.add_argument("--idle", type=float, default=0.0, metavar="SECONDS", help="look at idle nodes for as long (0)")
    parser.add_argument("--calls", action="store_true", help="count the SuperLink's HTTP calls, which makes it slower")
    args = parser.parse_args(words)
    rows = []
    for clients in args.nodes:
        for name in args.settings:
            before = os.getloadavg()[0]
            work = Work(clients, args.rounds, args.records, args.dimension)
            try:
                found, idle = measure(SETTINGS[name], work, args.idle, args.calls)
            except RunFailed as error:
                print(f"halftruth: {error}", file=sys.stderr)
                return 1
            _print_parts(name, clients, found, before)
            rows.append(_row(name, clients, found, idle))
    head = ["nodes", "setting", "wall", "CPU", "CPU a message", "all rounds", "CPU idle"]
    print_table(head, rows, ["nodes", "setting"])
    print_line("Seconds: medians of a round, from its answers to the next one's; idle: a second, where it was asked.")
    return 0


def _row(name: str, clients: int, found: Measured, idle: float) -> tuple[str, ...]:
    cpu = float(np.median(found.cpu))
    return (
        str(clients),
        name,
        f"{np.median(found.wall):.2f}",
        f"{cpu:.2f}",
        f"{cpu / clients:.2f}",
        f"{found.wall.sum():.0f}",
        f"{idle:.3f}" if idle else "-",
    )


def _print_parts(name: str, clients: int, found: Measured, before: float) -> None:
    print_line(f"{name}, {clients} nodes, {len(found.rounds)} rounds, the first not counted: {found.rounds[-1][1]}")
    spreads = [
        (what, *(f"{value:.2f}" for value in _spread(values)))
        for what, values in (("wall", found.wall), ("CPU", found.cpu))
    ]
    print_table(["seconds a round", "median", "least", "most"], spreads, ["seconds a round"])
    programs = [(program, f"{value:.3f}") for program, value in found.by_program().items() if value >= 0.0005]
    print_table(["program", "CPU seconds a round"], programs, ["program"])
    if found.calls:
        calls = [(path, f"{count:.1f}") for path, count in found.calls_a_round().items()]
        total = sum(found.calls_a_round().values())
        print_table(["call", "a round"], [*calls, ("all", f"{total:.1f}")], ["call"])
    growth = [(program, f"{first:.1f}", f"{last:.1f}") for program, (first, last) in found.growth().items()]
    print_table(["program", "MB after a tenth of the rounds", "MB at the end"], growth, ["program"])
    print_line(f"{os.cpu_count()} cores, load {before:.1f} before and {os.getloadavg()[0]:.1f} after")


def _spread(values: Floats) -> tuple[float, float, float]:
    return float(np.median(values)), float(values.min()), float(values.max())


def _counts(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _settings(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(SETTINGS):
        raise argparse.ArgumentTypeError(f"expected settings out of {list(SETTINGS)}, got {sorted(unknown)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
