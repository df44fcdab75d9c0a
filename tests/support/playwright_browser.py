"""A headless Chromium that tests click and type in, by playwright; skipped where either lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from benchmarks.browser import FLAGS
from support.browser import CHROMIUM


@contextmanager
def browser() -> Iterator[Any]:
    """A browser that can reach this machine alone."""
    api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install playwright")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield started
        finally:
            started.close()


@contextmanager
def opened(started: Any, url: str, width: int = 1200, expected: str | None = None) -> Iterator[Any]:
    """A page, closed at the end. Its console may have nothing but lines with ``expected``."""
    page = started.new_page(viewport={"width": width, "height": 900})
    heard: list[str] = []
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.goto(url)
    try:
        yield page
        assert [line for line in heard if expected is None or expected not in line] == []
    finally:
        page.close()
