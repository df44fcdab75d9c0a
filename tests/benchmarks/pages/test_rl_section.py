"""The page's section on reinforcement learning."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from benchmarks.experiments.protocols import agents
from benchmarks.experiments.rl_specs import rl_cells
from benchmarks.experiments.rows import Rows
from benchmarks.pages import rl_section
from benchmarks.pages.rl_figures import draw_agents
from benchmarks.pages.summary import summarise
from support import fake_agents


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """Rows of ten seeds of the paper's agents except one, and of three seeds of our recipe."""
    place = tmp_path_factory.mktemp("rows")
    store = Rows(place)
    slowness = {"fuse": 0.0, "c51": 1.0, "mmdqn": 2.0, "dqn": 3.0, "single": 0.0}
    for cell in rl_cells("paper"):
        if (cell.dataset, cell.estimator) != ("MountainCar-v0", "mmdqn"):
            fake_agents.put_rows(store, cell, range(10), slowness[cell.estimator])
    fake_agents.put_rows(store, rl_cells("tuned")[0], range(3))
    return place


@pytest.fixture(scope="module")
def rows(directory):
    return Rows(directory)


def line(text, *beginning):
    """The cells of the first table line that begins with the given cells."""
    lines = [[c.strip() for c in row.split("|")[1:-1]] for row in text.splitlines() if "|" in row]
    return next(cells for cells in lines if tuple(cells[: len(beginning)]) == beginning)


def section(rows, pictures=None):
    return "\n".join(rl_section.section(rl_section.summaries(rows), pictures or {}))


def test_text_and_figures_are_made_without_training(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(agents, "train", None)
    pictures = draw_agents(rows, tmp_path)
    assert list(pictures) == ["rl-agents.png", "rl-kernels.png", "rl-tuned.png"]
    text = section(rows, pictures)
    for name in pictures:
        assert (tmp_path / name).stat().st_size > 10_000
        assert f"(images/{name})" in text
    assert "No agent has been trained with more than 10 seeds yet." in text
    assert "- MountainCar-v0, paper, MMDQN: 0 of 50 seeds" in text
    assert "above all of C51, MMDQN and DQN in 2 of 3 environments" in text
    assert "- MountainCar-v0: some agents are missing." in text


def test_scores_targets_and_prototype(rows):
    text = rl_section.scores_table(summarise(rl_cells(), rows))
    values = [fake_agents.fake_returns("CartPole-v1", 5000, s)[4000:].mean() for s in range(10)]
    _, agent, last_fifth, iqm, _, _, seeds, target, reached, prototype = line(text, "CartPole-v1")
    assert agent == "fused"
    assert last_fifth.startswith(f"{np.mean(values):.1f} [")
    assert iqm == f"{np.sort(values)[2:8].mean():.1f}"
    assert (seeds, target, prototype) == ("10", "475.0", "483 (435)")
    assert reached == f"**missed**, {np.mean(values) - 475:.1f}".replace("-", "−")
    assert line(text, "", "MMDQN")[-1] == ""
    assert "| MMDQN | missing |" in text
    ours = rl_section.scores_table(summarise(rl_cells("tuned", n_seeds=50), rows))
    assert line(ours, "CartPole-v1")[6] == "3 of 50"
    assert line(ours, "CartPole-v1")[8].startswith("**missed** so far, −")
    assert line(ours, "Acrobot-v1")[2] == "missing"


def test_runs_of_another_length_have_no_target(tmp_path):
    rows, cells = Rows(tmp_path), rl_cells("tuned", n_seeds=3, n_steps=1000)
    fake_agents.put_rows(rows, cells[0], range(3))
    table = rl_section.scores_table(summarise(cells, rows))
    assert line(table, "CartPole-v1")[7:] == ["", "", ""]


def test_differences_and_their_intervals(rows):
    """Slower agents have a smaller area; single has the same curves as the fused agent here."""
    text = rl_section.differences_table(summarise(rl_cells(), rows))
    assert line(text, "CartPole-v1", "C51")[3:5] == ["fused is better", "disjoint"]
    area = line(text, "", "single")
    assert area[2].startswith("+0.0 [−")
    assert area[3:5] == ["no clear difference", "overlap"]


def test_a_better_baseline_is_reported(tmp_path):
    store = Rows(tmp_path)
    for cell in rl_cells(envs=["Acrobot-v1"]):
        fake_agents.put_rows(store, cell, range(4), 3.0 if cell.estimator == "fuse" else 0.0)
    cells = summarise(rl_cells(envs=["Acrobot-v1"]), store)
    assert line(rl_section.differences_table(cells), "Acrobot-v1", "C51")[3] == "**fused is worse**"
    verdict = rl_section.verdict(cells)
    assert "in 0 of 1 environments" in verdict
    assert "above none of them, but not C51 (which is above it), MMDQN" in verdict


def test_more_seeds_have_separate_tables(directory, tmp_path):
    shutil.copytree(directory, tmp_path, dirs_exist_ok=True)
    rows = Rows(tmp_path)
    (cell,) = rl_cells(envs=["CartPole-v1"], agents=["fuse"], n_seeds=50)
    fake_agents.put_rows(rows, cell, range(10, 50))
    ten, fifty = section(rows).split("### The paper's recipe, 50 seeds")
    assert line(ten, "CartPole-v1")[6] == "10"
    assert line(fifty, "CartPole-v1")[6] == "50"
    assert line(fifty, "", "C51")[6] == "10 of 50"
    assert line(fifty, "CartPole-v1, paper, fused") == [
        "CartPole-v1, paper, fused", "50", "10 and 40", "40.0", "625,000",
    ]  # fmt: skip
