"""SIGKILL a checkpointed fit again and again; what it learns must not change by a bit.

    python tests/kill_and_resume.py --kills 20 --seed 0

A first process fits without being disturbed. Then fits with a checkpoint are killed: at random
moments from start-up (imports, compilation) to the end and, every second time, the moment a
checkpoint is seen being written. Each is resumed until it finishes, and its arrays are compared
with the first's, byte for byte. The exit status is 1 if any differs.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
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
    """One fit of all that a state can hold: validation, turns of the bandwidth, spectral norms."""
    from nkcme import NKCME, presets
    from nkcme.estimators import replica_training
    from nkcme.training.loop import Plan

    replica_training.Plan = partial(
        Plan, chunk_steps=40
    )  # smaller chunks, more moments to be killed at
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=300) * (1 + x[:, 1] ** 2)
    model = NKCME(
        **presets.QUICK,
        n_atoms=40,
        hidden=(96, 96),
        spectral_norm=(1,),
        bandwidth_update="iterative",
        bandwidth_period=3,
        batch_size=100,
        epochs=CHUNKS * 40 // 2,  # 240 rows are left to train on, so two batches an epoch
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


def kill_after(worker: subprocess.Popen[bytes], seconds: float) -> bool:
    """Kill after so many seconds; False when the worker had finished before."""
    begun = time.monotonic()
    while worker.poll() is None:
        if time.monotonic() - begun >= seconds:
            return killed(worker)
        time.sleep(WAIT)
    return False


def kill_while_writing(worker: subprocess.Popen[bytes], checkpoint: Path, chunks: int) -> bool:
    """Kill at the sight of a half-written checkpoint, once ``chunks`` more have been completed."""
    new, last, seen = checkpoint.with_name(f"{checkpoint.name}.new"), identity(checkpoint), 0
    while worker.poll() is None:
        now = identity(checkpoint)
        seen, last = seen + (now != last), now
        if seen >= chunks and new.exists():
            return killed(worker)
        time.sleep(WAIT / 10)
    return False


def identity(path: Path) -> int:
    return path.stat().st_ino if path.exists() else 0


def killed(worker: subprocess.Popen[bytes]) -> bool:
    worker.kill()
    return worker.wait() == -signal.SIGKILL


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


def run(kills: int, seed: int, warm: bool, folder: Path) -> int:
    dice = random.Random(seed)
    begun = time.monotonic()
    caches = ("cache", "cache" if warm else "cache-killed")
    finished(folder, start(folder, None, folder / "undisturbed.npz", caches[0]))
    duration = time.monotonic() - begun
    with np.load(folder / "undisturbed.npz") as arrays:
        steps = arrays["history/step"]
    print(f"undisturbed: {len(steps)} chunks, {steps[-1]} steps in {duration:.1f} s", flush=True)
    if len(steps) != CHUNKS:
        raise SystemExit(f"expected {CHUNKS} chunks")

    hits = {"at a random moment": 0, "while writing a checkpoint": 0}
    done, runs, wrong, fresh = 0, 0, 0, 0
    while done < kills:
        runs += 1
        checkpoint, out = folder / f"{runs}.ckpt", folder / f"{runs}.npz"
        while True:
            worker = start(folder, checkpoint, out, caches[1])
            if done >= kills:
                finished(folder, worker)
                break
            if done % 2:
                where = "while writing a checkpoint"
                hit = kill_while_writing(worker, checkpoint, dice.randrange(CHUNKS // 2))
            else:
                where = "at a random moment"
                hit = kill_after(worker, dice.uniform(0.0, duration))
            if not hit:
                finished(folder, worker)
                break
            done += 1
            hits[where] += 1
            fresh += not checkpoint.exists()
            state = f"{checkpoint.stat().st_size} bytes" if checkpoint.exists() else "none yet"
            print(f"kill {done} of {kills}, run {runs}, {where}; checkpoint: {state}", flush=True)
        if changed := differences(out, folder / "undisturbed.npz"):
            wrong += 1
            print(f"run {runs}: {len(changed)} arrays differ, {changed[0]} first", flush=True)
    places = ", ".join(f"{n} {where}" for where, n in hits.items())
    print(f"{done} kills over {runs} runs: {places}; {fresh} before there was any checkpoint")
    print(f"{runs - wrong} of {runs} runs gave the bits of the undisturbed one")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--warm",
        action="store_true",
        help="let the killed fits use the programs that the first has compiled, to save time",
    )
    parser.add_argument("--worker", nargs="+", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        out, *checkpoint = arguments.worker
        work(checkpoint[0] if checkpoint else None, out)
        return 0
    with tempfile.TemporaryDirectory(prefix="nkcme-kills-") as folder:
        return run(arguments.kills, arguments.seed, arguments.warm, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
