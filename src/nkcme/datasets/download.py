"""Downloads that are verified before they count, and go on where they broke off.

Alone in knowing pooch, which keeps the order of things: a download goes to a temporary name, its
hash is checked, and only then it gets its own name. What pooch does not do is to resume, so it is
given a downloader that does.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as RichProgress

from nkcme.errors import DataError
from nkcme.training.progress import Bar

# Bytes written at a time. What is short of it when a connection breaks is lost, so it is small.
_CHUNK = 4096

#: Told of bytes received and, where the server says, of how many there will be.
OnBytes = Callable[[int, int | None], object]


def download(
    url: str, path: Path, sha256: str | None, *, timeout: float, on_bytes: OnBytes, session: Any
) -> None:
    """Bring a file to ``path``, where it appears whole and verified or not at all.

    What came before a connection broke stays in ``path`` + ``.part``, and the next call asks only
    for the rest. Without a hash the caller must check the file.
    """
    import pooch
    import requests

    fetcher = ResumingDownloader(part_of(path), timeout, on_bytes, session)
    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(url, sha256, fname=path.name, path=path.parent, downloader=fetcher)
    except requests.HTTPError as error:
        raise DataError(f"the download failed: {error}") from None  # it names the address
    except requests.RequestException as error:
        why = _why(error, timeout)
        kept = fetcher.part.stat().st_size if fetcher.part.exists() else 0
        advice = f"{kept:,} bytes are kept; try again to go on" if kept else "try again later"
        raise DataError(f"the download of {url} failed: {why}; {advice}") from None
    except PermissionError:
        raise DataError(f"cannot write in {path.parent}: permission denied") from None
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None
    except ValueError:  # pooch's word for a hash that differs; it has deleted what came
        raise DataError(
            f"{url} is not the published file: its sha256 is not {sha256}; nothing was kept"
        ) from None


def part_of(path: Path) -> Path:
    """Where the beginning of a download that broke off is kept."""
    return path.with_name(path.name + ".part")


@contextmanager
def open_session() -> Iterator[Any]:
    """A connection for many downloads."""
    try:
        import pooch  # noqa: F401  asked for here, before anything is made on disk
        import requests
    except ImportError:
        raise DataError(
            "a download needs pooch: pip install 'nkcme[data]'; or set NKCME_DATA to a directory "
            "that holds the data"
        ) from None
    with requests.Session() as session:
        yield session


class ResumingDownloader:
    """What pooch calls to bring a URL to its temporary file: through a part that outlives failure.

    The part is handed over when complete. Should pooch then find that its hash is wrong it is
    deleted, so a part that was altered never meets a second try.
    """

    def __init__(self, part: Path, timeout: float, on_bytes: OnBytes, session: Any):
        self.part = part
        self._timeout = timeout
        self._on_bytes = on_bytes
        self._session = session

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        try:
            if not self._receive(url):
                self.part.unlink(missing_ok=True)
                self._receive(url)
            os.replace(self.part, output_file)
        finally:  # a server that went silent before the first byte leaves nothing to keep
            with suppress(OSError):
                if self.part.stat().st_size == 0:
                    self.part.unlink()

    def _receive(self, url: str) -> bool:
        """Bring what the part lacks; False if what it holds is no beginning of the file."""
        kept = self.part.stat().st_size if self.part.exists() else 0
        # Bytes are counted, so the file must come as it is and not compressed on the way.
        headers = {"Accept-Encoding": "identity"}
        if kept:
            headers["Range"] = f"bytes={kept}-"
        with self._session.get(
            url, headers=headers, stream=True, timeout=self._timeout
        ) as response:
            if kept and response.status_code == 416:  # nothing begins there: all is here, or more
                return response.headers.get("Content-Range") == f"bytes */{kept}"
            response.raise_for_status()
            resumes = response.status_code == 206
            if resumes and _range_start(response.headers.get("Content-Range", "")) != kept:
                return False
            received = kept if resumes else 0  # a server that ignores Range sends all of it
            length = response.headers.get("Content-Length", "")
            total = received + int(length) if length.isdecimal() else None
            with open(self.part, "ab" if resumes else "wb") as file:
                for chunk in response.iter_content(_CHUNK):
                    file.write(chunk)
                    received += len(chunk)
                    self._on_bytes(received, total)
        return True


def _range_start(content_range: str) -> int | None:
    match = re.fullmatch(r"bytes (\d+)-\d+/(?:\d+|\*)", content_range)
    return int(match[1]) if match else None


def _why(error: Exception, timeout: float) -> str:
    """What happened, without the chain of objects that requests prints."""
    text = str(error)
    if "timed out" in text:
        return f"no answer within {timeout:g} s"
    if "IncompleteRead" in text or "prematurely" in text:
        return "the connection broke off"
    return f"no connection ({type(error).__name__})"


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """pooch announces each file on standard error, where we show a bar."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


class DownloadBar(Bar):
    """A progress bar over the files of a data set and the bytes of the current file."""

    def __init__(self, n_files: int, title: str, visible: bool):
        self._bar = RichProgress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            console=Console(stderr=True),
            disable=not visible,
        )
        self._n_files = n_files
        self._n_done = 0
        self._task = self._bar.add_task(title, total=n_files, count="")

    def on_bytes(self, received: int, total: int | None) -> None:
        """Show the bytes received of the current file; ``total`` is None where it is unknown."""
        share = min(received / total, 1.0) if total else 0.0
        count = f"{self._n_done}/{self._n_files} files, {received / 1e6:.1f} MB of the next"
        self._bar.update(self._task, completed=self._n_done + share, count=count)

    def on_file(self) -> None:
        """Count the current file as done."""
        self._n_done += 1
        count = f"{self._n_done}/{self._n_files} files"
        self._bar.update(self._task, completed=self._n_done, count=count)
