"""Fits by two processes of which one is killed: how soon all end, and what the next fit gives."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.scale.large_table import TARGET, test_rows, write_folder

_ROWS = 60_000

#: The processes of the fits that go on after each two kills.
_RESUMED_BY = (2, 4, 2, 1)


def killed_fits(n_kills: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Kill one of two processes, the coordinator every second time, at random moments."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "table"
        write_folder(folder, _ROWS, file_rows=_ROWS // 4)
        start = time.perf_counter()
        expected = _fit(folder, None, 2)
        whole = time.perf_counter() - start
        for number in range(n_kills):
            came_too_late = True
            while came_too_late:  # where other programs have ended, fits are faster than the first
                delay = float(rng.uniform(0.1, 0.9) * whole)
                row = _killed_fit(folder, Path(place), number, delay, expected)
                if came_too_late := row["came_too_late"]:
                    whole = min(whole, delay)
                yield row


def _fit(folder: Path, checkpoint: Path | None, processes: int) -> np.ndarray:
    """The predictions of a model that some processes fitted."""
    from nkcme import NKCME, Cluster, Recipe
    from nkcme.estimators.nkcme.stream_recipe import StreamRecipe

    stream = StreamRecipe(
        from_rows=1,
        boosting_rows=2000,
        calibration_rows=2000,
        held_out_rows=1000,
        judged_rows=2000,
        batch_size=256,
        block_steps=16,
        most_steps=128,
        least_gain=-1.0,
    )
    model = NKCME(
        center="mean",
        recipe=replace(Recipe(), stream=stream),
        random_state=0,
        verbose=False,
        checkpoint=checkpoint,
    )
    model.fit(folder, target=TARGET, cluster=Cluster(processes))
    return np.asarray(model.predict(test_rows(1000).inputs))


def _killed_fit(
    folder: Path, place: Path, number: int, delay: float, expected: np.ndarray
) -> dict[str, Any]:
    from nkcme import ProcessLostError
    from nkcme.estimators.nkcme import launching
    from nkcme.model_files import read_checkpoint

    victim, checkpoint = number % 2, place / f"state-{number}-{delay}"
    start_worker, stopped_at, message = launching.start_worker, float("nan"), ""

    def start_and_kill(file: Path, process_id: int, **options: Any) -> Any:
        process = start_worker(file, process_id, **options)
        if process_id == victim:
            timer = threading.Timer(delay, kill, [process])
            timer.daemon = True
            timer.start()
        return process

    def kill(process: subprocess.Popen[bytes]) -> None:
        nonlocal stopped_at
        if process.poll() is None:  # else its number may be that of another process by now
            stopped_at = time.perf_counter()
            process.kill()

    launching.start_worker = start_and_kill  # type: ignore[assignment]
    try:
        _fit(folder, checkpoint, 2)
    except ProcessLostError as error:
        message = str(error)
    finally:
        launching.start_worker = start_worker
    seconds = time.perf_counter() - stopped_at
    step = read_checkpoint(checkpoint)[0]["step"] if checkpoint.exists() else None
    resumed_by = _RESUMED_BY[number // 2 % len(_RESUMED_BY)]
    resumed = _fit(folder, checkpoint, resumed_by)
    return {
        "victim": victim,
        "killed_after": delay,
        "came_too_late": not message,
        "seconds_until_all_ended": seconds if message else None,
        "message": message,
        "checkpoint_step": step,
        "resumed_by": resumed_by,
        "same_bits": bool(np.array_equal(resumed, expected)),
        "largest_difference": float(np.abs(resumed - expected).max()),
    }
