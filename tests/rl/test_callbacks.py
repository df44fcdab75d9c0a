"""Callbacks between chunks, the progress file and event files, in both loops."""

from __future__ import annotations

import csv
import sys

import numpy as np
import pytest

from nkcme.errors import NkcmeError
from nkcme.rl import DQN, Curve, Settings, TensorBoard, make, train
from nkcme.rl.progress_file import write_progress
from support.tiny_envs import Clock

SETTINGS = Settings(
    n_steps=600,
    hidden=(4,),
    batch_size=4,
    target_every=20,
    buffer_size=100,
    prefill=50,
    eval_every=2,
)
#: A chunk of the compiled loop is 100 evaluations, one of the other loop a single one.
LOOPS = {
    "compiled": (Clock(), SETTINGS, 200),
    "hosted": (
        make("CartPole-v1", "gymnasium"),
        Settings(**SETTINGS.to_config() | {"eval_every": 200}),
        200,
    ),
}


class Watcher:
    """Keeps what it is called with; returns True after a number of calls."""

    def __init__(self, stop_after=None):
        self.calls, self.stop_after = [], stop_after

    def __call__(self, step, scores, agents):
        self.calls.append((step, scores, agents))
        return len(self.calls) == self.stop_after


@pytest.mark.parametrize("loop", LOOPS)
def test_callbacks_get_steps_scores_and_agents(loop):
    env, settings, chunk = LOOPS[loop]
    watcher = Watcher()
    result = train(env, DQN(), settings, seeds=[3, 4], callbacks=[watcher])
    assert [step for step, _, _ in watcher.calls] == [chunk, 2 * chunk, 3 * chunk]
    for step, scores, agents in watcher.calls:
        assert (agents.n_steps, agents.seeds) == (step, (3, 4))
        assert agents.curve.step[-1] == step
        late = agents.curve.step > step - chunk
        np.testing.assert_allclose(scores["return"], agents.curve.returns[late].mean(axis=0))
        np.testing.assert_allclose(agents.curve.loss[-1], scores["loss"], rtol=1e-6)
        agents.act(np.zeros(agents.observation_size), 1)  # their arrays are still there
    first, last = watcher.calls[0][2], watcher.calls[-1][2]
    weights = [one.network(1).layers[0].weight for one in (first, last, result)]
    assert not np.array_equal(weights[0], weights[1])
    np.testing.assert_array_equal(weights[1], weights[2])


@pytest.mark.parametrize("loop", LOOPS)
def test_a_callback_ends_training(loop):
    env, settings, chunk = LOOPS[loop]
    watcher, other = Watcher(stop_after=2), Watcher()
    result = train(env, DQN(), settings, callbacks=[watcher, other])
    assert len(watcher.calls) == len(other.calls) == 2
    assert (result.n_steps, result.interrupted) == (2 * chunk, False)
    assert result.curve.step[-1] == 2 * chunk


def test_the_progress_file_has_one_row_per_evaluation_and_agent(tmp_path):
    curve = Curve.empty(2)
    curve.extend(np.array([100]), np.array([[1.0, -2.5]]))
    curve.extend(np.array([200]), np.array([[3.0, 4.0]]), np.array([0.5, 0.25]))
    write_progress(curve, (7, 9), tmp_path / "p.csv")
    with open(tmp_path / "p.csv") as file:
        rows = list(csv.DictReader(file))
    assert rows[0] == {"step": "100", "seed": "7", "return": "1", "loss": ""}
    assert rows[3] == {"step": "200", "seed": "9", "return": "4", "loss": "0.25"}
    assert len(rows) == 4


def test_tensorboard_has_every_evaluation(tmp_path):
    board = TensorBoard(tmp_path / "board", after=100)
    result = train(Clock(), DQN(), SETTINGS, seeds=2, callbacks=[board])
    board.close()
    (file,) = (tmp_path / "board").iterdir()
    points = list(scalars(file.read_bytes()))
    late = result.curve.step > 100
    for k in range(2):
        ours = [(s, v) for tag, s, v in points if tag == f"return/seed_{k}"]
        assert [s for s, _ in ours] == result.curve.step[late].tolist()
        np.testing.assert_array_equal([v for _, v in ours], result.curve.returns[late, k])
    assert {tag for tag, _, _ in points} == {
        f"{name}/seed_{k}" for name in ("return", "loss") for k in range(2)
    }


def scalars(data):
    """The scalars of an event file: records of a length, its check, an event and its check."""
    from tensorboardX.proto.event_pb2 import Event

    while data:
        length = int.from_bytes(data[:8], "little")
        event = Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]
        for value in event.summary.value:
            yield value.tag, event.step, value.simple_value


def test_tensorboard_names_the_package_that_it_needs(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(NkcmeError, match=r"pip install 'nkcme\[tensorboard\]'"):
        TensorBoard(tmp_path)
