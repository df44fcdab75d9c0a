"""An embedding as an element of the Hilbert space of its kernel."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nkcme.distributions import blocks
from nkcme.distributions.checks import checked_size
from nkcme.distributions.kernel_values import evaluate
from nkcme.distributions.location_scale import LocationScale
from nkcme.errors import NkcmeError


class HilbertSpaceElement(LocationScale):
    """The operations of mu = sum_a w_a k(eta_a, .) in the Hilbert space of k.

    They do not depend on the reading. Signed weights are valid, and are used as they are. With
    ``transform="log"`` it is the Hilbert space of log y; points, atoms and samples that are given
    or returned are in units of y.
    """

    atoms: np.ndarray
    weights: np.ndarray
    kernel: str
    bandwidth: float
    transform: str

    @abstractmethod
    def __getitem__(self, rows: Any) -> HilbertSpaceElement: ...

    @abstractmethod
    def _function(self, y: np.ndarray) -> np.ndarray:
        """mu at points (n_rows or 1, m, d) in units of y: (n_rows, m)."""

    def embedding_function(self, y: ArrayLike, *, grid: bool = False) -> np.ndarray:
        """The function mu(y) = sum_a w_a k(eta_a, y) itself, which signed weights make negative.

        Parameters
        ----------
        y, grid
            Points, as in `pdf`.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, m)
        """
        return self._at(self._function, y, grid)

    def embedding_mean(self) -> np.ndarray:
        """The mean sum_a w_a eta_a by the weights as they are, in the shape of `mean`.

        It is linear in the weights, and for `KernelCME` the prediction of kernel ridge regression.
        `mean` is that of the law, in which negative weights take mass away.
        """
        return self._squeeze(self._from_standard(self.weights @ self.atoms))

    def expect(self, f: Callable[[np.ndarray], ArrayLike]) -> np.ndarray:
        """The expectation <f, mu> = sum_a w_a f(eta_a) of a function under the atomic measure.

        Parameters
        ----------
        f : callable
            Maps the atoms of a row in units of y, (m,) or (m, d), to one number each.

        Returns
        -------
        ndarray of shape (n_rows,)

        Examples
        --------
        >>> from nkcme import Embedding
        >>> dist = Embedding(atoms=[0.0, 1.0, 2.0], weights=[[0.5, 0.25, 0.25]])
        >>> dist.expect(lambda y: y > 0.5)
        array([0.5])
        """
        if len(self.location) == len(self.scale) == 1:
            atoms = self._squeeze(self._from_standard(self.atoms))
            return self.weights @ np.asarray(f(atoms), np.float64)
        return np.concatenate([np.empty(0), *(self[i].expect(f) for i in range(self.n_rows))])

    def inner(self, other: HilbertSpaceElement) -> np.ndarray:
        """The inner product <mu, nu> with another embedding, row by row.

        Parameters
        ----------
        other : Embedding
            As many rows, or one row that is paired with every row; of the same kernel and
            bandwidth.

        Returns
        -------
        ndarray of shape (n_rows,)

        Raises
        ------
        NkcmeError
            If the numbers of rows or the kernels differ.
        """
        if len(self) == 1 != len(other):
            return other.inner(self)
        if len(other) not in (1, len(self)):
            raise NkcmeError(f"cannot pair {len(self)} rows with {len(other)}")
        self._need_same_kernel(other)
        shift, stretch = (other.location - self.location) / self.scale, other.scale / self.scale
        volume = np.broadcast_to(np.prod(self.scale, axis=1), self.n_rows)
        if len(shift) == len(stretch) == 1:
            gram = self._evaluate_kernel(
                "value", self.atoms[:, None] - (shift + stretch * other.atoms)[None]
            )
            return np.sum((self.weights @ gram) * other.weights, axis=1) / volume
        pairs = ((self[i], other[i if len(other) > 1 else 0]) for i in range(self.n_rows))
        return np.concatenate([np.empty(0), *(a.inner(b) for a, b in pairs)])

    def mmd(self, other: HilbertSpaceElement) -> np.ndarray:
        """The maximum mean discrepancy ||mu - nu|| to another embedding, row by row.

        Parameters
        ----------
        other : Embedding
            As in `inner`.

        Returns
        -------
        ndarray of shape (n_rows,)

        Examples
        --------
        >>> from nkcme import Embedding
        >>> dist = Embedding(atoms=[0.0, 1.0], weights=[[0.5, 0.5], [0.9, 0.1]], bandwidth=0.5)
        >>> dist.mmd(dist[0]).round(3)
        array([0.  , 0.47])
        """
        cross = self.inner(other)  # first, because it checks that the two can be compared
        square = self.inner(self) + other.inner(other) - 2.0 * cross
        return np.sqrt(np.maximum(square, 0.0))

    def witness(
        self, other: HilbertSpaceElement, y: ArrayLike, *, grid: bool = False
    ) -> np.ndarray:
        """The witness function mu(y) - nu(y), positive where this embedding has more mass.

        Parameters
        ----------
        other : Embedding
            As in `inner`.
        y, grid
            Points, as in `pdf`.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, m)
        """
        self._need_same_kernel(other)
        if len(other) == 1:
            other = other[np.zeros(len(self), int)]
        return self.embedding_function(y, grid=grid) - other.embedding_function(y, grid=grid)

    def herd(
        self,
        size: int,
        *,
        candidates: ArrayLike | int = 1000,
        max_memory: int | None = None,
    ) -> np.ndarray:
        """Super-samples of the atomic measure by kernel herding (Chen, Welling & Smola, 2010).

        They are deterministic, and describe the distribution better than as many independent
        samples.

        Parameters
        ----------
        size : int
            Samples per row.
        candidates : int or array_like of shape (m,) or (m, d)
            The points to choose from, in standard units, or their number. A number gives evenly
            spaced points between the outermost atoms, and for d > 1 outputs the atoms.
        max_memory : int or None
            Bytes of the working arrays; None for a quarter of a gibibyte.

        Returns
        -------
        ndarray of shape (size, n_rows), or (size, n_rows, d) for d > 1 outputs

        Raises
        ------
        NkcmeError
            If ``size`` is not a whole number of at least 0.
        """
        from nkcme.distributions import herding  # a compiled program, which needs JAX

        size = checked_size(size)
        if not isinstance(candidates, int | np.integer):
            points = np.asarray(candidates, np.float64).reshape(-1, self.n_outputs)
        elif self.n_outputs == 1:
            points = np.linspace(self.atoms[0], self.atoms[-1], max(int(candidates), 1))
        else:
            points = self.atoms
        cross = self._evaluate_kernel("value", self.atoms[:, None] - points[None])
        gram = self._evaluate_kernel("value", points[:, None] - points[None])
        bound = blocks.MAX_MEMORY if max_memory is None else max_memory
        picks = herding.herd(self.weights, cross, gram, size, bound)
        return self._squeeze(
            np.moveaxis(self._from_standard(np.moveaxis(points[picks], 0, 1)), 0, 1)
        )

    def _evaluate_kernel(self, method: str, argument: np.ndarray) -> np.ndarray:
        return evaluate(self.kernel, method, self.bandwidth, argument)

    def _need_same_kernel(self, other: HilbertSpaceElement) -> None:
        ours, theirs = self.bandwidth * self.scale, other.bandwidth * other.scale
        same = self.kernel == other.kernel and self.n_outputs == other.n_outputs
        same = same and self.transform == other.transform
        if not (same and np.allclose(ours, theirs, rtol=1e-6, atol=0)):
            raise NkcmeError(
                f"only embeddings in one Hilbert space can be compared: {self.kernel} of bandwidth "
                f"{ours.ravel()[0]:.6g} against {other.kernel} of {theirs.ravel()[0]:.6g}"
                + ("" if self.transform == other.transform else ", and y against log y")
            )
