"""The commands of agents as a user meets them: what they print where, and their exit status."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import nkcme
from nkcme import rl
from nkcme.cli import agents as rl_commands
from nkcme.cli.app import run
from support.agents_at_hand import SHORT, short_recipe


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(rl_commands, "recipe", short_recipe)


@pytest.fixture(scope="module")
def agents(tmp_path_factory):
    """What `nkcme rl train` left, and what it printed as JSON."""
    out = tmp_path_factory.mktemp("agents") / "cartpole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rl_commands, "recipe", short_recipe)
        command = ["rl", "train", "CartPole-v1", "--steps", "400", "--seeds", "2", "--seed", "5"]
        assert run([*command, "--out", str(out)]) == 0
    return out


@pytest.fixture
def call(capsys):
    def call(*arguments):
        status = run(["rl", *map(str, arguments)])
        out, err = capsys.readouterr()
        assert status == 0, err
        return out, err

    return call


@pytest.fixture
def refuse(capsys):
    def refuse(*arguments):
        status = run(["rl", *map(str, arguments)])
        out, err = capsys.readouterr()
        assert status == 2
        assert out == ""
        assert err.startswith("nkcme: ")
        assert err.count("\n") == 1
        return err

    return refuse


# --- train ----------------------------------------------------------------------------------------


def test_training_leaves_agents_curves_and_a_report(agents):
    names = sorted(path.name for path in agents.iterdir())
    assert names == ["config.json", "curves.png", "model.safetensors", "report.html"]
    assert os.listdir(agents.parent) == ["cartpole"]  # no checkpoint stays
    result = rl.load(agents)
    assert (result.env_name, result.seeds, result.n_steps) == ("CartPole-v1", (5, 6), 400)
    assert (agents / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_training_says_what_it_did(tmp_path, call):
    out, err = call("train", "CartPole-v1", "--steps", 400, "--seeds", 2, "--out", tmp_path / "a")
    assert "Trained 2 fuse agents in CartPole-v1 (gymnax) for 400 steps" in out
    assert "Return in the last fifth of training" in out
    assert "by seed" in out
    assert f"nkcme rl watch {tmp_path / 'a'}" in out
    assert err == ""


def test_training_as_json_is_what_was_saved(tmp_path, call):
    command = ("train", "CartPole-v1", "--steps", 400, "--out", tmp_path / "a")
    told = json.loads(call(*command, "--json")[0])
    result = rl.load(tmp_path / "a")
    assert told["last_fifth"] == result.curve.last_fifth().tolist()
    assert told["mean"] == np.mean(told["last_fifth"])
    assert (told["steps"], told["seeds"], told["backend"]) == (400, [0], "gymnax")
    assert all(os.path.exists(path) for path in told["files"])


def test_agents_are_called_after_what_they_are_unless_named(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    call("train", "CartPole-v1", "--agent", "c51", "--steps", 100)
    assert os.listdir(tmp_path) == ["CartPole-v1-c51"]


def test_agents_are_replaced_by_agents(agents, tmp_path, call):
    for seed in (1, 2):
        call("train", "CartPole-v1", "--steps", 400, "--seed", seed, "--out", tmp_path / "a")
    assert rl.load(tmp_path / "a").seeds == (2,)


def test_a_support_can_be_given(tmp_path, call, refuse):
    out = tmp_path / "a"
    call("train", "TwoRoads", "--steps", 200, "--support=-6,3", "--out", out)
    assert rl.load(out).agent.support == (-6.0, 3.0)
    assert "--support" in refuse("train", "TwoRoads", "--support=1,2,3")
    assert "commas" in refuse("train", "TwoRoads", "--support=low,high")
    assert "highest return" in refuse("train", "TwoRoads", "--support=3,-6")
    assert "only fuse" in refuse("train", "TwoRoads", "--agent", "dqn", "--support=-6,3")


def test_warnings_are_lines_for_people(tmp_path, call):
    _, err = call("train", "CartPole-v1", "--steps", 400, "--support=0,5", "--out", tmp_path / "a")
    assert err.startswith("nkcme: ")
    assert "outside the support of [0, 5]" in err
    assert err.count("\n") == 1
    assert ".py" not in err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["CartPol-v1"], "CartPole"),
        (["CartPole-v1", "--steps", "12345"], "multiple of eval_every, 100; got 12345"),
        (["CartPole-v1", "--steps", "0"], "--steps"),
        (["CartPole-v1", "--agent", "fus"], "fuse, single, c51, mmdqn, dqn"),
        (["CartPole-v1", "--preset", "secret"], "paper, tuned"),
        (["CartPole-v1", "--backend", "atari"], "gymnax, gymnasium"),
        (["Pendulum-v1"], "discrete"),
        (["CartPole-v1", "--seed", "-1"], "--seed"),
        (["CartPole-v1", "--backend", "gymnasium", "--checkpoint", "c"], "cannot be resumed"),
        ([], "ENV"),
    ],
)
def test_what_cannot_be_trained_is_refused_in_a_line(arguments, why, tmp_path, monkeypatch, refuse):
    monkeypatch.chdir(tmp_path)
    assert why in refuse("train", *arguments)
    assert os.listdir(tmp_path) == []


def test_a_directory_of_other_files_is_refused_before_the_work(tmp_path, monkeypatch, refuse):
    monkeypatch.setattr(rl_commands, "train", lambda *_, **__: pytest.fail("refuse before working"))
    (tmp_path / "holiday.jpg").write_text("")
    assert "nothing was overwritten" in refuse("train", "CartPole-v1", "--out", tmp_path)


# --- stopping and going on ------------------------------------------------------------------------


def test_a_stopped_training_goes_on_with_the_same_command(tmp_path, monkeypatch, call, refuse):
    """Ctrl-C in a process of its own, then the same command: the bits of an undisturbed one."""
    monkeypatch.setitem(SHORT, "eval_every", 20)  # chunks of 2000 steps
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from support.agents_at_hand import SHORT, short_recipe\n"
        "SHORT['eval_every'] = 20\n"
        "from nkcme.cli import agents as rl_commands\n"
        "rl_commands.recipe = short_recipe\n"
        "from nkcme.cli.app import main\n"
        "main(sys.argv[2:])"
    )
    out, steps = tmp_path / "a", "6000"
    command = ["rl", "train", "CartPole-v1", "--steps", steps, "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(Path(__file__).parents[1]), *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    checkpoint, waited = tmp_path / "a.checkpoint", time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < waited:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    printed, line = process.communicate(timeout=120)
    assert process.returncode == 130, line
    assert printed == ""
    assert line.startswith("nkcme: stopped by Ctrl-C at step ")
    assert line.endswith(f"; to go on: nkcme {' '.join(command)}\n")
    assert not out.exists()

    assert "is of another run" in refuse(*command[1:], "--seed", "1")
    _, err = call(*command[1:])
    assert re.fullmatch(r"nkcme: went on from step \d+, at which .* was stopped\n", err)
    assert not checkpoint.exists()
    call("train", "CartPole-v1", "--steps", steps, "--out", tmp_path / "undisturbed")
    one, other = ((p / "model.safetensors").read_bytes() for p in (out, tmp_path / "undisturbed"))
    assert one == other


# --- eval -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["gymnax", "gymnasium"])
def test_the_same_agents_play_in_both_backends(backend, agents, call):
    told = json.loads(call("eval", agents, "--episodes", 3, "--backend", backend, "--json")[0])
    assert (told["backend"], told["episodes"], told["risk"]) == (backend, 3, None)
    assert [row["seed"] for row in told["by_agent"]] == [5, 6]
    assert all(1 <= row["worst"] <= row["mean"] <= row["best"] <= 500 for row in told["by_agent"])
    assert told["mean"] == np.mean([row["mean"] for row in told["by_agent"]])


def test_eval_prints_a_table_and_follows_the_seed(agents, call):
    tables = [call("eval", agents, "--episodes", 4, "--seed", seed)[0] for seed in (1, 1, 2)]
    assert "CartPole-v1 (gymnax), 4 episodes" in tables[0]
    assert "seed 5" in tables[0]
    assert tables[0] == tables[1] != tables[2]


def test_risk_is_handed_on(agents, call, refuse):
    assert "by the worst 10% of returns" in call("eval", agents, "--episodes", 2, "--risk", 0.1)[0]
    assert "risk" in refuse("eval", agents, "--risk", "2")


@pytest.mark.parametrize("command", ["eval", "watch", "report"])
@pytest.mark.parametrize("harm", ["absent", "truncated", "a model"])
def test_directories_without_agents_are_refused(command, harm, agents, tmp_path, refuse):
    path = tmp_path / "bad"
    if harm == "truncated":
        path.mkdir()
        for file in ("config.json", "model.safetensors"):
            (path / file).write_bytes((agents / file).read_bytes())
        (path / "model.safetensors").write_bytes(b"short")
    elif harm == "a model":
        X = np.arange(20.0)[:, None]
        nkcme.KernelCME().fit(X, X[:, 0]).save(path)
    more = ["-o", tmp_path / "r.html"] if command == "report" else []
    assert "bad" in refuse(command, path, *more)
    assert not (tmp_path / "r.html").exists()


def test_help_shows_examples_and_does_not_wait_for_jax():
    code = """
import sys
from nkcme.cli.app import run
for command in ([], ["train"], ["eval"], ["watch"], ["report"]):
    assert run(["rl", *command, "--help"]) == 0
print(sorted({"jax", "gymnax", "gymnasium", "matplotlib", "plotly"} & set(sys.modules)))
"""
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert printed.splitlines()[-1] == "[]"
    for command in ("train", "eval", "watch", "report"):
        assert f"Example: nkcme rl {command}" in printed


def test_the_public_door():
    code = (
        "import sys, nkcme; assert 'jax' not in sys.modules; print(nkcme.rl.train, nkcme.rl.Result)"
    )
    assert "train" in subprocess.check_output([sys.executable, "-c", code], text=True)
