"""Which columns of a file of records hold what, as its holder says: nothing is guessed about numbers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from client.sources.numbers import Scales
from protocol.privacy import Unit
from protocol.problem import MODELS, RECORDS
from protocol.strict import StudyError

REFUSE, DROP, ZERO = "refuse", "drop-public", "zero"
MISSING = (REFUSE, DROP, ZERO)
INTERCEPT = "intercept"


@dataclass(frozen=True)
class RecordColumns:
    """Columns by name: features, the response of a model that has one, the holder and the stable id of each record.

    A feature that ends with * stands for all other columns that begin so, in the order of the file, each with its
    centre and scale: `within` a header.
    A row is a record, or with `unit` HOLDER all records of one holder. An `id` names a record in every file, so that
    it pays once for an answer. `row` names the column of global row numbers, the same for all records of a row.
    `missing` says what an empty cell does: "refuse" the file, "drop-public" its record (which records lack a value is
    then public), or count as "zero" after scaling, in features alone. `intercept` adds a feature that is 1.

    Raises StudyError for columns that do not fit together.
    """

    features: tuple[str, ...]
    model: str
    unit: Unit = Unit.RECORD
    response: str | None = None
    id: str | None = None
    holder: str | None = None
    row: str | None = None
    missing: str = REFUSE
    intercept: bool = False
    scales: Scales = field(default_factory=Scales)

    def __post_init__(self) -> None:
        if self.model not in MODELS[RECORDS]:
            raise StudyError(f"expected a model out of {', '.join(MODELS[RECORDS])}, got {self.model!r}")
        if not self.features or len(set(self.features)) < len(self.features):
            raise StudyError(f"expected at least one feature, each once, got {', '.join(self.features) or 'none'}")
        if (self.response is None) != (self.model == "mean"):
            raise StudyError(f"response: expected one for models that have one, got {self.response} for {self.model}")
        if self.response in self.features:
            raise StudyError(f"expected a response that is no feature, got {self.response!r} as both")
        if self.intercept and self.model == "mean":
            raise StudyError("expected no intercept of a mean")
        if self.unit not in (Unit.RECORD, Unit.HOLDER):
            raise StudyError(f"expected the unit record or holder, got {self.unit.label}")
        if self.unit is Unit.HOLDER and self.holder is None:
            raise StudyError("holder: expected a column of holders where a row is a holder with all its records")
        if self.missing not in MISSING:
            raise StudyError(f"expected what missing cells do out of {', '.join(MISSING)}, got {self.missing!r}")
        self._check_scales()

    def _check_scales(self) -> None:
        scaled = (*self.features, *((self.response,) if self.model == "linear" else ()))
        if unknown := self.scales.names - set(scaled):
            raise StudyError(f"expected centres and scales of numeric columns that are used, got {sorted(unknown)}")
        if any(not value.is_finite() for value in self.scales.centre.values()):
            raise StudyError("expected finite centres")
        if any(not (value.is_finite() and value > 0) for value in self.scales.scale.values()):
            raise StudyError("expected scales > 0")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coordinates of an estimate."""
        return (*self.features, *((INTERCEPT,) if self.intercept else ()))

    def within(self, header: Sequence[str]) -> "RecordColumns":
        """The same with features that end with * written out. Raises StudyError where nothing begins so."""
        scales = self.scales
        taken = {*self.features, *self._others(), *(name.partition("=")[0] for name in self._others())}
        features: list[str] = []
        for name in self.features:
            found = [name]
            if name.endswith("*") and name not in header:
                found = [other for other in header if other.startswith(name[:-1]) and other not in taken]
            if not found:
                raise StudyError(f"expected columns that begin with {name[:-1]!r}, found none")
            features += found
            scales = scales.written_out(name, found)
        return self if tuple(features) == self.features else replace(self, features=tuple(features), scales=scales)

    def named(self) -> Iterator[str]:
        """Every column that is read."""
        yield from self.features
        yield from self._others()

    def _others(self) -> list[str]:
        return [name for name in (self.response, self.id, self.holder, self.row) if name is not None]
