"""A file larger than memory streams: what is kept is 8 bytes a record and column, and each different name once."""

import gzip
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.sources.loading import read_table
from client.sources.numbers import numbers
from client.sources.reading import SourceError, read_records

FILLER = "so it goes " * 140  # 1.5 kB, as answers of language models are


def texts(count: int) -> Iterator[str]:
    """Preferences between long texts, all different: 4.6 kB a line."""
    for row in range(count):
        record = {"labeler": f"r{row % 50}", "prompt": f"{row} {FILLER}", "chosen": f"a {row} {FILLER}", "note": FILLER}
        yield json.dumps(record | {"rejected": f"b {row} {FILLER}"}) + "\n"


def votes(count: int) -> Iterator[str]:
    """Comparisons of few items with a long note that nobody asks for: 1.6 kB a line."""
    yield "labeler,item_a,item_b,winner,note\n"
    for row in range(count):
        yield f"r{row % 50},x{row % 7},y{row % 11},item_a,{FILLER}\n"


def peak(path: Path) -> int:
    """The most bytes that were in use while a table was read."""
    read_table(path, False)  # what is imported or made once
    tracemalloc.start()
    try:
        read_table(path, False)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("packed", [False, True])
def test_memory_grows_with_rows_and_names_and_not_with_texts(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "votes"
    for lines, count, most in ((votes, 4000, 650), (texts, 1500, 2600)):
        raw = "".join(lines(count)).encode()
        path.write_bytes(gzip.compress(raw, 1) if packed else raw)
        assert len(raw) > 5_000_000
        assert peak(path) < 600_000 + most * count  # bytes a row; most of them are names of labels


def test_a_column_of_numbers_takes_eight_bytes_a_record(tmp_path: Path) -> None:
    path = tmp_path / "losses"
    path.write_text("x,note\n" + "".join(f"{row}.5,{FILLER}\n" for row in range(4000)), encoding="utf-8")
    records = read_records(path)
    tracemalloc.start()
    try:
        found = numbers(records, "x")
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()
    assert found[-1] == 3999.5


def test_errors_far_down_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "votes"
    path.write_text("".join(votes(3000)) + f'\n"a\nb",x,y,up,{FILLER}\n', encoding="utf-8")
    with pytest.raises(SourceError, match=r"line 3003, field winner: .* got 'up'"):
        read_table(path, False)
    path.write_text("".join(texts(500)) + '\n{"labeler": 1}\n', encoding="utf-8")
    with pytest.raises(SourceError, match="line 502: expected the key"):
        read_table(path, False)


def test_a_file_that_changes_while_it_is_read_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("labeler,item_a,item_b,winner\nr,x,y,x\n", encoding="utf-8")
    records = read_records(path)
    path.write_text("labeler,item_b,item_a,winner\nr,x,z,x\nr,x,y,x\n", encoding="utf-8")
    with pytest.raises(SourceError, match="expected the file as it was a moment ago"):
        records.column("winner")


@pytest.mark.slow
def test_hundreds_of_megabytes_in_a_fraction_of_it(tmp_path: Path) -> None:
    """300 MB of preferences between texts; imports take some 120 MB of what is counted."""
    path = tmp_path / "votes.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(texts(65_000))
    assert path.stat().st_size > 290_000_000
    code = (
        "import resource, sys; from pathlib import Path; from client.sources.loading import read_table;"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "table = read_table(Path(sys.argv[1]), False);"
        "print(len(table.pairs), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    rows, kilobytes = map(int, done.stdout.split())
    assert rows == 65_000
    assert kilobytes < 200_000
