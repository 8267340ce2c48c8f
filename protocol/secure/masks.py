"""Masks as integers: how bytes of a keystream are residues, and which of two neighbours adds what the other takes away.

The cryptography is each side's own; this is what both make of its bytes.
"""

import numpy as np
from numpy.typing import NDArray

from protocol.messages import Mechanism, Task

Residues = NDArray[np.uint64]
WIDTH = 8  # bytes of a keystream for each residue
# What HKDF-SHA256 is told, beside the session: each use has a key of its own.
INFO_ROOT, INFO_CHANNEL, INFO_MASK, INFO_SELF = (
    b"halftruth root",
    b"halftruth channel",
    b"halftruth mask",
    b"halftruth self",
)
INFO_STREAM, INFO_TICKET, INFO_NODE = b"halftruth stream", b"halftruth ticket", b"halftruth node key"
MOST_MODULUS = 1 << 53  # so that sums are exact as float64


def check_modulus(task: Task) -> int:
    """A task's modulus. Raises ValueError unless it is a power of two in 2..2^53."""
    modulus = task.modulus
    if not 2 <= modulus <= MOST_MODULUS or modulus & (modulus - 1):
        raise ValueError(f"expected a modulus that is a power of two in 2..2^53, got {modulus}")
    return modulus


def bits_of(modulus: int) -> int:
    """Bits of a residue.

    >>> bits_of(1 << 20)
    20
    """
    return modulus.bit_length() - 1


def residues_of(stream: bytes, shape: tuple[int, ...], modulus: int) -> Residues:
    """Uniform residues from a keystream: the low bits of each 8 bytes of it, little-endian.

    `modulus` is a power of two, so that each is uniform where the bytes are.
    """
    words = np.frombuffer(stream, dtype="<u8").astype(np.uint64).reshape(shape)
    return words & np.uint64(modulus - 1)


def sign_of(member: int, other: int) -> int:
    """Whether a member adds the mask that it shares with another, or takes it away: 1 or -1."""
    return 1 if member < other else -1


def added(total: Residues, mask: Residues, sign: int, modulus: int) -> Residues:
    """total + sign * mask, modulo a power of two."""
    return (total + mask if sign > 0 else total - mask) & np.uint64(modulus - 1)


def centred(residues: Residues, modulus: int, centre: NDArray[np.int64] | int = 0) -> NDArray[np.int64]:
    """The integers with these residues in the window [centre - modulus / 2, centre + modulus / 2).

    >>> centred(np.array([1, 7], dtype=np.uint64), 8).tolist(), centred(np.array([1], dtype=np.uint64), 8, 8).tolist()
    ([1, -1], [9])
    """
    start = np.asarray(centre, dtype=np.int64) - np.int64(modulus // 2)
    away = (residues - start.astype(np.uint64)) & np.uint64(modulus - 1)
    return start + away.astype(np.int64)


def least_rows(task: Task) -> int:
    """Rows of survivors below which a task's sum is not opened: `least` of its only mechanism.

    Raises ValueError where it has none, or one below `honest` or above the rows that are asked for.
    """
    if len(task.menu) != 1:
        raise ValueError(f"expected one mechanism, got {len(task.menu)}")
    return _counted(task, task.menu[0])[1]


def honest_rows(task: Task, mechanism: Mechanism) -> int:
    """Rows of survivors that a task's noise is sized for, `honest`: no more than `least`, nor than the rows asked for.

    Raises ValueError for others, and where one is missing.
    """
    return _counted(task, mechanism)[0]


def _counted(task: Task, mechanism: Mechanism) -> tuple[int, int]:
    honest, least = mechanism.get("honest"), mechanism.get("least")
    asked = task.n if task.rows is None else task.rows.count
    if honest is None or least is None or not (honest.is_finite() and least.is_finite()):
        raise ValueError(f"expected numbers of honest and of least rows, got {honest} and {least}")
    if not (honest == int(honest) and least == int(least) and 1 <= honest <= least <= asked):
        raise ValueError(f"expected whole numbers 1 <= honest <= least <= {asked} rows, got {honest} and {least}")
    return int(honest), int(least)
