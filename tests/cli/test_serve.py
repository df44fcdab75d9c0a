"""`nkcme serve`: it answers what `nkcme predict` writes, and refuses in one line."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pandas as pd
import pytest

from support.waiting import wait_until


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url, data=None):
    with urllib.request.urlopen(url, data, timeout=20) as answer:
        return json.loads(answer.read())


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def server(request, model):
    port = free_port()
    command = [sys.executable, "-m", "nkcme", "serve", str(model), "--port", str(port)]
    process = subprocess.Popen(
        [*command, "--workers", str(request.param)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    url = f"http://127.0.0.1:{port}"

    def answers():
        assert process.poll() is None, process.stderr.read()
        try:
            return get(f"{url}/health")["status"] == "ok"
        except urllib.error.URLError:
            return False

    try:
        wait_until(answers)
        yield url, process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stderr.close()


def test_it_answers_what_predict_writes(server, model, table, tmp_path, call):
    url, process = server
    rows = pd.read_csv(table).drop(columns="price").astype(object)
    rows = rows.where(rows.notna(), None).to_dict("records")
    call("predict", model, table, "--quantiles", "0.1", "-o", tmp_path / "out.csv")
    wanted = pd.read_csv(tmp_path / "out.csv")
    body = json.dumps({"rows": rows, "quantiles": [0.1]}).encode()
    found = get(f"{url}/predict", body)["predictions"]
    assert [row["mean"] for row in found] == pytest.approx(list(wanted["mean"]), abs=1e-5)
    assert [row["quantiles"]["0.1"] for row in found] == pytest.approx(
        list(wanted["q0.1"]), abs=1e-5
    )
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) in (0, 130)


def test_bad_models_and_ports_are_refused(model, tmp_path, refuse):
    assert "no-model" in refuse("serve", tmp_path / "no-model")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert f"127.0.0.1:{port}" in refuse("serve", model, "--port", port)
    assert "--host" in refuse("serve", model, "--host", "no.such.host.invalid")


def test_without_fastapi_the_extra_is_named(model, monkeypatch, refuse):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "nkcme[serve]" in refuse("serve", model)
