"""A results folder as tables and plots want it: summaries by arm, n and privacy level."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import product

import numpy as np
import pyarrow as pa

from protocol.arms import Arm
from protocol.coins import Floats
from protocol.counting import counted
from protocol.decimals import canonical
from protocol.strict import StudyError
from protocol.trust import Trust
from studies import results
from studies.folder import Folder, open_study
from studies.load import Loaded
from studies.report.arms import Look, looks
from studies.report.wording import Wording
from studies.summary import Moments, Setting, Summary, by_group, paired, summarise
from studies.theory.sandwich import Theory, predict

MOST_DIMENSIONS = 64  # above, second moments over the fixed draw cost more than the curves are worth


@dataclass(frozen=True)
class Level:
    """A privacy level of the grid; no epsilon where no arm makes a claim."""

    epsilon: Decimal | None
    delta: Decimal | None

    def __str__(self) -> str:
        if self.epsilon is None:
            return "no claim"
        return f"ε = {canonical(self.epsilon)}" + ("" if self.delta is None else f", δ = {short(self.delta)}")


@dataclass(frozen=True, eq=False)
class View:
    """A study with its results."""

    loaded: Loaded
    table: pa.Table

    @classmethod
    def open(cls, folder: Folder) -> "View":
        """Read a results folder. Raises StudyError or ValueError where it is none, or where its run is not finished."""
        loaded = open_study(folder)
        if not folder.results.exists():
            raise StudyError(
                f"{folder.results}: expected the results of a finished run, found none ({len(folder.finished())} "
                f"finished units): go on with halftruth run STUDY --out {folder.path} --resume"
            )
        return cls(loaded, results.read(folder.results))

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The study's arms, in its order."""
        return self.loaded.study.arms

    @property
    def counts(self) -> tuple[int, ...]:
        """The grid's n, ascending."""
        return self.loaded.study.grid.n

    @property
    def levels(self) -> list[Level]:
        """All privacy levels of the grid, by delta and epsilon."""
        grid = self.loaded.study.grid
        return [Level(epsilon, delta) for delta, epsilon in product(grid.delta or (None,), grid.epsilon or (None,))]

    @cached_property
    def looks(self) -> dict[str, Look]:
        """Arm name -> look."""
        return looks(self.arms)

    @cached_property
    def summaries(self) -> dict[tuple[Setting, str], Summary]:
        """Summaries of the true L2 error by setting and arm."""
        found = summarise(self.table, "error_l2", self.loaded.theta)
        return {(summary.setting, summary.arm): summary for summary in found}

    @cached_property
    def errors(self) -> dict[tuple[Setting, str], Floats]:
        """The true L2 errors of all repetitions by setting and arm."""
        return by_group(self.table, "error_l2")

    def setting(self, arm: Arm, n: int, level: Level) -> Setting:
        """Where an arm's results for a level are: an arm without a claim has one row of results for all levels."""
        if arm.trust in (None, Trust.CLEAR) or level.epsilon is None:
            return Setting(n, None, None)
        return Setting(n, float(level.epsilon), None if level.delta is None else float(level.delta))

    def at(self, arm: Arm, n: int, level: Level) -> Summary | None:
        """The summary of an arm at a level."""
        return self.summaries.get((self.setting(arm, n, level), arm.name))

    @cached_property
    def _gaps(self) -> dict[tuple[Setting, str, str], Moments]:
        return {(one.setting, one.left, one.right): one.moments for one in paired(self.table)}

    def gap(self, arm: Arm, other: Arm, n: int, level: Level) -> Moments | None:
        """The paired difference arm - other of the true L2 error, for two arms of one trust model."""
        setting = self.setting(arm, n, level)
        if (found := self._gaps.get((setting, arm.name, other.name))) is not None:
            return found
        found = self._gaps.get((setting, other.name, arm.name))
        return None if found is None else found.reversed()

    def sections(self) -> Iterator[tuple[Trust | None, list[Arm]]]:
        """Arms by trust model, in a fixed order, without the empty ones."""
        for trust in (Trust.CLEAR, Trust.LOCAL, Trust.CENTRAL, Trust.DISTRIBUTED, Trust.SHUFFLED, None):
            arms = [arm for arm in self.arms if arm.trust == trust]
            if arms:
                yield trust, arms

    def zero(self) -> float:
        """The error of the answer 0: the norm of the truth."""
        return float(np.sqrt((self.loaded.theta**2).sum()))

    @cached_property
    def theory(self) -> Theory:
        """Predictions at the truth."""
        study = self.loaded.study
        return Theory(study.problem, self.loaded.theta, study.seed)

    @property
    def has_theory(self) -> bool:
        """Whether second moments over the fixed draw are worth what they cost."""
        return self.loaded.study.problem.reduced_dimension <= MOST_DIMENSIONS

    def predicted(self, arm: Arm, n: int, level: Level) -> float | None:
        """The predicted root mean square error; None where theory has no formula."""
        if not self.has_theory:
            return None
        try:
            return predict(self.theory, arm, n, level.epsilon, level.delta)
        except np.linalg.LinAlgError:  # features do not span the space: no finite error
            return None

    def title(self, level: Level) -> str:
        """A level without its delta where the grid has one only."""
        return str(replace(level, delta=None) if len(self.loaded.study.grid.delta) < 2 else level)

    @property
    def wording(self) -> Wording:
        """What things are called in this study."""
        return Wording.of(self.loaded.study)

    def repetitions(self) -> str:
        """How many repetitions there are, in words."""
        return counted(self.loaded.study.repetitions, "repetition")

    def describe(self) -> str:
        """The study in one line, for captions."""
        study = self.loaded.study
        law = {"gaussian": "Gaussian features", "sphere": "features on the sphere"}
        features = law.get(study.problem.features, "given features")
        if study.records is not None:
            features = f"{self.wording.rows} of the law {study.records.features.describe}"
        parts = [features, counted(study.problem.dimension, "dimension")]
        if len(study.grid.delta) == 1:
            parts.append(f"δ = {short(study.grid.delta[0])} for Gaussian noise")
        return f"Study {study.name}: {', '.join(parts)}"


def short(value: Decimal) -> str:
    """A small probability as people write it.

    >>> short(Decimal("0.00001")), short(Decimal("0.001"))
    ('1e-5', '1e-3')
    """
    digits, exponent = f"{value:e}".lower().split("e")
    return f"{canonical(Decimal(digits))}e{int(exponent)}"
