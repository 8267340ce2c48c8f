"""Files on several nodes whose answers are summed under masks: the command line's way, over real sessions."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from client.ledger_view import read_labelers
from client.node_file import read_node
from client.residues import noise_of
from client.rows import answerable
from client.secure.membership import read_pins
from client.sources.loading import read_table
from client.ties import settled, wins
from deploy.node_keys import ensure_key
from protocol.messages import Ties
from protocol.noise.terms import terms_of
from protocol.secure.messages import Stage
from protocol.terms import row_exponent
from protocol.trust import Trust
from server.listening import listen
from studies.cli import main
from studies.fit.request import Request
from studies.fit.task import policy_of, study_and_task
from studies.folder import Folder
from studies.in_process import carried
from studies.own_room import own_room
from studies.watch.look import FINISHED, Watch

Say = pytest.CaptureFixture[str]
LABELERS, NODES = 40, 3
SEED = ("--public-data", "--coins", "addressed", "--seed", "7")
WIDE = ("--ranking", "wide", "--labeler", "judge")
RANKINGS = "judge,x,y,z\n" + "".join(f"judge-{who:02},{'1,2,3' if who % 5 else '3,2,1'}\n" for who in range(LABELERS))


def votes() -> str:
    """Everybody compares all pairs of three items; nearly all like x best, and z least; some have ties."""
    lines = ["judge,model_a,model_b,winner"]
    for who in range(LABELERS):
        for one, other in (("x", "y"), ("z", "y"), ("x", "z")):
            best = min(one, other) if who % 10 else max(one, other)
            winner = "tie" if (who, one) == (3, "z") or who % 8 == 7 else "model_a" if best == one else "model_b"
            lines.append(f"judge-{who:02},{one},{other},{winner}")
    return "\n".join(lines) + "\n"


def split(folder: Path, *words: str, content: str = "", nodes: int = NODES) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "votes.csv").write_text(content or votes(), encoding="utf-8")
    out = folder / "split"
    command = ["data", "split", str(folder / "votes.csv"), "--nodes", str(nodes), "--trust", "distributed"]
    assert main([*command, "--out", str(out), *words]) == 0
    return out


def said(command: list[str], capsys: Say) -> dict[str, Any]:
    capsys.readouterr()
    code, said = main([*command, "--json"]), capsys.readouterr()
    assert code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def asking(out: Path, *words: str) -> list[str]:
    return ["federate", str(out / "server"), "--nodes", str(out), "--on", "in-process", *words]


def public_coins(out: Path) -> None:
    for file in out.glob("node-*/node.toml"):
        text = file.read_text("utf-8")
        file.write_text(text.replace('entropy = "os"', 'entropy = "addressed"\nseed = 7'), encoding="utf-8")


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        pytest.param(("--epsilon", "1"), (), marks=pytest.mark.slow),
        pytest.param(
            ("--epsilon", "1", "--ties", "half", "--survivors", "0.75", "--honest", "0.5"), (), marks=pytest.mark.slow
        ),
        pytest.param(("--epsilon", "1", "--ties", "drop", "--mechanism", "binomial"), (), marks=pytest.mark.slow),
        pytest.param(("--epsilon", "1", "--unit", "labeler", "--cap", "2"), (), marks=pytest.mark.slow),
        pytest.param(("--epsilon", "1", "--mechanism", "discrete-gaussian"), WIDE, marks=pytest.mark.slow),
        (("--epsilon", "1", "--unit", "labeler", "--cap", "1"), WIDE),
    ],
)
def test_the_ranking_of_the_file_bit_for_bit(
    tmp_path: Path, capsys: Say, claim: tuple[str, ...], source: tuple[str, ...]
) -> None:
    """Public data with addressed coins: every row adds the noise that it adds in one file, whoever has it."""
    unit = claim[2:6] if "--cap" in claim else ()
    content = RANKINGS if source else ""
    public = () if source else ("--ties-public",)
    out = split(tmp_path, "--public-data", *public, *unit, *source, content=content)
    public_coins(out)
    found = said(asking(out, *claim), capsys)
    fit = ["fit", str(tmp_path / "votes.csv"), "--trust", "distributed", *claim, *public, *source, *SEED]
    fitted, own = said(fit, capsys), {"notes", "state", "charged_labels"}
    assert {k: v for k, v in found.items() if k not in own} == {k: v for k, v in fitted.items() if k not in own}
    assert (found["trust"], found["claimed_epsilon"], found["claimed_delta"]) == ("distributed", 1.0, 1e-5)
    assert found["unit"] == ("labeler" if unit else "label")


def test_a_sum_is_opened_once_and_paid_once(tmp_path: Path, capsys: Say) -> None:
    """At epsilon = 8 the order of 36 of 40 is found; asked again, every stage has the answer that it had."""
    out = split(tmp_path, "--label-cap", "8")
    first = said(asking(out, "--epsilon", "8"), capsys)
    assert [line["item"] for line in first["ranking"]] == ["x", "y", "z"]
    assert (first["coins"], first["mechanism"]) == ("os", "skellam")
    counted_on = f"its noise counts on {27 * LABELERS // 10} of {3 * LABELERS} rows"
    assert counted_on in first["guarantee"]
    assert (first["least_rows"], first["honest_rows"]) == (3 * LABELERS, 27 * LABELERS // 10)
    assert said(asking(out, "--epsilon", "8"), capsys) == first
    totals = [one for number in range(NODES) for one in read_labelers(out / f"node-{number}" / "ledger.sqlite")]
    assert len(totals) == LABELERS and all(one.epsilon == 24 for one in totals)  # three labels each
    assert main(asking(out, "--epsilon", "8", "--honest", "0.8")) == 1, "other noise is another sum"
    assert "BUDGET_EXHAUSTED x 3" in capsys.readouterr().err


def test_one_holder_alone_pays_once_too(tmp_path: Path, capsys: Say) -> None:
    (tmp_path / "votes.csv").write_text(votes(), encoding="utf-8")
    fit = ["fit", str(tmp_path / "votes.csv"), "--trust", "distributed", "--epsilon", "2"]
    first, again = (said([*fit, "--state", str(tmp_path / "state")], capsys) for _ in range(2))
    assert (first["charged_labels"], again["charged_labels"]) == (3 * LABELERS, 0)
    assert first["ranking"] == again["ranking"] and first["claimed_delta"] == 1e-5
    other = said([*fit, "--state", str(tmp_path / "other")], capsys)
    assert other["ranking"] != first["ranking"], "coins of the system's"


def test_nodes_know_each_other_by_their_own_files(tmp_path: Path, capsys: Say) -> None:
    """Each has a key that its owner alone reads, and the same list; one whose list has another key takes no part."""
    out = split(tmp_path)
    lists = [(out / f"node-{number}" / "members").read_text("ascii") for number in range(NODES)]
    assert len(set(lists)) == 1 and [line.split()[2] for line in lists[0].splitlines()] == [
        "node-0",
        "node-1",
        "node-2",
    ]
    keys = {(out / f"node-{number}" / "node.key").read_bytes() for number in range(NODES)}
    assert len(keys) == NODES
    node = read_node(out / "node-1" / "node.toml")
    assert node.members is not None and len(read_pins(node.members).names) == NODES and node.least_members == 3
    assert (node.key or Path()).stat().st_mode & 0o077 == 0
    stranger, _ = ensure_key(tmp_path / "stranger.key")
    lines = lists[0].splitlines()
    (out / "node-2" / "members").write_text("\n".join([f"{stranger.line} somebody", *lines[1:]]) + "\n", "ascii")
    assert main(asking(out, "--epsilon", "1")) == 1
    assert "SESSION_REFUSED x 1 (client 2)" in capsys.readouterr().err
    files = [file.read_bytes() for file in (out / "server").iterdir()]
    assert not [raw for raw in files if b"judge-" in raw or b"PRIVATE" in raw]


def test_fewer_nodes_than_hide_one_are_not_made(tmp_path: Path, capsys: Say) -> None:
    with pytest.raises(AssertionError):
        split(tmp_path, nodes=2)
    assert "--nodes: expected 3 or more for --trust distributed, got 2" in capsys.readouterr().err
    assert not (tmp_path / "split").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--honest", "0.9", "--survivors", "0.8"], "--honest: expected at most the 0.8 of --survivors, got 0.9"),
        (["--survivors", "0"], "--survivors: expected a share of the rows, above 0 and at most 1, got 0"),
        (["--survivors", "nan"], "--survivors"),
        (["--ties", "randomized"], "only --trust local randomises answers one by one"),
        (["--estimator", "rr-mle"], "--estimator: there is a choice for --trust local only"),
        (["--mechanism", "subset-selection"], "--mechanism: expected one of skellam, discrete-gaussian, binomial"),
    ],
)
def test_wrong_use(tmp_path: Path, capsys: Say, words: list[str], told: str) -> None:
    out = split(tmp_path)
    capsys.readouterr()
    assert main(asking(out, "--epsilon", "1", *words)) == 2
    assert told in capsys.readouterr().err


def test_shares_of_rows_are_for_noise_in_shares(tmp_path: Path, capsys: Say) -> None:
    (tmp_path / "votes.csv").write_text(votes(), encoding="utf-8")
    fit = ["fit", str(tmp_path / "votes.csv"), "--trust", "central", "--epsilon", "1", "--survivors", "0.8"]
    assert main(fit) == 2
    assert "--survivors: only --trust distributed has noise in shares" in capsys.readouterr().err


@pytest.mark.parametrize("ties", [Ties.HALF, Ties.COIN])
def test_what_is_opened_is_the_sum_of_wins_and_the_rows_own_noise(tmp_path: Path, ties: Ties) -> None:
    """Ties count 1/2 to the last bit; addressed coins, which the test draws again."""
    (tmp_path / "votes.csv").write_text(votes(), encoding="utf-8")
    table = read_table(tmp_path / "votes.csv", public=True)
    table = replace(table, rows_held=np.arange(len(table.pairs)))
    claim = (Decimal(1), Decimal("1e-5"), "auto", "mle", tmp_path)
    request = Request(table.path, Trust.DISTRIBUTED, *claim, True, 7, ties)
    _, task = study_and_task(request, table)
    with own_room(table, policy_of(request, task), None, Trust.DISTRIBUTED, 7) as (node, _, server):
        heard = listen([task], lambda raws: carried(raws, [node]))[task]
        rows, terms = answerable(task, table), terms_of(task, task.menu[0])
        noise = noise_of(terms.shares, rows, node.draws(task, 0))
        y = wins(settled(task, table.labels(task, 0, rows).reveal(), node.draws(task, 0), rows))
        q = server.designs(table.problem, task.n, 0).get(row_exponent(task), terms.radius, rows, None, task.map).rows
    assert heard.collected.sums is not None and task.exponent is not None and (y == 0.5).any() == (ties is Ties.HALF)
    assert heard.collected.sums[0].tolist() == (y @ q + noise * 2.0**task.exponent).tolist()


def records(folder: Path, *words: str) -> list[str]:
    """What is asked of a file of 60 losses."""
    lines = "".join(f"c{place},{(7 * place) % 13 - 4}.25\n" for place in range(60))
    (folder / "losses.csv").write_text(f"claim,loss\n{lines}", encoding="utf-8")
    return [str(folder / "losses.csv"), "--columns", "loss", "--id", "claim", "--trust", "distributed", *words]


def test_records_of_nodes_are_those_of_the_file(tmp_path: Path, capsys: Say) -> None:
    out, asked = tmp_path / "split", ["--epsilon", "2", "--threshold", "8", "--honest", "0.5"]
    fitted = said(["records", *records(tmp_path, *asked, *SEED)], capsys)
    assert main(["data", "split", *records(tmp_path, *SEED), "--records", "--nodes", "3", "--out", str(out)]) == 0
    found = said(asking(out, *asked), capsys)
    assert found["estimate"] == fitted["estimate"]
    assert (found["claimed_epsilon"], found["claimed_delta"], found["unit"]) == (2.0, 1e-5, "record")
    assert main(asking(out, *asked, "--ties", "half")) == 2


def test_records_pay_once_at_home_and_on_nodes(tmp_path: Path, capsys: Say) -> None:
    words = ["--epsilon", "0.5", "--threshold", "8"]
    command = ["records", *records(tmp_path, *words), "--state", str(tmp_path / "state")]
    first, again = said(command, capsys), said(command, capsys)
    assert first["estimate"] == again["estimate"]
    assert (first["charged_rows"], again["charged_rows"]) == (60, 0)
    assert main(["data", "split", *records(tmp_path), "--records", "--nodes", "2", "--out", str(tmp_path / "two")]) == 2
    assert "expected 3 or more for --trust distributed" in capsys.readouterr().err


@pytest.mark.slow
def test_the_same_over_real_nodes(tmp_path: Path, capsys: Say) -> None:
    """A SuperLink and three SuperNodes; in this process their ledgers then say the same, for nothing."""
    out, seen = split(tmp_path, "--unit", "labeler", "--cap", "2"), tmp_path / "seen"
    words = ["--epsilon", "1", "--ties", "half", "--survivors", "0.8"]
    found = said(["federate", str(out / "server"), "--nodes", str(out), *words, "--out", str(seen)], capsys)
    told = Watch(Folder(seen)).look(time.time())
    assert (told.state, told.messages.rounds, told.messages.nodes) == (FINISHED, len(Stage), NODES)
    assert told.messages.all["answered"] == len(Stage) * NODES
    assert said(asking(out, *words), capsys) == found


@pytest.mark.slow
def test_members_are_who_the_register_says(tmp_path: Path, capsys: Say) -> None:
    """Over TLS, with a register: a node comes to the SuperLink with the key that the other members know."""
    out, state = split(tmp_path), str(tmp_path / "state")
    program = [sys.executable, "-m", "studies"]
    try:
        subprocess.run([*program, "up", "--nodes", str(out), "--tls", "--state", state], check=True)
        found = said(["federate", str(out / "server"), "--federation", state, "--epsilon", "1"], capsys)
    finally:
        subprocess.run([*program, "down", "--state", state], check=True)
    assert said(asking(out, "--epsilon", "1"), capsys) == found


@pytest.mark.slow
def test_a_sum_is_opened_without_those_who_drop_out(tmp_path: Path, capsys: Say) -> None:
    """Five nodes, of whom one has another list of members, and takes no part: its eight labelers are missing."""
    out = split(tmp_path, nodes=5)
    stranger, _ = ensure_key(tmp_path / "stranger.key")
    mine = out / "node-4" / "members"
    mine.write_text(f"{stranger.line} somebody\n" + "".join(mine.read_text("ascii").splitlines(True)[1:]), "ascii")
    words = ["--epsilon", "1", "--survivors", "0.8", "--mode", "live", "--quorum", "4"]
    found = said(["federate", str(out / "server"), "--nodes", str(out), *words], capsys)
    assert (found["trust"], found["claimed_epsilon"]) == ("distributed", 1.0)
    paid = [len(read_labelers(out / f"node-{number}" / "ledger.sqlite")) for number in range(5)]
    assert paid == [8, 8, 8, 8, 0]
