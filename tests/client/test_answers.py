"""Answers one by one: whatever order of answering, undoing, releasing and starting again, they are what a list says."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.answers import FIRST, KINDS, SECOND, SKIP, TIE, Answers, AnswersUnusable, Frozen, held

PAIRS = st.sampled_from(["p", "q", "r"])
STEPS = st.one_of(
    st.tuples(st.just("put"), PAIRS, st.sampled_from(KINDS)),
    st.tuples(st.sampled_from(["undo", "release", "again"])),
)


class Plain:
    """The same in the plainest way: a history of answers, and where in it the last release was."""

    def __init__(self) -> None:
        self.history: list[tuple[str, str]] = []
        self.frozen = 0

    def now(self, until: int | None = None) -> dict[str, str]:
        return dict(self.history[:until])

    def do(self, what: str, *words: str) -> bool:
        """Whether it may be done."""
        if what == "put":
            if self.now(self.frozen).get(words[0], SKIP) != SKIP:
                return False
            self.history.append((words[0], words[1]))
        elif what == "undo":
            del self.history[max(self.frozen, len(self.history) - 1) :]
        elif what == "release":
            self.frozen = len(self.history)
        return True


@given(st.lists(STEPS, max_size=14))
def test_any_sequence_is_that_of_a_plain_list(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    path, plain = tmp_path_factory.mktemp("answers") / "answers.json", Plain()
    answers = Answers(path, "me")
    for what, *words in steps:
        allowed = plain.do(what, *words)
        if what == "put" and not allowed:
            with pytest.raises(Frozen):
                answers.put(*words)
        elif what == "put":
            answers.put(*words)
        elif what == "undo":
            answers.undo()
        elif what == "release":
            answers.release()
        else:
            answers = Answers(path, "me")
        assert answers.now == plain.now()
        assert answers.released == {key: kind for key, kind in plain.now(plain.frozen).items() if kind != SKIP}
        assert answers.latest == (plain.history[-1][0] if len(plain.history) > plain.frozen else None)


def test_what_was_taken_back_stands_nowhere(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    answers = Answers(path, "me")
    answers.put("kept", FIRST)
    before = path.read_bytes()
    answers.put("gone", SECOND)
    assert b"gone" in path.read_bytes()
    assert answers.undo() == "gone"
    assert path.read_bytes() == before and [each.name for each in tmp_path.iterdir()] == ["answers.json"]
    assert "kept" not in repr(answers) and FIRST not in repr(answers)


def test_the_file_is_its_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    Answers(path, "me").put("p", TIE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with pytest.raises(AnswersUnusable, match="chmod 600"):
        Answers(path, "me")


def test_what_the_disk_does_not_take_is_not_answered(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    answers = Answers(folder / "answers.json", "me")
    answers.put("p", FIRST)
    (folder / "answers.json").unlink()
    folder.rmdir()
    for change in (lambda: answers.put("q", SECOND), answers.undo, answers.release):
        with pytest.raises(OSError, match=r"answers\.json"):
            change()
    assert answers.now == {"p": FIRST} and answers.latest == "p" and not answers.released


@pytest.mark.parametrize("kind", ["", "FIRST", "0"])
def test_another_answer_is_refused_and_not_repeated(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ValueError, match="something else"):
        Answers(tmp_path / "answers.json", "me").put("p", kind)


SOUND = {"format": "halftruth answers 1", "labeler": "me", "released": {"p": "first"}, "open": [["q", "second"]]}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "halftruth answers 2"}, "newer version"),
        ({"labeler": "you"}, "answers of me"),
        ({"released": [["p", "second"]]}, "a table of released"),
        ({"released": {"p": "won"}}, "pairs by name"),
        ({"open": {"q": "second"}}, "a list of others"),
        ({"open": [["q"]]}, "a pair and its answer"),
        ({"open": [[7, "second"]]}, "pairs by name"),
        ({"open": [["q", ["second"]]]}, "pairs by name"),
        ({"open": [["p", "second"]]}, "no other answer"),
        ({"more": 1}, "unknown key 'more'"),
    ],
)
def test_a_damaged_file_says_what_is_wrong_and_no_answer(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    with pytest.raises(AnswersUnusable, match=said) as refused:
        _written(tmp_path, json.dumps({**SOUND, **change}).encode())
    assert not any(word in str(refused.value) for word in ("won", "'second'", "'first'"))


@pytest.mark.parametrize("raw", [b"", b'{"open": [["q", "second"', b'["second"]', b"\xff\xfe", b'"second"'])
def test_what_is_no_file_of_answers_is_refused(tmp_path: Path, raw: bytes) -> None:
    with pytest.raises(AnswersUnusable, match=r"answers\.json: expected") as refused:
        _written(tmp_path, raw)
    assert "second" not in str(refused.value)


def test_one_process_has_a_folder(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(AnswersUnusable, match="another halftruth label"), held(tmp_path):
        pytest.fail("both have it")
    with held(tmp_path):
        pass


def _written(folder: Path, raw: bytes) -> Answers:
    path = folder / "answers.json"
    path.write_bytes(raw)
    path.chmod(0o600)
    return Answers(path, "me")
