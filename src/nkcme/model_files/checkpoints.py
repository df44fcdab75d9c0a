"""A checkpoint: a config and arrays in one safetensors file, replaced atomically."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nkcme.model_files.atomic_files import fsync_directory, replacing
from nkcme.model_files.refusals import (
    CHANGE,
    ELSEWHERE,
    RESTORE,
    PathLike,
    only_model_file_errors,
    refusal,
)
from nkcme.model_files.regular_files import read_file
from nkcme.model_files.sealed_json import seal, unseal
from nkcme.model_files.tensors import Arrays, Contents, digest, pack, portable, unpack

_FORMAT = "nkcme-checkpoint"
_HEAD = b'{"__metadata__":{"nkcme-checkpoint":'  # follows 8 bytes of header length


def write_checkpoint(path: PathLike, config: Mapping[str, Any], arrays: Arrays) -> None:
    """Save a config and arrays as one file; a checkpoint at that path is replaced.

    Parameters
    ----------
    path
        The file. Missing parent directories are made.
    config
        Values that JSON can hold, with text as keys.
    arrays
        Arrays by name.

    Raises
    ------
    ModelFileError
        Where the path holds another file or cannot be written, or the content cannot be saved.
    """
    with only_model_file_errors(path, "written", CHANGE):
        file = Path(path).absolute()
        arrays = portable(arrays)
        # The file holds its own description, so that has the digest of the arrays, not of the file.
        text = seal(_FORMAT, config, digest(arrays), file)
        data = pack(arrays, {_FORMAT: text.decode()})
        head = _read_head(file) if os.path.lexists(file) else b""
        if head and not head.endswith(_HEAD):
            raise refusal(file, "a new path or a checkpoint", "another file", ELSEWHERE)
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file, file.with_name(f"{file.name}.new")) as new:
            new.write(data)
        fsync_directory(file.parent)


def read_checkpoint(path: PathLike) -> Contents:
    """The config and the arrays, sorted by name, that `write_checkpoint` saved.

    Raises
    ------
    ModelFileError
        Where the file is missing, damaged, foreign or of a newer version.
    """
    with only_model_file_errors(path, "read", RESTORE):
        file = Path(path)
        if not _read_head(file).endswith(_HEAD):  # before a huge file is read whole
            raise refusal(file, "a checkpoint", "a foreign file", RESTORE)
        arrays, metadata = unpack(read_file(file), file)
        text = metadata.get(_FORMAT, "").encode()
        document = unseal(text, _FORMAT, file)
        if digest(arrays) != document["tensors"]:
            raise refusal(file, "tensors as they were saved", "altered ones", RESTORE)
        return document["model"], arrays


def _read_head(path: Path) -> bytes:
    return read_file(path, first=8 + len(_HEAD))


class CheckpointFile:
    """A checkpoint at a path, with the methods that `nkcme.training.loop.train` calls."""

    def __init__(self, path: PathLike):
        self._path = Path(path)

    def __str__(self) -> str:
        return str(self._path)

    def load(self) -> Contents | None:
        """The checkpoint, or None where there is none yet."""
        return read_checkpoint(self._path) if self._path.exists() else None

    def save(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        write_checkpoint(self._path, config, arrays)
