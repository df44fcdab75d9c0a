"""Ray: predictions of a folder and of a data set, a grid search, trials that outlive a node, and a
client.

The only file that starts Ray, and it does so once.
"""

import os
import subprocess
import sys
import threading

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import ray
from ray.cluster_utils import Cluster
from ray.util.joblib import register_ray
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

import nkcme
from benchmarks.experiments.trials import run_trials
from nkcme.errors import NkcmeError
from nkcme.estimators.nkcme.launching import free_port
from nkcme.prediction.folder import Placement, predict_folder
from nkcme.ray_tasks import run_on_ray
from support import large_folder
from support.prediction_folders import MODEL, OPTIONS, contents, rows, write_folder
from support.trials import refuse, square_or_hang
from support.waiting import wait_until

#: Ray starts processes by a fork, of which JAX warns where it is imported.
pytestmark = [
    pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

#: Nodes of tests listen on the loopback interface alone. (Ray takes 127.0.0.1 for the machine's own
#: address.)
LOOPBACK = {"node_ip_address": "127.0.0.2"}


@pytest.fixture(scope="module")
def client_port():
    """Where the cluster listens for clients."""
    return free_port()


@pytest.fixture(scope="module")
def cluster(client_port):
    """A cluster of one node with one core; a test adds another."""
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # else a FutureWarning
    head = {"num_cpus": 1, "ray_client_server_port": client_port, **LOOPBACK}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    address = LOOPBACK["node_ip_address"]
    ray.init(address=cluster.address, log_to_driver=False, _node_ip_address=address)
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_trials_survive_the_loss_of_a_node(cluster, tmp_path):
    second = cluster.add_node(num_cpus=1, **LOOPBACK)
    (tmp_path / "head").write_text(cluster.head_node.node_id)
    trials = {f"trial-{i}": (i, str(tmp_path)) for i in range(20)}

    def lose_node():
        wait_until(lambda: list(tmp_path.glob("hangs-*")), limit=60)
        cluster.remove_node(second, allow_graceful=False)

    thread = threading.Thread(target=lose_node)
    thread.start()
    results = list(run_trials(square_or_hang, trials, tmp_path / "results", cluster.address))
    thread.join()
    assert sorted(name for name, _ in results) == sorted(trials)  # each of them once
    assert {row["run"]: row["square"] for _, row in results} == {i: i**2 for i in range(20)}
    assert len(list((tmp_path / "results").iterdir())) == 20
    assert list(tmp_path.glob("hangs-*"))  # whose trials were run again


def test_a_folder_is_predicted_to_the_same_bytes(cluster, tmp_path):
    predictor = nkcme.Predictor(MODEL, **OPTIONS, keep=["key"])
    folder = write_folder(tmp_path / "in")
    for name, address in (("plain", None), ("ray", cluster.address)):
        predict_folder(predictor, folder, tmp_path / name, Placement(cluster=address), print)
    assert contents(tmp_path / "ray") == contents(tmp_path / "plain")
    assert len(contents(tmp_path / "ray")) == 3


@pytest.mark.filterwarnings("ignore")  # Ray Data warns of its own settings
def test_a_data_set_is_predicted_by_actors(cluster):
    table = rows(600)
    data = ray.data.from_arrow(pa.Table.from_pandas(table)).map_batches(
        nkcme.Predictor,
        fn_constructor_args=(MODEL,),
        fn_constructor_kwargs={**OPTIONS, "keep": ["key"]},
        batch_format="pyarrow",
        batch_size=100,
        compute=ray.data.ActorPoolStrategy(size=1),
    )
    found = pd.DataFrame(data.take_all()).sort_values("key", ignore_index=True)
    wanted = nkcme.Predictor(MODEL, **OPTIONS, keep=["key"])(table)
    pd.testing.assert_frame_equal(found, wanted, check_exact=True)


def test_a_grid_search_uses_the_cluster(cluster):
    X, y = [[float(i)] for i in range(20)], [2.0 * i for i in range(20)]
    register_ray()
    with joblib.parallel_config("ray", n_jobs=1):
        search = GridSearchCV(Ridge(), {"alpha": [1e-6, 1e6]}, cv=2).fit(X, y)
    assert search.best_params_ == {"alpha": 1e-6}


def test_an_error_of_a_task_is_raised_as_it_is(cluster):
    with pytest.raises(NkcmeError, match=r"^number 3 is refused$"):
        list(run_on_ray(refuse, [3], cluster.address))


def test_a_lost_connection_is_named(cluster, monkeypatch):
    """As it is where the server of a client ends. Ray would start a cluster to cancel tasks on."""

    def wait(references):
        raise ConnectionError("Client is shutting down.")

    for name, done in (("is_initialized", lambda: False), ("wait", wait), ("cancel", pytest.fail)):
        monkeypatch.setattr(ray, name, done)
    for name in ("init", "shutdown"):
        monkeypatch.setattr(ray, name, lambda **options: None)
    with pytest.raises(NkcmeError, match=r"connection to .* was lost \(Client is shutting down"):
        list(run_on_ray(refuse, [3], cluster.address))


@pytest.mark.parametrize("address", ["ray://head", "ray://:10001", "ray://head:10001/"])
def test_addresses_of_clients_have_a_port(address, monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(NkcmeError, match=f"must be ray://HOST:PORT; got {address}$"):
        list(run_on_ray(refuse, [3], address))


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return large_folder.write_folder(tmp_path_factory.mktemp("table"))


@pytest.fixture(scope="module")
def alone(table):
    """The predictions of a fit by this process, and what they are of."""
    model = nkcme.NKCME(center="mean", random_state=0, recipe=large_folder.SMALL, verbose=False)
    X = large_folder.make(50, 2)[0][["x", "k"]]
    return X, model.fit(table, target="y").predict(X)


@pytest.fixture
def second_node(cluster):
    node = cluster.add_node(num_cpus=1, **LOOPBACK)
    yield
    cluster.remove_node(node)


@pytest.mark.usefixtures("second_node")
def test_processes_of_a_fit_are_placed_on_a_cluster(cluster, table, alone):
    X, wanted = alone
    model = nkcme.NKCME(center="mean", random_state=0, recipe=large_folder.SMALL, verbose=False)
    placed = model.fit(table, target="y", cluster=nkcme.Cluster(2, ray=cluster.address))
    np.testing.assert_allclose(placed.predict(X), wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.usefixtures("second_node")
def test_a_client_fits_and_predicts(client_port, table, alone, tmp_path):
    X, wanted = alone
    folder, out = write_folder(tmp_path / "in"), tmp_path / "out"
    predictor = nkcme.Predictor(MODEL, **OPTIONS, keep=["key"])
    predict_folder(predictor, folder, tmp_path / "plain", Placement(), print)
    address = f"ray://127.0.0.1:{client_port}"
    command = [sys.executable, "-m", "support.through_ray_client", address]
    subprocess.run([*command, table, folder, out], check=True, timeout=300)
    assert contents(out / "predicted") == contents(tmp_path / "plain")
    placed = nkcme.load(out / "model").predict(X)
    np.testing.assert_allclose(placed, wanted, rtol=1e-3, atol=1e-3)
