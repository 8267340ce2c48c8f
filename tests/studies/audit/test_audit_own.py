"""A user's own mechanism file, and the command: what is found, what does not fit, exit codes, JSON.

Seeds are fixed. Sound files are called broken with probability at most 1e-9 each.
"""

import json
import re
from pathlib import Path

import pytest

from protocol.strict import StudyError
from studies.audit.own import read_own
from studies.audit.run import Finding, audit
from studies.cli import main

PAGE = Path(__file__).parents[3] / "docs" / "AUDIT.md"
SOUND = """
EPSILON = "1"
INPUTS = [0, 1]

def randomise(value, generator):
    return value if generator.random() < 0.7310585786 else 1 - value
"""
LAPLACE = """
import math
EPSILON, INPUTS = 1, [0.0, 1.0]

def randomise(value, generator):
    u = generator.random() - 0.5
    return value - math.copysign(math.log(1 - 2 * abs(u)), u) {more}
"""


def found(folder: Path, text: str, draws: int = 8000) -> Finding:
    path = folder / "own.py"
    path.write_text(text, encoding="utf-8")
    return audit(read_own(path, None, None), draws, 1 - 1e-9, seed=3)


def test_the_example_of_the_page_is_broken_and_what_it_says_is_found(tmp_path: Path) -> None:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    one = found(tmp_path, text)
    assert one.broken and one.found > 1.2


def test_a_sound_mechanism_is_not_refuted(tmp_path: Path) -> None:
    one = found(tmp_path, SOUND, draws=20_000)
    assert not one.broken and 0.8 < one.found <= 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SOUND.replace("0.7310585786", "0.85"), "a coin that lies"),
        (SOUND.replace('"1"', '"0.5"'), "a level half as large"),
        (
            SOUND.replace("return", "if value and generator.random() < 0.01: raise ValueError\n    return"),
            "fails for one",
        ),
        (SOUND.replace("return value", 'return "x" * value + "a" if generator.random() < 0.4 else value'), "a length"),
        (LAPLACE.format(more="* 0.7"), "noise too small"),
        (LAPLACE.format(more="if value else 0.0"), "no noise at all for one input"),
        (LAPLACE.format(more="").replace("math.log", "0.3 * math.log"), "the scale of another"),
    ],
    ids=lambda text: None if "def " in text else text,
)
def test_a_lie_is_caught(tmp_path: Path, text: str, why: str) -> None:
    one = found(tmp_path, text, 20_000 if why == "fails for one" else 8000)  # one of a hundred: rarer takes more
    assert one.broken, why


def test_the_last_bits_of_doubles_tell(tmp_path: Path) -> None:
    """Noise is made by the textbook from a double: value 0 has last bits that value 1 + noise cannot have."""
    one = found(tmp_path, LAPLACE.format(more="").replace("math.log", "0.95 * math.log"), draws=30_000)
    assert one.broken and "last bits" in one.event


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("EPSILON = 1\n", "got no INPUTS, randomise"),
        (SOUND.replace('"1"', "-1"), "EPSILON"),
        (SOUND.replace("[0, 1]", "[0]"), "at least two inputs"),
        (
            SOUND.replace("return value if", "return value / 0 if True or"),
            r"ZeroDivisionError: division by zero \(line 6\)",
        ),
        (SOUND + "\nDELTA = 2\n", "DELTA"),
        (SOUND + "\n1 / 0\n", r"ZeroDivisionError.*\(line 8\)"),
        ("def", "invalid syntax"),
        (SOUND + "\ndef neighbours():\n    return [(1, 2, 3)]\n", "pairs of inputs"),
    ],
)
def test_a_file_that_does_not_fit_says_what(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "own.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StudyError, match=words):
        read_own(path, None, None)


def test_the_command_says_it_by_its_exit_code_and_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "own.py"
    path.write_text(SOUND, encoding="utf-8")
    words = ["audit", "--file", str(path), "--draws", "8000", "--confidence", "0.999999999"]
    assert main([*words, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["findings"][0]["hits"] > told["findings"][0]["others"] and not told["broken"]
    assert main([*words, "--epsilon", "0.25"]) == 1
    assert "broken: file/own.py" in capsys.readouterr().out
    assert main(["audit", "label/", "--epsilon", "0.1,4"]) == 0
    shown = capsys.readouterr().out
    assert "no claim was refuted" in shown and "Nothing here proves a claim" in shown


@pytest.mark.parametrize(
    "words",
    [
        ["nothing/"],
        ["--epsilon", "0"],
        ["--confidence", "1"],
        ["--delta", "1e-5"],
        ["label/", "--file", "own.py"],
        ["--file", "nowhere.py"],
    ],
)
def test_wrong_use_is_told(words: list[str]) -> None:
    assert main(["audit", *words]) == 2


def test_the_list_is_that_of_subjects(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--list"]) == 0
    assert "node/file" in capsys.readouterr().out.splitlines()
