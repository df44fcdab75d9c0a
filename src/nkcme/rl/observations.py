"""What the observations of an environment are, and the vector that each of them becomes.

Networks and the replay hold vectors. An array is flattened, a state out of a finite number becomes
one-hot, and an image is brought to the order (height, width, channels) with values from 0 to 1.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nkcme.errors import NkcmeError
from nkcme.parameter_checks import need_whole

#: The shortest side of an array of three axes that counts as an image.
_LEAST_SIDE = 5


@dataclass(frozen=True)
class Observations:
    """The observations of an environment.

    Parameters
    ----------
    shape
        The shape of an observation; () for a state.
    dtype
        The name of its NumPy type.
    n_states, first_state
        Where an observation is one of finitely many states, their number and the first; otherwise
        ``n_states`` is None.

    Examples
    --------
    >>> from nkcme.rl.observations import Observations
    >>> Observations((), "int64", n_states=3).vector(1).tolist()
    [0.0, 1.0, 0.0]
    """

    shape: tuple[int, ...]
    dtype: str = "float32"
    n_states: int | None = None
    first_state: int = 0

    @property
    def size(self) -> int:
        """The length of the vector."""
        return int(np.prod(self.shape)) if self.n_states is None else self.n_states

    @property
    def image(self) -> tuple[int, int, int] | None:
        """Height, width and channels of an image or a board; None for other observations.

        An image has three axes, or two and the type uint8. Its height and width are at least five.
        """
        shape = self.shape
        if len(shape) == 2 and self.dtype == "uint8":
            shape = (*shape, 1)
        if len(shape) != 3:
            return None
        height, width, channels = np.roll(shape, -1).tolist() if self._channels_first else shape
        return (height, width, channels) if min(height, width) >= _LEAST_SIDE else None

    @property
    def _channels_first(self) -> bool:
        """Whether the channels of an image come first: they are fewer than the other two sizes."""
        return len(self.shape) == 3 and self.shape[0] < min(self.shape[1:])

    @property
    def description(self) -> str:
        """What one observation is, for messages."""
        if self.n_states is not None:
            last = self.first_state + self.n_states - 1
            return f"a whole number from {self.first_state} to {last}"
        numbers = "whole numbers" if np.dtype(self.dtype).kind in "iu" else "numbers"
        return f"{numbers} of shape {self.shape}"

    def vector(self, observation: Any) -> np.ndarray:
        """Return an observation as a vector.

        Parameters
        ----------
        observation
            The observation, as the environment gives it.

        Returns
        -------
        ndarray of shape (size,), float32
            The vector.

        Raises
        ------
        NkcmeError
            If the observation has another shape or type, or is not finite.
        """
        try:
            array = np.asarray(observation)
        except ValueError:  # a list of lists of different lengths
            raise self._unexpected("lists of different lengths") from None
        kind = array.dtype.kind
        if array.shape != self.shape:
            raise self._unexpected(_described(observation, array))
        if kind not in "biuf" or (kind == "f" and np.dtype(self.dtype).kind in "iu"):
            raise self._unexpected(_described(observation, array))
        if self.n_states is not None:
            return self._one_hot(int(array))
        if kind == "f" and not np.isfinite(array).all():
            raise self._unexpected("values that are not finite")
        if self.image is None:
            return array.ravel().astype(np.float32)
        array = np.moveaxis(array, 0, -1) if self._channels_first else array
        scale = 255.0 if self.dtype == "uint8" else 1.0
        return array.ravel().astype(np.float32) / np.float32(scale)

    def _one_hot(self, state: int) -> np.ndarray:
        vector = np.zeros(self.size, np.float32)
        if not 0 <= state - self.first_state < self.size:
            raise self._unexpected(str(state))
        vector[state - self.first_state] = 1.0
        return vector

    def _unexpected(self, found: str) -> NkcmeError:
        return NkcmeError(f"expected an observation of {self.description}; got {found}")

    def to_config(self) -> dict[str, Any]:
        """Return the fields, as JSON can hold them."""
        return asdict(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Observations:
        """Return the observations of a `to_config`; raise where the fields are not valid."""
        made = cls(**config | {"shape": tuple(config["shape"])})
        np.dtype(made.dtype)
        for number in made.shape:
            need_whole("each size of an observation", number)
        if made.n_states is not None:
            need_whole("n_states", made.n_states)
        need_whole("first_state", made.first_state, least=None)
        return made


def _described(observation: Any, array: np.ndarray) -> str:
    if array.dtype.kind not in "biuf":
        return f"{observation!r:.60}" if array.ndim == 0 else "an array that is not of numbers"
    return f"{'a number' if array.ndim == 0 else f'shape {array.shape}'} of type {array.dtype}"
