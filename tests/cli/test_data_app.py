"""`nkcme data`: what it prints where, and its exit status."""

import json
import os
import pty
import signal
import subprocess
import sys

import pytest

from support.uci_mirror import (
    CHUNK,
    FOLDED,
    FOLDED_FILES,
    ORDERED,
    kept_of_half,
    serving,
    write_folded,
)
from support.waiting import wait_until

DATA = "/tinySet/data/data.txt"
# The command line in a new process that knows the tiny data sets.
PROGRAM = [
    sys.executable,
    "-c",
    # Tests in the background of a shell ignore Ctrl-C, and their child processes inherit that.
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from support import uci_mirror; uci_mirror.register(); from nkcme.cli.app import main; main()",
]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, for this process and its children, and two tiny data sets only."""
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


def test_list_prints_sizes_and_places(call, cache, tmp_path, monkeypatch):
    write_folded(cache)
    out, err = call("data", "list")
    assert err == ""
    rows = [line.split(maxsplit=4) for line in out.splitlines() if "tiny" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["tiny", "12", "3", "2", "the cache"],
        ["tinyyear", "10", "4", "1", "not downloaded"],
    ]
    write_folded(tmp_path / "given")
    monkeypatch.setenv("NKCME_DATA", str(tmp_path / "given"))
    tiny, _ = json.loads(call("data", "list", "--json")[0])
    assert tiny == {"name": "tiny", "rows": 12, "features": 3, "folds": 2, "where": "NKCME_DATA"}


def test_fetch_prints_the_directory_and_downloads_once(call, cache, mirror):
    where = f"{FOLDED.directory(cache)}\n"
    assert call("data", "fetch", "tiny") == (where, "")
    assert call("data", "path", "tiny") == (where, "")
    assert call("data", "fetch", "tiny") == (where, "")
    assert len(mirror.sent) == len(FOLDED_FILES)


def test_fetch_downloads_all_data_sets(call, cache, mirror):
    both = f"{FOLDED.directory(cache)}\n{ORDERED.directory(cache)}\n"
    assert call("data", "fetch", "--all") == (both, "")
    listed = json.loads(call("data", "list", "--json")[0])
    assert {one["where"] for one in listed} == {"the cache"}


def test_the_path_of_a_data_set_that_is_not_downloaded_is_refused(cache, refuse):
    assert "tiny is not downloaded; run nkcme data fetch tiny" in refuse("data", "path", "tiny")


@pytest.mark.parametrize("arguments", [["fetch"], ["fetch", "tiny", "--all"]])
def test_fetch_needs_names_or_all(arguments, cache, refuse):
    assert "names of data sets, or --all" in refuse("data", *arguments)


@pytest.mark.parametrize("command", ["fetch", "path"])
def test_an_unknown_name_is_refused_with_the_known_ones(command, cache, refuse):
    assert "'tinny'; there are tiny, tinyyear" in refuse("data", command, "tinny")


def test_an_unknown_name_is_refused_before_any_download(refuse, mirror):
    refuse("data", "fetch", "tiny", "tinny")
    assert not mirror.sent


def test_a_download_that_fails_is_one_line(refuse, mirror):
    mirror.faults[DATA] = "silent"
    line = refuse("data", "fetch", "tiny", "--timeout", "0.2")
    assert "no answer within 0.2 s" in line
    del mirror.files[DATA]
    mirror.faults.clear()
    assert "404" in refuse("data", "fetch", "tiny")


def test_an_altered_file_in_the_given_directory_is_refused(cache, refuse, tmp_path, monkeypatch):
    (write_folded(tmp_path / "given") / "n_splits.txt").write_text("3\n")
    monkeypatch.setenv("NKCME_DATA", str(tmp_path / "given"))
    line = refuse("data", "fetch", "tiny")
    assert "n_splits.txt is not the file that was published" in line


def interrupt(process):
    """Send Ctrl-C, and again after a while: Python ignores one that arrives in a finaliser."""
    for _ in range(30):
        process.send_signal(signal.SIGINT)
        try:
            return process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("Ctrl-C did not stop it")


def test_ctrl_c_is_one_line_and_keeps_what_was_downloaded(call, cache, mirror):
    size = len(FOLDED_FILES["data.txt"])
    kept = kept_of_half(size)
    mirror.faults[DATA] = "stalled"
    command = [*PROGRAM, "data", "fetch", "tiny"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, text=True, **pipes)
    part = FOLDED.directory(cache) / "data.txt.part"
    wait_until(lambda: part.exists() and part.stat().st_size == kept)
    out, err = interrupt(process)
    assert process.returncode == 130
    assert out == ""
    assert err == (
        "nkcme: stopped by Ctrl-C; what was downloaded is kept; to continue: nkcme data fetch "
        "tiny\n"
    )
    assert [path.name for path in part.parent.iterdir()] == [part.name]
    assert part.read_bytes() == FOLDED_FILES["data.txt"][:kept]
    mirror.faults.clear()
    call("data", "fetch", "tiny")
    assert mirror.requests_for(DATA)[1:] == [(f"bytes={kept}-", size - kept)]


def test_progress_is_shown_on_a_terminal(cache, mirror):
    ours, theirs = pty.openpty()
    command = [*PROGRAM, "data", "fetch", "tiny"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, timeout=300)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    assert done.returncode == 0
    assert done.stdout == f"{FOLDED.directory(cache)}\n"
    assert f"{len(FOLDED_FILES)}/{len(FOLDED_FILES)} files" in shown
