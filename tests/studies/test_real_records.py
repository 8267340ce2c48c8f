"""Studies of real records: what is read, what is measured, and that docs/REAL_HEAVY.md says what comes out."""

import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.warned import code_of
from studies.real_records import main, table_of, verdicts
from studies.real_records.evaluate import measured, outcomes, read, without_mean
from studies.real_records.source import PublicRecords
from studies.real_records.study_file import RecordStudy, load_record_study, shipped
from studies.records.exact import flat

PAGE = Path(__file__).parents[2] / "docs" / "REAL_HEAVY.md"
STUDY = """
[study]
name = "mine"
coins = 5
[data]
file = "mine.csv"
model = "linear"
response = "y"
features = ["x*"]
scale = { "x*" = 2 }
unit = "holder"
holder = "who"
[assume]
tail = 0.5
moment = 20
[problem]
bound = 3
[claim]
epsilon = [1, 4]
[[way]]
trust = "clear"
estimator = "descent"
rounds = 60
step = 0.5
average = "last"
[[way]]
trust = "central"
estimator = "descent"
rounds = 4
step = 0.5
[[way]]
name = "holders alone"
trust = "local"
mechanism = "piecewise"
estimator = "descent"
rounds = 2
step = 0.5
[[expect]]
better = { way = "central: descent", epsilon = 4 }
than = { way = "holders alone", epsilon = 4 }
"""


def mine(folder: Path, text: str = STUDY) -> RecordStudy:
    """A made-up study of 120 holders with 1 to 3 records."""
    random = np.random.default_rng(8)
    lines = ["who,x1,y,x2"]
    for row in range(240):
        x = random.standard_t(3, size=2)
        y = x[0] - 0.5 * x[1] + random.standard_t(2)
        lines.append(f"h{row % 120 if row < 200 else 7 * (row % 11)},{x[0]:.6f},{y:.6f},{x[1]:.6f}")
    (folder / "mine.csv").write_text("\n".join(lines), "utf-8")
    path = folder / "mine.toml"
    path.write_text(text, "utf-8")
    return load_record_study(path, folder)


def test_a_study_is_read_and_its_table_says_what_came_out(tmp_path: Path) -> None:
    study = mine(tmp_path)
    assert (study.data.columns.names, study.data.columns.unit, study.levels) == (("x1", "x2"), Unit.HOLDER, (1, 4))
    assert study.data.columns.scales.scale == {"x1": Decimal(2), "x2": Decimal(2)}
    head, *lines = [line for line in table_of(study) if line.startswith("| ") and "way" not in line]
    assert head == "| the file | - | 2 coefficients | - | - |"
    assert [line.split(" | ")[:2] for line in lines] == [
        ["| clear: descent", "-"],
        *(["| central: descent", level] for level in ("1", "4")),
        *(["| holders alone", level] for level in ("1", "4")),
    ]
    right, found = measured(study, read(study))
    assert len(right.records.features) == 240
    assert found["clear: descent", "-"].error.max() < 1e-6  # descent that nobody disturbs ends at the minimiser
    assert all(far.excess.min() > -1e-12 and len(far.excess) == 5 for far in found.values())
    better, than = (np.median(found[way, "4"].excess) for way in ("central: descent", "holders alone"))
    (said,) = verdicts(study, found)
    assert ("So it is" in said) == (better < than)


def test_what_may_mislead_is_said_below_the_table(tmp_path: Path) -> None:
    """In a ball that is too small; the lines say how many, of all estimates of the table."""
    study = mine(tmp_path, STUDY.replace("bound = 3", "bound = 0.2"))
    _, found = measured(study, read(study))
    codes = {code_of(text) for far in found.values() for texts in far.warnings for text in texts}
    said = [line for line in table_of(study) if line.startswith("Warning (")]
    assert {line.partition("(")[2].partition(")")[0] for line in said} == codes
    assert "on-the-ball" in codes and all(" of 25 estimates" in line for line in said)


@pytest.mark.parametrize("clients", [3, 7])
def test_estimates_do_not_depend_on_how_rows_are_split(tmp_path: Path, clients: int) -> None:
    study = mine(tmp_path)
    table = read(study)
    alone, shared = (list(outcomes(study, table, count)) for count in (1, clients))
    assert len(alone) == len(shared) == 5 * 5
    for one, other in zip(alone, shared, strict=True):
        assert (one.theta == other.theta).all()
        assert str(one.claim) == str(other.claim)


def test_repetitions_have_other_coins_about_the_same_records(tmp_path: Path) -> None:
    study = mine(tmp_path)
    found = [one.theta for one in outcomes(study, read(study)) if one.arm.trust_name == "central"]
    assert len({theta.tobytes() for theta in found}) == 2 * 5


def test_no_mean_is_printed_where_the_tail_has_none(tmp_path: Path) -> None:
    acres = ((np.arange(3000) + 0.5) / 3000) ** (-1 / 0.6)
    (tmp_path / "fires.csv").write_text("acres\n" + "\n".join(map(repr, acres.tolist())), "utf-8")
    (tmp_path / "fires.toml").write_text(
        'study = { name = "fires", coins = 2 }\ndata = { file = "fires.csv", features = ["acres"] }\n'
        'claim = { epsilon = [1] }\n[[way]]\ntrust = "central"\nestimator = "mean"\nthreshold = 10\n',
        "utf-8",
    )
    (said,) = table_of(load_record_study(tmp_path / "fires.toml", tmp_path))
    assert said.startswith("Not averaged. acres: tail index 0.60 ± 0.05")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("coins = 5", "coin = 5", "coin"),
        ("coins = 5", "coins = 1", r"\[study\] coins"),
        ("coins = 5", 'coins = 5\nreference = "none"', r"\[study\] reference"),
        ('features = ["x*"]\nscale = { "x*" = 2 }', 'features = ["u*"]', "expected columns that begin with 'u'"),
        ("epsilon = [1, 4]", "epsilon = [0]", r"\[claim\] epsilon"),
        ('name = "holders alone"', 'name = "central: descent"', "expected different names"),
        (
            'than = { way = "holders alone", epsilon = 4 }',
            'than = { way = "holders", epsilon = 4 }',
            r"\[expect 1\] than",
        ),
        ("rounds = 60", "round = 60", r"way 1"),
        ('trust = "clear"', 'trust = "none"', r"way 1"),
        ("tail = 0.5", "tail = 1.5", "tail"),
        ("bound = 3", "bound = 0", r"\[problem\] bound"),
        ('holder = "who"', "public = true", "public"),
    ],
)
def test_a_study_that_does_not_fit_is_refused_by_file_and_key(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in STUDY
    with pytest.raises(StudyError, match=said) as raised:
        mine(tmp_path, STUDY.replace(old, new))
    assert "mine.toml" in str(raised.value)


def test_only_public_records_are_played(tmp_path: Path) -> None:
    table = replace(read(mine(tmp_path)), public=False)
    with pytest.raises(ValueError, match="expected records declared public"):
        PublicRecords(table)


def test_wrong_use_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path), "--only", "nothing"]) == 2
    assert "--only: expected one of cities, claims, danish," in capsys.readouterr().err
    assert main([str(tmp_path), "--only", "danish"]) == 2
    assert "danish_fire_losses.csv" in capsys.readouterr().err
    mine(tmp_path)
    assert main([str(tmp_path), "--study", str(tmp_path / "mine.toml"), "--coins", "2"]) == 0
    assert "## mine" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["danish", "cities", "claims", "states", "injuries", "visits", "genes", "fires"])
def test_a_shipped_study_reads_its_file(shared_data: Path, name: str) -> None:
    study = load_record_study(shipped()[name], shared_data)
    table = read(study)
    expected: dict[str, Any] = {
        "danish": (2167, 1),
        "cities": (19447, 1),
        "claims": (6773, 1),
        "states": (13, 1),
        "injuries": (1340, 7),
        "visits": (4406, 13),
        "genes": (189, 500),
        "fires": (203785, 1),
    }
    assert (len(table.identities), len(table.columns.names)) == expected[name]
    assert bool(without_mean(study, table)) == (name == "fires")
    assert np.isfinite(flat(table).features).all()


def test_the_page_says_that_fires_have_no_mean(shared_data: Path) -> None:
    (said,) = table_of(load_record_study(shipped()["fires"], shared_data))
    assert said in PAGE.read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["danish", "cities", "claims", "states", "injuries", "visits", "genes"])
def test_the_page_says_what_comes_out(shared_data: Path, name: str) -> None:
    """Cells agree, and numbers within 2 %: coins are addressed, so that only rounding may differ."""
    (part,) = (part for part in PAGE.read_text("utf-8").split("\n## ") if part.startswith(f"{name}\n"))
    lines = table_of(load_record_study(shipped()[name], shared_data))
    told, found = ([line for line in text if line.startswith("| ")] for text in (part.splitlines(), lines))
    assert len(told) == len(found) > 4
    for one, other in zip(told, found, strict=True):
        assert one.split(" | ")[:2] == other.split(" | ")[:2]
        numbers = [
            np.array(list(map(float, re.findall(r"-?\d[\d.e-]*", line.split(" | ", 2)[2])))) for line in (one, other)
        ]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.02, abs=1e-4)
    assert all("So it is" in line for line in lines if line.startswith("Expected"))
