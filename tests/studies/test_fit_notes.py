"""What a fit says beside its ranking: what counted, what a labeler's labels cost together, what neighbours share."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.sources.columns import Wanted
from client.sources.loading import read_table
from studies.cli import main
from studies.fit.show import SHARED, places

ROOT = Path(__file__).parents[2]
ROWS = ("r1,x,y,x", "r1,y,z,y", "r1,x,z,z", "r1,x,y,y", "r2,x,y,y", "r2,y,z,z", "r3,z,x,tie", "r3,x,y,x", "r4,z,y,y")
LOCAL = ("--trust", "local", "--epsilon", "0.5")


def write(folder: Path, *rows: str, header: str = "labeler,item_a,item_b,winner") -> Path:
    path = folder / "votes.csv"
    path.write_text("\n".join((header, *rows, "")), encoding="utf-8")
    return path


def run(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    """The JSON that a fit prints."""
    assert main(["fit", *map(str, words), "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def notes(found: dict[str, Any]) -> str:
    return "\n".join(found["notes"])


def test_a_claim_for_labels_says_what_a_labeler_spends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels a labeler: 3, 2, 2 and 1."""
    votes, state = write(tmp_path, *ROWS), ("--state", tmp_path / "state")
    said = notes(run(capsys, votes, *LOCAL, *state))
    assert "m times epsilon together: epsilon = 1 at the median of 2 labels, epsilon = 1.5 at the most" in said
    said = notes(run(capsys, votes, "--trust", "central", "--epsilon", "1", *state))
    assert "epsilon = 2, delta = 0.0000371828182846 at the median of 2 labels, epsilon = 3, delta = 0.000" in said
    said = notes(run(capsys, votes, *LOCAL, "--unit", "labeler", "--cap", "2", *state))
    assert "m times" not in said
    assert "m times" not in notes(run(capsys, votes, "--trust", "clear"))
    assert main(["fit", str(votes), *map(str, (*LOCAL, *state))]) == 0
    assert "m times epsilon together" in capsys.readouterr().out


def test_rows_that_count_are_named_where_they_are_fewer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes, state = write(tmp_path, *ROWS), ("--state", tmp_path / "state")
    clear, local = run(capsys, votes, "--trust", "clear"), run(capsys, votes, *LOCAL, *state)
    assert "8 labels in 9 rows: a claim counts the first row of each label, a clear fit every row" in notes(clear)
    assert "8 labels in 9 rows: the first row of each label counts (a clear fit counts every row)" in notes(local)
    assert [sum(line["comparisons"] for line in found["ranking"]) for found in (clear, local)] == [18, 16]
    assert "labels in" not in notes(run(capsys, write(tmp_path, *ROWS[:3]), *LOCAL, *state))


def test_intervals_are_said_to_ignore_who_answered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes, state = write(tmp_path, *ROWS), ("--state", tmp_path / "state")
    assert "Intervals take all answers as independent" in notes(run(capsys, votes, "--trust", "clear"))
    assert "(up to 4 here)" in notes(run(capsys, votes, "--trust", "clear"))
    assert "Intervals" not in notes(run(capsys, votes, "--trust", "clear", "--bound", "0.01")), "there are none"
    alone = write(tmp_path, "x,y,x", "y,z,y", "x,z,z", header="item_a,item_b,winner")
    assert run(capsys, alone, *LOCAL, *state, "--labeler", "none")["notes"] == []


def test_neighbours_share_ties_that_are_public(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes, state = write(tmp_path, *ROWS), ("--state", tmp_path / "state")
    shared = "replace one label, both with the same ties, which are public"
    found = run(capsys, votes, *LOCAL, *state, "--ties", "drop", "--ties-public")
    assert found["neighbours"] == shared
    assert f"neighbours: {shared}; level of" in found["guarantee"]
    assert run(capsys, votes, *LOCAL, *state)["neighbours"] == "replace one label"
    addressed = ("--public-data", "--coins", "addressed", "--seed", "7")
    assert run(capsys, votes, *LOCAL, *addressed, "--ties", "drop", "--ties-public")["guarantee"].endswith(shared)


@pytest.mark.parametrize("way", [("--trust", "local"), ("--trust", "central"), ("--compare",)])
def test_without_labelers_there_is_nobody_but_a_label_to_protect(
    way: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fit", str(write(tmp_path, *ROWS)), *way, "--epsilon", "1", "--labeler", "none"]
    assert main([*words, "--unit", "labeler", "--cap", "1"]) == 2
    assert "--unit labeler: expected labelers, got --labeler none" in capsys.readouterr().err


def test_a_comparison_counts_a_label_once_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"r{row // 4},i{row % 4},i{(row + 1) % 4},item_{'ab'[row * 7 % 5 % 2]}" for row in range(24)]
    once = write(tmp_path, *rows)
    words = ("--compare", "--epsilon", "2")
    expected = run(capsys, once, *words)
    assert expected.pop("repeated_rows") == 0
    again = [",".join((*row.split(",")[:3], "item_a")) for row in rows]
    found = run(capsys, write(tmp_path, *rows, *again, *again), *words)
    assert found.pop("repeated_rows") == 48
    assert found == expected


def test_whoever_writes_the_winner_first_publishes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two files with other answers: the pairs that a server is told are the same."""
    winners = ("xy", "zy", "zx")
    paths = []
    for name, pairs in (("one", winners), ("other", [pair[::-1] for pair in winners])):
        (tmp_path / name).mkdir()
        paths.append(write(tmp_path / name, *(f"r,{won},{lost},{won}" for won, lost in pairs)))
    one, other = (read_table(path, False) for path in paths)
    assert one.problem.digest == other.problem.digest
    assert np.array_equal(one.values.reveal(), 1 - other.values.reveal())
    # And the ledger knows the labels again, whichever way a file writes them.
    words = (*LOCAL, "--state", tmp_path / "state")
    first, second = (run(capsys, path, *words) for path in paths)
    assert (first["charged_labels"], second["charged_labels"]) == (3, 0)
    assert first["ranking"] == second["ranking"]


def test_codes_are_declared_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, "r1,p,q,1", "r2,q,r,0", "r3,p,r,1", header="judge,home,away,result")
    assert main(["fit", str(votes), *LOCAL, "--state", str(tmp_path / "state")]) == 2
    said = capsys.readouterr().err
    assert all(text in said for text in ("field result", "got '1'", "--winner-coding", "coding", "1/0/-1"))
    assert not (tmp_path / "state").exists()
    words = ["fit", str(votes), *LOCAL, "--state", str(tmp_path / "state"), "--winner-coding", "1/0"]
    assert main(words) == 0
    assert "coding: 1 is home, 0 is away" in capsys.readouterr().err
    assert read_table(votes, False, Wanted(coding="1/0")).values.reveal().tolist() == [0, 1, 0]


def test_items_with_names_like_answers_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, write(tmp_path, "r1,a,b,a", "r2,b,c,b"), *LOCAL, "--state", tmp_path / "state")
    main(["fit", str(tmp_path / "votes.csv"), *LOCAL, "--state", str(tmp_path / "state")])
    assert "Read as items, not as answers: a, b\n" in capsys.readouterr().err


EVEN = ("r1,x,y,x", "r2,y,x,y", "r3,x,z,x", "r4,y,z,y")


def test_equal_scores_share_a_rank_and_the_next_counts_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, *EVEN)
    words = (votes, "--trust", "clear", "--bound", "2")
    assert [(line["rank"], line["item"]) for line in run(capsys, *words)["ranking"]] == [(1, "x"), (1, "y"), (3, "z")]
    assert main(["fit", *map(str, words)]) == 0
    assert SHARED in capsys.readouterr().out
    assert main(["fit", str(votes), "--compare", "--epsilon", "1"]) == 0
    said = capsys.readouterr().out
    assert "(3)" in said and said.count("(1)") >= 2 and "(2)" not in said.splitlines()[3] and SHARED in said
    assert main(["fit", str(write(tmp_path, *ROWS)), "--trust", "clear"]) == 0
    assert SHARED not in capsys.readouterr().out


def test_ranks_by_scores() -> None:
    assert places(np.array([0.5, 2.0, 0.5, 2.0 + 1e-12, -1.0, 0.5])).tolist() == [3, 1, 3, 1, 6, 3]
    assert places(np.array([3.0, 2.0, 1.0])).tolist() == [1, 2, 3]


def test_a_fit_on_the_ball_advises_a_prior_where_it_costs_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One answer drives RR-MLE to the ball, whatever it is; the same report has an inner estimate under a prior."""
    votes = write(tmp_path, "r1,x,y,x")
    words = (votes, "--trust", "local", "--epsilon", "0.1", "--state", tmp_path / "state")
    found = run(capsys, *words)
    assert found["hit_boundary"] and found["ranking"][0]["low"] is None
    assert any("--estimator rr-map" in warning for warning in found["warnings"])
    other = run(capsys, *words, "--estimator", "rr-map")
    assert not other["hit_boundary"] and other["charged_labels"] == 0 and other["ranking"][0]["low"] is not None
    clear = run(capsys, votes, "--trust", "clear", "--bound", "0.01")
    assert any(warning.endswith("spread them further") for warning in clear["warnings"])


def test_one_of_a_kind_is_no_plural(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, "r1,x,y,x", "r2,x,y,y", "r2,x,y,x")
    assert main(["fit", str(votes), *LOCAL, "--state", str(tmp_path / "state")]) == 0
    assert "3 rows, 2 labels of 2 labelers" in capsys.readouterr().out
    votes = write(tmp_path, "r1,x,y,x")
    assert main(["fit", str(votes), *LOCAL, "--state", str(tmp_path / "other")]) == 0
    said = capsys.readouterr().out
    assert "1 row, 1 label of 1 labeler" in said and "Charged: 1 label, epsilon" in said
    assert "at the median of 1 label, epsilon" in "".join(
        run(capsys, write(tmp_path, "r1,x,y,x", "r1,x,z,x", "r2,x,y,y", "r3,z,y,y"), *LOCAL, "--state", tmp_path / "s")[
            "notes"
        ]
    )


def test_a_state_folder_below_a_file_is_wrong_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    votes = write(tmp_path, *ROWS)
    assert main(["fit", str(votes), *LOCAL, "--state", str(votes / "sub" / "state")]) == 2
    assert f"--state: expected a folder, got the file {votes}: name another one" in capsys.readouterr().err


def test_a_reader_who_leaves_ends_a_fit_quietly(tmp_path: Path) -> None:
    """More than a pipe holds, to a reader who takes a byte: exit code 141, as of any command that nobody reads on."""
    votes = write(tmp_path, *(f"r{row},item-{row:03},item-{row + 1:03},item_a" for row in range(600)))
    words = ["fit", str(votes), "--trust", "clear", "--bound", "3", "--json"]
    script = f"import sys; from studies.cli import main; sys.exit(main({words!r}))"
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        said = process.stderr.read().decode()
    assert "Broken" not in said
    assert "Errno" not in said
    assert process.returncode == 141
