"""Cells: fingerprints, and choosing some of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.experiments import specs
from benchmarks.experiments.cell import choose
from nkcme.errors import NkcmeError
from support import fake_bench


def test_the_fingerprint_depends_on_estimator_parameters_and_protocol():
    cell = fake_bench.cell()
    assert cell.fingerprint == fake_bench.cell().fingerprint
    assert cell.fingerprint == replace(cell, dataset="skewed", method="nsf", n_runs=1).fingerprint
    for changes in ({"estimator": "MDN"}, {"parameters": {"epochs": 1}}, {"protocol": {}}):
        assert replace(cell, **changes).fingerprint != cell.fingerprint


def test_rows_from_before_a_parameter_existed_have_the_same_fingerprint():
    implied = {"center": "none", "n_members": 1, "recalibrate": False, "atoms": "grid"}
    old = fake_bench.cell(estimator="NKCME", parameters={"epochs": 5})
    new = replace(old, parameters={"epochs": 5, **implied})
    assert new.fingerprint == old.fingerprint
    for name in implied:
        other = replace(new, parameters=new.parameters | {name: "another"})
        assert other.fingerprint != old.fingerprint


def test_choose_by_method_data_set_and_number_of_runs():
    chosen = choose(specs.uci_cells(), methods=["mdn", "card"], sets=["protein"], n_runs=3)
    assert [(c.method, c.n_runs) for c in chosen] == [("mdn", 3), ("card", 3)]
    assert choose(specs.uci_cells(), sets=["protein"], n_runs=50)[0].n_runs == 5
    with pytest.raises(NkcmeError, match="no method 'mnd'"):
        choose(specs.uci_cells(), methods=["mnd"])
    with pytest.raises(NkcmeError, match="no data set 'moon'"):
        choose(specs.uci_cells(), sets=["moon"])


def test_year_is_chosen_only_by_name():
    cells = specs.uci_cells()
    assert "year" not in {c.dataset for c in choose(cells)}
    assert {c.dataset for c in choose(cells, sets=["year"])} == {"year"}
