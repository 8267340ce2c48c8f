"""What a reader of tables has to know besides: guarantees, coins, numerics, warnings."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from studies.report.bounds import lower_bounds
from studies.report.view import View

_COINS = {
    "addressed": "addressed (a simulation: the coins can be computed by anybody, so they protect nobody)",
    "os": "from the operating system",
}


def facts(view: View, record: Mapping[str, Any]) -> Iterator[str]:
    """Lines for the end of a report; `record` is the content of study.json."""
    claimed = view.table.filter(view.table["unit"].is_valid())
    for unit, neighbours in sorted({*zip(claimed["unit"].to_pylist(), claimed["neighbours"].to_pylist(), strict=True)}):
        yield f"Guarantees: per {unit}; neighbours: {neighbours}."
    coins = sorted(set(view.table["coins"].to_pylist()) - {None})
    if coins:
        yield f"Coins: {'; '.join(_COINS.get(name, name) for name in coins)}."
    numerics = {record["numerics"], *(session["numerics"] for session in record["sessions"])}
    mixed = "" if len(numerics) == 1 else " (mixed: last bits may differ between repetitions)"
    yield f"Numerics fingerprint: {', '.join(sorted(numerics))}{mixed}."
    for bound in lower_bounds(view):
        constant = f"constant c = {bound.fitted.constant:.3g}, {bound.fitted}"
        yield f"{bound.name.capitalize()}, {bound.trust.label}: {constant}."
    counts = Counter(warning for warnings in view.table["warnings"].to_pylist() for warning in warnings)
    for warning, count in sorted(counts.items()):
        yield f"Warning in {count:,} of {len(view.table):,} estimates: {warning}."
