"""A fit by two processes and the predictions of a folder through a Ray client; run as a program.

    python -m support.through_ray_client ray://HOST:PORT TABLE INPUTS OUT

A process is either a client or, as that of the tests, a driver of a cluster.
"""

import sys
from pathlib import Path

import pytest

import nkcme
from nkcme.errors import NkcmeError
from nkcme.prediction.folder import Placement, predict_folder
from nkcme.ray_tasks import run_on_ray
from support import large_folder
from support.prediction_folders import MODEL, OPTIONS
from support.trials import refuse


def main(address: str, table: str, inputs: str, out: str) -> None:
    """Write the fitted model to OUT/model, and predictions to OUT/predicted."""
    with pytest.raises(NkcmeError, match=r"^number 3 is refused$"):
        list(run_on_ray(refuse, [3], address))
    predictor = nkcme.Predictor(MODEL, **OPTIONS, keep=["key"])
    predict_folder(predictor, inputs, Path(out, "predicted"), Placement(cluster=address), print)
    model = nkcme.NKCME(center="mean", random_state=0, recipe=large_folder.SMALL, verbose=False)
    model.fit(table, target="y", cluster=nkcme.Cluster(2, ray=address)).save(Path(out, "model"))


if __name__ == "__main__":
    main(*sys.argv[1:])
