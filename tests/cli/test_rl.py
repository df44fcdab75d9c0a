"""`nkcme rl`: what its commands print and write, and their exit status."""

import contextlib
import io
import json
import os

import numpy as np
import pytest

import nkcme
from nkcme import rl
from nkcme.cli import rl_train
from nkcme.cli.app import run
from support.agents_at_hand import SHORT, short_recipe
from support.ctrl_c import ctrl_c_after_first_checkpoint


@pytest.fixture(autouse=True)
def short_training(monkeypatch):
    monkeypatch.setattr(rl_train, "recipe", short_recipe)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The directory that `nkcme rl train` wrote, and what it printed."""
    out = tmp_path_factory.mktemp("agents") / "cartpole"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rl_train, "recipe", short_recipe)
        command = ["rl", "train", "CartPole-v1", "--steps", "400", "--seeds", "2", "--seed", "5"]
        with (
            contextlib.redirect_stdout(io.StringIO()) as printed,
            contextlib.redirect_stderr(io.StringIO()) as notes,
        ):
            assert run([*command, "--out", str(out)]) == 0
    return out, printed.getvalue(), notes.getvalue()


@pytest.fixture
def agents(trained):
    return trained[0]


# --- train


def test_training_writes_agents_curves_and_a_report(agents):
    names = sorted(path.name for path in agents.iterdir())
    assert names == [
        "config.json",
        "curves.png",
        "model.safetensors",
        "progress.csv",
        "report.html",
        "training.checkpoint",
    ]
    assert os.listdir(agents.parent) == ["cartpole"]  # neither checkpoint nor log stays beside it
    lines = (agents / "progress.csv").read_text().splitlines()
    assert lines[0] == "step,seed,return,loss"
    assert [line.split(",")[:2] for line in lines[1:3]] == [["100", "5"], ["100", "6"]]
    assert len(lines) == 1 + 4 * 2
    result = rl.load(agents)
    assert (result.env_name, result.seeds, result.n_steps) == ("CartPole-v1", (5, 6), 400)
    assert (agents / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_training_prints_what_was_trained(trained):
    out, printed, notes = trained
    assert "Trained 2 fuse agents in CartPole-v1 (gymnax) for 400 steps" in printed
    assert "Return in the last fifth of training" in printed
    assert "by seed" in printed
    assert f"nkcme rl watch {out}" in printed
    assert notes == ""


def test_agents_are_named_after_environment_and_agent_by_default(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    command = ("rl", "train", "CartPole-v1", "--steps", 400, "--seeds", 2)
    printed = json.loads(call(*command, "--json")[0])
    assert os.listdir(tmp_path) == ["CartPole-v1-fuse"]
    result = rl.load(tmp_path / "CartPole-v1-fuse")
    assert printed["last_fifth"] == result.curve.last_fifth().tolist()
    assert printed["mean"] == np.mean(printed["last_fifth"])
    assert (printed["steps"], printed["seeds"], printed["backend"]) == (400, [0, 1], "gymnax")
    assert all(os.path.exists(path) for path in printed["files"])


def test_a_support_can_be_given_and_warnings_are_notes(tmp_path, call):
    out = tmp_path / "a"
    _, err = call("rl", "train", "CartPole-v1", "--steps", 400, "--support=0,5", "--out", out)
    assert rl.load(out).agent.support == (0.0, 5.0)
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
        (["CartPole-v1", "--support=1,2,3"], "--support"),
        (["CartPole-v1", "--support=low,high"], "commas"),
        (["CartPole-v1", "--support=3,-6"], "highest return"),
        (["CartPole-v1", "--agent", "dqn", "--support=-6,3"], "only fuse"),
        (["CartPole-v1", "--out", "/"], "the root of the file system"),
        ([], "ENV"),
    ],
)
def test_bad_input_is_refused_and_nothing_is_written(arguments, why, tmp_path, monkeypatch, refuse):
    monkeypatch.chdir(tmp_path)
    assert why in refuse("rl", "train", *arguments)
    assert os.listdir(tmp_path) == []


def test_a_directory_of_other_files_is_refused_before_training(tmp_path, monkeypatch, refuse):
    monkeypatch.setattr(rl_train, "train", lambda *_, **__: pytest.fail("refused too late"))
    (tmp_path / "holiday.jpg").write_text("")
    assert "nothing was overwritten" in refuse("rl", "train", "CartPole-v1", "--out", tmp_path)


def test_training_stopped_by_ctrl_c_resumes_to_the_same_agents(
    tmp_path, monkeypatch, call, refuse, capsys
):
    monkeypatch.setitem(SHORT, "eval_every", 4)  # a checkpoint every 400 steps
    out, checkpoint = tmp_path / "a", tmp_path / "a.checkpoint"
    command = ["rl", "train", "CartPole-v1", "--steps", "800", "--out"]
    with ctrl_c_after_first_checkpoint(), pytest.raises(SystemExit) as exit_:
        run([*command, str(out)])
    assert exit_.value.code == 130
    line = f"nkcme: stopped by Ctrl-C at step 400; to continue: nkcme {' '.join(command)} {out}\n"
    assert capsys.readouterr() == ("", line)
    assert checkpoint.exists()
    assert not out.exists()

    assert "another run" in refuse(*command, out, "--seed", "1")
    _, err = call(*command, out)
    assert err == "nkcme: continued from step 400 of a run that was stopped\n"
    assert not checkpoint.exists()
    call(*command, tmp_path / "undisturbed")
    one, other = ((p / "model.safetensors").read_bytes() for p in (out, tmp_path / "undisturbed"))
    assert one == other


def test_agents_go_on_past_their_steps(tmp_path, monkeypatch, call, refuse):
    """With a constant learning rate, to the bits of a longer run: a chunk is 400 steps."""
    monkeypatch.setitem(SHORT, "eval_every", 4)
    monkeypatch.setitem(SHORT, "schedule", "constant")
    train = ["rl", "train", "CartPole-v1", "--agent", "dqn", "--seed", "3", "--steps"]
    call(*train, "800", "--out", tmp_path / "long")
    call(*train, "400", "--out", tmp_path / "a")
    more = ["rl", "train", "--continue", tmp_path / "a"]
    assert "400 steps: --steps is their number in all" in refuse(*more, "--steps", 400)
    assert "add --steps N" in refuse(*more)
    assert "omit --agent" in refuse(*more, "--steps", 800, "--agent", "fuse")
    assert "another run" in refuse(*more, "--steps", 800, "--backend", "gymnasium")
    assert not (tmp_path / "a.checkpoint").exists()
    out, err = call(*more, "--steps", 800, "--tensorboard", tmp_path / "board")
    assert "for 800 steps" in out
    assert err == "nkcme: continued from step 400\n"
    one, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("a", "long"))
    assert one == other
    assert (tmp_path / "a" / "progress.csv").read_text().count("\n") == 201
    assert len(os.listdir(tmp_path / "board")) == 1
    (tmp_path / "a" / "training.checkpoint").unlink()
    assert "no training state" in refuse(*more, "--steps", 1200)


# --- eval, watch, report


@pytest.mark.parametrize("backend", ["gymnax", "gymnasium"])
def test_the_same_agents_play_in_both_backends(backend, agents, call):
    command = ("rl", "eval", agents, "--episodes", 3, "--backend", backend)
    printed = json.loads(call(*command, "--json")[0])
    assert (printed["backend"], printed["episodes"], printed["risk"]) == (backend, 3, None)
    assert [row["seed"] for row in printed["by_agent"]] == [5, 6]
    assert all(
        1 <= row["worst"] <= row["mean"] <= row["best"] <= 500 for row in printed["by_agent"]
    )
    assert printed["mean"] == np.mean([row["mean"] for row in printed["by_agent"]])


def test_eval_prints_a_table_and_follows_the_seed(agents, call):
    tables = [call("rl", "eval", agents, "--episodes", 4, "--seed", seed)[0] for seed in (1, 1, 2)]
    assert "CartPole-v1 (gymnax), 4 episodes" in tables[0]
    assert "seed 5" in tables[0]
    assert tables[0] == tables[1] != tables[2]


def test_risk_is_passed_on(agents, call, refuse):
    printed, _ = call("rl", "eval", agents, "--episodes", 4, "--risk", 0.1)
    assert "by the worst 10% of returns" in printed
    assert "risk" in refuse("rl", "eval", agents, "--risk", "2")


@pytest.mark.parametrize("command", ["eval", "watch", "report"])
@pytest.mark.parametrize("fault", ["absent", "truncated", "a model"])
def test_directories_without_agents_are_refused(command, fault, agents, tmp_path, refuse):
    path = tmp_path / "bad"
    if fault == "truncated":
        path.mkdir()
        for file in ("config.json", "model.safetensors"):
            (path / file).write_bytes((agents / file).read_bytes())
        (path / "model.safetensors").write_bytes(b"short")
    elif fault == "a model":
        X = np.arange(20.0)[:, None]
        nkcme.KernelCME().fit(X, X[:, 0]).save(path)
    more = ["-o", tmp_path / "r.html"] if command == "report" else []
    assert "bad" in refuse("rl", command, path, *more)
    assert not (tmp_path / "r.html").exists()
