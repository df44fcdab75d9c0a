"""Writes docs/benchmarks.md and its figures."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.experiments.rows import Rows
from benchmarks.pages.page import page
from benchmarks.pages.rl_figures import draw_agents
from benchmarks.pages.score_figures import draw_scores
from nkcme.errors import NkcmeError
from nkcme.model_files.atomic_files import replacing


def write_page(rows: Rows, out: Path) -> None:
    """Write the page to ``out`` and its figures to images/ beside it."""
    causes = _read_causes(out.with_name("benchmark-causes.json"))
    out.parent.mkdir(parents=True, exist_ok=True)
    pictures = draw_all(rows, out.parent / "images")
    with replacing(out, out.with_name(f"{out.name}.partial")) as file:
        file.write(page(rows, causes, pictures).encode())


def draw_all(rows: Rows, directory: Path) -> dict[str, str]:
    """Draw every figure that has rows into a directory; file names and captions, in order."""
    return draw_scores(rows, directory) | draw_agents(rows, directory)


def _read_causes(path: Path) -> dict[str, str]:
    """The causes of scores that are worse than the paper's; none where the file does not exist."""
    if not path.exists():
        return {}
    try:
        causes = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise NkcmeError(f"{path} must be JSON ({error}); correct or remove it") from error
    if not isinstance(causes, dict) or not all(isinstance(v, str) for v in causes.values()):
        raise NkcmeError(
            f"{path} must be a JSON object that maps experiment/metric/data set/method to texts"
        )
    return causes
