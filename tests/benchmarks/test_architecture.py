"""Rules on imports, read from the source."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from benchmarks.experiments import peer_program

BENCHMARKS = Path(peer_program.__file__).parents[1]
FILES = sorted(BENCHMARKS.rglob("*.py"))


def imports(path: Path) -> set[str]:
    """The full names of the modules that a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def top_level(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


PEERS = {"ngboost", "quantile_forest", "treeffuser", "catboost", "lightgbm"}


def test_only_the_peer_program_imports_peers():
    assert {path.name for path in FILES if top_level(path) & PEERS} == {"peer_program.py"}


def test_the_peer_program_imports_nothing_of_ours():
    program = top_level(Path(peer_program.__file__))
    assert program - set(sys.stdlib_module_names) == {"numpy", *PEERS}


#: The packages that each package must not import.
FORBIDDEN = {
    "experiments": ("cli", "pages", "speed", "checks", "illustrations"),
    "pages": ("cli", "speed", "checks", "illustrations"),
    "speed": ("cli", "pages", "checks", "illustrations"),
    "checks": ("cli", "pages", "speed", "illustrations"),
    "illustrations": ("cli", "pages", "speed", "checks"),
}


@pytest.mark.parametrize("package", FORBIDDEN)
def test_packages_import_only_what_is_below_them(package):
    for path in (BENCHMARKS / package).rglob("*.py"):
        for name in imports(path):
            assert not name.startswith(tuple(f"benchmarks.{p}" for p in FORBIDDEN[package])), path


def test_matplotlib_is_imported_by_illustrations_alone():
    """The page's figures use `nkcme.report.plots`."""
    users = {path.parent.name for path in FILES if "matplotlib" in top_level(path)}
    assert users == {"illustrations"}
