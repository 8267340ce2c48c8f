"""The numerics fingerprint: which last bits this machine's mathematics produces.

Maths libraries choose other code paths on other processors. Two machines with one fingerprint give the same bits; a
federation of several fingerprints is warned.
"""

import hashlib
from functools import cache

import numpy as np
from scipy.special import ndtri

BYTES = 8


@cache
def fingerprint() -> bytes:
    """Eight bytes: a hash of a fixed probe vector through exp, log, ndtri and a BLAS product."""
    probe = np.linspace(0.003, 0.997, 257)
    matrix = np.outer(probe, probe[::-1]) + np.eye(257)
    parts = (np.exp(-7 * probe), np.log(probe), ndtri(probe), matrix @ probe)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return digest.digest()[:BYTES]
