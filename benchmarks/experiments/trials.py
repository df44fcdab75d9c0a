"""Trials on a Ray cluster: one file each; those of workers and nodes that are lost are run again.

All nodes must reach the folder of the files at the same path.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from nkcme.model_files import strict_json
from nkcme.model_files.atomic_files import replacing
from nkcme.ray_tasks import run_on_ray

Item = TypeVar("Item")
Row = dict[str, Any]


def run_trials(
    work: Callable[[Item], Row], trials: Mapping[str, Item], folder: Path, address: str
) -> Iterator[tuple[str, Row]]:
    """The name and result of each trial, in the order in which they are finished.

    A worker writes the result to ``folder/NAME.json`` before it reports it, so that what is
    finished stays if this process is stopped; a trial that has a file is not run again.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    finished = [name for name in trials if _path(folder, name).exists()]
    for name in finished:
        yield name, _read(folder, name)
    missing = [(name, item) for name, item in trials.items() if name not in finished]
    for name in run_on_ray(partial(_run_trial, work, folder), missing, address):
        yield name, _read(folder, name)


def remove_trial(folder: Path, name: str) -> None:
    """Remove the file of a trial whose result is stored elsewhere."""
    _path(folder, name).unlink(missing_ok=True)


def _run_trial(work: Callable[[Item], Row], folder: Path, trial: tuple[str, Item]) -> str:
    name, item = trial
    path = _path(folder, name)
    text = strict_json.dumps(work(item))
    partial_path = path.with_name(f".{path.name}.{socket.gethostname()}-{os.getpid()}")
    with replacing(path, partial_path) as file:
        file.write(text)
    return name


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _read(folder: Path, name: str) -> Row:
    row: Row = strict_json.loads(_path(folder, name).read_bytes())
    return row
