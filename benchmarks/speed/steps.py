"""Seconds of a training step by the options of the compiler, and by steps that are fused.

``python -m benchmarks step-speed`` trains ten seeds of the paper's toy recipe in a new process for
each variant, several times in turn, and writes results/step-speed-DEVICE.json. Compare ratios to
the first variant.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.provenance import device_name, write_result
from benchmarks.timing import seconds_of

N_SEEDS = 10

#: What a new process runs; its argument is the number of steps that a loop fuses.
_PROGRAM = """
import json, sys
from functools import partial
import jax
unroll = int(sys.argv[1])
if unroll > 1:
    jax.lax.scan = partial(jax.lax.scan, unroll=unroll)
from benchmarks.speed.steps import engine_seconds
print(json.dumps(engine_seconds()))
"""

_COMMAND_BUFFERS = "FUSION,CUBLAS,CUBLASLT,CUSTOM_CALL,CUDNN,DYNAMIC_SLICE_FUSION"

#: Options of the compiler by the name of the variant, and the steps that a loop fuses.
_CPU = {
    "default": ("", 1),
    "without fusion emitters": ("--xla_cpu_use_fusion_emitters=false", 1),
    "two steps fused": ("", 2),
    "four steps fused": ("", 4),
    "vectors of 512 bits": ("--xla_cpu_prefer_vector_width=512", 1),
    "vectors of 128 bits": ("--xla_cpu_prefer_vector_width=128", 1),
    "fast mathematics": ("--xla_cpu_enable_fast_math=true", 1),
    "products by one thread": ("--xla_cpu_multi_thread_eigen=false", 1),
    "products by XNNPACK": ("--xla_cpu_use_xnnpack=true", 1),
    "scheduled for concurrency": (
        "--xla_cpu_enable_concurrency_optimized_scheduler=true",
        1,
    ),
}
_GPU = {
    "default": ("", 1),
    "four steps fused": ("", 4),
    "sixteen steps fused": ("", 16),
    "no command buffers": ("--xla_gpu_enable_command_buffer=", 1),
    "command buffers with loops": (
        f"--xla_gpu_enable_command_buffer={_COMMAND_BUFFERS},WHILE,CONDITIONAL",
        1,
    ),
    "command buffers with loops, four steps fused": (
        f"--xla_gpu_enable_command_buffer={_COMMAND_BUFFERS},WHILE,CONDITIONAL",
        4,
    ),
    "products by cuBLAS": ("--xla_gpu_enable_triton_gemm=false", 1),
    "fusions across kernels": ("--xla_gpu_enable_priority_fusion=true", 1),
    "latency-hiding scheduler": ("--xla_gpu_enable_latency_hiding_scheduler=true", 1),
}


def engine_seconds() -> float:
    """Seconds of a step of the library in this process."""
    from nkcme import NKCME, presets
    from nkcme.datasets.toy import TOYS

    data = [TOYS["bimodal"].make(seed=seed) for seed in range(N_SEEDS)]
    ours = {n: NKCME(random_state=0, **presets.PAPER_TOY | {"epochs": n}) for n in (20, 100)}
    for estimator in ours.values():
        estimator.fit_many(data)  # compile
    took = {
        n: min(seconds_of(partial(e.fit_many, data)) for _ in range(2)) for n, e in ours.items()
    }
    # The difference of two lengths excludes everything that does not grow with the steps.
    return (took[100] - took[20]) / (80 * (len(data[0][1]) // 50))


def main(repeats: int, out: Path) -> None:
    """Measure every variant, print a line for each, and write the file."""
    variants = _CPU if jax.default_backend() == "cpu" else _GPU
    measured: dict[str, list[Any]] = {name: [] for name in variants}
    for _ in range(repeats):
        for name, (flags, unroll) in variants.items():
            measured[name].append(_seconds_a_step(flags, unroll))
            print(name, measured[name][-1], flush=True)
    rows = [_row(name, variants[name], measured) for name in variants]
    for row in rows:
        print(json.dumps(row), flush=True)
    command = f"python -m benchmarks step-speed --repeats {repeats}"
    result = write_result(f"step-speed-{device_name()}", command, {"variants": rows}, out)
    print(f"Wrote {result}")


def _seconds_a_step(flags: str, unroll: int) -> float | str:
    """Seconds of a step in a new process with these options, or the end of its error."""
    variables = {
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip(),
        # Compiled programs of another variant must not be found.
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        # The last line is then of the error, not about hidden lines of the traceback.
        "JAX_TRACEBACK_FILTERING": "off",
    }
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(unroll)],
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        return done.stderr.strip().splitlines()[-1][-200:] if done.stderr else "failed"
    return float(json.loads(done.stdout.splitlines()[-1]))


def _row(name: str, variant: tuple[str, int], measured: dict[str, list[Any]]) -> dict[str, Any]:
    row = {"variant": name, "flags": variant[0], "steps_fused": variant[1], "all": measured[name]}
    numbers = [one for one in measured[name] if not isinstance(one, str)]
    if not numbers:
        return row | {"error": measured[name][0]}
    seconds = float(np.median(numbers))
    first = [one for one in next(iter(measured.values())) if not isinstance(one, str)]
    speed_up = float(np.median(first)) / seconds if first else None
    return row | {"seconds_a_step": seconds, "times_as_fast": speed_up}
