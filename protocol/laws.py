"""Laws of numbers, most with heavy tails: their spelling, sampler, moments, tails and truncated means."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, Self

from protocol.coins import Floats, Words
from protocol.decimals import canonical, decimal
from protocol.heavy_laws import Burr, Lomax, Pareto, Stable, StudentT
from protocol.law_moments import Family, Parameter
from protocol.light_laws import Constant, LogNormal, Normal, Uniform
from protocol.strict import StudyError, boolean, table, text

LAWS: dict[str, type[Family]] = {
    "pareto": Pareto,
    "lomax": Lomax,
    "student-t": StudentT,
    "stable": Stable,
    "log-normal": LogNormal,
    "burr": Burr,
    "uniform": Uniform,
    "normal": Normal,
    "constant": Constant,
}
_MOST_SHIFT = 1e9
_MOST_POWER = 16
_FARTHEST = 1e150  # squares of it are doubles
_SPELLING = re.compile(r"(?P<centred>centred )?(?P<name>[a-z-]+)(?:\((?P<values>[^()]*)\))?(?: (?P<shift>[+-] \S+))?")


@dataclass(frozen=True)
class Law:
    """The law of X = Y + shift, or Y - E Y + shift where `centred`; Y is of the family `name` of LAWS.

    `parameters` are all of the family's, in its order. Centred means are subtracted as doubles.
    Raises ValueError for an unknown family, missing or unknown parameters, numbers out of range, and a centred law
    without a mean.

    >>> Law.parse("centred pareto(1.6)").mean
    0.0
    """

    name: str
    parameters: tuple[tuple[str, Decimal], ...]
    centred: bool = False
    shift: Decimal = Decimal(0)

    def __post_init__(self) -> None:
        if self.name not in LAWS:
            raise ValueError(f"expected a law out of {sorted(LAWS)}, got {self.name!r}")
        known = LAWS[self.name].parameters
        if [name for name, _ in self.parameters] != [parameter.name for parameter in known]:
            raise ValueError(f"expected {_signature(self.name)}, got {[name for name, _ in self.parameters]}")
        for parameter, (_, value) in zip(known, self.parameters, strict=True):
            if not (value.is_finite() and parameter.least <= float(value) <= parameter.most):
                wanted = f"{parameter.least:g} <= {parameter.name} <= {parameter.most:g}"
                raise ValueError(f"expected {wanted} in {self.name}, got {value}")
        if not (self.shift.is_finite() and abs(self.shift) <= _MOST_SHIFT):
            raise ValueError(f"expected a shift of at most {_MOST_SHIFT:g} in size, got {self.shift}")
        if self.family and self.centred:
            self._need_mean()

    @classmethod
    def parse(cls, said: str | Mapping[str, Any], place: str = "law") -> Self:
        """Read a spelling, "[centred ]name[(number, ...)][ + number]", or a table: name, parameters, centred, shift.

        Parameters with a default can be left out. Raises ValueError naming the `place`.

        >>> Law.parse("pareto(1.60, 1)") == Law.parse({"name": "pareto", "a": "1.6"})
        True
        """
        try:
            return cls._from_text(said) if isinstance(said, str) else cls._from_table(said, place)
        except StudyError:
            raise
        except ValueError as error:
            raise StudyError(f"[{place}] {error}") from None

    @classmethod
    def _from_text(cls, said: str) -> Self:
        found = _SPELLING.fullmatch(said)
        if found is None:
            raise ValueError(f'expected a law such as "pareto(1.6)" or "centred lomax(2, 3) + 1", got {said!r}')
        name, listed, shift = found["name"], found["values"], found["shift"]
        family = LAWS.get(name)
        values = [] if listed is None else [item.strip() for item in listed.split(",")]
        if family is not None and len(values) > len(family.parameters):
            raise ValueError(f"expected {_signature(name)}, got {said!r}")
        names = [parameter.name for parameter in family.parameters] if family else []
        given = dict(zip(names, values, strict=False))
        return cls._of(name, given, found["centred"] is not None, shift.replace(" ", "") if shift else "0")

    @classmethod
    def _from_table(cls, said: Mapping[str, Any], place: str) -> Self:
        name = text(table(said, place, said, ["name"])["name"], f"[{place}] name", LAWS)
        names = [parameter.name for parameter in LAWS[name].parameters]
        table(said, place, ["name", "centred", "shift", *names])
        given = {key: said[key] for key in names if key in said}
        return cls._of(name, given, boolean(said.get("centred", False), f"[{place}] centred"), said.get("shift", "0"))

    @classmethod
    def _of(cls, name: str, given: Mapping[str, Any], centred: bool, shift: Any) -> Self:
        parameters = []
        for parameter in LAWS[name].parameters if name in LAWS else ():
            value = given.get(parameter.name, parameter.default)
            if value is None:
                raise ValueError(f"expected {_signature(name)}, got no {parameter.name}")
            parameters.append((parameter.name, decimal(value, parameter.name)))
        return cls(name, tuple(parameters), centred, decimal(shift, "shift"))

    @property
    def describe(self) -> str:
        """The one spelling of this law: parameters at the end that are their defaults are left out."""
        values = [canonical(value) for _, value in self.parameters]
        defaults = [parameter.default for parameter in LAWS[self.name].parameters]
        while values and values[-1] == defaults[len(values) - 1]:
            values.pop()
        sign = "-" if self.shift < 0 else "+"
        return (
            ("centred " if self.centred else "")
            + self.name
            + (f"({', '.join(values)})" if values else "")
            + (f" {sign} {canonical(abs(self.shift))}" if self.shift else "")
        )

    @cached_property
    def family(self) -> Family:
        """The family's law of Y."""
        return LAWS[self.name](*(float(value) for _, value in self.parameters))

    @cached_property
    def offset(self) -> float:
        """X - Y."""
        return float(self.shift) - (self.family.mean() if self.centred else 0.0)

    @property
    def words(self) -> int:
        """Coins a value."""
        return self.family.words

    @property
    def index(self) -> float:
        """E|X|^q is finite exactly for 0 < q < index."""
        return self.family.index

    def sample(self, drawn: Words) -> Floats:
        """One value for each row of 64-bit words, (..., words) -> (...): the family's map of uniform numbers, moved.

        For simulation only. Raises ValueError for another type or number of words.
        """
        if drawn.dtype != "uint64" or not drawn.ndim or drawn.shape[-1] != self.words:
            wanted = f"uint64 words of shape (..., {self.words})"
            raise ValueError(f"expected {wanted} for {self.describe}, got {drawn.dtype} of shape {drawn.shape}")
        return self.family.draw(drawn) + self.offset

    @property
    def mean(self) -> float:
        """E X. Raises ValueError where E|X| is infinite."""
        self._need_mean()
        return float(self.shift) if self.centred else self.family.mean() + self.offset

    @property
    def variance(self) -> float:
        """Var X, infinity where E X^2 is."""
        return self.family.variance() if self.index > 2 else math.inf

    def absolute_moment(self, q: float) -> float:
        """E|X|^q, infinity for q >= index; where X is moved from its family by quadrature, to 1e-9.

        Raises ValueError unless 0 < q <= 16, and OverflowError for a finite number that no double holds.

        >>> Law.parse("pareto(1.6)").absolute_moment(1.6)
        inf
        """
        return self.moment_about(0.0, q)

    def moment_about(self, centre: float, q: float) -> float:
        """E|X - centre|^q, as `absolute_moment`."""
        if not 0 < q <= _MOST_POWER:
            raise ValueError(f"expected 0 < q <= {_MOST_POWER}, got {q}")
        place = _finite(centre) - self.offset
        if q >= self.index:
            return math.inf
        return self.family.moment_about(place, q) if place else self.family.moment(q)

    def survival(self, b: float) -> float:
        """P(X > b)."""
        return self.family.above(_finite(b) - self.offset)

    def beyond(self, b: float) -> float:
        """P(|X| > b) for b >= 0."""
        self._bound(b)
        return self.family.above(b - self.offset) + self.family.below(-b - self.offset)

    def truncated_mean(self, b: float) -> float:
        """E[X; |X| <= b] for b >= 0, to a double's digits of |offset| + b."""
        return self._within(1, b)

    def truncated_square(self, b: float) -> float:
        """E[X^2; |X| <= b] for b >= 0, to a double's digits of (|offset| + b)^2."""
        return max(0.0, self._within(2, b))

    def clipped_mean(self, b: float) -> float:
        """E max(-b, min(b, X)) for b >= 0: the truncated mean and b (P(X > b) - P(X < -b))."""
        ends = self.family.above(b - self.offset) - self.family.below(-b - self.offset)
        return self._within(1, b) + b * ends

    def _within(self, power: int, b: float) -> float:
        self._bound(b)
        low, high, inside = -b - self.offset, b - self.offset, self.family.inside
        if not self.offset:
            return inside(power, low, high)
        terms = (math.comb(power, k) * self.offset ** (power - k) * inside(k, low, high) for k in range(power + 1))
        return math.fsum(terms)

    def _bound(self, b: float) -> None:
        if not _finite(b) >= 0:
            raise ValueError(f"expected b >= 0, got {b}")

    def _need_mean(self) -> None:
        if not self.index > 1:
            raise ValueError(
                f"expected a law with a mean, got {self.name} whose E|X|^q is infinite from q = {self.index}"
            )


def _finite(b: float) -> float:
    if not abs(b) <= _FARTHEST:
        raise ValueError(f"expected a finite number of at most {_FARTHEST:g} in size, got {b}")
    return b


def _signature(name: str) -> str:
    def shown(parameter: Parameter) -> str:
        return parameter.name + (f" = {parameter.default}" if parameter.default is not None else "")

    return f"{name}({', '.join(map(shown, LAWS[name].parameters))})"
