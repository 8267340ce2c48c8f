"""What a reader of tables has to know besides: guarantees, coins, numerics, warnings."""

from collections.abc import Iterator, Mapping
from typing import Any

from protocol.channel import TOTAL
from protocol.decimals import canonical
from protocol.mechanisms.randomized_response import randomized_response
from protocol.warned import spoken, warn
from studies.report.bounds import lower_bounds
from studies.report.view import View
from studies.tails import tail_index
from studies.told import told as told_of

_COINS = {
    "addressed": "addressed (a simulation: the coins can be computed by anybody, so they protect nobody)",
    "os": "from the operating system",
}


def facts(view: View, record: Mapping[str, Any]) -> Iterator[str]:
    """Lines for the end of a report; `record` is the content of study.json."""
    for claim in guarantees(view):
        yield f"Guarantees: {claim}."
    if said := coins(view):
        yield f"Coins: {said}."
    yield f"Numerics fingerprint: {numerics(record)}."
    for bound in lower_bounds(view):
        constant = f"constant c = {bound.fitted.constant:.3g}, {bound.fitted}"
        yield f"{bound.name.capitalize()}, {bound.trust.label}: {constant}."
    yield from flips(view)
    yield from told(view)
    yield from wild(view)


def guarantees(view: View) -> list[str]:
    """Units and neighbouring relations of all claims."""
    claimed = view.table.filter(view.table["unit"].is_valid())
    found = {*zip(claimed["unit"].to_pylist(), claimed["neighbours"].to_pylist(), strict=True)}
    return [f"per {unit}; neighbours: {neighbours}" for unit, neighbours in sorted(found)]


def coins(view: View) -> str:
    """Whose coins were used; "" where none were."""
    return "; ".join(_COINS.get(name, name) for name in sorted(set(view.table["coins"].to_pylist()) - {None}))


def numerics(record: Mapping[str, Any]) -> str:
    """Fingerprints of the arithmetic of all sessions."""
    found = {record["numerics"], *(session["numerics"] for session in record["sessions"])}
    mixed = "" if len(found) == 1 else " (mixed: last bits may differ between repetitions)"
    return f"{', '.join(sorted(found))}{mixed}"


def flips(view: View) -> Iterator[str]:
    """How often randomised response flips a label, at each level: what a claim does to labels."""
    if all(arm.mechanism != "randomized-response" for arm in view.arms):
        return
    rates = [
        f"{(TOTAL - randomized_response(epsilon).table[0][0]) / TOTAL:.3g} at ε = {canonical(epsilon)}"
        for epsilon in view.loaded.study.grid.epsilon
    ]
    yield f"Randomised response flips a label with probability {', '.join(rates)}."


def told(view: View) -> Iterator[str]:
    """Warnings of the results by code, each with its commonest sentence; those of older results have no code."""
    yield from told_of(view.table["warnings"].to_pylist())


def wild(view: View) -> Iterator[str]:
    """Arms whose errors vary so much from one repetition to another that their mean or its standard error misleads."""
    for (setting, arm), errors in view.errors.items():
        tail = tail_index(errors)
        if tail is not None and tail.no_variance:
            at = "" if setting.epsilon is None else f", ε = {setting.epsilon:g}"
            name = f"errors of {view.looks[arm].label} at n = {setting.n:,}{at}: {tail}"
            if tail.no_mean:
                said = warn("no-mean", f"{name}, below 1: they have no mean; compare medians")
            else:
                said = warn("no-variance", f"{name}, below 2: their standard error says little; compare medians")
            yield f"{spoken(said)}."
