"""What a server's process leaves on its disk."""

import os
from pathlib import Path

import pytest

from server.delivery import TRANSCRIPT_FILE, read_transcript, transcript


@pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX")
def test_a_transcript_is_its_owners_alone(tmp_path: Path) -> None:
    record = transcript(tmp_path)
    record(b"one")
    record(b"")
    assert list(read_transcript(tmp_path)) == [b"one", b""]
    assert (tmp_path / TRANSCRIPT_FILE).stat().st_mode & 0o777 == 0o600
