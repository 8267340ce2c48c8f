"""What a round over real processes spends: our compute, serialisation, signatures, and the rest, which is Flower's."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from studies.bench.own_round import Own, own
from studies.flower.measure import SETTINGS
from studies.flower.measured import Work, measure, study_of

COMPUTE, SERIALISATION, SIGNATURES, FLOWER = "compute", "serialisation", "signatures", "Flower"
WORK = Work(clients=4, rounds=12, records=20_000, dimension=20)
SHOWN = {"warm-careful": WORK, "warm": WORK, "stock": replace(WORK, rounds=4)}  # stock: some ten seconds a round


@dataclass(frozen=True)
class Parts:
    """One round of a federation: seconds of the wall, CPU seconds by program, and those of our code in it."""

    setting: str
    clients: int
    wall: float
    programs: Mapping[str, float]
    own: Own

    @property
    def whole(self) -> float:
        """CPU seconds of all processes."""
        return sum(self.programs.values())

    @property
    def spent(self) -> dict[str, float]:
        """CPU seconds by part; Flower's is all that is not ours: requests, processes and their imports."""
        mine = {COMPUTE: self.own.compute, SERIALISATION: self.own.serialisation, SIGNATURES: self.own.signatures}
        return mine | {FLOWER: max(self.whole - sum(mine.values()), 0.0)}


def parts(setting: str, work: Work) -> Parts:
    """Play rounds over processes of this machine, and again in this one. Raises RunFailed where a run fails."""
    found = measure(SETTINGS[setting], work)[0]
    with tempfile.TemporaryDirectory() as folder:
        loaded = study_of(work, Path(folder))
    ours = own(loaded, work.clients, SETTINGS[setting].careful)
    return Parts(setting, work.clients, float(found.wall.mean()), found.by_program(), ours)
