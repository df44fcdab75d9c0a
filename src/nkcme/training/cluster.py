"""Which processes train together: some on this machine, those of a Ray cluster, or given ones."""

from __future__ import annotations

from dataclasses import dataclass

from nkcme.errors import NkcmeError


@dataclass(frozen=True)
class Cluster:
    """The processes of a fit to a table on disk.

    Parameters
    ----------
    processes : int
        How many there are. 1, 2, 4 and 8 see the same minibatches.
    coordinator : str, optional
        ``"HOST:PORT"`` of the first process, where another program (Slurm, Kubernetes, MPI) starts
        the processes. Each calls `fit` with the same arguments but its own ``process_id``, and as
        the first thing that it does with JAX. A process that finds another one gone
        raises `ProcessLostError`, or is ended where it cannot.
    process_id : int, optional
        The number of this process, from 0 on; with ``coordinator``.
    ray : str, optional
        The address of a Ray cluster on which the processes are placed, such as
        ``"ray://HOST:10001"``, or ``"auto"``. All nodes must see the files of the table at the same
        paths.

    Examples
    --------
    >>> from nkcme import Cluster
    >>> Cluster(processes=2)
    Cluster(processes=2, coordinator=None, process_id=None, ray=None)
    """

    processes: int
    coordinator: str | None = None
    process_id: int | None = None
    ray: str | None = None

    def check(self) -> None:
        """Raise NkcmeError where the parameters do not fit together."""
        if not isinstance(self.processes, int) or self.processes < 1:
            raise NkcmeError(
                f"processes must be a whole number, at least 1; got {self.processes!r}"
            )
        if (self.coordinator is None) != (self.process_id is None):
            raise NkcmeError("give coordinator and process_id together, or neither of them")
        if self.coordinator is None or self.process_id is None:
            return
        if self.ray is not None:
            raise NkcmeError("give coordinator or ray: Ray places processes by itself")
        host, _, port = self.coordinator.rpartition(":")
        if not host or not port.isdecimal():
            raise NkcmeError(f"coordinator must be HOST:PORT; got {self.coordinator!r}")
        if not 0 <= self.process_id < self.processes:
            raise NkcmeError(
                f"process_id must be from 0 to {self.processes - 1}; got {self.process_id}"
            )
