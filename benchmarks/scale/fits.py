"""Whole fits: of a table on disk, and of the same table in memory, each in a process of its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.scale.large_table import TARGET, test_rows, write_folder

#: Rows that models are scored on.
TEST_ROWS = 100_000


def fit_and_score(
    folder: Path, *, in_memory: bool, cross_fitted: bool = False, processes: int = 1
) -> dict[str, Any]:
    """Fit the table in a folder; its seconds, memory and scores. Run in a process of its own."""
    from nkcme import NKCME, Cluster, Recipe
    from nkcme.tables.parquet_folder import ParquetFolder

    start, cpu = time.perf_counter(), time.process_time()
    recipe = Recipe()
    if cross_fitted:  # as smaller tables are
        recipe = replace(recipe, stream=replace(recipe.stream, from_rows=10**12))
    model = NKCME(random_state=0, recipe=recipe, verbose=False)
    if in_memory:
        table = ParquetFolder.open(folder).read()
        model.fit(table.drop_columns([TARGET]).to_pandas(), table.column(TARGET).to_numpy())
        del table
    else:
        model.fit(folder, target=TARGET, cluster=None if processes == 1 else Cluster(processes))
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    test = test_rows(TEST_ROWS)
    crps = float(model.predict_dist(test.inputs).crps(test.y).mean())
    truth = float(test.truth.crps(test.y).mean())
    return {
        "rows": ParquetFolder.open(folder).n_rows,
        "in_memory": in_memory,
        "cross_fitted": cross_fitted,
        "processes": processes,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_resident_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "load_at_end": os.getloadavg()[0],
        "crps": crps,
        "crps_of_truth": truth,
        "ratio": crps / truth,
        "location_model": model.center_.summary() if model.center_ is not None else "none",
        "steps": model.n_steps_,
    }


def measured(folder: Path, n_rows: int, **how: Any) -> dict[str, Any]:
    """`fit_and_score` in a new process; the table is generated where it is not there yet."""
    if not folder.exists():
        write_folder(folder, n_rows)
    program = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from benchmarks.scale.fits import fit_and_score\n"
        "print(json.dumps(fit_and_score(Path(sys.argv[1]), **json.loads(sys.argv[2]))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), json.dumps(how)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result
