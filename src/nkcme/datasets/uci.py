"""The UCI data sets of the paper: finding them, and downloading those that are missing.

A data set is looked for in the directory that ``NKCME_DATA`` names, then in the user's cache, and
is then downloaded into the cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import platformdirs

from nkcme.datasets.download import DownloadBar, open_session
from nkcme.datasets.uci_formats import UciSet, UciTable
from nkcme.datasets.uci_sets import UCI
from nkcme.errors import DataError
from nkcme.training.progress import wants_progress

#: The environment variable that names a directory of data sets, in the published layout.
DATA_VARIABLE = "NKCME_DATA"

#: Seconds without a byte after which a download fails.
TIMEOUT = 30.0


def load_uci(name: str, data_home: str | os.PathLike[str] | None = None) -> UciTable:
    """Load a UCI data set: from ``NKCME_DATA``, else from the user's cache, else by download.

    Parameters
    ----------
    name
        A key of `UCI`: boston, concrete, energy, kin8nm, naval, power, protein or year.
    data_home
        Look in this directory only, and download into it.

    Returns
    -------
    UciTable

    Raises
    ------
    DataError
        If there is none of this name, a file differs from the published one, or the download
        fails.

    Examples
    --------
    >>> from nkcme.datasets import load_uci
    >>> table = load_uci("concrete")  # doctest: +SKIP
    >>> train, test = table.fold(0)  # doctest: +SKIP
    """
    directory = find_uci(name, data_home) or fetch_uci(name, data_home)
    return known_set(name).read(directory)


def find_uci(name: str, data_home: str | os.PathLike[str] | None = None) -> Path | None:
    """Find the directory that holds all files of a data set; the files are not read.

    Parameters
    ----------
    name
        A key of `UCI`.
    data_home
        Look in this directory only.

    Returns
    -------
    Path or None
        None if the data set must be downloaded.

    Raises
    ------
    DataError
        If there is none of this name, or ``NKCME_DATA`` holds some but not all of its files.
    """
    wanted = known_set(name)
    given, cache = _homes(data_home)
    if given is not None and wanted.directory(given).is_dir():
        if missing := wanted.missing(given):
            raise DataError(
                f"{wanted.directory(given)} lacks {missing[0]}, so {name} is incomplete; add the "
                f"file, or remove the directory from {DATA_VARIABLE}"
            )
        return wanted.directory(given)
    return None if wanted.missing(cache) else wanted.directory(cache)


def fetch_uci(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    *,
    timeout: float = TIMEOUT,
    verbose: bool | str = "auto",
) -> Path:
    """Download a data set unless it is there, and verify its files.

    Files in the cache that differ from the published ones are replaced. A download that fails keeps
    the complete files and the beginning of the one that failed; the next call continues there.

    Parameters
    ----------
    name
        A key of `UCI`.
    data_home
        Look in this directory only, and download into it.
    timeout
        Seconds without a byte after which the download fails.
    verbose
        Whether to show a progress bar; ``"auto"`` shows it on a terminal.

    Returns
    -------
    Path
        The directory that holds the files.

    Raises
    ------
    DataError
        If there is none of this name, the download fails, or a file differs from the published
        one.
    """
    wanted = known_set(name)
    _, cache = _homes(data_home)
    ours = wanted.directory(cache)
    directory = find_uci(name, data_home)
    if directory is not None:
        try:
            wanted.check(directory)
        except DataError:
            if directory != ours:
                raise
        else:
            return directory
    with (
        open_session() as session,
        _locked(ours),
        DownloadBar(len(wanted.files), name, wants_progress(verbose)) as bar,
    ):
        wanted.fetch(ours, session, timeout, bar)
    return ours


def describe_uci() -> list[dict[str, Any]]:
    """The name, the size and the place of each data set, as plain values."""
    given, cache = _homes(None)
    homes = {DATA_VARIABLE: given, "the cache": cache}
    return [
        {
            "name": known.name,
            "rows": known.n_rows,
            "features": known.n_features,
            "folds": known.n_folds,
            "where": _where(known, {called: home for called, home in homes.items() if home}),
        }
        for known in UCI.values()
    ]


def _where(known: UciSet, homes: Mapping[str, Path]) -> str:
    for called, home in homes.items():
        if known.directory(home).is_dir():
            return f"{called}, incomplete" if known.missing(home) else called
    return "not downloaded"


def known_set(name: str) -> UciSet:
    """The data set of this name; refuses a name that there is not."""
    if name not in UCI:
        raise DataError(f"no UCI data set is named {name!r}; there are {', '.join(UCI)}")
    return UCI[name]


def _homes(data_home: str | os.PathLike[str] | None) -> tuple[Path | None, Path]:
    """The directory of data sets that the user gave, if any, and the one for downloads."""
    if data_home is not None:
        return None, Path(data_home)
    cache = Path(platformdirs.user_cache_dir("nkcme")) / "uci"
    given = os.environ.get(DATA_VARIABLE)
    if not given:
        return None, cache
    if not Path(given).is_dir():
        raise DataError(f"{DATA_VARIABLE} must name a directory; {given} is not one")
    return Path(given), cache


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Make a directory, and make other processes wait that would download into it.

    The lock is on the directory itself, so it leaves no file and ends with the process. Where there
    are no such locks (Windows, some network disks), two simultaneous downloads may damage each
    other's partial file; the hash then differs, and the file is not kept.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(
            f"cannot make {directory}: {error.strerror}; set {DATA_VARIABLE} to a directory that "
            "holds the data"
        ) from None
    descriptor = None
    with suppress(ImportError, OSError):
        import fcntl

        descriptor = os.open(directory, os.O_RDONLY)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with suppress(OSError):  # not empty: there is something to keep
            directory.rmdir()
            directory.parent.rmdir()
        if descriptor is not None:
            os.close(descriptor)
