"""Runs of studies about heavy tails at several tails: what the tables of docs/HEAVY_DEFAULTS.md are made of."""

from pathlib import Path

from studies.folder import Folder
from studies.load import load
from studies.report.view import View
from studies.run import run

TOML = Path(__file__).parent / "toml"
# v -> the Pareto law of index v + 1.1, and its (1 + v)-th moment.
LAWS = {"0.2": ("pareto(1.3)", "13"), "0.5": ("pareto(1.6)", "16"), "0.9": ("pareto(2)", "20")}


def of_tail(tail: str) -> list[str]:
    """Overrides that make a study about means one with this tail."""
    law, moment = LAWS[tail]
    return [f"records.tail={tail}", f'records.features="{law}"', f"records.moment={moment}"]


def results(study: str, overrides: list[str], out: Path) -> View:
    """The results of a study that comes along, in the folder `out`: run if they are not there, or not all of them.

    Raises what `studies.run.run` raises.
    """
    run(load(TOML / f"{study}.toml", overrides), out, resume=(out / "study.json").exists())
    return View.open(Folder(out))
