"""How soon the explorer follows a slider: from the move to the page that shows the answer.

``python -m benchmarks explorer-speed`` moves sliders of the real page, in a headless Chromium on
the same cores as the server, and asks the same of the server alone. It writes
results/explorer-speed-DEVICE.json.
"""

from __future__ import annotations

import json
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.browser import browser, explored, settle
from benchmarks.provenance import device_name, write_result

#: Moves that are not timed: the first ones load what later ones find.
_UNTIMED = 10

#: Moves sliders one after the other. A time is from the move to the first frame with the answer.
_MOVE = """
async ([scenario, shares]) => {
  const sliders = [...document.querySelectorAll(`input[type=range][data-scenario="${scenario}"]`)];
  const times = [];
  for (let i = 0; i < shares.length; i++) {
    const slider = sliders[i % sliders.length];
    const began = performance.now();
    slider.value = Number(slider.min) + shares[i] * (Number(slider.max) - Number(slider.min));
    slider.dispatchEvent(new Event("input"));
    while (document.body.dataset.state !== "answered") {
      await new Promise((done) => {
        const watch = new MutationObserver(() => { watch.disconnect(); done(); });
        watch.observe(document.body, {attributes: true, attributeFilter: ["data-state"]});
      });
    }
    await new Promise(requestAnimationFrame);
    times.push(performance.now() - began);
  }
  return times;
}
"""


def main(n_moves: int, out: Path) -> None:
    """Measure everything and write ``explorer-speed-DEVICE.json``."""
    rng = np.random.default_rng(0)
    with explored() as (url, fitted):
        results: dict[str, Any] = {"model": fitted.name, "fit_seconds": fitted.seconds}
        results["server"] = _summary(_ask(url, n_moves + _UNTIMED))
        with browser() as started:
            page = started.new_page(viewport={"width": 1400, "height": 900})
            page.goto(url)
            settle(page)
            for name, scenario in (("one scenario", 0), ("two scenarios", 1)):
                if scenario:
                    page.locator("#compare").check()
                    settle(page)
                shares = rng.uniform(size=n_moves + _UNTIMED).tolist()
                results[name] = _summary(page.evaluate(_MOVE, [scenario, shares]))
    for name in ("server", "one scenario", "two scenarios"):
        row = results[name]
        print(
            f"{name}: median {row['median_ms']:.1f} ms, 95 % within {row['p95_ms']:.1f} ms, "
            f"largest {row['largest_ms']:.1f} ms"
        )
    command = f"python -m benchmarks explorer-speed --moves {n_moves}"
    path = write_result(f"explorer-speed-{device_name()}", command, results, out)
    print(f"Wrote {path}")


def _ask(url: str, n_requests: int) -> list[float]:
    """Milliseconds of answers to what the page asks for one scenario, without the page."""
    with urllib.request.urlopen(f"{url}rows/1") as answer:
        values = json.load(answer)["values"]
    question = {
        "rows": [values],
        "quantiles": [0.05, 0.25, 0.5, 0.75, 0.95],
        "intervals": [0.9],
        "probabilities": [{"above": 200_000.0}],
    }
    request = urllib.request.Request(f"{url}explore", json.dumps(question).encode(), method="POST")
    times = []
    for _ in range(n_requests):
        start = time.perf_counter()
        with urllib.request.urlopen(request) as answer:
            answer.read()
        times.append(1e3 * (time.perf_counter() - start))
    return times


def _summary(times: list[float]) -> dict[str, Any]:
    timed = np.array(times[_UNTIMED:])
    return {
        "moves": len(timed),
        "median_ms": float(np.median(timed)),
        "p95_ms": float(np.quantile(timed, 0.95)),
        "largest_ms": float(timed.max()),
    }
