"""`--transcript` of the commands that start a server: everything that it asks and receives is kept for an audit."""

import argparse
from pathlib import Path

TEXT = "keep all bytes that the server asks and receives in DIR, for halftruth audit transcript"


def add_transcript_argument(parser: argparse.ArgumentParser) -> None:
    """The flag."""
    parser.add_argument("--transcript", metavar="DIR", help=TEXT)


def transcript_of(args: argparse.Namespace, starts: bool = True) -> Path | None:
    """The folder that the flag names, made for its owner only where it is new; None without the flag.

    `starts`: whether the command starts the server. Raises StudyError for a folder that takes no files, and where the
    server was started by somebody else, whose flag it is.
    """
    from protocol import strict

    if args.transcript is None:
        return None
    if not starts:
        raise strict.StudyError(
            "--transcript: expected a server that is started here; of one that runs, whoever starts it says so: "
            "halftruth up or server --transcript DIR, or HALFTRUTH_TRANSCRIPT in the environment of your SuperLink"
        )
    return strict.make_folder(Path(args.transcript).expanduser(), "--transcript", 0o700).resolve()
