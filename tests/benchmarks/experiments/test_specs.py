"""The specification: the paper's cells, valid parameters, and all rows in results/ belong to it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.experiments import (
    paper,
    peer_program,
    rl_specs,
    simulation_specs,
    specs,
    table_specs,
)
from benchmarks.experiments.methods import METHODS, PEERS
from benchmarks.experiments.rows import Rows
from benchmarks.pages.summary import sources, summarise
from nkcme import presets
from nkcme.datasets.toy import TOYS
from nkcme.estimators import ESTIMATORS

#: Cells of this library's estimators.
OUR_CELLS = [
    *specs.toy_cells(),
    *specs.toy_cells(quick=True),
    *specs.uci_cells(),
    *specs.outputs_cells(),
    *specs.scaling_cells(),
    *specs.year_cells(),
]


def every_cell():
    agents = [c for recipe in rl_specs.AGENTS for c in rl_specs.rl_cells(recipe, n_seeds=50)]
    return [*OUR_CELLS, *specs.peer_cells(), *agents]


# --- results ----------------------------------------------------------------------------------

RESULTS = Path(__file__).parents[3] / "results" / "bench"


def test_every_row_in_results_belongs_to_a_cell_and_is_read():
    """Rows of earlier versions still match: a recipe or a label that changes would lose them.

    The cells of tables in CSV files are not known here, but all rows of a file are of one recipe.
    """
    notes = []
    rows = Rows(RESULTS, notes.append)
    simulations = simulation_specs.simulation_cells()
    every = [*every_cell(), *simulations, *table_specs.recorded_cells(rows)]
    cells = {(c.experiment, c.name): c for c in every}
    files = sorted(RESULTS.rglob("*.jsonl"))
    assert len(files) > 200
    total = 0
    for path in files:
        cell = cells[path.parent.name, path.stem]
        assert rows.path(cell) == path
        on_disk = [json.loads(line)["run"] for line in path.read_bytes().splitlines()]
        assert [row["run"] for row in rows.of(cell)] == on_disk, path
        total += len(on_disk)
    assert notes == []
    assert sum(s["rows"] for s in sources(summarise(every, rows))) == total


def test_results_have_every_cell_but_year():
    rows = Rows(RESULTS)
    incomplete = {s.cell.dataset for s in summarise(every_cell(), rows) if not s.complete}
    assert incomplete == {"year"}


# --- cells ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_accepts_its_parameters(name):
    cells = [cell for cell in OUR_CELLS if cell.estimator == name]
    assert cells
    for cell in cells:
        estimator = ESTIMATORS[name](**cell.parameters)
        # A recipe of the paper trains on all rows.
        if cell.method in presets.PAPER_METHODS and cell.experiment != specs.OUTPUTS:
            assert getattr(estimator, "validation_fraction", 0.0) == 0.0


def test_the_cells_are_the_papers_tables_and_our_columns():
    ours = {"nkcme", "nkcme-quick", "kernel-cme"}
    for cells, metric, n_sets in (
        (specs.toy_cells(), "was1_x100", 3),
        (specs.uci_cells(), "rmse", 8),
        (specs.uci_cells(), "qice_percent", 8),
    ):
        known = [c for c in cells if paper.published(metric, c.dataset, c.method)]
        methods = dict.fromkeys(presets.PAPER_METHODS, n_sets)
        assert Counter(c.method for c in known) == methods
        assert {c.method for c in cells} - set(methods) == ours
        assert {m for m, method in METHODS.items() if method.in_paper} == set(methods)


def test_cells_are_json_and_their_names_are_unique():
    for cell in every_cell():
        json.dumps([cell.parameters, cell.protocol])
    names = Counter((c.experiment, c.name) for c in every_cell())
    assert max(names.values()) == 1


def test_every_peer_runs_on_the_first_folds_of_every_set():
    folds = {cell.dataset: cell.n_runs for cell in specs.uci_cells()}
    cells = specs.peer_cells()
    uci_peers = ("ngboost", "quantile-forest", "treeffuser")
    assert Counter(cell.method for cell in cells) == dict.fromkeys(uci_peers, len(folds))
    assert all(1 <= cell.n_runs <= folds[cell.dataset] for cell in cells)
    assert set(peer_program._PEERS) == set(PEERS)


def test_the_quick_benchmark_shortens_training_and_nothing_else():
    whole = {(c.dataset, c.method): c for c in specs.toy_cells()}
    quick = specs.toy_cells(quick=True)
    assert {c.dataset for c in quick} == set(TOYS)
    assert {c.method for c in quick} == {"nkcme-quick", *presets.PAPER_METHODS}
    for cell in quick:
        full = dict(whole[cell.dataset, cell.method].parameters)
        for name in ("epochs", "mean_epochs"):
            if name in full:
                steps_per_epoch = 5000 // full["batch_size"]
                wanted = min(full.pop(name) * steps_per_epoch, specs.QUICK_STEPS)
                assert cell.parameters[name] * steps_per_epoch == pytest.approx(wanted, rel=0.02)
        assert {k: v for k, v in cell.parameters.items() if "epochs" not in k} == full


@pytest.mark.parametrize(
    ("metric", "dataset", "method", "expected"),
    [
        ("was1_x100", "ring", "nkcme-joint", (21.10, 1.14)),  # table 1
        ("qice_percent", "boston", "mdn", (4.85, 1.19)),
        ("rmse", "naval", "card", (0.02, 0.0)),
        ("rmse", "year", "nsf", (8.80, None)),
        ("rmse", "boston", "nkcme", None),
    ],
)
def test_published_numbers(metric, dataset, method, expected):
    assert paper.published(metric, dataset, method) == expected


# --- agents -----------------------------------------------------------------------------------


def test_the_agents_are_the_papers_fifteen_cells_and_our_three():
    recipes = {recipe: rl_specs.rl_cells(recipe) for recipe in rl_specs.AGENTS}
    assert {recipe: len(cells) for recipe, cells in recipes.items()} == {"paper": 15, "tuned": 3}
    for recipe, cells in recipes.items():
        for cell in cells:
            agent, settings = rl_specs.preset(recipe, cell.estimator, cell.dataset)
            assert cell.method == f"{recipe}-{cell.estimator}"
            assert cell.parameters == {
                "agent": agent.to_config(),
                "settings": settings.to_config(),
            }
            assert settings.n_steps == 500_000
