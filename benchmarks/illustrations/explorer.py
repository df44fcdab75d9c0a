"""Pictures of the explorer and of a report, at 1400 and at 400 pixels.

``python -m benchmarks pictures`` takes them in a headless Chromium and writes explorer.png,
explorer-narrow.png, report.png and report-narrow.png to docs/images.
"""

from __future__ import annotations

import io
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.browser import browser, explored, settle
from nkcme.cli.loading import load_with_truth
from nkcme.report.model_report import write_report

_WIDE, _NARROW = 1400, 400

#: Pixels of a narrow page that are shown, and the sections of the report.
_HEIGHT = 1700
_SECTIONS = ("Predictions for single rows", "Drivers")

#: A second scenario that differs from the typical row.
_OTHER = {"area": "170", "age": "110"}
_LIMIT = "260000"

#: Colours of a picture: few, so that files are small.
_COLOURS = 128


def main(images: Path) -> None:
    """Fit a model, and take the pictures."""
    images.mkdir(parents=True, exist_ok=True)
    with explored() as (url, fitted), browser() as started, tempfile.TemporaryDirectory() as folder:
        model, X, y, target = load_with_truth(fitted.model, fitted.table, None, lambda _: None)
        report = Path(folder) / "report.html"
        write_report(model, X, y, report, target=target)
        for width, ending in ((_WIDE, ""), (_NARROW, "-narrow")):
            page = started.new_page(viewport={"width": width, "height": 900})
            page.goto(url)
            _compare(page)
            first: dict[str, float] = {"x": 0, "y": 0, "width": width, "height": _HEIGHT}
            # The line that stays at the bottom of a narrow screen belongs to no place of a page.
            page.add_style_tag(content="#summary { display: none !important; }")
            _take(page, images / f"explorer{ending}.png", None if width == _WIDE else first)
            page.goto(report.as_uri())
            time.sleep(2.0)  # charts are drawn when they come into sight
            _take(page, images / f"report{ending}.png", _around(page, width))
            page.close()


def _compare(page: Any) -> None:
    """Show two scenarios and the probability of an event."""
    settle(page)
    page.locator("#compare").check()
    for name, text in _OTHER.items():
        page.get_by_label(f"{name}, scenario B, as a number", exact=True).fill(text)
    page.get_by_label("limit of the event", exact=True).fill(_LIMIT)
    settle(page)
    page.locator("#title").click()  # nothing has the focus


def _around(page: Any, width: int) -> dict[str, float]:
    """The rectangle of the sections that are shown."""
    boxes = [
        page.locator("section", has=page.get_by_role("heading", name=name)).bounding_box()
        for name in _SECTIONS
    ]
    top = boxes[0]["y"] - 20
    bottom = boxes[-1]["y"] + boxes[-1]["height"]
    height = bottom - top if width == _WIDE else _HEIGHT
    return {"x": 0, "y": top, "width": width, "height": height}


def _take(page: Any, path: Path, clip: dict[str, float] | None) -> None:
    from PIL import Image

    taken = page.screenshot(full_page=True, **({} if clip is None else {"clip": clip}))
    image = Image.open(io.BytesIO(taken)).convert("RGB")
    image.quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"Wrote {path}")
