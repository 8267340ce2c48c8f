"""What a federation from files leaves in a folder while it runs, for `halftruth watch`, and what came of it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from protocol import strict
from protocol.arms import Arm
from protocol.decimals import canonical
from protocol.strict import StudyError
from protocol.study import Study
from protocol.trust import Trust
from studies.files import write_text
from studies.folder import Folder

FEDERATION, RESULT = "federation.json", "result.json"
FORMAT = 1
IN_PROCESS, DEPLOYMENT = "in-process", "deployment"
OVER = "interrupted"


@dataclass(frozen=True)
class Progress:
    """A federation: of which `split`, who is asked how, and since when; seconds since 1970.

    `ended` None: it runs, or was killed. `failed` says why there is no estimate, "" where there is one. All is public.
    """

    split: str
    fingerprint: str
    arm: tuple[str, str, str]  # trust, mechanism, estimator
    epsilon: str | None
    delta: str | None
    nodes: int
    rows: int
    runtime: str
    began: float
    ended: float | None = None
    failed: str = ""
    format: int = FORMAT

    @classmethod
    def of(cls, study: Study, split: Path, nodes: int, rows: int, here: bool) -> "Progress":
        """That of a study of one arm and one cell, which begins now."""
        (arm,), grid = study.arms, study.grid
        epsilon, delta = (next((canonical(value) for value in values), None) for values in (grid.epsilon, grid.delta))
        runtime = IN_PROCESS if here else DEPLOYMENT
        ways = (arm.trust_name, arm.mechanism, arm.estimator)
        return cls(str(split), study.fingerprint.hex(), ways, epsilon, delta, nodes, rows, runtime, time.time())

    @property
    def arms(self) -> tuple[Arm, ...]:
        """Its arm."""
        trust, mechanism, estimator = self.arm
        return (Arm(Trust.parse(trust), mechanism, estimator),)


@dataclass(frozen=True)
class Kept:
    """The folder of a federation that runs; None keeps nothing."""

    out: Path | None

    def result(self, text: str) -> None:
        """Write what came of it, as `--json` prints it."""
        if self.out is not None:
            write_text(self.out / RESULT, text + "\n")


@contextmanager
def kept_in(out: Path | None, progress: Progress) -> Iterator[Kept]:
    """Keep that a federation began, and how it ended. Raises StudyError for a folder with something else in it."""
    if out is None:
        yield Kept(None)
        return
    _begin(out)
    _write(out, progress)
    try:
        yield Kept(out)
    except BaseException as error:
        words = " ".join(str(error).split()) if isinstance(error, Exception) else OVER
        _write(out, replace(progress, ended=time.time(), failed=words or type(error).__name__))
        raise
    _write(out, replace(progress, ended=time.time()))


def read_progress(folder: Path) -> Progress | None:
    """What a folder says of a federation; None where it says nothing of one. Raises StudyError for a damaged file."""
    path = folder / FEDERATION
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise StudyError(f"{path}: expected what is known of a federation, got another file: {error}") from None
    try:
        found = Progress(**content | {"arm": tuple(content["arm"])})
        if found.format != FORMAT or len(found.arms) != 1:
            raise ValueError
        return found
    except (TypeError, ValueError, KeyError):
        raise StudyError(f"{path}: expected a federation of format {FORMAT}, got something else") from None


def _begin(out: Path) -> None:
    """Make a folder ready; what an earlier federation left in it is gone."""
    strict.folder(out, "--out")
    if out.exists() and any(out.iterdir()) and not (out / FEDERATION).exists():
        raise StudyError(f"--out: expected a new or empty folder, or that of a federation, got {out}")
    strict.make_folder(out, "--out")
    for path in (out / RESULT, Folder(out).rounds, Folder(out).rounds_now):
        path.unlink(missing_ok=True)


def _write(out: Path, progress: Progress) -> None:
    write_text(out / FEDERATION, json.dumps(asdict(progress), indent=1) + "\n")
