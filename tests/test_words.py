"""The code and the documents use the field's words.

Early versions had a private vocabulary. These are its words, with what is used instead.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: A pattern of a word that is not used, and the field's word for it.
INSTEAD = {
    r"\bdeals?\b|\bdealt\b": "repeat, fold",
    r"out[ _-]of[ _-]part": "out-of-fold",
    r"\bstrangers?\b": "out-of-fold",
    r"\bspeaks?\b|\bspoke\b|\bspoken\b|\bspeaking\b": "is averaged, predicts",
    r"\bsaid\b|\bunsaid\b": "predicted, given",
    r"\btold\b|\bforetold\b|\btelling\b": "given, predicted",
    r"\bforesees?\b|\bforeseen\b": "predict",
    r"\bby heart\b": "overfit",
    r"\brivals?\b": "baseline",
    r"map of probabilities": "calibration map",
    r"\bcentred\b|\buncentred\b|\bcentring\b": "with a location model",
    r"what (the|a|its|one) [\w ]{0,30}leaves\b|\bwhat is left\b": "residuals",
    r"two[ _-]roads": "risky path",
    r"\bfan\b|\bplot_fan\b": "partial dependence",
    r"rooms? with a view|\broof\b|\bworkshops\b": "layer",
    r"trained numbers": "parameters",
    r"\bnkcme bench\b": "python -m benchmarks",
    r"whoever|\bwho (tells|says|knows|speaks|sees)\b": "that, which",
    r"\ba value a row\b|\bone a row\b|\bentry a chunk\b|\ba replica a\b": "one per row",
    r"\bunless (told|said)\b|\bunless .{0,20} (says|tells) otherwise\b": "unless given",
}

FILES = sorted(
    path
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "docs/**/*.py",
        "docs/*.json",
        "src/**/*.py",
        "src/**/*.html",
        "benchmarks/**/*.py",
        "benchmarks/**/*.md",
        "tests/**/*.py",
        "Makefile",
        "pyproject.toml",
        "mkdocs.yml",
    )
    for path in ROOT.glob(pattern)
    # The changes name what was renamed.
    if path not in (Path(__file__), ROOT / "CHANGELOG.md") and ".venv" not in path.parts
)


@pytest.mark.parametrize("pattern", INSTEAD)
def test_the_fields_words_are_used(pattern):
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if re.search(pattern, line, re.IGNORECASE)
    ]
    assert not found, f"write {INSTEAD[pattern]} instead:\n" + "\n".join(found)
