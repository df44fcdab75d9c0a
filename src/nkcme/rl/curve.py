"""Learning curves: the returns of evaluation episodes over the steps of training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nkcme.short_repr import shapes_in_repr

#: The largest number of points of a curve in a plot or a table row.
N_POINTS = 500


@shapes_in_repr
@dataclass
class Curve:
    """The returns of single evaluation episodes during training.

    Attributes
    ----------
    step : ndarray of shape (n,)
        The training steps done before each evaluation.
    returns : ndarray of shape (n, agents)
        The undiscounted return of each agent's episode.
    loss : ndarray of shape (n, agents)
        The mean loss of each agent over the chunk of steps that ends with or after the evaluation;
        NaN where it is not known.
    """

    step: np.ndarray
    returns: np.ndarray
    loss: np.ndarray = None  # type: ignore[assignment]  # set below

    def __post_init__(self) -> None:
        if self.loss is None:
            self.loss = np.full(np.shape(self.returns), np.nan, np.float32)

    @classmethod
    def empty(cls, n_agents: int) -> Curve:
        """Return a curve without points."""
        return cls(np.zeros(0, np.int64), np.zeros((0, n_agents), np.float32))

    def extend(self, step: np.ndarray, returns: np.ndarray, loss: np.ndarray | None = None) -> None:
        """Append points.

        Parameters
        ----------
        step
            Their steps, (n,).
        returns
            Their returns, (n, agents).
        loss
            The mean loss of each agent, (agents,); None where it is not known.
        """
        losses = np.broadcast_to(np.nan if loss is None else loss, np.shape(returns))
        self.loss = np.concatenate([self.loss, np.asarray(losses, np.float32)])
        self.step = np.concatenate([self.step, np.asarray(step, np.int64)])
        self.returns = np.concatenate([self.returns, np.asarray(returns, np.float32)])

    def last_fifth(self) -> np.ndarray:
        """Return each agent's mean return over the last fifth of the steps.

        Returns
        -------
        ndarray of shape (agents,)
            NaN where the curve has no points.
        """
        if not len(self.step):
            return np.full(self.returns.shape[1], np.nan)
        late = self.step > 0.8 * self.step[-1]
        return self.returns[late].mean(axis=0, dtype=np.float64)

    def area(self) -> np.ndarray:
        """Return the area under each agent's curve: its mean return over all steps, (agents,)."""
        return self.returns.mean(axis=0, dtype=np.float64)

    def as_arrays(self) -> dict[str, np.ndarray]:
        """Return the curve as the named arrays of a file."""
        return {
            "curve/step": self.step,
            "curve/returns": self.returns,
            "curve/loss": self.loss,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> Curve:
        """Return the curve of `as_arrays`."""
        # Files of earlier versions hold no loss.
        return cls(arrays["curve/step"], arrays["curve/returns"], arrays.get("curve/loss"))  # type: ignore[arg-type]


def thin(values: np.ndarray, n_points: int = N_POINTS) -> tuple[np.ndarray, int]:
    """Average values over equal spans, so that at most ``n_points`` remain.

    Returns
    -------
    means, span
        The means and the number of values in each; the last span may hold fewer.
    """
    span = -(-len(values) // n_points)
    first = np.arange(0, len(values), span)
    sums = np.add.reduceat(np.asarray(values, np.float64), first)
    return sums / np.diff(np.append(first, len(values))), span
