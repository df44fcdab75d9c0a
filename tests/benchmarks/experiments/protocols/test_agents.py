"""Benchmarking agents: only missing seeds are trained, and rows of earlier versions still match."""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np
import pytest

from benchmarks.cli.app import run
from benchmarks.experiments import rl_specs
from benchmarks.experiments.curves import unpack
from benchmarks.experiments.protocols import agents
from benchmarks.experiments.rl_specs import rl_cells
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.run import run_cells
from nkcme.errors import TrainingError
from nkcme.rl.presets import preset
from support import fake_agents


@pytest.fixture
def notes():
    return []


@pytest.fixture
def calls(monkeypatch):
    """Replaces training by a fake; a list of its calls."""
    found = []

    def train(env, agent, settings, *, seeds):
        found.append((env, agent, settings, seeds))
        return fake_agents.fake_train(env, agent, settings, seeds=seeds)

    monkeypatch.setattr(agents, "train", train)
    return found


def test_a_row_has_scores_and_the_learning_curve(tmp_path, notes, calls):
    rows = Rows(tmp_path)
    (cell,) = rl_cells(envs=["Acrobot-v1"], agents=["c51"], n_seeds=3)
    assert run_cells([cell], rows, notes.append).run == 3
    assert calls == [("Acrobot-v1", *preset("paper", "c51", "Acrobot-v1"), [0, 1, 2])]
    assert rows.path(cell) == tmp_path / "rl" / "Acrobot-v1--paper-c51.jsonl"
    row = rows.of(cell)[2]
    returns = fake_agents.fake_returns("Acrobot-v1", 5000, 2)
    assert row["metrics"]["last_fifth"] == pytest.approx(returns[4000:].mean())
    assert row["metrics"]["area"] == pytest.approx(returns.mean())
    assert row["curve"]["every"] == 1000
    thinned = returns.reshape(500, 10).mean(axis=1)
    assert np.abs(unpack(row["curve"]["returns"]) - thinned).max() < 1e-9
    assert row["seconds"]["fitted_together"] == 3
    assert row["steps"] == 500_000
    assert "Acrobot-v1 paper-c51: 3 of 3 runs" in notes[0]
    assert "last_fifth" in notes[0]
    assert len(rows.path(cell).read_bytes()) < 3 * 4000


def test_only_missing_seeds_are_trained(tmp_path, notes, calls):
    rows = Rows(tmp_path)
    for n_seeds in (2, 5, 5, 3):
        run_cells(rl_cells("tuned", envs=["CartPole-v1"], n_seeds=n_seeds), rows, notes.append)
    assert [seeds for *_, seeds in calls] == [[0, 1], [2, 3, 4]]


def test_rows_of_another_recipe_do_not_match(tmp_path):
    rows = Rows(tmp_path)
    choice = {"envs": ["CartPole-v1"], "agents": ["dqn"], "n_seeds": 2}
    (short,), (long,) = (rl_cells(n_steps=n, **choice) for n in (1000, 2000))
    fake_agents.put_rows(rows, short, range(2))
    assert rows.missing(short) == []
    assert rows.missing(long) == [0, 1]


def test_an_option_that_an_old_row_lacks_had_its_default_value(tmp_path):
    rows = Rows(tmp_path)
    (cell,) = rl_cells(envs=["CartPole-v1"], agents=["dqn"], n_seeds=1)
    fake_agents.put_rows(rows, cell, [0])
    (row,) = rows.of(cell)
    del row["parameters"]["settings"]["double"]
    row["fingerprint"] = "of an earlier version"
    rows.put(cell, row)
    assert rows.missing(cell) == []
    changed = {**cell.parameters, "settings": {**cell.parameters["settings"], "double": True}}
    assert rows.missing(dataclasses.replace(cell, parameters=changed)) == [0]
    row["parameters"]["settings"]["unknown option"] = 1
    rows.put(cell, row)
    assert rows.missing(cell) == [0]


def test_a_diverged_agent_is_an_error_row_and_the_next_cell_follows(tmp_path, capsys, monkeypatch):
    def train(env, agent, settings, *, seeds):
        if agent.kind == "c51":
            raise TrainingError("the loss of agent 0 is nan")
        return fake_agents.fake_train(env, agent, settings, seeds=seeds)

    monkeypatch.setattr(agents, "train", train)
    words = ["rl", "--envs", "CartPole-v1", "--agents", "c51,dqn", "--seeds", "2"]
    words += ["--steps", "1000", "--rows", str(tmp_path)]
    assert run(words) == 1
    captured = capsys.readouterr()
    assert "2 FAILED: TrainingError: the loss of agent 0 is nan" in captured.err
    assert "2 of 4 runs failed" in captured.err
    assert "| C51 | failed |" in captured.out
    bad, good = rl_cells(envs=["CartPole-v1"], agents=["c51", "dqn"], n_seeds=2, n_steps=1000)
    rows = Rows(tmp_path)
    assert rows.missing(bad) == [0, 1]
    assert rows.missing(good) == []
    monkeypatch.setattr(agents, "train", fake_agents.fake_train)
    assert run(words) == 0
    assert rows.missing(bad) == []


def test_an_interrupted_training_leaves_no_rows(tmp_path, notes, monkeypatch):
    def train(env, agent, settings, *, seeds):
        result = fake_agents.fake_train(env, agent, settings, seeds=seeds)
        result.interrupted = True
        return result

    monkeypatch.setattr(agents, "train", train)
    (cell,) = rl_cells("tuned", envs=["CartPole-v1"])
    with pytest.raises(KeyboardInterrupt):
        run_cells([cell], Rows(tmp_path), notes.append)
    assert Rows(tmp_path).of(cell) == []


def test_warnings_become_notes_of_the_row(monkeypatch):
    def train(env, agent, settings, *, seeds):
        warnings.warn("targets are outside the support", stacklevel=2)
        return fake_agents.fake_train(env, agent, settings, seeds=seeds)

    monkeypatch.setattr(agents, "train", train)
    (cell,) = rl_cells("tuned", envs=["CartPole-v1"], n_seeds=1)
    ((_, outcome),) = agents.perform(cell, [0])
    assert outcome["notes"] == ["targets are outside the support"]


def test_a_short_recipe_is_trained_by_the_real_loop(tmp_path, notes, monkeypatch):
    """One seed, then a second one without the first."""
    short = {"n_steps": 400, "prefill": 100, "buffer_size": 100, "hidden": (8,), "batch_size": 4}

    def short_preset(*names):
        agent, settings = preset(*names)
        return agent, dataclasses.replace(settings, **short)

    monkeypatch.setattr(rl_specs, "preset", short_preset)
    rows = Rows(tmp_path)
    for n_seeds in (1, 2):
        (cell,) = rl_cells(envs=["CartPole-v1"], agents=["dqn"], n_steps=400, n_seeds=n_seeds)
        tally = run_cells([cell], rows, notes.append)
        assert (tally.run, tally.failed) == (1, 0)
    found = rows.of(cell)
    assert len(found) == 2
    for row in found:
        returns = unpack(row["curve"]["returns"])
        assert row["seconds"]["fitted_together"] == 1
        assert returns.shape == (4,)
        assert returns.min() >= 8  # the pole cannot fall in fewer steps
        assert row["metrics"]["area"] == pytest.approx(returns.mean())
        assert row["metrics"]["last_fifth"] == pytest.approx(returns[-1])
