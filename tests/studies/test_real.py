"""Studies of real files: what is read, what is measured, and that docs/REAL_STUDIES.md says what comes out."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from client.sources.choice_table import ChoiceTable
from client.sources.loading import read_table
from client.sources.ranking_columns import RankingWanted
from client.sources.ranking_labels import RankingAs, read_ranking_table
from protocol.privacy import Unit
from protocol.trust import Trust
from studies.real import files
from studies.real.__main__ import main
from studies.real.evaluate import Claim, Way, guessed, log_loss, request_of, split
from studies.real.studies import RR_MAP, STUDIES, VECTORS

PAGE = Path(__file__).parents[2] / "docs" / "REAL_STUDIES.md"
QUICK = ("judges", "workers", "parties", "breadwheat", "beans")
NUMBER = re.compile(r"(\d\.\d{3}) ± (\d\.\d{3})")
Means = dict[tuple[str, ...], list[tuple[float, float]]]


def means(text: str, study: str) -> Means:
    """Means and standard errors of a study's table, by the cells that name a line."""
    part = re.split(r"(?m)^#* ?(?=[a-z]+$)", text)
    (table,) = (section for section in part if section.partition("\n")[0] == study)
    found: Means = {}
    for line in table.splitlines():
        if numbers := NUMBER.findall(line):
            cells = [cell.strip() for cell in line.strip("| ").split("|")]
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


def test_comparisons_of_a_ranking_share_its_level(shared_data: Path) -> None:
    table = files.triads(shared_data, "breadwheat", 3)
    way = Way("local", Trust.LOCAL, "rr-map", comparisons=3)
    epsilon = request_of(way, Claim("3"), table, 0).epsilon
    assert epsilon == 1
    assert request_of(way, Claim("3", Unit.LABELER, 3), table, 0).epsilon == 3


def test_every_answer_of_a_worker_finds_its_vector(shared_data: Path) -> None:
    table = files.embedded(shared_data)
    assert table.features is not None
    assert (table.pairs.shape, table.features.shape, len(table.labelers)) == ((8931, 2), (750, 384), 124)
    assert np.abs(np.linalg.norm(table.features, axis=1) - 1.0).max() < 1e-3  # float16
    with np.load(shared_data / files.VECTORS) as stored:
        key = table.items.index(f'["{stored["prompt"][7]}", "{stored["model"][7]}"]')
        assert (table.features[key] == stored["emb"][7]).all()


def test_the_same_people_are_kept_out_whatever_is_asked(shared_data: Path) -> None:
    top, three = (files.triads(shared_data, "beans", count) for count in (0, 3))
    assert isinstance(top, ChoiceTable)
    for seed in range(2):
        names = [{table.labelers[owner] for owner in split(table, seed)[1].owners} for table in (top, three)]
        assert names[0] == names[1]
        assert len(names[0]) == 168


def test_one_seed_has_no_standard_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["real", ".", "--only", "beans", "--seeds", "1"])
    with pytest.raises(SystemExit):
        main()
    assert "--seeds: expected at least 2" in capsys.readouterr().err


def test_the_page_has_all_studies() -> None:
    page = PAGE.read_text("utf-8")
    assert all(len(means(page, study)) > 9 for study in STUDIES)


@pytest.mark.slow
@pytest.mark.parametrize("study", QUICK)
def test_the_page_says_what_comes_out(study: str, shared_data: Path) -> None:
    """Means of its first three seeds are those of the page's ten, of which they are a part, within the noise of three.

    6 standard errors of a mean of three, and half a unit of the last digit: not by chance where the page is right.
    """
    page = means(PAGE.read_text("utf-8"), study)
    lines = list(STUDIES[study][1](shared_data, 3))
    printed = means("\n".join([study, "", *lines]), study)
    assert set(printed) == set(page)
    for cells, found in printed.items():
        for (value, _), (expected, error) in zip(found, page[cells], strict=True):
            assert abs(value - expected) <= 6 * (error + 0.0005) * math.sqrt(10 / 3), cells


@pytest.mark.slow
def test_priors_help_where_vectors_are_long(shared_data: Path) -> None:
    """At epsilon = 2 both ridge and prior guess kept-out answers better than the de-biased minimiser on its ball."""
    train, test = split(files.embedded(shared_data), 0)
    plain, *priors = (guessed(way, Claim("2"), 0, train, test).log_loss for way in VECTORS[1:])
    assert all(prior < plain for prior in priors)


@pytest.mark.slow
def test_one_answer_of_everybody_is_better_than_all_answers_of_everybody(shared_data: Path) -> None:
    """Voters' claims at epsilon = 1: locally one whole answer says more than shares of 15, mean over five seeds."""
    losses = []
    for cap in (1, 15):
        parts = [split(files.parties(shared_data), seed) for seed in range(5)]
        claim = Claim("1", Unit.LABELER, cap)
        losses.append(np.mean([guessed(RR_MAP, claim, seed, *part).log_loss for seed, part in enumerate(parts)]))
    assert losses[0] < losses[1]
