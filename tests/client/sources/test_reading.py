"""Bytes of a file to columns of text: every container, and what is no usable file."""

import gzip
import json
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from client.sources import containers, text_formats
from client.sources.reading import EMPTY, SourceError, name_of, read_records

TEXT = "labeler,item_a,item_b,winner\nr1,x,y,x\nr2,y,z,\n"
GZIPPED = gzip.compress(TEXT.encode(), mtime=0)  # without the time: names of tests are the same in all processes
COLUMNS = [["r1", "r2"], ["x", "y"], ["y", "z"], ["x", None]]
NAMES = ("labeler", "item_a", "item_b", "winner")


def write(folder: Path, raw: bytes, name: str = "votes") -> Path:
    path = folder / name
    path.write_bytes(raw)
    return path


def columns(path: Path) -> list[list[str | None]]:
    records = read_records(path)
    assert records.names == NAMES
    return [records.column(name) for name in NAMES]


def parquet(folder: Path, **values: Any) -> Path:
    path = folder / "votes.csv"  # names say nothing
    pq.write_table(pa.table(values), path)
    return path


def test_every_container_holds_the_same(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    half = len(TEXT) // 2
    objects = [dict(zip(NAMES, row, strict=True)) for row in zip(*COLUMNS, strict=True)]
    contents = [
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace(",", "\t").encode(),
        TEXT.replace(",", ";").encode(),
        gzip.compress(TEXT.encode()),
        gzip.compress(TEXT[:half].encode()) + gzip.compress(TEXT[half:].encode()),
        zstandard.compress(TEXT.encode()),
        zstandard.compress(TEXT[:half].encode()) + zstandard.compress(TEXT[half:].encode()),
        "\n\n".join(map(json.dumps, objects)).encode(),
        gzip.compress("\r\n \r\n".join(map(json.dumps, objects)).encode()),
    ]
    for raw in contents:
        assert columns(write(tmp_path, raw)) == COLUMNS
    assert columns(parquet(tmp_path, **dict(zip(NAMES, COLUMNS, strict=True)))) == COLUMNS


def test_a_comma_in_a_tsv_and_a_tab_in_a_csv(tmp_path: Path) -> None:
    assert read_records(write(tmp_path, b"a,b\tc\td\nx,y\tz\tu\n")).column("a,b") == ["x,y"]
    assert read_records(write(tmp_path, b"a\tb,c,d\nx\ty,z,u\n")).column("a\tb") == ["x\ty"]


def test_lines_are_physical(tmp_path: Path) -> None:
    records = read_records(write(tmp_path, b'a,b\n\n"x\ny",1\n\n\nz,2'))
    assert [records.where(i).rpartition(" ")[2] for i in (0, 1)] == ["3", "7"]
    records = read_records(write(tmp_path, '\n{"a": "x\u2028y"}\n  \n{"a": 1}'.encode()))
    assert (list(records.lines), records.column("a")) == ([2, 4], ["x\u2028y", "1"])


def test_json_numbers_keep_their_digits(tmp_path: Path) -> None:
    raw = b'{"a": 9007199254740993}\n{"a": 1.0}\n{"a": true}\n{"a": null}\n{"a": "7"}\n{"a": ' + b"9" * 5000 + b"}"
    assert read_records(write(tmp_path, raw)).column("a") == [
        "9007199254740993",
        "1.0",
        "true",
        None,
        "7",
        name_of("9" * 5000),
    ]


def test_parquet_takes_text_whole_numbers_and_truths(tmp_path: Path) -> None:
    path = parquet(tmp_path, a=[1 << 60, None], b=[True, False], c=pa.array(["x", "y"]).dictionary_encode(), d=[0.5, 1])
    records = read_records(path)
    assert [records.column(name) for name in "abc"] == [[str(1 << 60), None], ["true", "false"], ["x", "y"]]
    assert records.where(1).endswith("row 2")
    with pytest.raises(SourceError, match="field d: expected text, whole numbers or true/false, got double"):
        records.column("d")


def test_parquet_of_other_kinds(tmp_path: Path) -> None:
    talk = [[{"role": "user", "content": "q"}, {"role": "assistant", "content": "good"}], None]
    when = [datetime(2026, 1, 2, 3, 4, 5), None]
    path = parquet(tmp_path, a=talk, b=when, c=[Decimal("1.50"), None], d=[b"x", b"y"], e=[[1], [2]], f=["", " "])
    records = read_records(path)
    said = '[{"content":"q","role":"user"},{"content":"good","role":"assistant"}]'
    assert [records.column(name) for name in "abc"] == [
        [said, None],
        ["2026-01-02 03:04:05", None],
        ["1.50", None],
    ]
    assert (records.column("f"), records.column("f", text=True)) == ([None, None], [EMPTY, EMPTY])
    for name, message in (("d", "expected text, .* got binary"), ("e", "row 1, field e: expected text or a number")):
        with pytest.raises(SourceError, match=message):
            records.column(name)
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_records(packed).column("a") == records.column("a")
    assert (read_records(packed).packed, len(read_records(packed))) == ("gzip", 2)


def test_lines_that_are_too_long_and_quotes_that_never_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "LONGEST_LINE", 100)
    monkeypatch.setattr(text_formats, "LONGEST_FIELD", 50)
    with pytest.raises(SourceError, match="line 2: expected lines of at most 100 bytes"):
        len(read_records(write(tmp_path, b"a,b\n" + b"x" * 200)))
    with pytest.raises(SourceError, match=r"line 2: expected comma-separated values, .*never closed"):
        len(read_records(write(tmp_path, b'a,b\n"x,y\n' + b"z,u\n" * 40)))
    with pytest.raises(SourceError, match="header: expected names of columns"):
        read_records(write(tmp_path, b"a" * 80 + b"\n"))


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (GZIPPED[:-9], "expected a whole gzip file"),
        (GZIPPED + b"rest", "expected a whole gzip file"),
        (b"\x28\xb5\x2f\xfdnot one", "expected a whole zst file"),
        (b"PAR1 but no more", "expected a whole Parquet file"),
        (b"a,b\nx\xff,y", "expected UTF-8"),
        (TEXT.encode("utf-16"), "expected UTF-8"),
        (b'[{"a": 1}]', "got a JSON array"),
        (b'{"a": 1}\n{"a": 2', "line 2: expected one JSON object"),
        (b'{"a": 1}\n[2]', "line 2: expected one JSON object, got a list"),
        (b'{"a": 1}\n\n{"b": NaN}', "line 3: expected one JSON object, got: NaN, which is not JSON"),
        (b'{"a": 1}\n{"a": [' + b"[" * 100_000, "line 2: expected one JSON object"),
        (b'a,b\n"x,y', "line 2: expected comma-separated values"),
        (b"a,b\nx,y\nz", "line 3: expected 2 fields, got 1"),
    ],
)
def test_what_is_no_usable_file(tmp_path: Path, raw: bytes, message: str) -> None:
    with pytest.raises(SourceError, match=message) as caught:
        len(read_records(write(tmp_path, raw)))
    assert str(tmp_path / "votes") in str(caught.value)


@pytest.mark.parametrize("cut", [1, 4, 100, 1000])
def test_a_compressed_file_that_ends_too_early_is_not_read_in_part(tmp_path: Path, cut: int) -> None:
    zstandard = pytest.importorskip("zstandard")
    text = "labeler,item_a,item_b,winner\n" + "".join(f"r{row},x{row % 97},y,tie\n" for row in range(12_000))
    for compress in (gzip.compress, zstandard.compress):
        raw = compress(text.encode())
        assert len(read_records(write(tmp_path, raw))) == 12_000
        for damaged in (raw[:-cut], raw + raw[:-cut]):
            with pytest.raises(SourceError, match="got a damaged one"):
                len(read_records(write(tmp_path, damaged)))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"b": 1, "c": 2}', "line 3: expected the key 'a', as in the lines before, got 'b', 'c'"),
        (b'{"a": ["x"]}', "line 3, field a: expected text or a number, got a list"),
        (b'{"a": {}}', "line 3, field a: expected text or a number, got a dict"),
        (b'{"a": "\\ud800"}', "line 3, field a: expected text or a number, got a str"),
    ],
)
def test_a_record_that_does_not_fit_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    records = read_records(write(tmp_path, b'{"a": 1}\n\n' + line))
    with pytest.raises(SourceError, match=message):
        records.column("a")


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="the standard library reads zst files")
def test_zst_without_its_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(containers, "import_module", nothing)
    with pytest.raises(SourceError, match=r"pip install 'halftruth\[zst\]'"):
        read_records(write(tmp_path, b"\x28\xb5\x2f\xfd"))


def test_printing_records_shows_no_content(tmp_path: Path) -> None:
    assert "r1" not in repr(read_records(write(tmp_path, TEXT.encode())))
