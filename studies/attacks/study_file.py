"""An attack study's file: an ordinary study, who lies in it, and how."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol import strict
from protocol.coins import Address, Stream, uniform, words
from protocol.decimals import decimal
from protocol.problem import Problem
from protocol.strict import StudyError
from protocol.study_file import parse_problem
from protocol.trust import Trust
from studies.load import Loaded, assemble, build, expect, tables

HOW = ("random", "flipped", "push", "collude", "extreme")
BY = ("labelers", "nodes")
RECORD_HOW = ("sign-flip", "gross-outlier", "small-shift", "collusion", "flipped-labels")
RECORD_BY = ("holders", "nodes")
_KEYS = ("how", "by", "target", "labels", "cap")
_ITEMS = 7  # round of the sequence (seed, PROBLEM, n = 0) that draws pairs of items


@dataclass(frozen=True)
class Liars:
    """Who lies, and how: see `studies.attacks.lies`, and `studies.attacks.record_lies` where records are asked for.

    `target`: the item, or the coordinate, that is pushed. A lying labeler has `labels` labels where an honest one has
    one, of which the server lets `cap` count (None: all).
    """

    how: str
    by: str
    target: int | None = None
    labels: int = 1
    cap: int | None = None

    @property
    def counted(self) -> int:
        """Labels of a lying labeler that count, where one of an honest labeler does."""
        return self.labels if self.cap is None else min(self.labels, self.cap)

    @property
    def name(self) -> str:
        """What tables and plots call them."""
        target = "" if self.target is None else f" {self.target}"
        labels = "" if self.labels == 1 else f", {self.labels} labels each"
        return f"{self.how}{target}, {self.by}{labels}" + ("" if self.cap is None else f", cap {self.cap}")


@dataclass(frozen=True, eq=False)
class AttackStudy:
    """An ordinary study, and for each of `liars` a curve over `fractions`: of labelers, or of `nodes` with consecutive
    rows."""

    loaded: Loaded
    liars: tuple[Liars, ...]
    fractions: tuple[float, ...]
    nodes: int


def load_attack_study(path: Path, overrides: Sequence[str] = ()) -> AttackStudy:
    """Read an attack study's file, with `table.key=value` overrides. docs/ATTACKS.md has the keys.

    Features "items" are pairs of items drawn alike, the same in every repetition.
    Raises StudyError naming the place, what was expected and what was got.
    """
    parts = ("study", "problem", "grid", "arm", "attack", "liars")
    content = tables(path, overrides)
    expect(content, path, "attack")
    top = strict.table(content, "top level", (*parts, "records"), parts)
    attack = strict.table(top["attack"], "attack", ("fractions", "nodes"), ("fractions", "nodes"))
    fractions = [_fraction(value) for value in strict.sequence(attack["fractions"], "[attack] fractions")]
    if fractions != sorted(fractions):
        raise StudyError("[attack] fractions: expected them in increasing order")
    loaded = _loaded({key: top[key] for key in top if key not in ("attack", "liars")}, path.parent)
    if any(arm.trust is Trust.DISTRIBUTED for arm in loaded.study.arms):
        raise StudyError(
            "[[arm]] trust: expected no sums under masks in an attack study: nobody sees what one member adds, so one "
            "that lies can make a sum whatever it likes"
        )
    problem, least = loaded.study.problem, min(loaded.study.grid.n)
    told = strict.sequence(top["liars"], "liars")
    return AttackStudy(
        loaded=loaded,
        liars=tuple(_liars(item, f"liars {index}", problem) for index, item in enumerate(told, start=1)),
        fractions=tuple(fractions),
        nodes=strict.integer(attack["nodes"], "[attack] nodes", 3, least),
    )


def _liars(content: Any, place: str, problem: Problem) -> Liars:
    if problem.kind == "records":
        return _holders(content, place, problem)
    top = strict.table(content, place, _KEYS, ("how", "by"))
    how, by = strict.text(top["how"], f"[{place}] how", HOW), strict.text(top["by"], f"[{place}] by", BY)
    if ("target" in top) != (how == "push"):
        raise StudyError(f'[{place}] target: expected what is pushed exactly for how = "push"')
    if how == "extreme" and by != "nodes":
        raise StudyError(f'[{place}] by: expected "nodes" for how = "extreme": a labeler sends no sums')
    if by == "nodes" and {"labels", "cap"} & set(top):
        raise StudyError(f'[{place}] labels, cap: expected them for by = "labelers" only')

    def whole(key: str, least: int, most: int) -> int | None:
        return strict.integer(top[key], f"[{place}] {key}", least, most) if key in top else None

    return Liars(
        how, by, whole("target", 0, problem.dimension - 1), whole("labels", 1, 1 << 20) or 1, whole("cap", 1, 1 << 20)
    )


def _holders(content: Any, place: str, problem: Problem) -> Liars:
    """Liars about records: nobody is counted, and nothing is pushed."""
    top = strict.table(content, place, ("how", "by"), ("how", "by"))
    how, by = strict.text(top["how"], f"[{place}] how", RECORD_HOW), strict.text(top["by"], f"[{place}] by", RECORD_BY)
    if how == "flipped-labels" and problem.model == "mean":
        raise StudyError(f'[{place}] how: expected records with labels for "flipped-labels", got those of a mean')
    return Liars(how, by)


def _loaded(content: dict[str, Any], folder: Path) -> Loaded:
    table = content["problem"]
    if not isinstance(table, Mapping) or table.get("features") != "items":
        loaded = build(content, folder)
        if loaded.study.problem.kind not in ("pairwise", "records"):
            raise StudyError('[problem] kind: expected "pairwise" or "records" in an attack study')
        return loaded
    public = {key: value for key, value in table.items() if key != "theta"}
    head = strict.table(content["study"], "study", ("name", "seed", "repetitions"), ("seed",))
    grid = strict.table(content["grid"], "grid", ("n", "epsilon", "delta"), ("n",))
    counts = [strict.integer(n, "[grid] n", 1, 1 << 24) for n in strict.sequence(grid["n"], "[grid] n")]
    seed = strict.integer(head["seed"], "[study] seed", 0, (1 << 128) - 1)
    items = strict.integer(public.get("dimension"), "[problem] dimension", 2, 1 << 20)
    problem = parse_problem(public, drawn_pairs(seed, items, max(counts)), "items")
    return assemble({**content, "problem": {}}, problem, table.get("theta"))


def drawn_pairs(seed: int, items: int, count: int) -> NDArray[np.int32]:
    """Pairs of two different items, each as likely as any other, shape (count, 2)."""
    coins = uniform(words(Address(seed, Stream.PROBLEM, round=_ITEMS), 0, 2 * count)).reshape(count, 2)
    first = (coins[:, 0] * items).astype(np.int32)
    step = 1 + (coins[:, 1] * (items - 1)).astype(np.int32)
    return np.stack([first, (first + step) % items], axis=1).astype(np.int32)


def _fraction(value: Any) -> float:
    if isinstance(value, str):
        raise StudyError(f"[attack] fractions: expected numbers, got {value!r}")
    try:
        share = decimal(value, "[attack] fractions")
    except ValueError as error:
        raise StudyError(str(error)) from None
    if not 0 <= share < Decimal(1):
        raise StudyError(f"[attack] fractions: expected numbers in [0, 1), got {value}")
    return float(share)
