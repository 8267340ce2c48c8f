"""Which calls a SuperLink has answered, read from what it prints when it says everything."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

LOUD = {"FLWR_LOG_LEVEL": "DEBUG"}  # for the SuperLink: without it routine calls are not printed
LINE = re.compile(r'(\S+)Z \w+ \[uvicorn\.access\] .*"POST (\S+) HTTP/[\d.]+" \d+$')


def calls_of(log: Path) -> Iterator[tuple[float, str]]:
    """When each call was answered, in seconds since 1970, and its path."""
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if found := LINE.match(line.rstrip()):
                yield datetime.fromisoformat(found[1] + "+00:00").timestamp(), found[2].removeprefix("/v1/")
