"""Studies of real files: what is read, what is measured, and that docs/REAL_STUDIES.md says what comes out."""

import json
import math
import re
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from client.sources.choice_table import ChoiceTable
from client.sources.loading import read_table
from client.sources.ranking_columns import RankingWanted
from client.sources.ranking_labels import RankingAs, read_ranking_table
from protocol.privacy import Unit
from protocol.trust import Trust
from protocol.warned import code_of
from studies.cli import main as cli
from studies.real.evaluate import Claim, guessed, line, log_loss, request_of, split
from studies.real.files import read
from studies.real.study import RealStudy
from studies.real.study_file import load_real_study, shipped
from studies.real.tables import by_how_much, measured
from studies.real.ways import Way

PAGE = Path(__file__).parents[2] / "docs" / "REAL_STUDIES.md"
QUICK = ("judges", "workers", "parties", "breadwheat", "beans")
NUMBER = re.compile(r"(\d\.\d{3}) ± (\d\.\d{3})")
Means = dict[tuple[str, ...], list[tuple[float, float]]]


def means(text: str, study: str) -> Means:
    """Means and standard errors of a study's table, by the cells that name a line."""
    part = re.split(r"(?m)^#* ?(?=[a-z]+$)", text)
    (table,) = (section for section in part if section.partition("\n")[0] == study)
    found: Means = {}
    for text in table.splitlines():
        if text.startswith("|") and (numbers := NUMBER.findall(text)):
            cells = [cell.strip() for cell in text.strip("| ").split("|")]
            found[tuple(cells[: -len(numbers)])] = [(float(value), float(error)) for value, error in numbers]
    return found


def test_the_loss_of_held_out_answers(tmp_path: Path) -> None:
    path = tmp_path / "rankings.csv"
    path.write_text("judge,x,y,z\na,1,2,3\nb,2,1,3\nc,3,1,2\nd,,,\n", encoding="utf-8")
    wanted = RankingWanted("wide", unranked="last")
    theta = np.array([1.0, 0.5, -0.5])
    chance = np.exp(theta) / np.exp(theta).sum()
    top = read_ranking_table(path, True, wanted, RankingAs())
    assert log_loss(theta, top) == pytest.approx(-np.log(chance[[0, 1, 1]]).mean())
    assert log_loss(np.zeros(3), top) == pytest.approx(math.log(3))
    pairs = tmp_path / "votes.csv"
    pairs.write_text("judge,item_a,item_b,winner\na,x,y,x\na,x,z,z\nb,x,y,tie\nb,y,z,\n", encoding="utf-8")
    expected = (math.log1p(math.exp(-0.5)) + math.log1p(math.exp(1.5))) / 2
    assert log_loss(theta, read_table(pairs, True)) == pytest.approx(expected)


def study(name: str, folder: Path) -> RealStudy:
    """One of the studies that come along."""
    return load_real_study(shipped()[name], folder)


def test_comparisons_of_a_ranking_share_its_level(shared_data: Path) -> None:
    table = read(study("breadwheat", shared_data), RankingAs(3))
    way = Way("local", Trust.LOCAL, "rr-map")
    epsilon = request_of(way, Claim(Decimal(3)), table, 0, 3).epsilon
    assert epsilon == 1
    assert request_of(way, Claim(Decimal(3), unit=Unit.LABELER, cap=3), table, 0, 3).epsilon == 3


def test_every_answer_of_a_worker_finds_its_vector(shared_data: Path) -> None:
    table = read(study("embedding", shared_data), None)
    assert table.features is not None
    assert (table.pairs.shape, table.features.shape, len(table.labelers)) == ((8931, 2), (750, 384), 124)
    assert np.abs(np.linalg.norm(table.features, axis=1) - 1.0).max() < 1e-3  # float16
    with np.load(shared_data / "embedding/llmfao_minilm_384.npz") as stored:
        key = table.items.index(f'["{stored["prompt"][7]}", "{stored["model"][7]}"]')
        assert (table.features[key] == stored["emb"][7]).all()


def test_the_same_people_are_kept_out_whatever_is_asked(shared_data: Path) -> None:
    top, three = (read(study("beans", shared_data), RankingAs(count)) for count in (0, 3))
    assert isinstance(top, ChoiceTable)
    for seed in range(2):
        names = [{table.labelers[owner] for owner in split(table, seed)[1].owners} for table in (top, three)]
        assert names[0] == names[1]
        assert len(names[0]) == 168


COMPARISONS = """
[study]
name = "mine"
seeds = 3
[data]
file = "votes.csv"
questions = []
[split]
one_in = 4
by = "labels"
[claim]
unit = "labeler"
caps = [1, 2]
epsilon = [1, 2.5]
[[way]]
trust = "clear"
estimator = "mle"
[[way]]
name = "one step"
trust = "local"
estimator = "one-step"
[[expect]]
measure = "accuracy"
better = { way = "clear: mle", epsilon = "-", cap = "-" }
than = { way = "one step", epsilon = 2.5, cap = 2 }
"""
RANKINGS = """
study = { name = "mine", seeds = 2 }
data = { file = "ranks.csv", ranking = "wide", ranking_as = ["top", "pairs:2"] }
claim = { epsilon = [1] }
way = [
  { trust = "local", estimator = "rr-map", tau = 1.5 },
  { name = "sets", trust = "local", estimator = "rr-mle", mechanism = "subset-selection", ranking_as = ["top"] },
]
"""
VECTORS = """
study = { name = "mine", seeds = 2 }
data = { file = "votes.csv", labeler = "judge", winner = "side" }
claim = { epsilon = [1] }
way = [{ trust = "central", estimator = "mle", ridge = "tempered" }]
[vectors]
file = "v.npz"
items = ["kind", "name"]
values = "x"
item_a = ["turn", "item_a"]
item_b = ["turn", "item_b"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Made-up data: 24 judges compare three items, and rank them."""
    judges, winners = range(24), ("x", "y", "z")
    pairs = [("x", "y"), ("y", "z"), ("z", "x")]
    votes = []
    for at in judges:
        for turn, (a, b) in enumerate(pairs):
            winner = winners[(at + turn) % 3]
            side = "left" if winner == a else "right" if winner == b else "tie"
            votes.append(f"j{at},{turn},{a},{b},{winner if side != 'tie' else 'tie'},{side}")
    (tmp_path / "votes.csv").write_text(
        "\n".join(("judge,turn,item_a,item_b,winner,side", *votes, "")), encoding="utf-8"
    )
    ranks = [f"j{at},{order}" for at, order in zip(judges, ["1,2,3", "2,1,3", "3,1,2", "1,3,2"] * 6, strict=True)]
    (tmp_path / "ranks.csv").write_text("\n".join(("judge,x,y,z", *ranks, "")), encoding="utf-8")
    kinds, names = np.repeat(["0", "1", "2"], 3), np.tile(["x", "y", "z"], 3)
    np.savez(tmp_path / "v.npz", kind=kinds, name=names, x=np.random.default_rng(3).normal(size=(9, 2)))
    return tmp_path


def run(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """What the command prints of a study of one's own."""
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    code = cli(["real", str(folder), "--study", str(path)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_warnings_of_fits_have_codes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(folder, COMPARISONS, capsys)
    shown = {line.partition("(")[2].partition(")")[0] for line in out.splitlines() if line.startswith("Warning (")}
    assert cli(["real", str(folder), "--study", str(folder / "mine.toml"), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    codes = {code_of(text) for one in found["lines"] for texts in one["warnings"] for text in texts}
    assert codes == shown and codes and None not in codes
    assert (found["study"], len(found["lines"]), len(found["expected"])) == ("mine", 5, 1)
    assert len(found["lines"][0]["accuracy"]) == len(found["lines"][0]["log_loss"]) == 3


def test_a_study_of_one_s_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(folder, COMPARISONS, capsys)
    assert (code, err) == (0, "")
    cells = [("1", "1"), ("1", "2"), ("2.5", "1"), ("2.5", "2")]
    assert list(means(out, "mine")) == [("clear: mle", "-", "-"), *(("one step", *cell) for cell in cells)]
    assert "Expected: accuracy of clear: mle, -, - better than of one step, 2.5, 2. " in out
    code, out, err = run(folder, RANKINGS, capsys)
    assert (code, err) == (0, "")
    ways = [("top", "local: rr-map", "1"), ("top", "sets", "1"), ("pairs:2", "local: rr-map", "1")]
    assert list(means(out, "mine")) == ways
    code, out, err = run(folder, VECTORS, capsys)
    assert (code, err) == (0, "")
    assert list(means(out, "mine")) == [("central: mle", "1")]
    table = read(load_real_study(folder / "mine.toml", folder), None)
    assert (table.items[0], len(table.items), len(table.pairs)) == ('["0", "x"]', 6, 72)


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (COMPARISONS, "seeds = 3", "sedes = 3", "[study] unknown key 'sedes'; did you mean 'seeds'?"),
        (COMPARISONS, "seeds = 3", "seeds = 1", "[study] seeds: expected an integer in 2..1000"),
        (COMPARISONS, "questions", "question", "[data] unknown key 'question'"),
        (COMPARISONS, '"votes.csv"', '"votes.csv"\nranking_as = ["top"]', "[data] unknown key 'ranking_as'"),
        (COMPARISONS, "one_in = 4", "one_in = 1", "[split] one_in: expected an integer in 2..1000"),
        (COMPARISONS, "caps = [1, 2]", "", "[claim] caps: expected how many labels"),
        (COMPARISONS, "[1, 2.5]", "[0]", "[claim] epsilon"),
        (COMPARISONS, '"one-step"', '"one-stop"', "[way 2] estimator: expected one of"),
        (COMPARISONS, '"one-step"', '"one-step"\ntau = 1', "[way 2] unknown key 'tau'"),
        (COMPARISONS, 'name = "one step"', 'name = "clear: mle"', "[way 2] name: expected different names"),
        (
            COMPARISONS,
            "epsilon = 2.5, cap = 2",
            "epsilon = 2.5, cap = 3",
            "[expect 1] than: expected the cells of a line",
        ),
        (COMPARISONS, "epsilon = 2.5, cap", "epsilon = 2.5, cup", "[expect 1 than] unknown key 'cup'"),
        (COMPARISONS, "votes.csv", "nowhere.csv", "mine: [data] file: expected the file"),
        (RANKINGS, '"pairs:2"]', '"pears:2"]', "[data] ranking_as: expected top, pair or pairs:M"),
        (RANKINGS, "rr-mle", "one-step", "[way 2] estimator: expected one of"),
        (RANKINGS, ', ranking_as = ["top"] }', " }", "[way 2] mechanism: expected one for local top choices only"),
        (RANKINGS, '"wide"', '"broad"', "[data] ranking: expected one of"),
        (VECTORS, '"side"', '"winner"', "votes.csv, line 2, field winner: expected one of"),
        (VECTORS, '"v.npz"', '"w.npz"', "mine: [vectors] file: expected the file"),
        (VECTORS, '"name"]', '"nome"]', "expected the array 'nome'"),
        (VECTORS, '["turn", "item_b"]', '["item_b"]', "[vectors] items, item_a, item_b: expected as many names"),
        (VECTORS, '["turn", "item_b"]', '["term", "item_b"]', "expected the column 'term'"),
    ],
)
def test_what_does_not_fit_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], text: str, old: str, new: str, said: str
) -> None:
    assert text.count(old) == 1
    code, _, err = run(folder, text.replace(old, new), capsys)
    assert code == 2
    assert said in err
    assert "mine.toml" in err or str(folder) in err


def test_wrong_use(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["--only", "beans", "--seeds", "1"], "--seeds: expected at least 2"),
        (["--only", "peas"], "--only: expected one of beans, breadwheat, embedding, judges, parties, workers"),
        (["--only", "beans"], "is FOLDER the folder of the data?"),
        (["--study", str(folder / "none.toml")], "none.toml: expected a study file, found none"),
    ):
        assert cli(["real", str(folder), *words]) == 2
        assert said in capsys.readouterr().err
    assert cli(["run", str(shipped()["beans"]), "--out", str(folder / "out")]) == 2
    assert "expected a study for halftruth run, got one for halftruth real" in capsys.readouterr().err


def test_the_page_has_all_studies() -> None:
    page = PAGE.read_text("utf-8")
    for name in shipped():
        told = study(name, Path())
        assert list(means(page, name)) == [told.cells(line) for line in told.lines()]


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_the_page_says_what_comes_out(name: str, shared_data: Path) -> None:
    """Means of its first three seeds are those of the page's ten, of which they are a part, within the noise of three.

    6 standard errors of a mean of three, and half a unit of the last digit: not by chance where the page is right.
    What the study expects is so.
    """
    page, told = means(PAGE.read_text("utf-8"), name), study(name, shared_data)
    found = dict(measured(told, 3))
    printed = means("\n".join([name, "", *(line(cells, one) for cells, one in found.items())]), name)
    assert set(printed) == set(page)
    for cells, values in printed.items():
        for (value, _), (expected, error) in zip(values, page[cells], strict=True):
            assert abs(value - expected) <= 6 * (error + 0.0005) * math.sqrt(10 / 3), cells
    for statement in told.expected:
        assert sum(by_how_much(statement, found)) > 0, str(statement)


@pytest.mark.slow
def test_priors_help_where_vectors_are_long(shared_data: Path) -> None:
    """At epsilon = 2 both ridge and prior guess kept-out answers better than the de-biased minimiser on its ball."""
    told = study("embedding", shared_data)
    train, test = split(read(told, None), 0)
    ways = [way for way in told.ways if way.trust is Trust.LOCAL]
    plain, *priors = (guessed(way, Claim(Decimal(2)), 0, train, test).log_loss for way in ways)
    assert len(priors) == 2
    assert all(prior < plain for prior in priors)
