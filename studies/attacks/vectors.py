"""What lying holders report instead of a vector of their own, given what honest ones report.

An attack knows everything: all honest reports, the truth, and which reports a server accepts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from protocol.coins import Floats
from studies.moments import dot

FLIPPED = -5.0
OUTLIER = 1000.0
SHIFT = 1.5


@dataclass(frozen=True, eq=False)
class Aim:
    """What liars aim at: the truth (d,) that they pull away from, and the legal reports.

    Legal is |y_j| <= bound for every coordinate (norm "linf") or ||y|| <= bound ("l2"); bound = inf: everything.
    Raises ValueError for a bound that is not positive, another norm, or a truth that is not finite of shape (d,).
    """

    truth: Floats
    bound: float = np.inf
    norm: str = "linf"

    def __post_init__(self) -> None:
        if not self.bound > 0.0:
            raise ValueError(f"expected bound > 0 (inf for no bound), got {self.bound}")
        if self.norm not in ("linf", "l2"):
            raise ValueError(f'expected norm "linf" or "l2", got {self.norm!r}')
        if self.truth.ndim != 1 or not np.isfinite(self.truth).all():
            raise ValueError(f"expected a finite truth of shape (d,), got shape {self.truth.shape}")


Attack = Callable[[Floats, Floats, Aim], Floats]  # honest (h, d), liars' own honest reports (f, d), aim -> (f, d)


def silent(honest: Floats, own: Floats, aim: Aim) -> Floats:
    """What they would have said."""
    return own.copy()


def sign_flip(honest: Floats, own: Floats, aim: Aim) -> Floats:
    """-5 times what they would have said. Not kept inside the legal range: a server that checks drops it."""
    return FLIPPED * own


def gross_outlier(honest: Floats, own: Floats, aim: Aim) -> Floats:
    """1000 in every coordinate. Not kept inside the legal range: a server that checks drops it."""
    return np.full_like(own, OUTLIER)


def small_shift(honest: Floats, own: Floats, aim: Aim) -> Floats:
    """The honest mean minus 1.5 honest standard deviations, all the same, brought inside the legal range.

    Raises ValueError where nobody is honest.
    Source: Baruch, Baruch, Goldberg 2019, "A little is enough".
    """
    if not len(honest):
        raise ValueError("expected honest reports to hide among, got none")
    return inside(np.tile(honest.mean(axis=0) - SHIFT * honest.std(axis=0), (len(own), 1)), aim)


def collusion(honest: Floats, own: Floats, aim: Aim) -> Floats:
    """The legal report that is furthest against the truth, all the same: no check of the range finds it.

    -bound sign(truth_j) in every coordinate, positive where truth_j = 0; in a ball -bound truth / ||truth||.
    Raises ValueError where every report is legal, or in a ball where the truth is 0.
    """
    if not np.isfinite(aim.bound):
        raise ValueError("expected a legal range with an end, got bound = inf: use gross_outlier")
    if aim.norm == "linf":
        worst = np.where(aim.truth > 0.0, -aim.bound, aim.bound)
    else:
        size = float(np.sqrt((aim.truth**2).sum()))
        if size == 0.0:
            raise ValueError("expected a truth that is not 0 to pull away from, got 0")
        worst = inside((-aim.bound * (aim.truth / size))[None, :], aim)[0]
    return np.tile(worst, (len(own), 1))


def flipped_labels(y: Floats) -> Floats:
    """-y: regression labels of a holder who lies about their records and then follows the protocol."""
    return -y


def inside(reports: Floats, aim: Aim) -> Floats:
    """The nearest legal reports, shape (f, d)."""
    if np.isinf(aim.bound):
        return reports.copy()
    if aim.norm == "linf":
        return np.clip(reports, -aim.bound, aim.bound)
    size = np.sqrt(_squares(reports))
    scaled = reports * np.where(size > aim.bound, aim.bound / np.maximum(size, aim.bound), 1.0)[:, None]
    while (over := np.sqrt(_squares(scaled)) > aim.bound).any():  # rounding may have left it one step outside
        scaled[over] *= 1.0 - 2.0**-52
    return scaled


VECTOR_ATTACKS: dict[str, Attack] = {
    "none": silent,
    "sign-flip": sign_flip,
    "gross-outlier": gross_outlier,
    "small-shift": small_shift,
    "collusion": collusion,
}


def _squares(reports: Floats) -> Floats:
    return dot(reports**2, np.ones(reports.shape[1]))
