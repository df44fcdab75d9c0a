"""`nkcme warm-up`: programs that fits find on disk, what is printed, and Ctrl-C."""

from __future__ import annotations

import json

import jax
import pytest

from nkcme.cli import warm_up
from nkcme.cli.app import run


@pytest.fixture
def fitted(monkeypatch):
    """The sizes of the tables; nothing is fitted."""
    sizes = []
    monkeypatch.setattr(warm_up, "_fit_and_predict", lambda *size: sizes.append(size))
    return sizes


def test_every_combination_of_sizes_is_compiled(fitted, call):
    printed, _ = call("warm-up", "--rows", "300,2000", "--columns", "5,40", "--json")
    assert fitted == [(300, 5), (300, 40), (2000, 5), (2000, 40)]
    result = json.loads(printed)
    assert result["cache"] == jax.config.jax_compilation_cache_dir
    assert (result["tables"], result["new_programs"]) == (4, 0)
    text, _ = call("warm-up", "--rows", "300", "--columns", "5")
    assert "Compiled 0 programs for tables of 1 sizes" in text
    assert result["cache"] in text


def test_a_fit_after_it_has_the_same_programs():
    """The number of steps and the trees are no part of them."""
    short, recipe = warm_up._short(warm_up.DEFAULT), warm_up.DEFAULT
    assert short.embedding.stopping.marks == (recipe.embedding.stopping.first,)
    for ours, theirs in zip(short.location.networks, recipe.location.networks, strict=True):
        assert ours.stopping.marks[0] == theirs.stopping.marks[0] == ours.stopping.most
        assert (ours.hidden, ours.averaging) == (theirs.hidden, theirs.averaging)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--rows", "300,x"], "--rows must be numbers"),
        (["--rows", "99"], "--rows must be whole numbers from 100 on"),
        (["--columns", "0"], "--columns must be whole numbers from 1 on"),
        (["--columns", "2.5"], "--columns must be whole numbers"),
    ],
)
def test_bad_sizes_are_refused(arguments, why, refuse):
    assert why in refuse("warm-up", *arguments)


def test_without_a_cache_there_is_nothing_to_fill(fitted, monkeypatch, refuse):
    monkeypatch.setattr(warm_up, "compilation_cache", lambda: None)
    assert "no compilation cache to fill" in refuse("warm-up")
    assert fitted == []


def test_ctrl_c_ends_it(monkeypatch, capsys):
    def stop(n_rows, n_columns):
        raise KeyboardInterrupt

    monkeypatch.setattr(warm_up, "_fit_and_predict", stop)
    assert run(["warm-up", "--rows", "300"]) == 130
    assert "stopped by Ctrl-C" in capsys.readouterr().err
