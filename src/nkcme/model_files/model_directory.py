"""A fitted model as a directory of ``config.json`` and ``model.safetensors``.

A save is atomic for one writer at a time: a crash at any moment leaves the old model or the new
one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from nkcme.errors import ModelFileError
from nkcme.model_files import sealed_json
from nkcme.model_files.atomic_files import fsync_directory, write_file
from nkcme.model_files.refusals import (
    CHANGE,
    ELSEWHERE,
    RESTORE,
    PathLike,
    only_model_file_errors,
    refusal,
)
from nkcme.model_files.regular_files import read_file
from nkcme.model_files.sealed_json import seal, sha256_of, unseal
from nkcme.model_files.tensors import Arrays, Contents, pack, portable, unpack

FORMAT = "nkcme-model"

_CONFIG, _NEW_CONFIG = "config.json", "config.json.new"
_TENSORS, _NEW_TENSORS = "model.safetensors", "model.safetensors.new"


def write_model(path: PathLike, config: Mapping[str, Any], arrays: Arrays) -> None:
    """Save a config and arrays as a model directory.

    Parameters
    ----------
    path
        The directory. Missing parents are made. A model there is replaced; anything else is
        refused.
    config
        Values that JSON can hold, with text as keys; tuples become lists.
    arrays
        Arrays by name.

    Raises
    ------
    ModelFileError
        Where the path holds anything but a model or cannot be written, or the content cannot be
        saved.
    """
    with only_model_file_errors(path, "written", CHANGE):
        directory = Path(path).absolute()
        tensors = pack(portable(arrays))
        summary = {"bytes": len(tensors), "sha256": sha256_of(tensors)}
        text = seal(FORMAT, config, summary, directory / _CONFIG, indent=2)
        building = _building(directory)
        try:
            if _prepare(directory, building):
                _overwrite(directory, text, tensors)
            else:
                write_file(building / _TENSORS, tensors)
                write_file(building / _CONFIG, text)
                fsync_directory(building)
                os.rename(building, directory)
                fsync_directory(directory.parent)
        except OSError:  # for example a full disk: give back the space of half-written files
            with suppress(OSError, ModelFileError):
                _remove_building(building)
                _finish_or_discard_interrupted_save(directory)
            raise


def check_destination(path: PathLike) -> None:
    """Check that `write_model` can save at a path; nothing is written.

    Callers with long work ahead use this to fail before the work.

    Raises
    ------
    ModelFileError
        The error with which `write_model` would refuse the path.
    """
    with only_model_file_errors(path, "written", CHANGE):
        directory = Path(path).absolute()
        building = _building(directory)
        absent = [parent for parent in building.parents if not os.path.lexists(parent)]
        try:
            if _prepare(directory, building):
                import tempfile  # only saving needs it

                with tempfile.TemporaryFile(dir=directory):
                    pass
        finally:
            for made in (building, *absent):
                with suppress(OSError):
                    made.rmdir()


def read_model(path: PathLike) -> Contents:
    """The config and the arrays, sorted by name, that `write_model` saved at a path.

    Raises
    ------
    ModelFileError
        Where the model is missing, damaged, foreign or of a newer version.
    """
    with only_model_file_errors(path, "read", RESTORE):
        directory = _model_directory(path)
        text = read_file(directory / _CONFIG, sealed_json.MAX_BYTES)
        while True:
            document = unseal(text, FORMAT, directory / _CONFIG)
            try:
                tensors = _live_tensors(directory, document["tensors"])
                return document["model"], unpack(tensors, directory / _TENSORS)[0]
            except (ModelFileError, OSError):
                # A save that finished between our reads has changed the config: read again.
                latest = read_file(directory / _CONFIG, sealed_json.MAX_BYTES)
                if latest == text:
                    raise
                text = latest


def read_header(path: PathLike) -> dict[str, Any]:
    """``format_version`` and ``library_version`` of the program that wrote the model at a path.

    Raises
    ------
    ModelFileError
        Where the model is missing, damaged, foreign or of a newer version.
    """
    with only_model_file_errors(path, "read", RESTORE):
        config = _model_directory(path) / _CONFIG
        document = unseal(read_file(config, sealed_json.MAX_BYTES), FORMAT, config)
        return {key: document[key] for key in ("format_version", "library_version")}


def _model_directory(path: PathLike) -> Path:
    directory = Path(path)
    if directory.is_dir():
        return directory
    found = "a file" if directory.exists() else "nothing"
    remedy = f"give the directory that holds {_CONFIG} and {_TENSORS}"
    raise refusal(path, "a model directory", found, remedy)


def _building(directory: Path) -> Path:
    """The hidden directory, beside its destination, in which a new model is built."""
    if not directory.name:
        expected = "a new path, an empty directory or a model"
        raise refusal(directory, expected, "the root of the file system", ELSEWHERE)
    return directory.with_name(f".{directory.name}.nkcme-partial")


def _prepare(directory: Path, building: Path) -> bool:
    """Make ready to save, or refuse; return whether there is a directory to write into."""
    _remove_building(building)
    if os.path.lexists(directory):
        _finish_or_discard_interrupted_save(directory)
        return True
    building.mkdir(parents=True)
    return False


def _overwrite(directory: Path, text: bytes, tensors: bytes) -> None:
    """Replace the model in durable steps; the first `os.replace` is the one that commits."""
    write_file(directory / _NEW_TENSORS, tensors)
    write_file(directory / _NEW_CONFIG, text)
    fsync_directory(directory)
    os.replace(directory / _NEW_CONFIG, directory / _CONFIG)  # holds the new tensors' digest
    fsync_directory(directory)
    os.replace(directory / _NEW_TENSORS, directory / _TENSORS)
    fsync_directory(directory)


def _finish_or_discard_interrupted_save(directory: Path) -> None:
    """Clear ``directory`` of temporary files; refuse one that holds files but no model.

    New tensors with the digest that config.json holds are the live ones: they move into place, so
    that the next save does not begin by deleting the only good copy.
    """
    text = b"null"
    expected = "a new path, an empty directory or a model"
    if not directory.is_dir():
        raise refusal(directory, expected, "a file", ELSEWHERE)
    if set(os.listdir(directory)) - {_NEW_CONFIG, _NEW_TENSORS}:
        try:
            text = read_file(directory / _CONFIG, sealed_json.MAX_BYTES)
            ours = sealed_json.parse(text, directory).get("format") == FORMAT
        except (FileNotFoundError, ModelFileError, AttributeError):
            ours = False
        if not ours:
            raise refusal(directory, expected, "other files", ELSEWHERE)
    (directory / _NEW_CONFIG).unlink(missing_ok=True)
    new_tensors = directory / _NEW_TENSORS
    try:
        _read_tensors(new_tensors, unseal(text, FORMAT, directory)["tensors"])
    except (FileNotFoundError, ModelFileError):
        new_tensors.unlink(missing_ok=True)
    else:
        os.replace(new_tensors, directory / _TENSORS)
    fsync_directory(directory)


def _live_tensors(directory: Path, expected: dict[str, Any]) -> bytes:
    """Read the tensors with the digest in config.json: the new ones, if a crash left them there.

    The new ones are tried first, so a save that moves them between the two reads is seen whole.
    """
    try:
        return _read_tensors(directory / _NEW_TENSORS, expected)
    except (OSError, ModelFileError):
        return _read_tensors(directory / _TENSORS, expected)


def _read_tensors(path: Path, expected: dict[str, Any]) -> bytes:
    data = read_file(path, expected["bytes"])
    if sha256_of(data) != expected["sha256"]:
        wanted = f"{expected['bytes']} bytes as they were saved"
        raise refusal(path, wanted, f"{len(data)} truncated or altered ones", RESTORE)
    return data


def _remove_building(building: Path) -> None:
    """Remove the files of a first save that crashed."""
    with suppress(FileNotFoundError):
        for name in (_CONFIG, _TENSORS):
            (building / name).unlink(missing_ok=True)
        building.rmdir()
