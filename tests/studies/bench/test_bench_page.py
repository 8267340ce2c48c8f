"""docs/BENCHMARKS.md holds what was recorded, and nothing else."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from protocol.strict import StudyError
from studies.bench.growth import ARMS, Point
from studies.bench.machine import facts
from studies.bench.own_round import Own
from studies.bench.page import filled, tables
from studies.bench.parts import Parts
from studies.bench.row import LIMIT, OURS, PEER, Row, dump

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_holds_the_recorded_tables() -> None:
    page = (DOCS / "BENCHMARKS.md").read_text("utf-8")
    assert filled(page, tables(DOCS / "benchmarks")) == page, "run python -m studies.bench.page"


def test_tables_of_recorded_runs(tmp_path: Path) -> None:
    where = facts(0.25, "halftruth bench help --runs 5")
    sides = [(OURS, "halftruth --help", 1.0), (PEER, "flwr --help", 9.0), (LIMIT, "python -c pass", 0.5)]
    dump(
        [Row("help", side, role, "s", 0.1, 0.1, 0.2, ratio, 5, False) for role, side, ratio in sides],
        where,
        tmp_path / "recorded.json",
    )
    points = [Point("rows", next(iter(ARMS)), x, x / 100) for x in (10, 100)]
    parts = [Parts("warm", 4, 1.0, {"SuperLink": 1.0}, Own(0.1, 0.05, 0.0))]
    for name, found in (("scaling", points), ("round", parts)):
        (tmp_path / f"{name}.json").write_text(json.dumps([asdict(one) | where for one in found]), "utf-8")
    made = tables(tmp_path)
    assert (
        "| help | 0.1 s (0.1 to 0.2) | flwr --help | 0.1 | 9 | <= 0.3 s | yes | python -c pass | 0.1 | 50% |"
        in made["figures"]
    )
    assert "`halftruth bench help --runs 5` on " in made["figures"] and "load 0.25 before" in made["figures"]
    assert f"]({tmp_path.name}/scaling.svg)\n\n| grows |" in made["scaling"]
    assert f"]({tmp_path.name}/round.svg)\n\n| setting |" in made["round"]
    assert "| 10 to 100 | 0.1 to 1 | 1.00 | 1.00 |" in made["scaling"]
    assert "| warm | 4 | 1 | 1 | 0.1 (10.00%) | 0.05 (5.00%) | 0 (0.00%) | 0.85 (85.00%) |" in made["round"]


def test_a_page_without_a_place_for_a_table() -> None:
    with pytest.raises(StudyError, match="<!-- end of scaling -->"):
        filled("a\n<!-- scaling -->\nb", {"scaling": "new"})
