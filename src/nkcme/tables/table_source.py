"""A table file, or standard input, and its format by the extension or the first bytes."""

from __future__ import annotations

import gzip
import io
import os
import sys
from pathlib import Path
from typing import IO, cast

from nkcme.errors import TableError

#: The separators of text files by extension.
SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
PARQUET = ".parquet"
EXCEL = ".xlsx"

#: The formats in which tables are written, and those that are read.
WRITTEN = (*SEPARATORS, PARQUET)
READ = (*WRITTEN, EXCEL)

STDIN = "-"

#: The first bytes of files other than text, which identify the format of standard input.
_FIRST_BYTES = {b"PAR1": PARQUET, b"PK\x03\x04": EXCEL, b"\x1f\x8b": ".csv.gz"}


class TableSource:
    """A file, or the contents of standard input, which can be opened several times."""

    def __init__(self, name: str, extension: str, path: Path | None, content: bytes = b""):
        self.name, self.extension, self.path, self._content = name, extension, path, content

    @classmethod
    def of(cls, path: str | Path) -> TableSource:
        if str(path) == STDIN:
            content = sys.stdin.buffer.read()
            found = [kind for first, kind in _FIRST_BYTES.items() if content.startswith(first)]
            return cls("standard input", found[0] if found else ".csv", None, content)
        path = Path(path)
        if os.path.isdir(path):
            raise TableError(f"{path} is a directory, expected a table file; name the file in it")
        return cls(str(path), extension_of(path, READ), path)

    @property
    def place(self) -> Path | IO[bytes]:
        """The path, or standard input from its start."""
        return io.BytesIO(self._content) if self.path is None else self.path

    def open(self) -> IO[bytes]:
        """The bytes of the file."""
        return io.BytesIO(self._content) if self.path is None else self.path.open("rb")

    def open_text(self) -> IO[bytes]:
        """The bytes of a text file, unpacked."""
        if self.extension.endswith(".gz"):
            return cast("IO[bytes]", gzip.open(self.place))
        return self.open()


def extension_of(path: Path, known: tuple[str, ...]) -> str:
    """The extension of a path, which must be a known one."""
    for extension in known:
        if path.name.lower().endswith(extension):
            return extension
    raise TableError(
        f"{path} has no known extension, expected {', '.join(known)}; convert or rename the file"
    )
