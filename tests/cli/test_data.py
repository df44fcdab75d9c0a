"""`nkcme data` as a user meets it: what it prints where, and its exit status."""

import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from nkcme.cli.app import run
from support.uci_mirror import (
    CHUNK,
    FOLDED,
    FOLDED_FILES,
    ORDERED,
    kept_of_half,
    serving,
    write_folded,
)

DATA = "/tinySet/data/data.txt"
# The command line in a process of its own that knows the tiny sets.
PROGRAM = [
    sys.executable,
    "-c",
    # A suite in the background of a shell hands an ignored Ctrl-C down; people do not.
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from support import uci_mirror; uci_mirror.register(); from nkcme.cli.app import main; main()",
]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache of one's own, for this process and those it starts; two tiny sets alone."""
    for module in ("nkcme.datasets.uci", "nkcme.datasets.uci_sets"):
        monkeypatch.setattr(f"{module}.UCI", {known.name: known for known in (FOLDED, ORDERED)})
    monkeypatch.setattr("nkcme.datasets.download._CHUNK", CHUNK)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / name))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("NKCME_DATA", raising=False)
    return tmp_path / "nkcme" / "uci"


@pytest.fixture
def mirror(cache, monkeypatch):
    with serving() as server:
        monkeypatch.setenv("NKCME_DATA_URL", server.url)
        yield server


@pytest.fixture
def call(cache, capsys):
    """Runs a command line; gives its exit status and what it printed."""

    def call(*arguments):
        status = run(["data", *arguments])
        out, err = capsys.readouterr()
        return status, out, err

    return call


@pytest.fixture
def refuse(call):
    """Runs a command line that must be refused; gives the one line that says why."""

    def refuse(*arguments):
        status, out, err = call(*arguments)
        assert status == 2
        assert out == ""
        assert err.startswith("nkcme: ")
        assert err.count("\n") == 1
        return err

    return refuse


@pytest.mark.parametrize("command", ["list", "fetch", "path"])
def test_every_command_shows_an_example(command, call):
    assert f"Example: nkcme data {command}" in call(command, "--help")[1]


def test_help_does_not_wait_for_jax_or_the_data():
    code = """
import sys
from nkcme.cli.app import run
for command in ([], ["list"], ["fetch"], ["path"]):
    assert run(["data", *command, "--help"]) == 0
print(sorted({"jax", "numpy", "pooch", "nkcme.datasets"} & set(sys.modules)))
"""
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert printed.splitlines()[-1] == "[]"


def test_no_command_says_that_one_is_missing(refuse):
    assert "nkcme data --help" in refuse()


def test_list_says_what_there_is_and_where(call, cache, tmp_path, monkeypatch):
    write_folded(cache)
    status, out, err = call("list")
    assert (status, err) == (0, "")
    rows = [line.split(maxsplit=4) for line in out.splitlines() if "tiny" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["tiny", "12", "3", "2", "the cache"],
        ["tinyyear", "10", "4", "1", "not here"],
    ]
    write_folded(tmp_path / "given")
    monkeypatch.setenv("NKCME_DATA", str(tmp_path / "given"))
    tiny, _ = json.loads(call("list", "--json")[1])
    assert tiny == {"name": "tiny", "rows": 12, "features": 3, "folds": 2, "where": "NKCME_DATA"}


def test_fetch_then_path(call, cache, mirror):
    where = f"{FOLDED.directory(cache)}\n"
    assert call("fetch", "tiny") == (0, where, "")
    assert call("path", "tiny") == (0, where, "")
    assert call("fetch", "tiny") == (0, where, "")
    assert len(mirror.sent) == len(FOLDED_FILES)


def test_fetch_all(call, cache, mirror):
    both = f"{FOLDED.directory(cache)}\n{ORDERED.directory(cache)}\n"
    assert call("fetch", "--all") == (0, both, "")
    assert {one["where"] for one in json.loads(call("list", "--json")[1])} == {"the cache"}


def test_path_of_what_is_not_here(refuse):
    assert "tiny is not here; run nkcme data fetch tiny" in refuse("path", "tiny")


@pytest.mark.parametrize("arguments", [["fetch"], ["fetch", "tiny", "--all"]])
def test_fetch_wants_names_or_all(arguments, refuse):
    assert "names of data sets, or --all" in refuse(*arguments)


@pytest.mark.parametrize("command", ["fetch", "path"])
def test_an_unknown_name(command, refuse):
    assert "'tinny'; there are tiny, tinyyear" in refuse(command, "tinny")


def test_an_unknown_name_is_refused_before_any_download(refuse, mirror):
    refuse("fetch", "tiny", "tinny")
    assert not mirror.sent


def test_a_download_that_fails_is_one_line(refuse, mirror):
    mirror.faults[DATA] = "stalled"
    assert "no answer within 0.2 s" in refuse("fetch", "tiny", "--timeout", "0.2")
    del mirror.files[DATA]
    assert "404" in refuse("fetch", "tiny")


def test_an_altered_file_in_the_given_directory_is_one_line(refuse, tmp_path, monkeypatch):
    (write_folded(tmp_path / "given") / "n_splits.txt").write_text("3\n")
    monkeypatch.setenv("NKCME_DATA", str(tmp_path / "given"))
    assert "n_splits.txt is not the file that was published" in refuse("fetch", "tiny")


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within 30 s")


def interrupt(process):
    """Press Ctrl-C, and again after a while: Python drops one that comes inside a finaliser."""
    for _ in range(6):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("Ctrl-C did not stop it")


def test_ctrl_c_is_one_line_and_what_came_is_kept(call, cache, mirror):
    size = len(FOLDED_FILES["data.txt"])
    kept = kept_of_half(size)
    mirror.faults[DATA] = "stalled"
    command = [*PROGRAM, "data", "fetch", "tiny"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, **pipes)
    wait_for(lambda: mirror.sent)
    time.sleep(0.5)  # for what was sent to arrive
    out, err = interrupt(process)
    assert process.returncode == 130
    assert out == ""
    assert err == ("nkcme: stopped by Ctrl-C; what came is kept; to go on: nkcme data fetch tiny\n")
    part = FOLDED.directory(cache) / "data.txt.part"
    assert [path.name for path in part.parent.iterdir()] == [part.name]
    assert part.read_bytes() == FOLDED_FILES["data.txt"][:kept]
    mirror.faults.clear()
    assert call("fetch", "tiny")[0] == 0
    assert mirror.requests_for(DATA)[1:] == [(f"bytes={kept}-", size - kept)]


def test_progress_is_shown_on_a_terminal(cache, mirror):
    ours, theirs = pty.openpty()
    command = [*PROGRAM, "data", "fetch", "tiny"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, timeout=60)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0
    assert done.stdout == f"{FOLDED.directory(cache)}\n"
    assert f"{len(FOLDED_FILES)}/{len(FOLDED_FILES)} files" in shown
