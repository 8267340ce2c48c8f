"""From answers to a node: nothing before a release, then exactly these labels, randomised at the border, and frozen."""

import csv
import io
import itertools
import math
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from client.answers import FIRST, SECOND, SKIP, TIE, AnswersUnusable, Frozen
from client.labeler import answer
from client.ledger_view import read_labelers
from client.node_file import build, read_node
from client.private_files import replace_private
from client.sources.table import Table
from client.table_file import TableFile
from protocol.codec import Signed, decode_reply, encode_task
from protocol.messages import Mechanism, Runs, Task, Ties
from protocol.privacy import Unit
from protocol.strict import StudyError
from protocol.trust import Trust
from studies.cli import main
from studies.label.session import OtherCounts, Session

Open = Callable[..., Session]


def give(session: Session, *kinds: str) -> None:
    """Answer the next pairs."""
    for kind in kinds:
        session.answer(session.state()["pair"]["key"], kind)


def release(session: Session) -> None:
    counts = session.state()["counts"]
    session.release(counts["answered"], counts["skipped"])


def votes(session: Session) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((session.folder / "votes.csv").read_text("utf-8"))))


def table_of(session: Session) -> Table:
    """What the node that a release wrote reads."""
    source = read_node(session.folder / "node.toml").source
    assert isinstance(source, TableFile)
    return source.read()


def test_before_a_release_nothing_is_there_that_a_node_could_read(session: Open) -> None:
    one = session("--as", "p1")
    give(one, FIRST, TIE)
    assert {path.name for path in one.folder.iterdir()} == {"answers.json"}
    assert one.state()["counts"] == {"all": 3, "answered": 2, "skipped": 0, "left": 1, "released": 0}


def test_a_release_is_exactly_the_answers_and_for_the_user_alone(session: Open) -> None:
    one = session("--as", "p1")
    give(one, SECOND, SKIP, TIE)
    release(one)
    assert [list(vote.values()) for vote in votes(one)] == [
        ["0", "p1", "coffee", "tea", "item_b", ""],
        ["4", "p1", "coffee", "tea", "tie", "in the evening"],
    ]
    files = {path.name: stat.S_IMODE(path.stat().st_mode) for path in one.folder.iterdir()}
    assert files == dict.fromkeys(("answers.json", "items.csv", "node.toml", "votes.csv"), 0o600)
    table, whole = table_of(one), one.pairs.table
    assert table.items == whole.items and table.rows_held.tolist() == [0, 4]
    assert table.pairs.tolist() == whole.pairs[[0, 4]].tolist() and table.values.reveal().tolist() == [1, 2]
    assert {name.hex() for name in table.identities} == set(one.answers.released)


def test_the_node_keeps_policy_connection_and_its_own_level(session: Open, tmp_path: Path) -> None:
    policy = """
[node]
key = "node.key"
[policy]
trust = ["local"]
label_cap = 1.5
max_epsilon = 1
server_key = "server.pub"
[policy.levels]
p1 = 0.5
"p \\u007f2" = 0.25
[superlink]
address = "there:8443"
root_certificates = "ca.crt"
"""
    one = session("--as", "p1", policy=policy)
    give(one, FIRST)
    release(one)
    assert one.state()["node"]["address"] == "there:8443"
    deadline = time.monotonic() + 60
    while one.joined.runs:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "node.key" in " ".join(one.state()["node"]["ended"])  # which is not there
    node, before = read_node(one.folder / "node.toml"), one.node
    assert node.policy == replace(before.policy, levels=(("p1", Decimal("0.5")),))
    assert (node.superlink, node.key, node.server_key) == (before.superlink, before.key, before.server_key)
    assert node.ledger == one.folder / "ledger.sqlite" and node.key == tmp_path / "node.key"


def test_the_node_keeps_its_shuffler_and_whom_it_sums_with(session: Open, tmp_path: Path) -> None:
    policy = """
[node]
key = "node.key"
[policy]
trust = ["shuffled", "distributed"]
label_cap = 1.5
members = "members.pub"
[shuffler]
address = "there:9443"
root_certificates = "ca.crt"
server_key = "sealing.key.pub"
"""
    one = session("--as", "p1", policy=policy)
    give(one, FIRST)
    release(one)
    node, before = read_node(one.folder / "node.toml"), one.node
    assert node.shuffler is not None and node.shuffler.server_key == tmp_path / "sealing.key.pub"
    assert (node.shuffler, node.members) == (before.shuffler, before.members)


@pytest.mark.parametrize("write", range(3))
def test_a_release_that_the_disk_did_not_take_is_done_again(
    session: Open, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    """Its answers are frozen, so the page has nothing left to release: looking at it is enough."""
    one, written = session("--as", "p1"), list[Path]()
    give(one, FIRST)

    def full(path: Path, raw: bytes) -> None:
        written.append(path)
        if len(written) > write:
            raise OSError(28, "No space left on device", str(path))
        replace_private(path, raw)

    monkeypatch.setattr("studies.label.release.replace_private", full)
    with pytest.raises(OSError, match="No space"):
        release(one)
    assert one.state()["counts"]["released"] == 1 and not (one.folder / "node.toml").exists()
    monkeypatch.undo()
    one.state()
    assert len(votes(one)) == 1 and read_node(one.folder / "node.toml")


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_write_to_is_refused(session: Open, tmp_path: Path, mode: int) -> None:
    """They could put another policy in place of the labeler's, between a release and the node's start."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine").chmod(mode)
    with pytest.raises(StudyError, match="only you write to"):
        session("--as", "p1", "--out", str(tmp_path / "mine"))
    (tmp_path / "mine").chmod(0o755)
    session("--as", "p1", "--out", str(tmp_path / "mine"))


def test_released_answers_are_frozen_and_undo_ends_there(session: Open) -> None:
    one = session("--as", "p1")
    give(one, FIRST, SKIP)
    release(one)
    first, skipped, last = (pair.key for pair in one.pairs.all)
    with pytest.raises(Frozen):
        one.answer(first, SECOND)
    assert not one.state()["undo"] and one.undo() is None
    one.answer(skipped, TIE)
    one.answer(last, SECOND)
    assert one.undo() == last and len(votes(one)) == 1
    release(one)
    assert [vote["winner"] for vote in votes(one)] == ["item_a", "tie"]


def test_who_saw_other_counts_releases_nothing(session: Open) -> None:
    one = session("--as", "p1")
    for counts in ((0, 0), (1, 0)):
        with pytest.raises(OtherCounts):
            one.release(*counts)
    give(one, FIRST, SKIP)
    with pytest.raises(OtherCounts):
        one.release(1, 0)
    assert not one.answers.released and not (one.folder / "votes.csv").exists()


def test_sessions_go_on_and_new_pairs_come(session: Open) -> None:
    pairs = "item_a,item_b\nx,y\ny,z\n"
    one = session(pairs=pairs)
    give(one, FIRST)
    assert session(pairs=pairs).state()["counts"]["left"] == 1
    release(session(pairs=pairs))
    two = session(pairs=f"{pairs}v,x\n")
    assert two.state()["counts"] == {"all": 3, "answered": 0, "skipped": 0, "left": 2, "released": 1}
    assert [list(row.values())[:4] for row in votes(two)] == [["0", "me", "x", "y"]]
    assert table_of(two).items == ("v", "x", "y", "z")
    with pytest.raises(AnswersUnusable, match="answers of you"):
        session("--as", "you", pairs=pairs)


def test_a_crash_after_freezing_is_made_good_at_the_next_start(session: Open) -> None:
    one = session("--as", "p1")
    give(one, FIRST)
    one.answers.release()  # and the power fails
    assert not (one.folder / "votes.csv").exists()
    assert len(votes(session("--as", "p1"))) == 1


def test_sides_do_not_stand_by_name(session: Open) -> None:
    """Of 60 pairs each stands one way or the other by its key; all one way: with probability 2^-59."""
    one = session(pairs="item_a,item_b\n" + "".join(f"a{i},b{i}\n" for i in range(60)))
    left = set()
    for pair in one.pairs.all:
        sides = one.state(pair.key)["pair"]["sides"]
        assert {side["answer"]: side["text"] for side in sides} == {FIRST: pair.texts[0], SECOND: pair.texts[1]}
        left.add(sides[0]["answer"])
    assert left == {FIRST, SECOND}


def test_answers_leave_through_the_border_alone(session: Open) -> None:
    """120 answers of one kind are kept as often as the channel says; the false-alarm rate is 1e-9."""
    items = [f"i{number:02}" for number in range(17)]
    pairs = list(itertools.islice(itertools.combinations(items, 2), 121))
    one = session(pairs="item_a,item_b\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    for number, pair in enumerate(one.pairs.all):
        one.answers.put(pair.key, SECOND if number else SKIP)
    release(one)
    node = build(read_node(one.folder / "node.toml"), {})
    problem = one.pairs.table.problem
    menu = (Mechanism("randomized-response", (("epsilon", Decimal(1)),)),)
    task = Task(bytes(32), Trust.LOCAL, Unit.LABEL, problem, menu, 121, Decimal(1), None, 0, 1, ties=Ties.COIN)
    raw = encode_task(replace(task, rows=Runs(((0, 1, 121),))))
    reply = answer(raw, node)
    (signed,) = [item for item in decode_reply(reply) if isinstance(item, Signed)]
    assert signed.report.rows is not None and signed.report.rows.numbers().tolist() == list(range(1, 121))
    kept = int(np.asarray(signed.report.payload.values).sum())
    assert 5e-10 < binom.cdf(kept, 120, math.e / (1 + math.e)) < 1 - 5e-10
    assert answer(raw, node) == reply
    (spent,) = read_labelers(one.folder / "ledger.sqlite")
    assert (spent.labels, spent.most) == (120, 1)
    told = one.state()["spent"]
    assert (told["answer"], told["of"], told["all"]) == ("1", "2", "120")
    assert told["asked"] == ["120 new answers, each sent as given with probability at most 0.73 (epsilon 1)"]


def test_what_is_released_later_is_for_later_questions(session: Open) -> None:
    """A question that was answered is answered the same for ever; another one gets old reports again, and new ones."""
    pairs = "item_a,item_b\nx,y\ny,z\nx,z\n"
    one = session(pairs=pairs)
    give(one, FIRST)
    release(one)
    first = sent(one, bytes(32))
    assert first.tolist() == sent(one, bytes(32)).tolist() and len(first) == 1
    give(one, SECOND, TIE)
    assert len(sent(one, b"2" * 32)) == 1
    release(one)
    assert len(sent(one, bytes(32))) == len(sent(one, b"2" * 32)) == 1
    later = sent(one, b"3" * 32)
    assert len(later) == 3 and later[0] == first[0]
    (spent,) = read_labelers(one.folder / "ledger.sqlite")
    assert (spent.labels, spent.most, spent.epsilon) == (3, 1, 3)


def sent(session: Session, study: bytes) -> NDArray[np.uint8]:
    """The reports of the node that a release wrote, to a task about all pairs at epsilon = 1."""
    n, level = len(session.pairs.all), Decimal(1)
    menu = (Mechanism("randomized-response", (("epsilon", level),)),)
    problem = session.pairs.table.problem
    task = Task(study, Trust.LOCAL, Unit.LABEL, problem, menu, n, level, None, 0, 1, ties=Ties.COIN)
    (signed,) = decode_reply(answer(encode_task(task), build(read_node(session.folder / "node.toml"), {})))
    return np.asarray(signed.report.payload.values).ravel()


def test_a_ranking_is_made_of_what_two_people_released(session: Open, tmp_path: Path, capsys: object) -> None:
    """From a split file to a ranking: both folders of answers are the nodes of a federation."""
    rows = [(who, a, b) for who in ("p0", "p1") for a, b in itertools.combinations(("ant", "bee", "cat"), 2)]
    file = tmp_path / "all.csv"
    file.write_text("labeler,item_a,item_b,winner\n" + "".join(f"{who},{a},{b},\n" for who, a, b in rows), "utf-8")
    nodes, mine = tmp_path / "nodes", tmp_path / "mine"
    assert main(["data", "split", str(file), "--nodes", "2", "--out", str(nodes), "--label-cap", "9"]) == 0
    for number in range(2):
        one = session("--config", str(nodes / f"node-{number}" / "node.toml"), "--out", str(mine / f"node-{number}"))
        give(one, *[FIRST] * 3)
        release(one)
    told = ("federate", str(nodes / "server"), "--nodes", str(mine), "--epsilon", "9", "--on", "in-process", "--json")
    assert main(told) == 0
