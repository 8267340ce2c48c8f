"""`python -m studies.bench.page FOLDER PAGE`: writes the tables of recorded runs into docs/BENCHMARKS.md.

FOLDER holds what `halftruth bench --out FOLDER/recorded.json`, `--scaling --out FOLDER` and `--round --out FOLDER`
wrote. Each table stands between two comments that name it, with its picture, in a folder beside the page.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from protocol.strict import StudyError
from studies.bench.figures import FIGURES
from studies.bench.growth import Point
from studies.bench.growth_show import COLUMNS as SLOPES
from studies.bench.growth_show import TITLE as GROWTH
from studies.bench.growth_show import cells as slope_cells
from studies.bench.machine import told
from studies.bench.own_round import Own
from studies.bench.parts import Parts
from studies.bench.parts_show import COLUMNS as PARTS
from studies.bench.parts_show import TITLE as ROUND
from studies.bench.parts_show import cells as parts_cells
from studies.bench.row import parse
from studies.bench.show import COLUMNS, lines
from studies.files import write_text

RECORDED = "recorded.json"


def tables(folder: Path) -> dict[str, str]:
    """Markdown by name, of the recorded runs that there are: figures, scaling, round."""
    makers = {"figures": (RECORDED, _figures), "scaling": ("scaling.json", _scaling), "round": ("round.json", _round)}
    return {name: make(folder / file) for name, (file, make) in makers.items() if (folder / file).exists()}


def filled(page: str, found: dict[str, str]) -> str:
    """A page with each table between `<!-- NAME -->` and `<!-- end of NAME -->`.

    >>> filled("a\\n<!-- x -->\\nold\\n<!-- end of x -->\\nb", {"x": "new"})
    'a\\n<!-- x -->\\nnew\\n<!-- end of x -->\\nb'
    """
    for name, text in found.items():
        before, begin, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"\n<!-- end of {name} -->")
        if not end:
            raise StudyError(
                f"expected a page with the comments <!-- {name} --> and <!-- end of {name} -->, found none"
            )
        page = before + begin + text + end + after
    return page


def _figures(path: Path) -> str:
    rows = parse(path)
    names = [name for name in FIGURES if any(row.figure == name for row in rows)]
    cells = [line for name in names for line in lines(FIGURES[name], [row for row in rows if row.figure == name])]
    legend = "\n".join(f"* `{name}`: {FIGURES[name].what}" for name in names)
    return f"{_machine(path)}\n\n{_markdown(COLUMNS, cells)}\n\n{legend}"


def _scaling(path: Path) -> str:
    points = [Point(one["axis"], one["line"], one["x"], one["seconds"]) for one in _objects(path)]
    return f"{_machine(path)}\n\n{_picture(path, GROWTH)}\n\n{_markdown(SLOPES, slope_cells(points))}"


def _round(path: Path) -> str:
    found = [
        Parts(one["setting"], one["clients"], one["wall"], one["programs"], Own(**one["own"])) for one in _objects(path)
    ]
    return f"{_machine(path)}\n\n{_picture(path, ROUND)}\n\n{_markdown(PARTS, [parts_cells(one) for one in found])}"


def _picture(path: Path, title: str) -> str:
    """The picture that was drawn beside a recorded run."""
    return f"![{title}]({path.parent.name}/{path.stem}.svg)"


def _machine(path: Path) -> str:
    first = _objects(path)[0]
    return f"`{first['command']}` on {told(first)}."


def _objects(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    return found


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    def line(cells: Sequence[object]) -> str:
        return f"| {' | '.join(str(cell) for cell in cells)} |"

    return "\n".join([line(columns), f"|{'---|' * len(columns)}", *map(line, rows)])


def main() -> int:
    """Fill the page: exit code 0."""
    parser = argparse.ArgumentParser(prog="python -m studies.bench.page", description=__doc__)
    parser.add_argument("folder", metavar="FOLDER", type=Path)
    parser.add_argument("page", metavar="PAGE", type=Path)
    args = parser.parse_args()
    write_text(args.page, filled(args.page.read_text("utf-8"), tables(args.folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
