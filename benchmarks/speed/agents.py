"""Speed of training agents, against a plain loop in one process.

``python -m benchmarks rl-speed`` writes results/rl-speed-DEVICE.json. Compare ratios; seconds
depend on the machine. Neither side evaluates while it is timed, except for one episode at the end
of ours. With ``--whole`` one run of full length is timed too, with its evaluations: half a minute
on a large GPU.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.provenance import device_name, write_result
from benchmarks.speed.plain_agents import PlainAgents, fused_loss
from benchmarks.timing import seconds_of
from nkcme.rl.agents import NKDQN
from nkcme.rl.loop import train
from nkcme.rl.presets import paper

ENV = "CartPole-v1"
N_AGENTS = 10


def largest_difference(agent: NKDQN, gamma: float, n: int = 256) -> float:
    """The largest difference of the two losses, on transitions that end and that do not.

    It is about zero, so both sides learn the same thing.
    """
    rng = np.random.default_rng(0)
    output, target = rng.normal(scale=3.0, size=(2, n, agent.width)).astype(np.float32)
    reward = jnp.ones(n)
    discount = jnp.asarray(np.where(rng.random(n) < 0.2, 0.0, gamma), jnp.float32)
    sigmas = jnp.asarray(agent.all_bandwidths(), jnp.float32)
    plain = jax.vmap(partial(fused_loss, sigmas=sigmas))(
        jax.nn.softmax(output), jax.nn.softmax(target), reward, discount
    )
    ours = agent.losses(
        jnp.asarray(output), jnp.asarray(target), reward, discount, ((1.0, 0.0), (1.0, gamma))
    )
    return float(jnp.max(jnp.abs(plain - ours)))


def throughput(repeats: int, plain_steps: int, our_steps: tuple[int, int]) -> dict[str, Any]:
    """Seconds per step of ten fused agents by the paper's recipe, both sides alternating."""
    agent, settings = paper("fuse", ENV)
    assert isinstance(agent, NKDQN)
    with jax.default_matmul_precision("highest"):  # a GPU's default of ten bits would hide it
        difference = largest_difference(agent, settings.gamma)
    assert difference < 1e-4, difference
    plain = PlainAgents(ENV, N_AGENTS, settings, jnp.asarray(agent.all_bandwidths(), jnp.float32))
    plain.run(20)  # compile
    lengths = {n: replace(settings, n_steps=n, eval_every=n) for n in our_steps}
    for one in lengths.values():
        train(ENV, agent, one, seeds=N_AGENTS)  # compile
    plain_seconds, our_seconds = [], []
    short, long = our_steps
    for _ in range(repeats):
        plain_seconds.append(seconds_of(lambda: plain.run(plain_steps)) / plain_steps)
        took = {
            n: seconds_of(partial(train, ENV, agent, one, seeds=N_AGENTS))
            for n, one in lengths.items()
        }
        # The difference of two lengths excludes everything that does not grow with the steps.
        our_seconds.append((took[long] - took[short]) / (long - short))
    plain_step, our_step = float(np.median(plain_seconds)), float(np.median(our_seconds))
    return {
        "config": {
            "env": ENV,
            "agents": N_AGENTS,
            "agent": agent.to_config(),
            "settings": settings.to_config(),
            "plain_steps": plain_steps,
            "our_steps": list(our_steps),
        },
        "largest_difference_of_losses": difference,
        "plain_seconds_a_step": plain_step,
        "loop_seconds_a_step": our_step,
        "plain_agent_steps_a_second": N_AGENTS / plain_step,
        "loop_agent_steps_a_second": N_AGENTS / our_step,
        "ratio": plain_step / our_step,
        "plain_all": plain_seconds,
        "loop_all": our_seconds,
    }


def whole_run() -> dict[str, Any]:
    """Seconds of ten fused agents by the paper's recipe, with an evaluation every hundred steps.

    The first chunk, which compiles, is counted like the mean of the others.
    """
    agent, settings = paper("fuse", ENV)
    clock = _Clock()
    result = train(ENV, agent, settings, seeds=N_AGENTS, progress=clock)
    first, *_, last = clock.times
    n_chunks = len(clock.times)
    return {
        "steps": settings.n_steps,
        "seconds_after_compilation": (last - first) * n_chunks / (n_chunks - 1),
        "seconds_with_compilation": last - clock.start,
        "last_fifth": float(result.curve.last_fifth().mean()),
    }


class _Clock:
    """A progress bar that records the time at the end of each chunk."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.times: list[float] = []

    def update(self, step: int, values: dict[str, float]) -> None:
        self.times.append(time.perf_counter())


def main(
    repeats: int, plain_steps: int, our_steps: tuple[int, int], whole: bool, out: Path
) -> None:
    """Measure, print a line for each result, and write the file."""
    results = throughput(repeats, plain_steps, our_steps)
    print(
        f"ten fused agents on {ENV}: {1e3 * results['loop_seconds_a_step']:.3f} ms per step, the "
        f"plain loop {1e3 * results['plain_seconds_a_step']:.2f} ms: {results['ratio']:.1f} times"
    )
    command = (
        f"python -m benchmarks rl-speed --repeats {repeats} --plain-steps {plain_steps} "
        f"--our-steps {our_steps[0]} {our_steps[1]}"
    )
    if whole:
        command += " --whole"
        results["whole_run"] = whole_run()
        print("{steps:,} steps: {seconds_after_compilation:.1f} s".format(**results["whole_run"]))
    print(f"Wrote {write_result(f'rl-speed-{device_name()}', command, results, out)}")
