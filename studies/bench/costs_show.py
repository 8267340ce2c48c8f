"""What trust models cost a client and the server, as a table of text, CSV or JSON."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from statistics import median

from studies.files import write_atomically


@dataclass(frozen=True)
class Cost:
    """One exchange: bytes from (`up`) and to (`down`) one client, and seconds of the processor.

    `questions`: bytes to the client of public features, which are not in `down`. What a client hands to a shuffler is
    in `up`. Bytes are those of bundles, without what Flower and the network put around them.
    """

    trust: str
    clients: int
    dimension: int
    run: int
    exchanges: int
    up: int
    down: int
    questions: int
    client_seconds: float
    server_seconds: float
    shuffler_seconds: float


ENDINGS = (".csv", ".json")
HEADS = ("trust", "exchanges", "bytes up", "bytes down", "client, ms", "server, ms", "shuffler, ms")
WIDTHS = (11, 9, 10, 10, 24, 24, 22)


def table(costs: Sequence[Cost]) -> str:
    """Medians over runs with the least and the most, a block for each size."""
    lines = []
    for clients, dimension in dict.fromkeys((one.clients, one.dimension) for one in costs):
        here = [one for one in costs if (one.clients, one.dimension) == (clients, dimension)]
        features = sorted({one.questions // one.exchanges for one in here})
        lines += [f"{clients} clients, {dimension} numbers, runs: {max(one.run for one in here)}", _line(HEADS)]
        for trust in dict.fromkeys(one.trust for one in here):
            own = [one for one in here if one.trust == trust]
            bytes_ = (f"{median(getattr(one, name) for one in own):,.0f}" for name in ("up", "down"))
            times = (
                _spread([getattr(one, f"{who}_seconds") for one in own]) for who in ("client", "server", "shuffler")
            )
            lines.append(_line((trust, str(own[0].exchanges), *bytes_, *times)))
        lines += [f"features of all questions, beside that: {features[-1]:,} bytes a task", ""]
    return "\n".join(lines)


def write(costs: Sequence[Cost], path: Path) -> None:
    """All runs, a row or an object each. Raises ValueError for a name that ends otherwise than .csv or .json."""
    if path.suffix == ".json":
        text = json.dumps([asdict(one) for one in costs], indent=1) + "\n"
    elif path.suffix == ".csv":
        made = io.StringIO(newline="")
        rows = csv.DictWriter(made, [one.name for one in fields(Cost)], lineterminator="\n")
        rows.writeheader()
        rows.writerows(map(asdict, costs))
        text = made.getvalue()
    else:
        raise ValueError(f"expected a file that ends in .csv or .json, got {path.name!r}")
    write_atomically(path, partial(Path.write_text, data=text, encoding="utf-8"))


def _spread(seconds: Sequence[float]) -> str:
    low, high = 1000 * min(seconds), 1000 * max(seconds)
    middle = 1000 * median(seconds)
    return f"{_ms(middle)}" if low == high else f"{_ms(middle)} ({_ms(low)}-{_ms(high)})"


def _ms(value: float) -> str:
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _line(cells: Sequence[str]) -> str:
    (first, width), *rest = zip(cells, WIDTHS, strict=True)
    return f"{first:{width}}" + "".join(f" {cell:>{width}}" for cell, width in rest)
