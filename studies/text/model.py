"""A small model of texts that a package ships: a text is the direction of the sum of its tokens' vectors.

Weights are 16-bit numbers: multiples of 2^-24, and below 16. So a sum of up to 2^25 of them is exact in float64,
whatever its order, and the same text has the same bits on every machine. Nothing is downloaded.
"""

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata, util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from protocol.features import norms
from protocol.strict import StudyError

PACKAGE, READER = "wordllama", "tokenizers"
WEIGHTS, TOKENS = "weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"
TENSOR = "embedding.weight"
MOST = 256  # dimensions; the model was trained so that the first 64, 128 serve alone
USUAL = 64
GRID = 14  # numbers of a vector are multiples of 2^-14
LARGEST = 16.0
MISSING = f"expected the package {PACKAGE}, which ships the model: pip install 'halftruth[text]'"
Vectors = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Model:
    """Weights (tokens, MOST) and what makes tokens of a text; `name` says which, with versions and a hash."""

    name: str
    weights: NDArray[np.float16] = field(repr=False)
    tokenizer: Any = field(repr=False)

    def vectors(self, texts: Sequence[str], dimensions: int = USUAL) -> Vectors:
        """Vectors of texts, (texts, dimensions), of length 1 to within rounding; 0 for a text without a token.

        v = round(2^14 s / ||s||) / 2^14, where s sums the first `dimensions` numbers of its tokens.
        The same bits on every machine, and whatever else is in the batch.
        """
        sums = np.zeros((len(texts), dimensions))
        for place, tokens in enumerate(self.tokenizer.encode_batch(list(texts), add_special_tokens=False)):
            if tokens.ids:
                sums[place] = self.weights[tokens.ids, :dimensions].astype(np.float64).sum(axis=0)
        lengths = norms(sums)
        lengths[lengths == 0] = 1.0
        scaled: Vectors = (np.rint(sums / lengths[:, None] * 2.0**GRID) * 2.0**-GRID).astype(np.float32)
        return scaled


def load_model() -> Model:
    """The model of the installed package. Raises StudyError where that is missing, or not the one expected."""
    found = util.find_spec(PACKAGE)
    if found is None or found.origin is None or util.find_spec(READER) is None:
        raise StudyError(f"{MISSING} (tests, features, everything else goes without)")
    from tokenizers import Tokenizer

    folder = Path(found.origin).parent  # the package itself is not imported: it sets up logging, and pools otherwise
    try:
        raw, told = (folder / WEIGHTS).read_bytes(), (folder / TOKENS).read_bytes()
        weights = _tensor(raw)
        tokenizer = Tokenizer.from_str(told.decode())
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise StudyError(
            f"{folder}: expected the model {WEIGHTS}, got another package of that name ({error})"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    digest = hashlib.sha256(raw + told).hexdigest()[:16]
    parts = (PACKAGE, metadata.version(PACKAGE), Path(WEIGHTS).stem, digest, READER, metadata.version(READER))
    return Model(" ".join(parts), weights, tokenizer)


def _tensor(raw: bytes) -> NDArray[np.float16]:
    """The weights of a safetensors file: a length, a header of JSON, numbers. Raises ValueError, KeyError."""
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + length])[TENSOR]
    start, stop = header["data_offsets"]
    weights = np.frombuffer(raw[8 + length + start : 8 + length + stop], dtype="<f2").reshape(header["shape"])
    if header["dtype"] != "F16" or weights.shape[1:] != (MOST,) or not np.abs(weights).max() < LARGEST:
        raise ValueError(f"expected 16-bit numbers below {LARGEST} in {MOST} columns, got {header}")
    return weights
