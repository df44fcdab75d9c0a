"""The explorer of a default model of apartments, served to a headless Chromium.

It needs playwright and a Chromium of the system; pages reach this machine alone.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from nkcme.errors import NkcmeError

#: Options of a Chromium without a window that reaches this machine alone.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
_NAMES = ("chromium", "chromium-browser", "google-chrome")

#: Seconds that a server may take to start, and a page to answer.
_START, _ANSWER = 120.0, 30.0

#: Rows that the model is fitted to, and rows that are explored and reported.
N_TRAIN, N_TEST = 900, 300


class Fitted(NamedTuple):
    """The default model of the generated apartments, and the rows that it was not fitted to."""

    model: Path
    table: Path
    name: str
    seconds: float


def fit_apartments(folder: Path) -> Fitted:
    """Fit ``NKCME()`` to a messy table, as `nkcme fit` does, and write the other rows as CSV."""
    from nkcme.datasets import load_apartments

    messy = load_apartments(N_TRAIN + N_TEST).messy
    train, test, model = folder / "train.csv", folder / "flats.csv", folder / "flats"
    messy[:N_TRAIN].to_csv(train, index=False, sep=";")
    messy[N_TRAIN:].to_csv(test, index=False, sep=";")
    start = time.perf_counter()
    command = ["fit", str(train), "--target", "price", "--out", str(model), "--test-size", "0"]
    subprocess.run([sys.executable, "-m", "nkcme", *command], check=True, capture_output=True)
    return Fitted(model, test, "NKCME() on the generated apartments", time.perf_counter() - start)


@contextmanager
def explored() -> Iterator[tuple[str, Fitted]]:
    """The address of an explorer, which is stopped at the end, and its model."""
    with tempfile.TemporaryDirectory() as folder:
        fitted = fit_apartments(Path(folder))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [sys.executable, "-m", "nkcme", "explore", str(fitted.model), str(fitted.table)]
        server = subprocess.Popen(
            [*command, "--port", str(port), "--no-open"], stderr=subprocess.DEVNULL
        )
        try:
            url = f"http://127.0.0.1:{port}/"
            _wait_for(url, server)
            yield url, fitted
        finally:
            server.terminate()
            server.wait(30)


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError as error:
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError("nkcme explore did not start") from error
            time.sleep(0.05)


@contextmanager
def browser() -> Iterator[Any]:
    """A headless Chromium."""
    path = next(filter(None, map(shutil.which, _NAMES)), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise NkcmeError("playwright is not installed; install nkcme[dev]") from error
    if path is None:
        raise NkcmeError(f"there is no browser: install one of {', '.join(_NAMES)}")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield started
        finally:
            started.close()


def settle(page: Any) -> None:
    """Wait until the explorer shows the answer to what was changed last."""
    end = time.monotonic() + _ANSWER
    while page.evaluate("document.body.dataset.state") != "answered":
        if time.monotonic() > end:
            raise RuntimeError("the explorer does not answer")
        time.sleep(0.01)
