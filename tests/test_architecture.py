"""The house's rules, read from the source: imports go down, each heavy library has one door."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import nkcme

SOURCE = Path(nkcme.__file__).parent

#: From the top down. A module may import from its own floor and from the floors below. A package
#: stands for all its modules; a new module must be given its place here.
FLOORS = [
    {"cli", "__main__"},
    {"serving", "prediction"},
    {"report", "runtime"},
    {"estimators", "rl"},
    {"evaluation", "cross_validation", "pipeline", "explain", "datasets", "presets"},
    {"training", "calibration", "tables", "model_files"},
    {"distributions", "objectives", "metrics"},
    {"networks", "forward_passes", "atoms", "kernels"},
    {"errors", "_version", "parameter_checks", "forking", "number_text", "short_repr", "ray_tasks"},
]

#: Libraries that one module each may know.
ONE_DOOR = {
    "matplotlib",
    "plotly",
    "pandas",
    "gymnax",
    "gymnasium",
    "flowjax",
    "lightgbm",
    "safetensors",
    "shap",
    "pooch",
    "openpyxl",
    "fastapi",
    "tensorboardX",
    "ray",
}


#: What estimators may share.
SHARED = (
    "estimators.base",
    "estimators.closed_form",
    "estimators.fingerprint",
    "estimators.gradient_trained",
    "estimators.predicting_on_cores",
    "estimators.predictions",
    "estimators.registry",
    "estimators.replica_training",
    "estimators.saving",
    "estimators.training_data",
)


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


TREES = {module_name(path): ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")}
INSIDE = {name: tree for name, tree in TREES.items() if name}  # all but the front door


def is_for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a tree that run, and so not those for type checkers."""
    if not is_for_types_only(node):
        yield node
        for child in ast.iter_child_nodes(node):
            yield from walk(child)


def imports(tree: ast.AST) -> set[str]:
    """The full names of what is imported anywhere in a module, inside functions too."""
    found = set()
    for node in walk(tree):
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
    for name, tree in INSIDE.items():
        if name.startswith("training"):
            rooms = {other.partition(".")[0] for other in own_imports(tree)}
            assert rooms <= {"training", "model_files", "errors", "parameter_checks"}, (
                f"{name} imports {rooms}"
            )


def test_estimators_know_what_they_share_and_not_each_other():
    for name, tree in INSIDE.items():
        if name == "estimators" or not name.startswith("estimators."):
            continue
        own = ".".join(name.split(".")[:2])
        others = {o for o in own_imports(tree) if o.startswith("estimators")}
        foreign = {o for o in others if not o.startswith((own, *SHARED))}
        assert not foreign, f"{name} imports {foreign}"


def test_agents_know_no_estimator_and_the_library_no_benchmark():
    for name, tree in TREES.items():
        if name.startswith("rl"):
            assert not {o for o in own_imports(tree) if o.startswith("estimators")}
        assert not {o for o in imports(tree) if o.startswith("benchmarks")}


@pytest.mark.parametrize("library", sorted(ONE_DOOR))
def test_each_heavy_library_is_imported_in_one_module_at_most(library):
    doors = [
        name
        for name, tree in TREES.items()
        if any(found.partition(".")[0] == library for found in imports(tree))
    ]
    assert len(doors) <= 1


def test_only_the_command_line_imports_typer():
    for name, tree in TREES.items():
        if any(found.partition(".")[0] == "typer" for found in imports(tree)):
            assert name.startswith("cli")


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


def documented_tree() -> set[str]:
    """The modules in the tree of docs/architecture.md, such as ``rl.agents.dqn``."""
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = page.partition("```text\nsrc/nkcme/\n")[2].partition("```")[0]
    on_disk = {name.rpartition(".")[2] for name in TREES}
    packages: list[tuple[int, str]] = []
    found = set()
    for line in tree.splitlines():
        words, indent = line.split(), len(line) - len(line.lstrip())
        packages = [p for p in packages if p[0] < indent]
        if words[0].endswith("/"):
            packages.append((indent, words.pop(0).rstrip("/")))
            words = words if all(word in on_disk for word in words) else []
        elif indent == 4 and not packages and words[1:2] and words[1] not in on_disk:
            words = words[:1]  # a module with its description
        found |= {".".join([*(name for _, name in packages), word]) for word in words}
    return found


def test_the_tree_of_the_architecture_page_is_the_one_on_disk():
    modules = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        for path in SOURCE.rglob("*.py")
        if path.name != "__init__.py"
    }
    assert documented_tree() == modules


def test_files_and_classes_can_be_read_in_one_sitting():
    """About 350 lines a file and 300 a class."""
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 360, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                assert node.end_lineno - node.lineno < 310, f"{path}: {node.name}"
