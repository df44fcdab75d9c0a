"""Two small models, both ways to store them, and what tests of stored files need."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nkcme.errors import ModelFileError
from nkcme.model_files import read_checkpoint, read_model, write_checkpoint, write_model
from support.refusals import refusal

OLD = ({"name": "old", "value": 0.1}, {"w": np.zeros(5), "b": np.ones((2, 3), np.float32)})
NEW = ({"name": "new", "value": 0.2}, {"w": np.ones(4), "c": np.arange(6, dtype=np.int32)})
CONFIG, TENSORS = "config.json", "model.safetensors"
STORES = pytest.mark.parametrize(
    ("write", "read"),
    [(write_model, read_model), (write_checkpoint, read_checkpoint)],
    ids=["model", "checkpoint"],
)


def assert_same(found, wanted):
    assert found[0] == wanted[0]
    assert list(found[1]) == sorted(wanted[1])
    for name, array in wanted[1].items():
        assert found[1][name].dtype == array.dtype.newbyteorder("=")
        assert found[1][name].shape == array.shape
        np.testing.assert_array_equal(found[1][name], array)


def is_same(found, wanted):
    try:
        assert_same(found, wanted)
    except AssertionError:
        return False
    return True


def refused(call: Callable, *arguments: object) -> str:
    """The one-line message of a refused call, with what was expected and found."""
    message = refusal(call, *arguments, error=ModelFileError)
    assert "expected" in message
    assert "found" in message
    return message


def reseal(directory: Path, **changes: object) -> None:
    """Change fields of config.json and make every digest right again, as an attacker would."""
    document = json.loads((directory / CONFIG).read_bytes())
    data = (directory / TENSORS).read_bytes()
    document["tensors"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    document |= changes
    del document["config_sha256"]
    text = json.dumps(document, ensure_ascii=False, sort_keys=True).encode()
    document["config_sha256"] = hashlib.sha256(text).hexdigest()
    (directory / CONFIG).write_text(json.dumps(document))
