"""The network of an agent: fully connected layers, after convolutions where it sees images."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from nkcme.networks import ACTIVATIONS, MLP

#: Channels, width and stride of the convolutions of a board (Young and Tian, 2019: MinAtar) and of
#: a larger image (Mnih et al., 2013).
_BOARD = ((16, 3, 1),)
_LARGE = ((16, 8, 4), (32, 4, 2))

#: The shortest side of a large image: the second convolution needs a side of four.
_LARGE_SIDE = 20


class ImageNetwork(eqx.Module):
    """Convolutions, then fully connected layers.

    A board has one convolution of 16 filters of width 3. An image with sides of 20 or more has two
    with strides, of 16 filters of width 8 and 32 of width 4. The input is an image (height, width,
    channels) as a vector.
    """

    convolutions: tuple[eqx.nn.Conv2d, ...]
    dense: MLP
    image: tuple[int, int, int] = eqx.field(static=True)

    def __init__(
        self,
        image: tuple[int, int, int],
        n_out: int,
        hidden: Sequence[int],
        *,
        activation: str,
        key: Array,
    ):
        height, width, channels = image
        layers = _LARGE if min(height, width) >= _LARGE_SIDE else _BOARD
        *keys, dense_key = jax.random.split(key, len(layers) + 1)
        convolutions = []
        for (n, side, stride), layer_key in zip(layers, keys, strict=True):
            convolutions.append(eqx.nn.Conv2d(channels, n, side, stride, key=layer_key))
            height, width = (1 + (size - side) // stride for size in (height, width))
            channels = n
        self.convolutions = tuple(convolutions)
        size = height * width * channels
        self.dense = MLP(size, n_out, hidden, activation=activation, head="signed", key=dense_key)
        self.image = image

    def __call__(self, x: Array) -> Array:
        x = jnp.moveaxis(x.reshape(self.image), -1, 0)  # Equinox has the channels first
        for layer in self.convolutions:
            x = ACTIVATIONS[self.dense.activation](layer(x))
        return self.dense(x.ravel())


#: The network of an agent.
Network = MLP | ImageNetwork
