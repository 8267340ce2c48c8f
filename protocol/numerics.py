"""The numerics fingerprint: which last bits this machine's mathematics produces.

Maths libraries choose other code paths on other processors. Two machines with one fingerprint give the same bits; a
federation of several fingerprints is warned.
"""

import hashlib
from functools import cache

import numpy as np
from scipy.special import erfcx, expit, log_expit, log_ndtr, ndtr, ndtri

BYTES = 8


@cache
def fingerprint() -> bytes:
    """Eight bytes: a hash of a fixed probe vector through a BLAS product and every function that links and noise call.

    exp, log, log1p, arctan, expit and log of it, ndtri, ndtr and log of it, erfcx; those of a margin in both tails.
    """
    probe = np.linspace(0.003, 0.997, 257)
    matrix = np.outer(probe, probe[::-1]) + np.eye(257)
    margin = 40.0 * (probe - 0.5)
    law = [function(margin) for function in (expit, log_expit, ndtr, log_ndtr, erfcx, np.arctan)]
    parts = (np.exp(-7 * probe), np.log(probe), np.log1p(-probe), ndtri(probe), *law, matrix @ probe)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(np.ascontiguousarray(part, dtype="<f8").tobytes())
    return digest.digest()[:BYTES]
