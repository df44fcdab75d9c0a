"""SIGKILL a checkpointed fit again and again; what it learns must not change by a bit.

    python tests/kill_and_resume.py --kills 20 --seed 0

A first process fits without being disturbed. Then fits with a checkpoint are killed: at random
moments from start-up (imports, compilation) to the end, and, in turn, the moment a checkpoint is
seen being written. Each is resumed until it finishes, and its arrays are compared with the first's,
byte for byte. The exit status is 1 if any differs.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

CHUNKS = 60
WAIT = 0.0005  # seconds between looks at a worker


def work(checkpoint: Path | None, out: Path) -> None:
    """One fit of everything a state can hold: validation, turns of the bandwidth, spectral norms."""
    from nkcme.estimators import neural
    from nkcme.training import Plan

    neural.Plan = partial(Plan, chunk_steps=20)  # smaller chunks, more moments to be killed at
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=300) * (1 + x[:, 1] ** 2)
    model = neural.NKCME(
        n_atoms=40,
        hidden=(96, 96),
        spectral_norm=(1,),
        bandwidth_update="iterative",
        bandwidth_period=3,
        batch_size=100,
        epochs=CHUNKS * 20 // 2,  # 240 rows are left to train on, so two batches an epoch
        validation_fraction=0.2,
        patience=CHUNKS,
        random_state=7,
        checkpoint=checkpoint,
        verbose=False,
    )
    _, arrays = model.fit(x, y)._learned()
    partial_file = out.with_suffix(".part")
    with open(partial_file, "wb") as file:
        np.savez(file, **arrays)
    os.replace(partial_file, out)


def start(folder: Path, checkpoint: Path | None, out: Path, cache: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--worker", str(out)]
    if checkpoint is not None:
        command.append(str(checkpoint))
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(folder / cache)}
    with open(folder / "log", "ab") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


def finished(folder: Path, worker: subprocess.Popen[bytes]) -> None:
    if worker.wait() != 0:
        print((folder / "log").read_text(errors="replace")[-3000:], file=sys.stderr)
        raise SystemExit(f"a worker failed by itself, with status {worker.returncode}")


def kill_at(worker: subprocess.Popen[bytes], moment: float, new: Path | None) -> str | None:
    """Kill after ``moment`` seconds, or then at the next sight of a half-written checkpoint.

    Gives where it hit, or None when the worker had finished before.
    """
    begun, where = time.monotonic(), "at a random moment"
    while worker.poll() is None:
        if time.monotonic() - begun >= moment and (new is None or new.exists()):
            where = where if new is None else "in the middle of writing"
            worker.kill()
            worker.wait()
            return where
        time.sleep(WAIT)
    return None


def differences(ours: Path, theirs: Path) -> list[str]:
    with np.load(ours) as a, np.load(theirs) as b:
        names = sorted(set(a.files) | set(b.files))
        return [
            name
            for name in names
            if name not in a.files
            or name not in b.files
            or (a[name].dtype, a[name].shape) != (b[name].dtype, b[name].shape)
            or a[name].tobytes() != b[name].tobytes()
        ]


def run(kills: int, seed: int, folder: Path) -> int:
    dice = random.Random(seed)
    begun = time.monotonic()
    finished(folder, start(folder, None, folder / "undisturbed.npz", "cache-undisturbed"))
    duration = time.monotonic() - begun
    with np.load(folder / "undisturbed.npz") as arrays:
        steps = arrays["history/step"]
    print(f"undisturbed: {len(steps)} chunks, {steps[-1]} steps in {duration:.1f} s", flush=True)
    if len(steps) != CHUNKS:
        raise SystemExit(f"expected {CHUNKS} chunks")

    hits: dict[str, int] = {}
    done, runs, wrong = 0, 0, 0
    while done < kills:
        runs += 1
        checkpoint, out = folder / f"{runs}.ckpt", folder / f"{runs}.npz"
        new = checkpoint.with_name(f"{checkpoint.name}.new")
        while True:
            worker = start(folder, checkpoint, out, "cache-killed")
            if done >= kills:
                finished(folder, worker)
                break
            # The first is sometimes hit before it has any checkpoint; later ones have less to do.
            moment = dice.uniform(0.0, duration)
            where = kill_at(worker, moment, new if done % 2 else None)
            if where is None:
                finished(folder, worker)
                break
            done += 1
            where = where if checkpoint.exists() else "before the first checkpoint"
            hits[where] = hits.get(where, 0) + 1
            print(f"kill {done} of {kills}, run {runs}: {where}", flush=True)
        if changed := differences(out, folder / "undisturbed.npz"):
            wrong += 1
            print(f"run {runs}: {len(changed)} arrays differ, {changed[0]} first", flush=True)
    places = ", ".join(f"{n} {where}" for where, n in sorted(hits.items()))
    print(f"{done} kills over {runs} runs ({places})")
    print(f"{runs - wrong} of {runs} runs gave the bits of the undisturbed one")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worker", nargs="+", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        out, *checkpoint = arguments.worker
        work(checkpoint[0] if checkpoint else None, out)
        return 0
    with tempfile.TemporaryDirectory(prefix="nkcme-kills-") as folder:
        return run(arguments.kills, arguments.seed, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
