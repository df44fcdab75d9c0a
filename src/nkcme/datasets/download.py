"""Verified downloads that resume where they were interrupted. The only module that imports pooch.

pooch downloads to a temporary name, checks the hash, and only then moves the file to its own name.
It cannot resume, so it gets a downloader that can.
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

# Bytes written at a time. An incomplete chunk is lost when a connection breaks, so it is small.
_CHUNK = 4096

#: Receives the number of bytes so far and, if the server sends it, the size of the file.
OnBytes = Callable[[int, int | None], object]


def download(
    url: str, path: Path, sha256: str | None, *, timeout: float, on_bytes: OnBytes, session: Any
) -> None:
    """Download a file to ``path``, where it appears complete and verified or not at all.

    When a connection breaks, the bytes received are kept in ``path`` + ``.part``, and the next call
    requests only the rest. Without a hash the caller must check the file.
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
        advice = f"{kept:,} bytes are kept; try again to continue" if kept else "try again later"
        raise DataError(f"the download of {url} failed: {why}; {advice}") from None
    except PermissionError:
        raise DataError(f"cannot write in {path.parent}: permission denied") from None
    except OSError as error:
        raise DataError(f"cannot write {path}: {error.strerror}") from None
    except ValueError:  # raised by pooch when the hash differs; it has deleted the file
        raise DataError(
            f"{url} is not the published file: its sha256 is not {sha256}; nothing was kept"
        ) from None


def part_of(path: Path) -> Path:
    """Where the beginning of an interrupted download is kept."""
    return path.with_name(path.name + ".part")


@contextmanager
def open_session() -> Iterator[Any]:
    """A connection for many downloads."""
    try:
        import pooch  # noqa: F401  imported here, before anything is made on disk
        import requests
    except ImportError:
        raise DataError(
            "a download needs pooch: pip install 'nkcme[data]'; or set NKCME_DATA to a directory "
            "that holds the data"
        ) from None
    with requests.Session() as session:
        yield session


class ResumingDownloader:
    """Downloads a URL to the temporary file of pooch, through a partial file that survives failure.

    The partial file is handed over when complete. If its hash is wrong, pooch deletes it, so an
    altered partial file is not used again.
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
        finally:  # without a first byte there is nothing to keep
            with suppress(OSError):
                if self.part.stat().st_size == 0:
                    self.part.unlink()

    def _receive(self, url: str) -> bool:
        """Receive the missing bytes; False if the partial file is not a beginning of the file."""
        kept = self.part.stat().st_size if self.part.exists() else 0
        # Bytes are counted, so the server must not compress the file.
        headers = {"Accept-Encoding": "identity"}
        if kept:
            headers["Range"] = f"bytes={kept}-"
        with self._session.get(
            url, headers=headers, stream=True, timeout=self._timeout
        ) as response:
            if kept and response.status_code == 416:  # nothing begins there: complete, or too long
                return response.headers.get("Content-Range") == f"bytes */{kept}"
            response.raise_for_status()
            resumes = response.status_code == 206
            if resumes and _range_start(response.headers.get("Content-Range", "")) != kept:
                return False
            received = kept if resumes else 0  # a server that ignores Range sends the whole file
            length = response.headers.get("Content-Length", "")
            total = received + int(length) if length.isdecimal() else None
            # Unbuffered, so that a killed download keeps every chunk it has received.
            with open(self.part, "ab" if resumes else "wb", buffering=0) as file:
                for chunk in response.iter_content(_CHUNK):
                    file.write(chunk)
                    received += len(chunk)
                    self._on_bytes(received, total)
        return True


def _range_start(content_range: str) -> int | None:
    match = re.fullmatch(r"bytes (\d+)-\d+/(?:\d+|\*)", content_range)
    return int(match[1]) if match else None


def _why(error: Exception, timeout: float) -> str:
    """The reason for a failure, without the chain of objects that requests prints."""
    text = str(error)
    if "timed out" in text:
        return f"no answer within {timeout:g} s"
    if "IncompleteRead" in text or "prematurely" in text:
        return "the connection was interrupted"
    return f"no connection ({type(error).__name__})"


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """Silence pooch, which announces each file on standard error, where the progress bar is."""
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
