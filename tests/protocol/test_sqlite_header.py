"""A SQLite file's header, read without SQLite."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from protocol.sqlite_header import application_id


@pytest.mark.parametrize("number", [0, 1, 0x48544355])
def test_the_id_is_the_one_that_sqlite_wrote(tmp_path: Path, number: int) -> None:
    path = tmp_path / "some.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute(f"PRAGMA application_id = {number}")
    assert application_id(path) == number


def test_other_files_have_none(tmp_path: Path) -> None:
    for name, content in {"empty": b"", "short": b"SQLite format 3\0" + bytes(55), "text": b"labeler," * 20}.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert application_id(path) is None
    with pytest.raises(OSError, match="missing"):
        application_id(tmp_path / "missing")
