"""A user's own mechanism: a Python file with a claim, inputs and a function that randomises one of them."""

import traceback
from collections.abc import Callable, Hashable, Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from protocol import decimals
from protocol.strict import StudyError, told
from studies.audit.coins import AuditCoins
from studies.audit.subject import Claim, Floats, Outputs, Subject, all_pairs

NAMES = ("EPSILON", "INPUTS", "randomise")
_NOTE = "randomise(value, generator) of a file"


def read_own(path: Path, epsilon: Decimal | None, delta: Decimal | None) -> Subject:
    """The subject that a file describes: EPSILON (perhaps DELTA), INPUTS, randomise(value, generator).

    Every two of INPUTS are neighbours, unless the file defines neighbours(), pairs of values. `epsilon` and `delta`
    given here stand in the place of the file's. The file is executed in this process: it is the user's own.
    Raises StudyError that names the file and what does not fit, for an error of the file's the line.
    """
    held = _executed(path)
    claim = Claim(_level(path, held, epsilon), _shift(path, held, delta), str(held.get("UNIT", "input")))
    randomise = held.get("randomise")
    if not callable(randomise):
        raise StudyError(f"{path}: expected a function randomise(value, generator), got {_what(held, 'randomise')}")
    inputs, pairs = _inputs(path, held)
    widths = {width for name, value in inputs.items() for width in _tried(path, randomise, name, value)}
    width = widths.pop() if len(widths) == 1 else None
    return Subject(
        f"file/{path.name}",
        claim,
        inputs,
        pairs,
        _NOTE,
        draw=partial(drawn, randomise, width),
        views=VIEWS,
    )


def drawn(
    randomise: Callable[[Any, Any], Any], width: int | None, value: Any, count: int, coins: AuditCoins
) -> Outputs:
    """Outputs of a function, by a numpy generator: rows of `width` numbers, or without it whatever compares.

    That it raises is an output too: a mechanism that fails for one input only tells which. Among numbers it is a row of
    NaN, as is all else that is no such row.
    """
    generator = np.random.default_rng(np.random.Philox(coins.words(1, 1)[0]))
    found: list[Any] = []
    for _ in range(count):
        try:
            found.append(randomise(value, generator))
        except Exception as error:
            found.append(f"raised {type(error).__name__}")
    if width is None:
        return [_plain(output) for output in found]
    rows = np.full((count, width), np.nan)
    for place, output in enumerate(found):
        row = _numbers(output)
        if row is not None and len(row) == width:
            rows[place] = row
    return rows


def _numbers(output: Any) -> Floats | None:
    """An output as doubles, where it is numbers that doubles hold exactly; else None."""
    if isinstance(output, int) and abs(output) > 1 << 53:
        return None
    if not isinstance(output, int | float | np.number | np.ndarray | list | tuple):
        return None
    try:
        return np.asarray(output, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        return None


def _plain(output: Any) -> Hashable:
    """An output as something that compares: itself, or its text."""
    if isinstance(output, np.ndarray):
        return (str(output.dtype), output.shape, output.tobytes())
    return output if isinstance(output, str | bytes | bool | int) or output is None else repr(output)


def _kind(output: Hashable) -> Hashable:
    return type(output).__name__


def _length(output: Hashable) -> Hashable:
    return len(output) if isinstance(output, str | bytes | tuple) else 0


VIEWS = {"the kind of output": _kind, "the length": _length}


def _executed(path: Path) -> dict[str, Any]:
    try:
        code = compile(path.read_text("utf-8"), str(path), "exec")
    except OSError as error:
        raise StudyError(f"{path}: expected a Python file: {told(error)}") from None
    except (SyntaxError, ValueError) as error:
        raise StudyError(f"{path}: expected a Python file: {error}") from None
    held: dict[str, Any] = {"__name__": "halftruth_audited", "__file__": str(path)}
    try:
        exec(code, held)
    except Exception as error:
        raise StudyError(f"{path}: {_where(error, path)}") from None
    missing = [name for name in NAMES if name not in held and not (name == "INPUTS" and "neighbours" in held)]
    if missing:
        raise StudyError(f"{path}: expected the names {', '.join(NAMES)}, got no {', '.join(missing)}")
    return held


def _inputs(path: Path, held: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    if "neighbours" not in held:
        values = held["INPUTS"]
        if not isinstance(values, list | tuple) or len(values) < 2:
            raise StudyError(f"{path}: INPUTS: expected a list of at least two inputs, got {_what(held, 'INPUTS')}")
        named = {f"{place}: {_short(value)}": value for place, value in enumerate(values)}
        return named, all_pairs(named)
    try:
        found = [tuple(pair) for pair in held["neighbours"]()]
    except Exception as error:
        raise StudyError(f"{path}: neighbours(): {_where(error, path)}") from None
    if not found or any(len(pair) != 2 for pair in found):
        raise StudyError(f"{path}: neighbours(): expected pairs of inputs, got {_short(found)}")
    named, pairs = {}, []
    for place, pair in enumerate(found):
        names = tuple(f"{place}{side}: {_short(value)}" for side, value in zip("ab", pair, strict=True))
        named |= dict(zip(names, pair, strict=True))
        pairs.append((names[0], names[1]))
    return named, tuple(pairs)


def _tried(path: Path, randomise: Callable[[Any, Any], Any], name: str, value: Any) -> set[int | None]:
    """How many numbers outputs have, None for what is none. Raises StudyError where the function fails every time: then
    the file is wrong, not private.
    """
    widths: set[int | None] = set()
    error: Exception | None = None
    for seed in range(8):
        try:
            row = _numbers(randomise(value, np.random.default_rng(np.random.Philox(seed))))
            widths.add(None if row is None else len(row))
        except Exception as raised:
            error = raised
    if not widths:
        assert error is not None
        raise StudyError(f"{path}: randomise failed for input {name}: {_where(error, path)}")
    return widths


def _level(path: Path, held: Mapping[str, Any], given: Decimal | None) -> Decimal:
    if given is not None:
        return given
    try:
        return decimals.epsilon(str(held["EPSILON"]), "EPSILON")
    except (StudyError, ValueError, TypeError) as error:
        raise StudyError(f"{path}: {error}") from None


def _shift(path: Path, held: Mapping[str, Any], given: Decimal | None) -> Decimal:
    if given is not None:
        return given
    value = held.get("DELTA", 0)
    if isinstance(value, int | float | str | Decimal) and str(value) in ("0", "0.0"):
        return Decimal(0)
    try:
        return decimals.delta(str(value), "DELTA")
    except (StudyError, ValueError, TypeError) as error:
        raise StudyError(f"{path}: {error}") from None


def _where(error: Exception, path: Path) -> str:
    """The error and its line in the user's file."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f"{type(error).__name__}: {error}" + (f" (line {lines[-1]})" if lines else "")


def _what(held: Mapping[str, Any], name: str) -> str:
    return f"{type(held.get(name)).__name__} {_short(held.get(name))}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
