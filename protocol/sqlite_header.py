"""What a SQLite file says of itself in its first bytes, before any library opens it."""

from pathlib import Path

MAGIC = b"SQLite format 3\0"
APPLICATION = slice(68, 72)  # the application id, big-endian


def application_id(path: Path) -> int | None:
    """The application id in a SQLite file's header, 0 where none was set; None for any other file.

    Raises OSError for a file that cannot be read.
    """
    with path.open("rb") as file:
        header = file.read(APPLICATION.stop)
    if not header.startswith(MAGIC) or len(header) < APPLICATION.stop:
        return None
    return int.from_bytes(header[APPLICATION], "big")
