"""Text of many levels: its words hashed into a few numbers.

Each word adds +1 or -1 to one of the outputs, both chosen by a hash of the word; rows are divided
by the root of their number of words. Words that the model has not seen are encoded too.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import numpy as np

N_HASHED = 16

_WORD = re.compile(r"\w+")


def hashed_words(labels: Sequence[str | None], n_outputs: int = N_HASHED) -> np.ndarray:
    """The hashed words of each label, (n, n_outputs); zeros where it is None."""
    known: dict[str, np.ndarray] = {}
    outputs = np.zeros((len(labels), n_outputs), np.float32)
    for row, label in enumerate(labels):
        if label is None:
            continue
        if label not in known:
            known[label] = _hashed(label, n_outputs)
        outputs[row] = known[label]
    return outputs


def _hashed(label: str, n_outputs: int) -> np.ndarray:
    output = np.zeros(n_outputs, np.float32)
    words = _WORD.findall(label.casefold()) or [label]
    for word in words:
        code = zlib.crc32(word.encode(errors="surrogatepass"))
        output[(code >> 1) % n_outputs] += 1.0 if code & 1 else -1.0
    return output / np.float32(np.sqrt(len(words)))
