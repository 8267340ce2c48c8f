"""`halftruth data check --features`: whether every item is described."""

from pathlib import Path
from typing import Any

from studies.cli import parsed
from studies.data.look import look

HEAD = "labeler,item_a,item_b,winner\n"


def checked(path: Path, *flags: str) -> dict[str, Any]:
    return look(parsed(["data", "check", str(path), *flags])).as_json()


def of(folder: Path, text: str, *flags: str) -> dict[str, Any]:
    path = folder / "votes"
    path.write_text(text, encoding="utf-8")
    return checked(path, *flags)


def found(report: dict[str, Any]) -> dict[str, tuple[int, list[int]]]:
    return {finding["code"]: (finding["count"], finding["lines"]) for finding in report["findings"]}


def test_features_of_every_item(tmp_path: Path) -> None:
    described = tmp_path / "features.csv"
    flags = ("--features", str(described))
    described.write_text("item,size\nx,1\nq,2\np,3\n", encoding="utf-8")
    report = of(tmp_path, HEAD + "r,x,y,x\nr,x,z,z\nr,y,w,y\n", *flags)
    assert not report["usable"] and found(report)["no-features"] == (3, [2, 3, 4])
    examples = {finding["code"]: finding["examples"] for finding in report["findings"]}
    assert examples["no-features"] == ["y", "z", "w"] and examples["features-unused"] == ["q", "p"]
    assert (report["counts"]["features"], report["counts"]["items described"]) == (1, 3)
    ranked = of(tmp_path, "judge,x,y,q\nj,1,2,3\nj,2,1,3\n", "--ranking", "wide", *flags)
    assert found(ranked)["no-features"] == (1, [2]) and found(ranked)["features-unused"] == (1, [])
    described.write_text("item,size\nx,1\ny,\n", encoding="utf-8")
    report = of(tmp_path, HEAD + "r,x,y,x\n", *flags)
    assert not report["usable"] and report["counts"]["rows"] == 1
    (said,) = (finding["examples"] for finding in report["findings"] if finding["code"] == "no-features-file")
    assert "item 'y', column size: expected a finite number, got an empty cell" in said[0]
    described.write_text("item,size\nx,1\ny,2\n", encoding="utf-8")
    assert of(tmp_path, HEAD + "r,x,y,x\n", *flags)["usable"]


def test_features_of_answers_to_prompts(tmp_path: Path) -> None:
    """One answer under two prompts is two items: each has to be described."""
    described = tmp_path / "features.csv"
    described.write_text("answer,prompt,size\nyes,a?,1\nno,a?,2\nyes,b?,3\n", encoding="utf-8")
    text = "labeler,prompt,chosen,rejected\nr,a?,yes,no\nr,b?,no,yes\n"
    report = of(tmp_path, text, "--features", str(described))
    assert found(report)["no-features"] == (1, [3])
