"""Peers stay out of our environment: one program knows them, and it knows nothing of ours."""

import ast
import sys
from pathlib import Path

from benchmarks.experiments import peer_program

BENCHMARKS = Path(peer_program.__file__).parents[1]


def imports(path: Path) -> set[str]:
    """The top-level names of what a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
    return found


def test_peers_are_known_to_their_program_alone_and_it_knows_nothing_of_ours():
    peers = {"ngboost", "quantile_forest", "treeffuser"}
    knowing = {path.name for path in BENCHMARKS.rglob("*.py") if imports(path) & peers}
    assert knowing == {"peer_program.py"}
    program = imports(Path(peer_program.__file__))
    assert program - set(sys.stdlib_module_names) == peers | {"numpy"}
