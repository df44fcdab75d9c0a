"""The specification: it is the paper's, and the estimators can be made from it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.experiments import specs
from nkcme import presets
from nkcme.datasets.toy import TOYS
from nkcme.errors import NkcmeError
from nkcme.estimators import ESTIMATORS

EVERY_CELL = [
    *specs.toy_cells(),
    *specs.toy_cells(quick=True),
    *specs.uci_cells(),
    *specs.outputs_cells(),
    *specs.scaling_cells(),
    *specs.year_cells(),
]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_takes_the_parameters_it_is_given(name):
    cells = [cell for cell in EVERY_CELL if cell.estimator == name]
    assert cells
    for cell in cells:
        made = ESTIMATORS[name](**cell.parameters)
        # A recipe of the paper trains on all rows.
        if (
            cell.experiment != specs.OUTPUTS
            and specs.METHODS.get(cell.method, specs.METHODS["nkcme"]).in_paper
        ):
            assert getattr(made, "validation_fraction", 0.0) == 0.0


def test_the_benchmark_is_the_papers_tables_and_columns_of_ours():
    paper = set(presets.PAPER_METHODS)
    ours = {"nkcme", "nkcme-quick", "kernel-cme"}
    for cells, metric, sets, others in (
        (specs.toy_cells(), "was1_x100", 3, ours),
        (specs.uci_cells(), "rmse", 8, ours),
        (specs.uci_cells(), "qice_percent", 8, ours),
    ):
        known = [c for c in cells if specs.published(metric, c.dataset, c.method)]
        assert Counter(c.method for c in known) == dict.fromkeys(paper, sets)
        assert {c.method for c in cells} - paper == others


def test_names_are_unique_and_fit_a_row():
    for cell in EVERY_CELL:
        json.dumps(cell.parameters)
        json.dumps(cell.protocol)
    names = Counter((c.experiment, c.name) for c in EVERY_CELL)
    assert max(names.values()) == 1


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
    assert specs.published(metric, dataset, method) == expected


def test_the_fingerprint_is_of_the_recipe():
    a, b, *_ = specs.toy_cells()
    assert a.fingerprint != b.fingerprint
    assert a.fingerprint == specs.toy_cells()[0].fingerprint
    quick = specs.toy_cells(quick=True)[0]
    assert (quick.dataset, quick.method) == (b.dataset, b.method)
    assert quick.experiment != b.experiment
    assert quick.fingerprint != b.fingerprint


def test_rows_from_before_a_parameter_are_of_the_same_recipe():
    cell = next(c for c in specs.uci_cells() if c.method == "nkcme-joint")
    assert set(presets.QUICK) <= set(cell.parameters)
    without = {k: v for k, v in cell.parameters.items() if k not in presets.QUICK}
    assert replace(cell, parameters=without).fingerprint == cell.fingerprint
    for name in presets.QUICK:
        other = replace(cell, parameters=cell.parameters | {name: "another"})
        assert other.fingerprint != cell.fingerprint


RESULTS = Path(__file__).parents[2] / "results" / "bench"


def test_every_row_in_results_is_of_a_cell_of_today():
    """A recipe that changes leaves rows behind, which the page then misses."""
    cells = {(c.experiment, c.name): c for c in [*EVERY_CELL, *specs.peer_cells()]}
    files = [path for path in RESULTS.glob("*/*.jsonl") if path.parent.name != "rl"]
    assert files
    for path in files:
        cell = cells[path.parent.name, path.stem]
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row["run"] for row in rows if not cell.owns(row)] == [], path


def test_the_quick_benchmark_is_a_fair_miniature():
    """The seven columns and ours, on three sets; as many steps for all, or their own if fewer."""
    whole = {(c.dataset, c.method): c for c in specs.toy_cells()}
    quick = specs.toy_cells(quick=True)
    assert {c.dataset for c in quick} == set(TOYS)
    assert {c.method for c in quick} == {"nkcme-quick", *presets.PAPER_METHODS}
    for cell in quick:
        full = dict(whole[cell.dataset, cell.method].parameters)
        for name in ("epochs", "mean_epochs"):
            if name in full:
                an_epoch = 5000 // full["batch_size"]
                wanted = min(full.pop(name) * an_epoch, specs.QUICK_STEPS)
                assert cell.parameters[name] * an_epoch == pytest.approx(wanted, rel=0.02)
        assert {k: v for k, v in cell.parameters.items() if "epochs" not in k} == full


def test_year_is_run_only_when_it_is_named():
    cells = specs.uci_cells()
    assert "year" not in {c.dataset for c in specs.choose(cells)}
    assert {c.dataset for c in specs.choose(cells, sets=["year"])} == {"year"}


def test_choosing():
    chosen = specs.choose(specs.uci_cells(), methods=["mdn", "card"], sets=["protein"], n_runs=3)
    assert [(c.method, c.n_runs) for c in chosen] == [("mdn", 3), ("card", 3)]
    assert specs.choose(specs.uci_cells(), sets=["protein"], n_runs=50)[0].n_runs == 5
    with pytest.raises(NkcmeError, match="no method 'mnd'"):
        specs.choose(specs.uci_cells(), methods=["mnd"])
    with pytest.raises(NkcmeError, match="no data set 'moon'"):
        specs.choose(specs.uci_cells(), sets=["moon"])


# ----------------------------------------------------------------------- the recipes, appendix C, D


@pytest.mark.parametrize(
    ("method", "dataset", "expected"),
    [
        ("df-median", "ring", {"hidden": (50, 50), "learning_rate": 1e-4, "batch_size": 50,
                               "epochs": 1000, "bandwidth": "median", "regularization": 0.1}),
        ("mdn", "bimodal", {"n_components": 10, "epochs": 1000, "standardize": False}),
        ("nsf", "skewed", {"n_layers": 5, "learning_rate": 1e-3, "batch_size": 256, "epochs": 100}),
        ("card", "ring", {"mean_epochs": 100, "epochs": 5000, "batch_size": 256,
                          "n_diffusion_steps": 1000, "noise_hidden": (128, 128, 128)}),
        ("nkcme-iterative", "year", {"batch_size": 512, "epochs": 50, "bandwidth_period": 4,
                                     "bandwidth_update": "iterative", "hidden": (100,) * 3}),
        ("nkcme-joint", "year", {"bandwidth_period": 1, "bandwidth_update": "joint"}),
        ("nkcme-joint", "kin8nm", {"hidden": (50,) * 3, "learning_rate": 5e-4, "batch_size": 100,
                                   "epochs": 500, "spectral_norm": (1, -1)}),
        ("nkcme-joint", "naval", {"batch_size": 256, "learning_rate": 1e-3}),
        ("df-0.1", "naval", {"batch_size": 100, "epochs": 500, "bandwidth": 0.1,
                             "spectral_norm": (-1,)}),
        ("df-0.1", "year", {"batch_size": 256, "epochs": 50}),
        ("mdn", "protein", {"batch_size": 256, "epochs": 250, "n_components": 5,
                            "spectral_norm": (2,)}),
        ("mdn", "power", {"batch_size": 100, "n_components": 10, "hidden": (100,) * 3}),
        ("nsf", "boston", {"hidden": (50, 50), "batch_size": 50, "epochs": 10,
                           "learning_rate": 1e-3}),
        ("nsf", "power", {"hidden": (50, 50, 50), "batch_size": 256}),
    ],
)  # fmt: skip
def test_recipes_are_those_of_the_appendix(method, dataset, expected):
    found = presets.paper(method, dataset)
    assert {name: found[name] for name in expected} == expected
    assert (found["weight_decay"], found["beta2"], found["schedule"]) == (1e-4, 0.999, "constant")


def test_the_constants_are_the_same_recipes():
    assert presets.paper("nkcme-joint", "ring") == presets.PAPER_TOY | {"bandwidth_update": "joint"}
    for name, constant in (
        ("boston", presets.PAPER_UCI_SMALL),
        ("protein", presets.PAPER_UCI_LARGE),
    ):
        found = presets.paper("nkcme-joint", name)
        assert {k: found[k] for k in constant} == constant


@pytest.mark.parametrize(("method", "dataset"), [("nkcme", "ring"), ("mdn", "moon")])
def test_there_is_no_recipe_for_what_the_paper_has_not(method, dataset):
    with pytest.raises(NkcmeError, match="there are"):
        presets.paper(method, dataset)
