"""The UCI sets of the paper: where they are, and their download if they are nowhere.

A set is looked for in the directory that ``NKCME_DATA`` names, then in the user's cache, and is
then downloaded into the cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import platformdirs

from nkcme.datasets.download import DownloadBar, open_session
from nkcme.datasets.uci_sets import UCI, UciSet, UciTable
from nkcme.errors import DataError
from nkcme.training.progress import wants_progress

#: The environment: a directory that holds sets, in the published layout.
DATA_VARIABLE = "NKCME_DATA"

#: Seconds without a byte after which a download is given up.
TIMEOUT = 30.0


def load_uci(name: str, data_home: str | os.PathLike[str] | None = None) -> UciTable:
    """A UCI set: from ``NKCME_DATA``, else from the user's cache, else downloaded.

    Parameters
    ----------
    name
        A key of ``UCI``: boston, concrete, energy, kin8nm, naval, power, protein, year.
    data_home
        Look in this directory alone, and download into it.
    """
    directory = find_uci(name, data_home) or fetch_uci(name, data_home)
    return known_set(name).read(directory)


def find_uci(name: str, data_home: str | os.PathLike[str] | None = None) -> Path | None:
    """The directory that holds all files of a set, unread; None if it must be downloaded."""
    wanted = known_set(name)
    given, cache = _homes(data_home)
    if given is not None and wanted.directory(given).is_dir():
        if missing := wanted.missing(given):
            raise DataError(
                f"{wanted.directory(given)} lacks {missing[0]} and so holds {name} only in part; "
                f"complete it, or take it out of {DATA_VARIABLE}"
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
    """The directory with the verified files of a set, after a download if they are not here.

    Files in the cache that are not as published are replaced. A download that fails leaves the
    files that are whole and the beginning of the one it failed at: the next one goes on there.
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
        wanted.bring(ours, session, timeout, bar)
    return ours


def describe_uci() -> list[dict[str, Any]]:
    """For each set its name, its size and where it is, as plain values."""
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
            return f"{called}, in part" if known.missing(home) else called
    return "not here"


def known_set(name: str) -> UciSet:
    if name not in UCI:
        raise DataError(f"no UCI set is called {name!r}; there are {', '.join(UCI)}")
    return UCI[name]


def _homes(data_home: str | os.PathLike[str] | None) -> tuple[Path | None, Path]:
    """The directory of sets that the user gave, if any, and the one that downloads go to."""
    if data_home is not None:
        return None, Path(data_home)
    cache = Path(platformdirs.user_cache_dir("nkcme")) / "uci"
    given = os.environ.get(DATA_VARIABLE)
    if not given:
        return None, cache
    if not Path(given).is_dir():
        raise DataError(f"{DATA_VARIABLE} must name a directory; {given} is none")
    return Path(given), cache


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Make a directory and keep other processes from downloading into it; they wait.

    The lock is on the directory itself, so it leaves no file and ends with the process. Where there
    are no such locks (Windows, some network disks) two downloads at once may spoil each other's
    part; their hashes tell, and nothing wrong is kept.
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
