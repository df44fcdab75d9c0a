"""Results: return distributions, actions, and files."""

from __future__ import annotations

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from nkcme.distributions.embedding import Embedding
from nkcme.distributions.sample import SampleDistribution
from nkcme.errors import ModelFileError, NkcmeError
from nkcme.model_files import read_model, write_model
from nkcme.rl import C51, DQN, MMDQN, NKDQN, Settings, load
from nkcme.rl.curve import Curve
from support.agents_at_hand import untrained
from support.fuzz_model_files import fuzz

SETTINGS = Settings(n_steps=200, hidden=(4,), reward_scale=0.5, n_step=2)
AGENTS = {
    "nkdqn": NKDQN(n_atoms=5, support=(-1.0, 3.0), bandwidths=(0.5, 1.5)),
    "c51": C51(n_atoms=4, support=(-2.0, 1.0)),
    "mmdqn": MMDQN(n_particles=3, bandwidths=(1.0,)),
    "dqn": DQN(),
}
OBSERVATIONS = np.sin(np.arange(18.0)).reshape(6, 3)


def made(agent):
    return untrained(agent, seeds=(5, 9), settings=SETTINGS)


@pytest.mark.parametrize("name", AGENTS)
def test_a_saved_result_is_loaded(name, tmp_path):
    result = made(AGENTS[name])
    result.save(tmp_path / "agent")
    back = load(tmp_path / "agent")
    same = ("env_name", "agent", "settings", "seeds", "n_actions", "observation_size", "n_steps")
    for field in (*same, "interrupted"):
        assert getattr(back, field) == getattr(result, field), field
    np.testing.assert_array_equal(back.curve.step, result.curve.step)
    np.testing.assert_array_equal(back.curve.returns, result.curve.returns)
    for agent in range(2):
        for ours, theirs in zip(
            back.return_distribution(OBSERVATIONS, agent),
            result.return_distribution(OBSERVATIONS, agent),
            strict=True,
        ):
            np.testing.assert_array_equal(ours.mean(), theirs.mean())
            np.testing.assert_array_equal(ours.ppf([0.1, 0.9]), theirs.ppf([0.1, 0.9]))
    files = sorted(p.name for p in (tmp_path / "agent").iterdir())
    assert files == ["config.json", "model.safetensors", "progress.csv"]


@pytest.mark.parametrize("name", AGENTS)
def test_return_distributions_are_in_the_unit_of_the_environment(name):
    result, agent = made(AGENTS[name]), AGENTS[name]
    kind = Embedding if name in ("nkdqn", "c51") else SampleDistribution
    for o, n in ((OBSERVATIONS, 6), (OBSERVATIONS[0], 1)):
        returns = result.return_distribution(o, 1)
        assert len(returns) == 2
        for action, r in enumerate(returns):
            assert isinstance(r, kind)
            assert (r.n_rows, r.n_outputs) == (n, 1)
            network = result.network(1)
            rows = jnp.atleast_2d(jnp.asarray(o, jnp.float32))
            outputs = jnp.stack([network(x).reshape(2, -1)[action] for x in rows])
            # Rewards are halved for the network.
            np.testing.assert_allclose(r.mean(), 2.0 * agent.value(outputs), rtol=1e-4, atol=1e-5)


def two_bets():
    """Agents that predict 1 for the first action, and -4 or 8, equally likely, for the second."""
    outputs = np.full((2, 13), -50.0)
    outputs[0, 5] = 50.0
    outputs[1, [0, 12]] = 50.0
    return untrained(NKDQN(n_atoms=13, support=(-4.0, 8.0)), outputs=outputs)


def test_a_risk_averse_agent_takes_the_certain_return():
    """The means are 1 and 2. Of the worst 60 % of the second return, five sixths are -4 and one
    sixth 8, on average -2; of the worst 95 %, the mean is (5 x -4 + 4.5 x 8) / 9.5 = 1.7."""
    result = two_bets()
    means = [r.mean()[0] for r in result.return_distribution(OBSERVATIONS[0])]
    np.testing.assert_allclose(means, [1.0, 2.0], atol=1e-5)
    assert result.act(OBSERVATIONS).tolist() == [1] * 6
    assert result.act(OBSERVATIONS, risk=0.6).tolist() == [0] * 6
    assert result.act(OBSERVATIONS, risk=0.95).tolist() == [1] * 6
    alone = result.act(OBSERVATIONS[0], risk=0.01)
    assert (type(alone), alone) == (int, 0)
    for bad in (0.0, 1.0, -0.5, np.nan):
        with pytest.raises(NkcmeError, match="between 0 and 1"):
            result.act(OBSERVATIONS, risk=bad)


def test_other_observations_and_agents_are_refused():
    result = made(DQN())
    for bad in (np.zeros(4), np.zeros((2, 2, 3)), 1.0):
        with pytest.raises(NkcmeError, match=r"observation of numbers of shape \(3,\)"):
            result.act(bad)
    for bad in (2, -3):
        with pytest.raises(NkcmeError, match="2 agents"):
            result.act(OBSERVATIONS, bad)
    assert result.act(OBSERVATIONS, -1).tolist() == result.act(OBSERVATIONS, 1).tolist()


def test_the_best_agent_has_the_highest_return_in_the_last_fifth():
    result = made(DQN())
    assert result.best() == 0  # 3 against 2, at the last evaluation
    other = Curve(result.curve.step, result.curve.returns[:, ::-1])
    assert replace(result, curve=other).best() == 1
    assert replace(result, curve=Curve.empty(2)).best() == 0


def test_files_of_other_models_are_refused(tmp_path):
    write_model(tmp_path / "m", {"estimator": "NKCME"}, {"a": np.zeros(2, np.float32)})
    with pytest.raises(ModelFileError, match=r"expected agents.*nkcme\.load"):
        load(tmp_path / "m")
    with pytest.raises(ModelFileError):
        load(tmp_path / "nothing")


CHANGES = {
    "no settings": lambda c, a: c.pop("settings"),
    "no agent": lambda c, a: c.pop("agent"),
    "an unknown agent": lambda c, a: c["agent"].update(kind="x"),
    "an invalid agent": lambda c, a: c["agent"].update(n_atoms=1),
    "an agent of another width": lambda c, a: c["agent"].update(n_atoms=6),
    "a support that is not resolved": lambda c, a: c["agent"].update(support="auto"),
    "an invalid setting": lambda c, a: c["settings"].update(gamma=2.0),
    "an unknown setting": lambda c, a: c["settings"].update(other=2.0),
    "another network": lambda c, a: c["settings"].update(hidden=[5]),
    "seeds that are text": lambda c, a: c.update(seeds=["x", "y"]),
    "another number of seeds": lambda c, a: c.update(seeds=[1]),
    "a text as number of actions": lambda c, a: c.update(n_actions="x"),
    "a null": lambda c, a: c.update(observation_size=None),
    "no curve": lambda c, a: a.pop("curve/returns"),
    "a curve of more agents": lambda c, a: a.update(
        {"curve/returns": np.zeros((2, 3), np.float32)}
    ),
    "losses of more agents": lambda c, a: a.update({"curve/loss": np.zeros((2, 3), np.float32)}),
    "observations of another size": lambda c, a: c["observations"].update(shape=[4]),
    "observations of no size": lambda c, a: c["observations"].update(shape=["x"]),
    "observations of no type": lambda c, a: c["observations"].update(dtype="x"),
    "a curve of other steps": lambda c, a: a.update({"curve/step": np.zeros(3, np.int64)}),
    "a missing layer": lambda c, a: a.pop(next(k for k in a if k.startswith("network"))),
    "parameters that are not finite": lambda c, a: a.update(
        {k: np.full_like(v, np.nan) for k, v in a.items() if k.startswith("network")}
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_damaged_files_are_refused(change, tmp_path):
    made(AGENTS["nkdqn"]).save(tmp_path / "good")
    config, arrays = read_model(tmp_path / "good")
    CHANGES[change](config, arrays)
    write_model(tmp_path / "bad", config, arrays)
    with pytest.raises(ModelFileError) as error:
        load(tmp_path / "bad")
    assert "\n" not in str(error.value)


def test_an_altered_byte_is_noticed(tmp_path):
    made(DQN()).save(tmp_path / "m")
    text = (tmp_path / "m" / "config.json").read_text()
    assert json.loads(text)
    (tmp_path / "m" / "config.json").write_text(text.replace("somewhere", "elsewhere"))
    with pytest.raises(ModelFileError):
        load(tmp_path / "m")


def test_random_changes_to_a_file_are_refused_or_loaded(tmp_path):
    made(AGENTS["nkdqn"]).save(tmp_path / "m")
    counts = fuzz(load, tmp_path / "m", n=150, seed=1)
    assert counts["refused"] > 100
