"""The JSON document of a model or checkpoint: format, version, digests and the caller's config.

The digest catches accidents and is no signature, so the fields are validated behind it.
"""

from __future__ import annotations

import hashlib
import reprlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nkcme._version import __version__
from nkcme.model_files import strict_json
from nkcme.model_files.refusals import CHANGE, RESTORE, refusal

FORMAT_VERSION = 1
MAX_BYTES = 16 * 2**20


def seal(
    kind: str,
    config: Mapping[str, Any],
    tensors: dict[str, Any],
    path: Path,
    indent: int | None = None,
) -> bytes:
    """The document of a config, with what a reader needs to recognise and verify it.

    ``tensors`` holds the size and the digest of the arrays that belong to it.
    """
    envelope = {"format": kind, "format_version": FORMAT_VERSION, "library_version": __version__}
    envelope |= {"model": dict(config), "tensors": tensors}
    # Parsed as a reader will parse it, so what a reader would refuse is refused before writing.
    document = parse(strict_json.dumps(envelope), path, CHANGE)
    document["config_sha256"] = sha256_of(strict_json.dumps(document))
    text = strict_json.dumps(document, indent)
    if len(text) > MAX_BYTES:
        expected = f"a config of at most {MAX_BYTES} bytes of JSON"
        raise refusal(path, expected, f"{len(text)}", "move large values to the arrays")
    return text


def unseal(text: bytes, kind: str, path: Path) -> dict[str, Any]:
    """The document in ``text``, once it is known to be ours, unaltered and of a known version."""
    document = parse(text, path)
    if not isinstance(document, dict) or document.get("format") != kind:
        found = document.get("format") if isinstance(document, dict) else document
        raise refusal(path, f"the format '{kind}'", reprlib.repr(found), RESTORE)
    version = document.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        newer = type(version) is int and version > FORMAT_VERSION
        found = f"{version!r:.20} by nkcme {reprlib.repr(document.get('library_version'))}"
        remedy = f"upgrade nkcme (this is {__version__})" if newer else RESTORE
        raise refusal(path, f"format version {FORMAT_VERSION}", found, remedy)
    if document.pop("config_sha256", None) != sha256_of(strict_json.dumps(document)):
        raise refusal(path, "the config as it was saved", "an altered one", RESTORE)
    tensors = document.get("tensors")
    if not isinstance(tensors, dict) or not isinstance(document.get("model"), dict):
        raise refusal(path, "objects 'model' and 'tensors'", "other types", RESTORE)
    if not isinstance(document.get("library_version"), str):
        raise refusal(path, "a text 'library_version'", "another type", RESTORE)
    if type(tensors.get("bytes")) is not int or not isinstance(tensors.get("sha256"), str):
        raise refusal(path, "'bytes' and 'sha256' of the tensors", "other types", RESTORE)
    return document


def parse(data: bytes, path: Path, remedy: str = RESTORE) -> Any:
    """The value of strict JSON; a ModelFileError where it is not strict."""
    try:
        return strict_json.loads(data)
    except ValueError as error:
        raise refusal(path, "strict JSON", str(error)[:300], remedy) from error


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
