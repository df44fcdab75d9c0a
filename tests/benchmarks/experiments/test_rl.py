"""The benchmark of the agents: what is missing is trained, and nothing else; the page from rows."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from benchmarks.app import run
from benchmarks.experiments import cells as experiments
from benchmarks.experiments import rl_specs
from benchmarks.experiments.curves import unpack
from benchmarks.experiments.rl_specs import rl_cells
from benchmarks.experiments.rows import Rows
from benchmarks.experiments.run import run_cells
from benchmarks.pages import rl_page
from benchmarks.pages.figures import draw_all
from benchmarks.pages.page import page
from benchmarks.pages.summary import summarise
from nkcme.errors import TrainingError
from nkcme.rl.presets import ENVIRONMENTS, preset
from support import fake_agents

SHORT = {"n_steps": 400, "prefill": 100, "buffer_size": 100, "hidden": (8,), "batch_size": 4}


@pytest.fixture
def said():
    return []


@pytest.fixture
def trained(monkeypatch):
    """Training that takes no time; what it was asked for."""
    asked = []

    def train(env, agent, settings, *, seeds):
        asked.append((env, agent, settings, seeds))
        return fake_agents.fake_train(env, agent, settings, seeds=seeds)

    monkeypatch.setattr(experiments, "train", train)
    return asked


# --- cells ------------------------------------------------------------------------------------


def test_the_cells_are_the_papers_fifteen_and_ours_three():
    paper, tuned = rl_cells("paper"), rl_cells("tuned")
    assert len(paper) == 15
    assert [c.method for c in paper[:5]] == [
        "paper-fuse", "paper-c51", "paper-mmdqn", "paper-dqn", "paper-single",
    ]  # fmt: skip
    assert [c.name for c in tuned] == [f"{env}--tuned-fuse" for env in ENVIRONMENTS]
    assert {c.parameters["settings"]["n_steps"] for c in paper + tuned} == {500_000}
    agent, settings = preset("paper", "mmdqn", "CartPole-v1")
    assert paper[2].parameters == {"agent": agent.to_config(), "settings": settings.to_config()}


@pytest.mark.parametrize(
    "words", [["--agents", "none"], ["--envs", "none"], ["--preset", "none"], ["--steps", "150"]]
)
def test_what_is_not_there_is_one_line(words, tmp_path, capsys):
    assert run(["rl", *words, "--rows", str(tmp_path)]) == 2
    told = capsys.readouterr().err.strip()
    assert words[1] in told
    assert len(told.splitlines()) == 1


# --- running ----------------------------------------------------------------------------------


def test_a_row_says_what_was_run_and_what_came_out(tmp_path, said, trained):
    rows = Rows(tmp_path)
    (cell,) = rl_cells(envs=["Acrobot-v1"], agents=["c51"], n_seeds=3)
    assert run_cells([cell], rows, said.append).run == 3
    (asked,) = trained
    assert asked == ("Acrobot-v1", *preset("paper", "c51", "Acrobot-v1"), [0, 1, 2])
    row = rows.of(cell)[2]
    assert rows.path(cell) == tmp_path / "rl" / "Acrobot-v1--paper-c51.jsonl"
    returns = fake_agents.fake_returns("Acrobot-v1", 5000, 2)
    assert row["metrics"]["last_fifth"] == pytest.approx(returns[4000:].mean())
    assert row["metrics"]["area"] == pytest.approx(returns.mean())
    assert row["curve"]["every"] == 1000
    thinned = returns.reshape(500, 10).mean(axis=1)
    assert np.abs(unpack(row["curve"]["returns"]) - thinned).max() < 1e-9
    assert row["seconds"]["fitted_together"] == 3
    assert row["steps"] == 500_000
    for name in ("when", "commit", "device", "versions", "python"):
        assert row[name]
    assert "Acrobot-v1 paper-c51: 3 of 3 runs" in said[0]
    assert "last_fifth" in said[0]
    assert len(rows.path(cell).read_bytes()) < 3 * 4000


def test_only_missing_seeds_are_trained(tmp_path, said, trained):
    rows = Rows(tmp_path)
    for n_seeds in (2, 5, 5, 3):
        run_cells(rl_cells("tuned", envs=["CartPole-v1"], n_seeds=n_seeds), rows, said.append)
    assert [seeds for *_, seeds in trained] == [[0, 1], [2, 3, 4]]


def test_rows_of_another_recipe_are_not_of_the_cell(tmp_path, said, trained):
    rows = Rows(tmp_path)
    choice = {"envs": ["CartPole-v1"], "agents": ["dqn"], "n_seeds": 2}
    run_cells(rl_cells(n_steps=1000, **choice), rows, said.append)
    assert rows.missing(rl_cells(n_steps=1000, **choice)[0]) == []
    assert rows.missing(rl_cells(n_steps=2000, **choice)[0]) == [0, 1]


def test_an_option_that_came_later_stood_at_its_default(tmp_path, said, trained):
    """A row without it is of the cell while the option is off, and is not when it is on."""
    rows = Rows(tmp_path)
    (cell,) = rl_cells(envs=["CartPole-v1"], agents=["dqn"], n_seeds=1)
    run_cells([cell], rows, said.append)
    (row,) = rows.of(cell)
    del row["parameters"]["settings"]["double"]
    row["fingerprint"] = "of then"
    rows.put(cell, row)
    assert rows.missing(cell) == []
    on = {**cell.parameters, "settings": {**cell.parameters["settings"], "double": True}}
    assert rows.missing(dataclasses.replace(cell, parameters=on)) == [0]
    row["parameters"]["settings"]["no longer there"] = 1
    rows.put(cell, row)
    assert rows.missing(cell) == [0]


def test_a_run_that_fails_is_a_row_and_the_next_cell_is_tried(tmp_path, capsys, monkeypatch):
    def train(env, agent, settings, *, seeds):
        if agent.kind == "c51":
            raise TrainingError("the loss of agent 0 is nan")
        return fake_agents.fake_train(env, agent, settings, seeds=seeds)

    monkeypatch.setattr(experiments, "train", train)
    words = ["rl", "--envs", "CartPole-v1", "--agents", "c51,dqn", "--seeds", "2"]
    words += ["--steps", "1000", "--rows", str(tmp_path)]
    assert run(words) == 1
    captured = capsys.readouterr()
    assert "2 FAILED: TrainingError: the loss of agent 0 is nan" in captured.err
    assert "2 of 4 runs failed" in captured.err
    bad, good = rl_cells(envs=["CartPole-v1"], agents=["c51", "dqn"], n_seeds=2, n_steps=1000)
    rows = Rows(tmp_path)
    assert [row["error"] for row in rows.of(bad)] == [
        "TrainingError: the loss of agent 0 is nan"
    ] * 2
    assert rows.missing(bad) == [0, 1]
    assert rows.missing(good) == []
    assert "| C51 | failed |" in captured.out
    monkeypatch.setattr(experiments, "train", fake_agents.fake_train)
    assert run(words) == 0
    assert rows.missing(bad) == []


def test_a_run_that_was_stopped_leaves_no_rows(tmp_path, said, monkeypatch):
    def train(env, agent, settings, *, seeds):
        result = fake_agents.fake_train(env, agent, settings, seeds=seeds)
        result.interrupted = True
        return result

    monkeypatch.setattr(experiments, "train", train)
    (cell,) = rl_cells("tuned", envs=["CartPole-v1"])
    with pytest.raises(KeyboardInterrupt):
        run_cells([cell], Rows(tmp_path), said.append)
    assert Rows(tmp_path).of(cell) == []


def test_what_was_warned_of_is_noted(tmp_path, said, monkeypatch):
    def train(env, agent, settings, *, seeds):
        warnings.warn("targets lay outside", stacklevel=2)
        return fake_agents.fake_train(env, agent, settings, seeds=seeds)

    monkeypatch.setattr(experiments, "train", train)
    (cell,) = rl_cells("tuned", envs=["CartPole-v1"], n_seeds=1)
    run_cells([cell], Rows(tmp_path), said.append)
    assert Rows(tmp_path).of(cell)[0]["notes"] == ["targets lay outside"]


def test_a_killed_benchmark_goes_on_where_it_was(tmp_path):
    """SIGKILL after the first cell; what was finished is there, byte for byte, after the second."""
    script = [sys.executable, fake_agents.__file__, str(tmp_path)]
    first, _, last = (tmp_path / "rl" / f"{env}--tuned-fuse.jsonl" for env in ENVIRONMENTS)
    with subprocess.Popen([*script, "1.0"], stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (first.exists() and len(first.read_bytes().splitlines()) == 3):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert not last.exists()
    before = first.read_bytes()
    subprocess.run([*script, "0"], check=True, stdout=subprocess.DEVNULL)
    assert first.read_bytes() == before
    assert [json.loads(line)["run"] for line in last.read_bytes().splitlines()] == [0, 1, 2]
    assert not list(tmp_path.rglob("*.partial"))


def test_agents_are_really_trained(tmp_path, said, monkeypatch):
    """A short recipe through the loop itself: two seeds, and a third without them."""

    def short(*names):
        agent, settings = preset(*names)
        return agent, dataclasses.replace(settings, **SHORT)

    monkeypatch.setattr(rl_specs, "preset", short)
    rows = Rows(tmp_path)
    choice = {"envs": ["CartPole-v1"], "agents": ["dqn"], "n_steps": 400}
    for n_seeds, n_run in ((2, 2), (3, 1)):
        cells = rl_cells(n_seeds=n_seeds, **choice)
        tally = run_cells(cells, rows, said.append)
        assert (tally.run, tally.failed) == (n_run, 0)
    found = rows.of(cells[0])
    assert [row["seconds"]["fitted_together"] for row in found] == [2, 2, 1]
    for row in found:
        returns = unpack(row["curve"]["returns"])
        assert returns.shape == (4,)
        assert returns.min() >= 8  # a pole takes eight steps to fall
        assert row["metrics"]["area"] == pytest.approx(returns.mean())
        assert row["metrics"]["last_fifth"] == pytest.approx(returns[-1])


# --- the page ---------------------------------------------------------------------------------


@pytest.fixture
def rows(tmp_path):
    """Ten seeds of all agents of the paper but one, and three of ours in one environment."""
    store = Rows(tmp_path / "rows")
    late = {"fuse": 0.0, "c51": 1.0, "mmdqn": 2.0, "dqn": 3.0, "single": 0.0}
    for cell in rl_cells("paper"):
        if (cell.dataset, cell.estimator) != ("MountainCar-v0", "mmdqn"):
            fake_agents.put(store, cell, range(10), late[cell.estimator])
    fake_agents.put(store, rl_cells("tuned")[0], range(3))
    return store


def line(text, *beginning):
    """The cells of the first table line that begins so."""
    lines = [
        [c.strip() for c in part.split("|")[1:-1]] for part in text.splitlines() if "|" in part
    ]
    return next(cells for cells in lines if tuple(cells[: len(beginning)]) == beginning)


def test_the_page_is_made_from_rows_alone(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(experiments, "train", None)
    pictures = draw_all(rows, tmp_path / "images")
    assert [name for name in pictures if name.startswith("rl-")] == [
        "rl-agents.png", "rl-kernels.png", "rl-tuned.png",
    ]  # fmt: skip
    text = page(rows, {}, pictures)
    for name in pictures:
        assert (tmp_path / "images" / name).stat().st_size > 10_000
        assert f"(images/{name})" in text
    assert "No agent was trained with more than 10 seeds yet." in text
    assert "- MountainCar-v0, paper, MMDQN: 0 of 50 seeds" in text
    assert "above C51, MMDQN and DQN all together in 2 of 3 environments" in text
    assert "- MountainCar-v0: not all of its agents are there." in text


def test_scores_bars_and_trials_of_the_page(rows):
    text = rl_page.scores_table(summarise(rl_cells(), rows))
    values = [fake_agents.fake_returns("CartPole-v1", 5000, s)[4000:].mean() for s in range(10)]
    _, agent, last_fifth, iqm, _, _, seeds, bar, judged, trial = line(text, "CartPole-v1")
    assert agent == "fused"
    assert last_fifth.startswith(f"{np.mean(values):.1f} [")
    assert iqm == f"{np.sort(values)[2:8].mean():.1f}"
    assert (seeds, bar, trial) == ("10", "475.0", "483 (435)")
    assert judged == f"**missed**, {np.mean(values) - 475:.1f}".replace("-", "−")
    assert line(text, "", "MMDQN")[-1] == ""
    assert "| MMDQN | missing |" in text
    ours = rl_page.scores_table(summarise(rl_cells("tuned", n_seeds=50), rows))
    assert line(ours, "CartPole-v1")[6] == "3 of 50"
    assert line(ours, "CartPole-v1")[8].startswith("**missed** so far, −")
    assert line(ours, "Acrobot-v1")[2] == "missing"
    shorter = rl_cells("tuned", n_seeds=3, n_steps=1000)
    fake_agents.put(rows, shorter[0], range(3))
    assert line(rl_page.scores_table(summarise(shorter, rows)), "CartPole-v1")[7:] == ["", "", ""]


def test_differences_of_the_page(rows):
    """Slower agents are worse by area; single is the fused agent's own curves here."""
    text = rl_page.differences_table(summarise(rl_cells(), rows))
    assert line(text, "CartPole-v1", "C51")[3:5] == ["fused is better", "apart"]
    area = line(text, "", "single")
    assert area[2].startswith("+0.0 [−")
    assert area[3:5] == ["not told apart", "overlap"]


def test_a_better_rival_is_said_to_be_one(tmp_path):
    store = Rows(tmp_path)
    for cell in rl_cells(envs=["Acrobot-v1"]):
        fake_agents.put(store, cell, range(10), 3.0 if cell.estimator == "fuse" else 0.0)
    cells = summarise(rl_cells(envs=["Acrobot-v1"]), store)
    assert line(rl_page.differences_table(cells), "Acrobot-v1", "C51")[3] == "**fused is worse**"
    told = rl_page.verdict(cells)
    assert "in 0 of 1 environments" in told
    assert "above none, but not C51 (which is above it), MMDQN" in told


def test_more_seeds_have_tables_of_their_own(rows):
    fake_agents.put(rows, rl_cells(envs=["CartPole-v1"], n_seeds=50)[0], range(10, 50))
    text = page(rows, {}, {})
    ten, fifty = text.split("### The paper's recipe, 50 seeds")
    assert line(ten[ten.index("10 seeds") :], "CartPole-v1")[6] == "10"
    assert line(fifty, "CartPole-v1")[6] == "50"
    assert line(fifty, "", "C51")[6] == "10 of 50"
    assert line(fifty, "CartPole-v1, paper, fused") == [
        "CartPole-v1, paper, fused", "50", "10 and 40", "40.0", "625,000",
    ]  # fmt: skip


def test_with_no_rows_all_is_missing(tmp_path):
    text = page(Rows(tmp_path), {}, {})
    assert text.count("| missing |") >= 18
    assert draw_all(Rows(tmp_path), tmp_path) == {}
