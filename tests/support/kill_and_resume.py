"""SIGKILL a fit with a checkpoint again and again; the model must stay the same to the last bit.

    python tests/support/kill_and_resume.py --kills 20 --seed 0

A first process fits undisturbed. Then fits with a checkpoint are killed: while a checkpoint is
being written and, every second time, at a random moment from start-up (imports, compilation) to the
end. Each is resumed until it finishes, and its model is compared with the first, byte by byte.
The exit status is 1 if any differs.
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
from pathlib import Path

import numpy as np

N_STEPS = 2000
CHUNKS = 20  # of a run, with a checkpoint after each
WAIT = 0.0005  # seconds between looks at a worker


def work(checkpoint: Path | None, out: Path) -> None:
    """One fit with all that a state can hold: validation, bandwidth updates, spectral norms."""
    from nkcme import NKCME, presets

    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 2))
    y = np.sin(2 * x[:, 0]) + 0.3 * rng.normal(size=300) * (1 + x[:, 1] ** 2)
    model = NKCME(
        **presets.QUICK,
        n_atoms=40,
        hidden=(32, 32),
        spectral_norm=(1,),
        bandwidth_update="iterative",
        bandwidth_period=3,
        batch_size=100,
        epochs=N_STEPS // 2,  # 240 rows are trained on, so an epoch is two batches
        validation_fraction=0.2,
        patience=CHUNKS,
        random_state=7,
        checkpoint=checkpoint,
        verbose=False,
    )
    model.fit(x, y).set_params(checkpoint=None).save(out)


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
    """Kill after a number of seconds; False if the worker had finished before."""
    begun = time.monotonic()
    while worker.poll() is None:
        if time.monotonic() - begun >= seconds:
            return killed(worker)
        time.sleep(WAIT)
    return False


def kill_while_writing(worker: subprocess.Popen[bytes], checkpoint: Path, chunks: int) -> bool:
    """Kill when a half-written checkpoint is seen, after ``chunks`` more have been completed."""
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
    """The files in which two models differ."""
    names = sorted(set(os.listdir(ours)) | set(os.listdir(theirs)))
    return [
        name
        for name in names
        if not (ours / name).exists()
        or not (theirs / name).exists()
        or (ours / name).read_bytes() != (theirs / name).read_bytes()
    ]


def run(kills: int, seed: int, warm: bool, folder: Path) -> int:
    """Kill and resume; 1 if a model differs from that of an undisturbed fit."""
    from nkcme.model_files import read_model

    dice = random.Random(seed)
    begun = time.monotonic()
    caches = ("cache", "cache" if warm else "cache-killed")
    undisturbed = folder / "undisturbed"
    finished(folder, start(folder, None, undisturbed, caches[0]))
    duration = time.monotonic() - begun
    steps = read_model(undisturbed)[1]["history/step"]
    print(f"undisturbed: {len(steps)} chunks, {steps[-1]} steps in {duration:.1f} s", flush=True)
    if len(steps) != CHUNKS:
        raise SystemExit(f"expected {CHUNKS} chunks")

    hits = {"at a random moment": 0, "while writing a checkpoint": 0}
    done, runs, wrong, fresh = 0, 0, 0, 0
    while done < kills:
        runs += 1
        checkpoint, out = folder / f"{runs}.ckpt", folder / str(runs)
        while True:
            worker = start(folder, checkpoint, out, caches[1])
            if done >= kills:
                finished(folder, worker)
                break
            if done % 2 == 0:
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
        if changed := differences(out, undisturbed):
            wrong += 1
            print(f"run {runs}: {', '.join(changed)} differ", flush=True)
    places = ", ".join(f"{n} {where}" for where, n in hits.items())
    print(f"{done} kills over {runs} runs: {places}; {fresh} before there was any checkpoint")
    print(f"{runs - wrong} of {runs} runs gave the model of the undisturbed one")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--warm",
        action="store_true",
        help="let the killed fits use the programs that the first compiled, to save time",
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
