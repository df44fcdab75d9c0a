"""Images and boards: what they become, their network, and agents that see them."""

from __future__ import annotations

import gymnasium
import jax
import numpy as np
import pytest

from nkcme.rl import DQN, NKDQN, Settings, load, make, train
from nkcme.rl.networks import ImageNetwork
from nkcme.rl.observations import Observations
from nkcme.rl.play import play

SETTINGS = Settings(
    n_steps=100,
    hidden=(8,),
    batch_size=8,
    target_every=50,
    buffer_size=100,
    prefill=50,
    eval_every=50,
)


@pytest.mark.parametrize(
    ("shape", "dtype", "image"),
    [
        ((10, 10, 4), "float32", (10, 10, 4)),
        ((96, 96, 3), "uint8", (96, 96, 3)),
        ((4, 84, 84), "uint8", (84, 84, 4)),
        ((84, 84), "uint8", (84, 84, 1)),
        ((84, 84), "float32", None),
        ((2, 2), "uint8", None),
        ((3, 3, 3), "float32", None),
        ((128,), "uint8", None),
    ],
)
def test_images_are_recognised_by_their_shape_and_type(shape, dtype, image):
    assert Observations(shape, dtype).image == image


def test_pixels_become_shares_and_channels_come_last():
    pixels = np.arange(2 * 5 * 6, dtype=np.uint8).reshape(2, 5, 6)
    vector = Observations((2, 5, 6), "uint8").vector(pixels)
    np.testing.assert_allclose(
        vector.reshape(5, 6, 2), np.moveaxis(pixels, 0, -1) / 255.0, rtol=1e-6
    )


@pytest.mark.parametrize("image", [(6, 7, 2), (22, 25, 3)])
def test_the_network_is_a_convolution_and_fully_connected_layers(image):
    """Against sums over windows."""
    network = ImageNetwork(image, 3, (4,), activation="relu", key=jax.random.key(0))
    x = np.random.default_rng(0).normal(size=image)
    features = np.moveaxis(x, -1, 0)
    for layer in network.convolutions:
        weight, bias = np.float64(layer.weight), np.float64(layer.bias)
        side, stride = weight.shape[-1], layer.stride[0]
        windows = np.lib.stride_tricks.sliding_window_view(features, (side, side), axis=(1, 2))
        windows = windows[:, ::stride, ::stride]
        features = np.maximum(np.einsum("chwij,ocij->ohw", windows, weight) + bias, 0.0)
    expected = network.dense(features.ravel().astype(np.float32))
    ours = network(x.ravel().astype(np.float32))
    np.testing.assert_allclose(ours, expected, rtol=1e-3, atol=1e-5)


class Lamp(gymnasium.Env):
    """One of two lamps is lit, at random; the reward is 1 for its number."""

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Box(0, 255, (6, 6, 1), np.uint8)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.lit = int(self.np_random.integers(2))
        return self.picture(), {}

    def picture(self):
        picture = np.zeros((6, 6, 1), np.uint8)
        picture[2:4, 4 * self.lit : 4 * self.lit + 2] = 255
        return picture

    def step(self, action):
        return self.picture(), float(action == self.lit), True, False, {}


def test_agents_learn_from_pixels_and_their_files_round_trip(tmp_path):
    settings = Settings(
        n_steps=200,
        hidden=(8,),
        learning_rate=1e-2,
        batch_size=16,
        buffer_size=200,
        prefill=100,
        eval_every=100,
    )
    result = train(Lamp, DQN(), settings)
    assert isinstance(result.networks, ImageNetwork)
    assert play(result, Lamp, 20).returns.tolist() == [1.0] * 20
    result.save(tmp_path / "lamp")
    back = load(tmp_path / "lamp")
    pictures = np.random.default_rng(0).integers(0, 256, (5, 6, 6, 1)).astype(np.uint8)
    assert type(back.act(pictures[0])) is int
    np.testing.assert_array_equal(
        back.return_distribution(pictures)[1].mean(), result.return_distribution(pictures)[1].mean()
    )


def test_breakout_trains_with_a_convolution(tmp_path):
    agent = NKDQN(n_atoms=5, support=(-1.0, 9.0))
    result = train("Breakout-MinAtar", agent, SETTINGS, seeds=2)
    assert isinstance(result.networks, ImageNetwork)
    assert result.observations.shape == (10, 10, 4)
    result.save(tmp_path / "a")
    board = np.asarray(make("Breakout-MinAtar").reset(jax.random.key(0))[1]).reshape(10, 10, 4)
    assert load(tmp_path / "a").act(board, 1) == result.act(board.ravel(), 1)
