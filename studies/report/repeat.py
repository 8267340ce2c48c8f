"""The command that repeats a study, and the file that it needs: the resolved study as TOML."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from studies.load import NUMBERS
from studies.report.view import View


def word(view: View) -> str:
    """A study's name as the name of a file."""
    return re.sub(r"[^\w.-]+", "-", view.loaded.study.name).strip(".-") or "study"


def command(view: View, record: Mapping[str, Any], path: str) -> str:
    """`halftruth run ...` as the last session had it, from a study file at `path`. No bit depends on its flags."""
    words = ["halftruth", "run", path, "--out", f"out/{word(view)}"]
    session = record["sessions"][-1] if record["sessions"] else {}
    if session.get("runtime", "in-process") != "in-process":
        words += ["--on", str(session["runtime"])]
    if session.get("clients", 1) != 1:
        words += ["--clients", str(session["clients"])]
    return shlex.join(words)


def study_file(resolved: Mapping[str, Any]) -> str:
    """The text of a study file that gives the same study: `halftruth run` on it asks for the same results.

    `resolved` as study.json has it. Features of a file are read from features.npy, which a results folder has.
    """
    problem = {key: value for key, value in resolved["problem"].items() if key != "features_sha256"}
    if resolved["problem"].get("features_sha256") is not None:
        problem["features"] = "features.npy"
    if "records" in resolved and problem["model"] == "mean":
        problem.pop("theta")  # it follows from the law
    tables = {**resolved, "problem": problem}
    return "\n".join(_lines(tables))


def _lines(tables: Mapping[str, Any]) -> Iterator[str]:
    for name, table in tables.items():
        for one in table if name == "arms" else [table]:
            yield "[[arm]]" if name == "arms" else f"[{name}]"
            for key, value in one.items():
                if value is not None and value != []:
                    yield f"{key} = {_value(key, value)}"
            yield ""


def _value(key: str, value: Any) -> str:
    """A value as TOML: numbers that results keep as text, so that no digit is lost, are numbers again."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_value(key, each) for each in value)}]"
    if isinstance(value, str) and key in NUMBERS and _is_number(value):
        return value
    return json.dumps(value)  # text, numbers and truth values are spelled alike


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
