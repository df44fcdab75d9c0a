"""Fits on some emulated devices of one process; run as a program, whose XLA_FLAGS has their number.

    python -m support.fit_on_devices FOLDER CHECKPOINT OUT

Where there is no checkpoint, a fit is stopped that leaves one; else that fit goes on.
"""

import sys
from pathlib import Path

import jax
import numpy as np

from nkcme import NKCME, presets
from nkcme.training import chunks
from nkcme.training.mesh import DeviceMesh
from nkcme.training.row_shares import RowShare
from nkcme.training.streamed_minibatches import StreamedMinibatches
from support.large_folder import SMALL, make

#: A fit is stopped after so many chunks: the location networks are done, the embedding is not.
SAVES = 6


def main(folder: Path, checkpoint: Path, out: Path) -> None:
    """Write losses and predictions, and the shape of the mesh."""
    frame, _ = make(300, 1)
    X, y = frame[["x", "k"]], frame.y
    found = {}

    def keep(name: str, model: NKCME) -> None:
        found[f"{name}-loss"], found[f"{name}-mean"] = model.history_["loss"], model.predict(X)

    keep("disk", new_model().fit(folder, target="y"))
    model = new_model(checkpoint=checkpoint)
    if checkpoint.exists():
        keep("resumed", model.fit(folder, target="y"))
    else:
        stop(model, folder)
    keep("memory", NKCME(**presets.QUICK, epochs=5, random_state=0, verbose=False).fit(X, y))
    StreamedMinibatches._share = lambda self, n_devices: RowShare()  # as on a GPU
    keep("gpu", new_model().fit(folder, target="y"))
    mesh = DeviceMesh.of(SMALL.stream.n_members, SMALL.stream.n_lanes)
    found["mesh"] = [1, 1] if mesh is None else mesh.mesh.devices.shape
    np.savez(out, devices=jax.device_count(), **found)


def new_model(**parameters: object) -> NKCME:
    return NKCME(center="mean", random_state=0, recipe=SMALL, verbose=False, **parameters)


def stop(model: NKCME, folder: Path) -> None:
    """Fit until some chunks have been saved, as if the process had been killed then."""
    saves, save = 0, chunks.RunCheckpoint.save

    def save_and_stop(self: chunks.RunCheckpoint, done: int) -> None:
        nonlocal saves
        save(self, done)
        saves += 1
        if saves == SAVES:
            raise InterruptedError

    chunks.RunCheckpoint.save = save_and_stop
    try:
        model.fit(folder, target="y")
    except InterruptedError:
        pass
    finally:
        chunks.RunCheckpoint.save = save


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
