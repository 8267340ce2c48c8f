"""The file of a real study, read strictly: which data and question, who is kept out, the ways that are compared."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from client.sources.ranking_labels import RankingAs
from client.table_file import COLUMN_KEYS, RANKING_KEYS, TableFile, parse_asked, parse_table_file
from protocol import strict
from protocol.decimals import delta, epsilon
from protocol.privacy import Unit
from protocol.strict import StudyError
from studies.load import expect, tables
from studies.real.study import Cells, Expected, RealStudy, Vectors
from studies.real.ways import Way, parse_way

TOML = Path(__file__).parents[1] / "toml"
PREFIX = "real-"  # of the studies that come along
DATA_KEYS = ("file", "features", "features_columns", "questions", *(key for key in COLUMN_KEYS if key != "row"))
RANKING_DATA_KEYS = (
    *("file", "features", "features_columns", "questions", "ranking", "ranking_as", "item_columns", "unranked"),
    *(key for key in RANKING_KEYS if key != "row"),
)
VECTOR_KEYS = ("file", "items", "values", "item_a", "item_b")
MEASURES = ("accuracy", "log-loss")
BY = ("labelers", "labels")
UNITS = {unit.label: unit for unit in (Unit.LABEL, Unit.LABELER)}
MOST = 1000  # seeds, caps, and one in so many


def shipped() -> dict[str, Path]:
    """The studies that come along, by name."""
    return {path.stem.removeprefix(PREFIX): path for path in sorted(TOML.glob(f"{PREFIX}*.toml"))}


def load_real_study(path: Path, folder: Path) -> RealStudy:
    """Read the file of a real study, whose data lies under `folder`. docs/REAL_STUDIES.md has the keys.

    Raises StudyError that names the file and the key.
    """
    content = tables(path)
    expect(content, path, "real")
    try:
        return parse(content, folder)
    except ValueError as error:
        raise StudyError(f"{path}: {error}") from None


def parse(content: Mapping[str, Any], folder: Path) -> RealStudy:
    """A real study from nested tables; its data lies under `folder`. Raises ValueError that names the key."""
    needed = ("study", "data", "claim", "way")
    top = strict.table(content, "top level", (*needed, "split", "vectors", "expect"), needed)
    head = strict.table(top["study"], "study", ("name", "seeds"), ("name", "seeds"))
    cut = strict.table(top.get("split", {}), "split", ("one_in", "by"))
    vectors = _vectors(top["vectors"], folder) if "vectors" in top else None
    data, asked = _data(top["data"], folder, vectors is not None)
    unit, caps = _protected(top["claim"])
    claim = top["claim"]
    levels = strict.sequence(claim["epsilon"], "[claim] epsilon")
    ways = [parse_way(item, f"way {at}", asked) for at, item in enumerate(strict.sequence(top["way"], "way"), start=1)]
    _check_names(ways)
    study = RealStudy(
        name=strict.text(head["name"], "[study] name"),
        seeds=strict.integer(head["seeds"], "[study] seeds", 2, MOST),
        data=data,
        vectors=vectors,
        asked=asked,
        one_in=strict.integer(cut.get("one_in", 5), "[split] one_in", 2, MOST),
        by_labeler=strict.text(cut.get("by", BY[0]), "[split] by", BY) == BY[0],
        levels=tuple(epsilon(level, "[claim] epsilon") for level in levels),
        delta=delta(claim.get("delta", "1e-5"), "[claim] delta"),
        unit=unit,
        caps=caps,
        ways=tuple(ways),
    )
    told = strict.sequence(top["expect"], "expect") if "expect" in top else []
    return replace(
        study, expected=tuple(_expected(item, f"expect {at}", study) for at, item in enumerate(told, start=1))
    )


def _data(content: Any, folder: Path, described: bool) -> tuple[TableFile, tuple[RankingAs | None, ...]]:
    """The file, and what is asked of each of its rankings: several questions are several tables."""
    ranking = isinstance(content, Mapping) and "ranking" in content
    keys = [*(RANKING_DATA_KEYS if ranking else DATA_KEYS)]
    needed = ["file"]
    if described:  # the pairs are those of [vectors]
        keys = ["file", "labeler", "winner", "coding", "questions"]
        needed = ["file", "labeler", "winner"]
    top = dict(strict.table(content, "data", keys, needed))
    asked: tuple[RankingAs | None, ...] = (None,)
    if ranking:
        words = strict.sequence(top.pop("ranking_as", ["top"]), "[data] ranking_as")
        asked = tuple(parse_asked(word, "[data] ranking_as") for word in words)
    return parse_table_file({**top, "public": True}, folder, "data"), asked


def _vectors(content: Any, folder: Path) -> Vectors:
    top = strict.table(content, "vectors", VECTOR_KEYS, VECTOR_KEYS)
    names = {
        key: tuple(strict.text(name, f"[vectors] {key}") for name in strict.sequence(top[key], f"[vectors] {key}"))
        for key in ("items", "item_a", "item_b")
    }
    if len({len(found) for found in names.values()}) != 1:
        raise StudyError("[vectors] items, item_a, item_b: expected as many names in each")
    file = folder / strict.text(top["file"], "[vectors] file")
    return Vectors(
        file, names["items"], strict.text(top["values"], "[vectors] values"), names["item_a"], names["item_b"]
    )


def _protected(content: Any) -> tuple[Unit, tuple[int, ...]]:
    top = strict.table(content, "claim", ("epsilon", "delta", "unit", "caps"), ("epsilon",))
    unit = UNITS[strict.text(top.get("unit", Unit.LABEL.label), "[claim] unit", UNITS)]
    if ("caps" in top) != (unit is Unit.LABELER):
        raise StudyError('[claim] caps: expected how many labels of a labeler count exactly for unit = "labeler"')
    if unit is Unit.LABEL:
        return unit, (0,)
    caps = strict.sequence(top["caps"], "[claim] caps")
    return unit, tuple(strict.integer(cap, "[claim] caps", 1, MOST) for cap in caps)


def _expected(content: Any, place: str, study: RealStudy) -> Expected:
    keys = ("measure", "better", "than")
    top = strict.table(content, place, keys, keys)
    known = {study.cells(line) for line in study.lines()}

    def cells(key: str) -> Cells:
        line = strict.table(top[key], f"{place} {key}", study.heads, study.heads)
        found = tuple(str(line[head]) for head in study.heads)
        if found not in known:
            raise StudyError(f"[{place}] {key}: expected the cells of a line of the table, got {', '.join(found)}")
        return found

    return Expected(strict.text(top["measure"], f"[{place}] measure", MEASURES), cells("better"), cells("than"))


def _check_names(ways: list[Way]) -> None:
    for at, way in enumerate(ways, start=1):
        if way.name in [other.name for other in ways[: at - 1]]:
            raise StudyError(f"[way {at}] name: expected different names, got {way.name!r} twice")
