"""A fitted model <-> a directory of JSON and safetensors; a checkpoint <-> one safetensors file.

Nothing is pickled, so nothing in a file can run code. Each file carries SHA-256 digests: they
catch accidents but are no signature, so what they cover is validated again behind them. A save
is atomic for one writer at a time: a crash at any moment leaves the old model or the new one.
"""

import hashlib
import json
import math
import os
import reprlib
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from nkcme._version import __version__
from nkcme.errors import ModelFileError
from nkcme.model_files import strict_json
from nkcme.model_files.atomic_files import fsync_directory, replacing, write_file

FORMAT = "nkcme-model"
FORMAT_VERSION = 1

_CHECKPOINT_FORMAT = "nkcme-checkpoint"
_CHECKPOINT_HEAD = b'{"__metadata__":{"nkcme-checkpoint":'  # follows 8 bytes of header length
_CONFIG, _NEW_CONFIG = "config.json", "config.json.new"
_TENSORS, _NEW_TENSORS = "model.safetensors", "model.safetensors.new"
_DTYPES = {"F32": "float32", "F64": "float64", "I32": "int32", "I64": "int64"}
_DTYPES |= {"U32": "uint32", "U8": "uint8", "BOOL": "bool"}

# Bounds on what is read, beside those of strict_json.
_MAX_CONFIG_BYTES = 16 * 2**20
_MAX_HEADER_BYTES = 100_000_000  # safetensors' own
_MAX_TENSORS = 10_000

_RESTORE = "the file is damaged or not of nkcme: restore a copy, or fit and save again"
_CHANGE = "change what is saved"
_ELSEWHERE = "choose another path; nothing was overwritten"

PathLike = str | os.PathLike[str]
Arrays = Mapping[str, np.ndarray]
Contents = tuple[dict[str, Any], dict[str, np.ndarray]]


def write_model(path: PathLike, config: Mapping[str, Any], arrays: Arrays) -> None:
    """Save `config` (what JSON can say, with text as keys; tuples become lists) and `arrays`.

    Missing parents are made. A model already at `path` is replaced; anything else is refused.
    """
    with _only_model_file_errors(path, "written", _CHANGE):
        directory = Path(path).absolute()
        tensors = _pack(_portable(arrays))
        summary = {"bytes": len(tensors), "sha256": _sha256(tensors)}
        text = _seal(FORMAT, config, summary, directory / _CONFIG, indent=2)
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
        except OSError:  # a full disk, say: give back the space of half-written files
            with suppress(OSError, ModelFileError):
                _remove_building(building)
                _finish_or_discard_interrupted_save(directory)
            raise


def check_destination(path: PathLike) -> None:
    """Raise the ModelFileError with which `write_model` would refuse `path`, and write nothing.

    For those who have long work to do before they save.
    """
    with _only_model_file_errors(path, "written", _CHANGE):
        directory = Path(path).absolute()
        building = _building(directory)
        absent = [parent for parent in building.parents if not os.path.lexists(parent)]
        try:
            if _prepare(directory, building):
                with tempfile.TemporaryFile(dir=directory):
                    pass
        finally:
            for made in (building, *absent):
                with suppress(OSError):
                    made.rmdir()


def read_model(path: PathLike) -> Contents:
    """Give back the config and the arrays (sorted by name) that `write_model` saved at `path`."""
    with _only_model_file_errors(path, "read", _RESTORE):
        directory = _model_directory(path)
        text = _read_file(directory / _CONFIG, _MAX_CONFIG_BYTES)
        while True:
            document = _unseal(text, FORMAT, directory / _CONFIG)
            try:
                tensors = _live_tensors(directory, document["tensors"])
                return document["model"], _unpack(tensors, directory / _TENSORS)[0]
            except (ModelFileError, OSError):
                # A save that finished between our reads shows as another config: look again.
                latest = _read_file(directory / _CONFIG, _MAX_CONFIG_BYTES)
                if latest == text:
                    raise
                text = latest


def read_header(path: PathLike) -> dict[str, Any]:
    """What the model at `path` was written by: `format_version` and `library_version`."""
    with _only_model_file_errors(path, "read", _RESTORE):
        config = _model_directory(path) / _CONFIG
        document = _unseal(_read_file(config, _MAX_CONFIG_BYTES), FORMAT, config)
        return {key: document[key] for key in ("format_version", "library_version")}


def write_checkpoint(path: PathLike, config: Mapping[str, Any], arrays: Arrays) -> None:
    """Save `config` and `arrays` as the one file `path`; a checkpoint there is replaced."""
    with _only_model_file_errors(path, "written", _CHANGE):
        file = Path(path).absolute()
        arrays = _portable(arrays)
        text = _seal(_CHECKPOINT_FORMAT, config, _fingerprint(arrays), file)
        data = _pack(arrays, {_CHECKPOINT_FORMAT: text.decode()})
        head = _read_head(file) if os.path.lexists(file) else b""
        if head and not head.endswith(_CHECKPOINT_HEAD):
            raise _refusal(file, "a new path or a checkpoint", "another file", _ELSEWHERE)
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file, file.with_name(f"{file.name}.new")) as new:
            new.write(data)
        fsync_directory(file.parent)


def read_checkpoint(path: PathLike) -> Contents:
    """Give back the config and the arrays (sorted by name) that `write_checkpoint` saved."""
    with _only_model_file_errors(path, "read", _RESTORE):
        file = Path(path)
        if not _read_head(file).endswith(_CHECKPOINT_HEAD):  # before a huge file is read whole
            raise _refusal(file, "a checkpoint", "a foreign file", _RESTORE)
        arrays, metadata = _unpack(_read_file(file), file)
        text = metadata.get(_CHECKPOINT_FORMAT, "").encode()
        document = _unseal(text, _CHECKPOINT_FORMAT, file)
        if _fingerprint(arrays) != document["tensors"]:
            raise _refusal(file, "tensors as they were saved", "altered ones", _RESTORE)
        return document["model"], arrays


def _refusal(path: PathLike, expected: str, found: str, remedy: str) -> ModelFileError:
    """Build the one-line error; quoting the path keeps an odd file name on that line too."""
    message = f"{str(path)!r}: expected {expected}, found {found}; {remedy}"
    return ModelFileError(" ".join(message.split()))


@contextmanager
def _only_model_file_errors(path: PathLike, action: str, remedy: str) -> Iterator[None]:
    """Turn what the operating system, JSON, numpy or a hostile value throws into our error."""
    try:
        yield
    except ModelFileError:
        raise
    except OSError as error:
        remedy = "check the path, its permissions and the free space"
        path, found = error.filename or path, error.strerror or str(error)
        raise _refusal(path, f"a path that can be {action}", found, remedy) from error
    except (ValueError, TypeError, ArithmeticError, RecursionError, MemoryError) as error:
        found = f"{type(error).__name__}: {str(error)[:300]}"
        raise _refusal(path, f"content that can be {action}", found, remedy) from error


def _seal(
    kind: str,
    config: Mapping[str, Any],
    tensors: dict[str, Any],
    path: Path,
    indent: int | None = None,
) -> bytes:
    """Wrap the caller's config with what a reader needs to recognise and verify it."""
    envelope = {"format": kind, "format_version": FORMAT_VERSION, "library_version": __version__}
    envelope |= {"model": dict(config), "tensors": tensors}
    # Seen as a reader will see it: what it would refuse is refused before a file is touched.
    document = _parse_json(strict_json.dumps(envelope), path, _CHANGE)
    document["config_sha256"] = _sha256(strict_json.dumps(document))
    text = strict_json.dumps(document, indent)
    if len(text) > _MAX_CONFIG_BYTES:
        expected = f"a config of at most {_MAX_CONFIG_BYTES} bytes of JSON"
        raise _refusal(path, expected, f"{len(text)}", "move large values to the arrays")
    return text


def _unseal(text: bytes, kind: str, path: Path) -> dict[str, Any]:
    """Check that `text` is one of our documents, of a version we know, and unaltered."""
    document = _parse_json(text, path)
    if not isinstance(document, dict) or document.get("format") != kind:
        found = document.get("format") if isinstance(document, dict) else document
        raise _refusal(path, f"the format '{kind}'", reprlib.repr(found), _RESTORE)
    version = document.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        newer = type(version) is int and version > FORMAT_VERSION
        found = f"{version!r:.20} by nkcme {reprlib.repr(document.get('library_version'))}"
        remedy = f"upgrade nkcme (this is {__version__})" if newer else _RESTORE
        raise _refusal(path, f"format version {FORMAT_VERSION}", found, remedy)
    if document.pop("config_sha256", None) != _sha256(strict_json.dumps(document)):
        raise _refusal(path, "the config as it was saved", "an altered one", _RESTORE)
    tensors = document.get("tensors")
    if not isinstance(tensors, dict) or not isinstance(document.get("model"), dict):
        raise _refusal(path, "objects 'model' and 'tensors'", "other types", _RESTORE)
    if not isinstance(document.get("library_version"), str):
        raise _refusal(path, "a text 'library_version'", "another type", _RESTORE)
    if type(tensors.get("bytes")) is not int or not isinstance(tensors.get("sha256"), str):
        raise _refusal(path, "'bytes' and 'sha256' of the tensors", "other types", _RESTORE)
    return document


def _parse_json(data: bytes, path: Path, remedy: str = _RESTORE) -> Any:
    try:
        return strict_json.loads(data)
    except ValueError as error:
        raise _refusal(path, "strict JSON", str(error)[:300], remedy) from error


def _portable(arrays: Arrays) -> dict[str, np.ndarray]:
    """Make arrays little-endian and C-contiguous; refuse what the format does not hold."""
    if len(arrays) >= _MAX_TENSORS:  # one entry of the header is left for the metadata
        raise ValueError(f"{len(arrays)} arrays, where the limit is {_MAX_TENSORS - 1}")
    result = {}
    for name, array in arrays.items():
        array = np.asarray(array)
        if not isinstance(name, str) or name == "__metadata__":  # safetensors' own key
            raise TypeError(f"an array cannot be named {name!r}")
        if array.dtype.name not in _DTYPES.values():
            allowed = ", ".join(_DTYPES.values())
            raise TypeError(f"array {name!r} has dtype {array.dtype}, not one of {allowed}")
        result[name] = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    return result


def _pack(arrays: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> bytes:
    # Imported here: the library must train and predict where safetensors is not installed.
    from safetensors.numpy import save

    return save(arrays, metadata)


def _unpack(data: bytes, path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Parse safetensors bytes into arrays and metadata.

    Our own look at the header bounds its cost and refuses duplicates and other dtypes; that
    tensors fill the file without overlap is what safetensors checks before it copies them.
    """
    # Imported here: the library must train and predict where safetensors is not installed.
    from safetensors import SafetensorError
    from safetensors.numpy import load

    length, room = int.from_bytes(data[:8], "little"), min(len(data) - 8, _MAX_HEADER_BYTES)
    if length > room:
        raise _refusal(path, f"a header of at most {room} bytes", f"{length}", _RESTORE)
    header = _parse_json(data[8 : 8 + length], path)
    if not isinstance(header, dict) or len(header) > _MAX_TENSORS:
        expected = f"a safetensors header of at most {_MAX_TENSORS} entries"
        raise _refusal(path, expected, reprlib.repr(header), _RESTORE)
    metadata = header.pop("__metadata__", None)
    for name, entry in header.items():
        dtype = entry.get("dtype") if isinstance(entry, dict) else entry
        if not isinstance(dtype, str) or dtype not in _DTYPES:
            found = f"{reprlib.repr(dtype)} for {reprlib.repr(name)}"
            raise _refusal(path, f"a dtype among {', '.join(_DTYPES)}", found, _RESTORE)
    try:
        arrays = dict(sorted(load(data).items()))
    except (SafetensorError, ValueError) as error:
        raise _refusal(path, "a safetensors file", str(error)[:300], _RESTORE) from error
    for name, array in arrays.items():
        # To numpy a boolean that is neither 0 nor 1 is undefined behaviour.
        if array.dtype == bool and (array.view(np.uint8) > 1).any():
            found = f"other bytes in {reprlib.repr(name)}"
            raise _refusal(path, "booleans of 0 and 1", found, _RESTORE)
    return arrays, metadata or {}


def _fingerprint(arrays: Arrays) -> dict[str, Any]:
    """Digest names, dtypes, shapes and values: a checkpoint cannot hold its own file's digest."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(json.dumps([name, array.dtype.name, array.shape]).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    size = sum(array.nbytes for array in arrays.values())
    return {"bytes": size, "sha256": digest.hexdigest()}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _model_directory(path: PathLike) -> Path:
    directory = Path(path)
    if directory.is_dir():
        return directory
    found = "a file" if directory.exists() else "nothing"
    remedy = f"give the directory that holds {_CONFIG} and {_TENSORS}"
    raise _refusal(path, "a model directory", found, remedy)


def _building(directory: Path) -> Path:
    """Where a model that is new takes shape, beside its place."""
    return directory.with_name(f".{directory.name}.nkcme-partial")


def _prepare(directory: Path, building: Path) -> bool:
    """Make ready to save, or refuse; say whether there is a model to replace, or nothing yet."""
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
    os.replace(directory / _NEW_CONFIG, directory / _CONFIG)  # carries the new tensors' digest
    fsync_directory(directory)
    os.replace(directory / _NEW_TENSORS, directory / _TENSORS)
    fsync_directory(directory)


def _finish_or_discard_interrupted_save(directory: Path) -> None:
    """Leave `directory` with no temporary file; refuse one that holds files but no model.

    New tensors that config.json already names are the live ones: they move into place, so that
    the save that follows does not begin by deleting the only good copy.
    """
    text = b"null"
    expected = "a new path, an empty directory or a model"
    if not directory.is_dir():
        raise _refusal(directory, expected, "a file", _ELSEWHERE)
    if set(os.listdir(directory)) - {_NEW_CONFIG, _NEW_TENSORS}:
        try:
            text = _read_file(directory / _CONFIG, _MAX_CONFIG_BYTES)
            ours = _parse_json(text, directory).get("format") == FORMAT
        except (FileNotFoundError, ModelFileError, AttributeError):
            ours = False
        if not ours:
            raise _refusal(directory, expected, "other files", _ELSEWHERE)
    (directory / _NEW_CONFIG).unlink(missing_ok=True)
    new_tensors = directory / _NEW_TENSORS
    try:
        _read_tensors(new_tensors, _unseal(text, FORMAT, directory)["tensors"])
    except (FileNotFoundError, ModelFileError):
        new_tensors.unlink(missing_ok=True)
    else:
        os.replace(new_tensors, directory / _TENSORS)
    fsync_directory(directory)


def _live_tensors(directory: Path, expected: dict[str, Any]) -> bytes:
    """Read the tensors that config.json names: the new ones, if a crash left them unmoved.

    In this order, a save that moves them between the two looks is seen whole.
    """
    try:
        return _read_tensors(directory / _NEW_TENSORS, expected)
    except (OSError, ModelFileError):
        return _read_tensors(directory / _TENSORS, expected)


def _read_tensors(path: Path, expected: dict[str, Any]) -> bytes:
    data = _read_file(path, expected["bytes"])
    if _sha256(data) != expected["sha256"]:
        wanted = f"{expected['bytes']} bytes as they were saved"
        raise _refusal(path, wanted, f"{len(data)} truncated or altered ones", _RESTORE)
    return data


def _read_head(path: Path) -> bytes:
    return _read_file(path, first=8 + len(_CHECKPOINT_HEAD))


def _read_file(path: Path, at_most: float = math.inf, first: int | None = None) -> bytes:
    """Read a regular file (all, or its `first` bytes), but no link, pipe or device."""
    never_wait = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)
    if stat.S_ISREG(os.lstat(path).st_mode):
        with open(path, "rb", opener=lambda p, flags: os.open(p, flags | never_wait)) as file:
            status = os.fstat(file.fileno())
            if status.st_size > at_most:
                found = f"{status.st_size}"
                raise _refusal(path, f"at most {at_most} bytes", found, _RESTORE)
            if stat.S_ISREG(status.st_mode):  # still: the path may have changed hands
                return file.read(status.st_size if first is None else first)
    raise _refusal(path, "a regular file", "a directory, link, pipe or device", _RESTORE)


def _remove_building(building: Path) -> None:
    """Remove what a crashed first save left beside its target."""
    with suppress(FileNotFoundError):
        for name in (_CONFIG, _TENSORS):
            (building / name).unlink(missing_ok=True)
        building.rmdir()


class CheckpointFile:
    """A checkpoint at a path, as `nkcme.training.loop.train` wants it."""

    def __init__(self, path: PathLike):
        self._path = Path(path)

    def __str__(self) -> str:
        return str(self._path)

    def load(self) -> Contents | None:
        """The checkpoint, or None where there is none yet."""
        return read_checkpoint(self._path) if self._path.exists() else None

    def save(self, config: Mapping[str, Any], arrays: Arrays) -> None:
        write_checkpoint(self._path, config, arrays)
