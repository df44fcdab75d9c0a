"""The house's rules, read from the source: imports go down, each heavy library has one door."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import nkcme

SOURCE = Path(nkcme.__file__).parent

#: From the roof down. A module may import from its own floor and from the floors below. A package
#: stands for all its modules; a new module must be given its place here.
FLOORS = [
    {"cli", "__main__"},
    {"commands", "demo", "display", "fitting", "report", "report_charts", "plots", "fan", "bench"}
    | {"report_page", "rl_commands", "rl_pictures", "rl_report"},
    {"estimators", "rl"},
    {"training", "persistence", "scoring", "evaluation", "tables", "preprocessing", "columns"}
    | {"presets", "progress", "datasets", "phases"},
    {"objectives", "embedding", "herding", "distribution", "cdf_table", "metrics"}
    | {"mixture", "draws", "flow_distribution", "recalibration", "conformal", "disagreement"},
    {"networks", "atoms", "kernels", "compilation", "interrupts"}
    | {"condensing", "ridge", "median_distance", "replicas", "crossfit", "trees", "stacking"}
    | {"cells"},
    {"errors", "_version", "strict_json", "atomic_files", "parameters"},
]

#: Libraries that one module each may know.
ONE_DOOR = {
    "matplotlib",
    "plotly",
    "pandas",
    "gymnax",
    "gymnasium",
    "flowjax",
    "safetensors",
    "scoringrules",
    "pooch",
    "typer",
}


#: What estimators may share; the centre and its parts belong to `NKCME`.
BASES = {
    "estimators.base",
    "estimators.trained",
    "estimators.center",
    "estimators.center_fitting",
    "estimators.center_networks",
    "estimators.center_regressors",
    "estimators.neural_defaults",
    "estimators.neural_embedding",
    "estimators.learning_task",
}


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


TREES = {module_name(path): ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}
INSIDE = {name: tree for name, tree in TREES.items() if name}  # all but the front door


def imports(tree: ast.AST) -> set[str]:
    """The full names of what is imported anywhere in a module, inside functions too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def own_imports(tree: ast.AST) -> set[str]:
    """The modules of this library that are imported, without the leading "nkcme."."""
    own = {name.removeprefix("nkcme.") for name in imports(tree) if name.startswith("nkcme.")}
    found = set()
    for name in own:
        while name and name not in TREES:  # the name of something in a module: the module
            name = name.rpartition(".")[0]
        found.add(name)
    return found


def floor(name: str) -> int:
    top = name.partition(".")[0]
    places = [i for i, modules in enumerate(FLOORS) if top in modules]
    assert places, f"the module {name} has no floor: give it one in FLOORS"
    return places[0]


@pytest.mark.parametrize("name", sorted(INSIDE))
def test_imports_go_down(name):
    for other in own_imports(INSIDE[name]):
        assert other, f"{name} imports from the front door, nkcme itself; name the module"
        assert floor(other) >= floor(name), f"{name} imports {other}, which is above it"


def test_imports_make_no_circle():
    graph = {name: own_imports(tree) - {name} for name, tree in INSIDE.items()}
    # A package's __init__ gathers its modules; they import each other by name, not through it.
    while graph:
        free = [name for name, others in graph.items() if not others & set(graph)]
        assert free, f"these modules import each other in a circle: {sorted(graph)}"
        graph = {name: others for name, others in graph.items() if name not in free}


def test_training_knows_no_model():
    assert own_imports(TREES["training"]) == {"compilation", "errors", "interrupts", "replicas"}


def test_rivals_know_their_bases_and_not_each_other():
    for name, tree in INSIDE.items():
        if name.startswith("estimators."):
            rivals = {o for o in own_imports(tree) if o.startswith("estimators")}
            assert rivals <= BASES, f"{name} imports {rivals}"
        if name.startswith("rl"):
            assert not {o for o in own_imports(tree) if o.startswith("estimators")}


@pytest.mark.parametrize("library", sorted(ONE_DOOR))
def test_each_heavy_library_is_imported_in_one_module_at_most(library):
    doors = [
        name
        for name, tree in TREES.items()
        if any(found.partition(".")[0] == library for found in imports(tree))
    ]
    assert len(doors) <= 1


def test_peers_are_known_to_their_program_alone_and_it_knows_nothing_of_ours():
    peers = {"ngboost", "quantile_forest", "treeffuser"}
    knowing = {
        name
        for name, tree in TREES.items()
        if {found.partition(".")[0] for found in imports(tree)} & peers
    }
    assert knowing == {"bench.peer_program"}
    program = {found.partition(".")[0] for found in imports(TREES["bench.peer_program"])}
    assert program - set(sys.stdlib_module_names) == peers | {"numpy"}


@pytest.mark.parametrize("name", sorted(TREES))
def test_nothing_can_run_code_from_a_file(name):
    forbidden = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "runpy"}
    tree = TREES[name]
    assert not {found.partition(".")[0] for found in imports(tree)} & forbidden
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            assert node.id not in {"eval", "exec", "compile", "__import__"}
        if isinstance(node, ast.Attribute):
            assert "pickle" not in node.attr
        if isinstance(node, ast.keyword):
            assert node.arg != "allow_pickle"
