"""Downloads: verified, resumed, and refused so that no wrong file stays."""

import os
import stat
import subprocess
import sys
import time

import pytest
import requests

from nkcme.datasets import fetch_uci, find_uci, load_uci
from nkcme.datasets.download import part_of
from nkcme.errors import DataError
from support.permissions import directory_for_all, unprivileged
from support.refusals import refusal
from support.uci_mirror import (
    FOLDED,
    FOLDED_FILES,
    check_tiny,
    files_in,
    kept_of_half,
    write_folded,
)
from support.waiting import wait_until

DATA = "/tinySet/data/data.txt"
YEAR = "/tinyyear.zip"

pytestmark = pytest.mark.usefixtures("cache")


def refuse(name="tiny", **options):
    """The one line with which a download is refused."""
    return refusal(fetch_uci, name, error=DataError, **options)


def test_a_download_writes_the_published_files_and_nothing_else(cache, mirror, capfd):
    directory = fetch_uci("tiny")
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == FOLDED_FILES
    assert capfd.readouterr() == ("", "")  # no terminal, no bar; and pooch is quiet


def test_an_altered_download_is_refused_and_not_kept(cache, mirror):
    mirror.files[DATA] = FOLDED_FILES["data.txt"].replace(b"1", b"2")
    message = refuse()
    assert FOLDED.sha256 in message
    assert mirror.url + DATA in message
    assert files_in(cache) == []


def test_a_file_missing_on_the_server_is_refused(cache, mirror):
    del mirror.files[DATA]
    message = refuse()
    assert "404" in message
    assert mirror.url + DATA in message
    assert files_in(cache) == []


def test_no_server_is_refused(cache):
    assert "no connection" in refuse()
    assert files_in(cache) == []


def test_a_silent_server_is_refused_after_the_timeout(cache, mirror):
    mirror.faults[DATA] = "silent"
    assert "no answer within 0.2 s; try again later" in refuse(timeout=0.2)
    assert files_in(cache) == []


def half_then_time_out(kept):
    """`iter_content` on a connection that times out after a number of bytes, without the wait."""

    def iter_content(response, size):
        for _ in range(kept // size):
            yield response.raw.read(size)
        raise requests.ConnectionError("Read timed out.")

    return iter_content


@pytest.mark.parametrize(
    ("fault", "why"),
    [("truncated", "the connection was interrupted"), ("stalled", "no answer within 30 s")],
)
def test_an_interrupted_download_is_resumed(fault, why, cache, mirror, monkeypatch):
    size = len(FOLDED_FILES["data.txt"])
    kept = kept_of_half(size)
    mirror.faults[DATA] = fault
    with monkeypatch.context() as patch:
        if fault == "stalled":
            patch.setattr(requests.Response, "iter_content", half_then_time_out(kept))
        message = refuse()
    assert why in message
    assert f"{kept} bytes are kept; try again to continue" in message
    assert files_in(cache / "tinySet" / "data") == ["data.txt.part"]
    assert find_uci("tiny") is None
    mirror.faults.clear()
    check_tiny(load_uci("tiny"))
    assert mirror.requests_for(DATA) == [(None, size // 2), (f"bytes={kept}-", size - kept)]
    assert files_in(FOLDED.directory(cache)) == sorted(FOLDED_FILES)


def test_complete_files_of_an_interrupted_download_are_not_requested_again(cache, mirror):
    last = "/tinySet/data/" + FOLDED.files[-1]
    mirror.faults[last] = "truncated"
    refuse()
    assert files_in(FOLDED.directory(cache)) == sorted(FOLDED.files[:-1])
    mirror.faults.clear()
    mirror.sent.clear()
    check_tiny(load_uci("tiny"))
    assert [path for path, _, _ in mirror.sent] == [last]


def test_a_server_without_ranges_sends_the_whole_file_again(cache, mirror):
    mirror.ranges = False
    mirror.faults[DATA] = "truncated"
    refuse()
    mirror.faults.clear()
    check_tiny(load_uci("tiny"))
    size = len(FOLDED_FILES["data.txt"])
    assert mirror.requests_for(DATA) == [(None, size // 2), (f"bytes={kept_of_half(size)}-", size)]


def put_part(cache, content):
    part = part_of(FOLDED.directory(cache) / "data.txt")
    part.parent.mkdir(parents=True)
    part.write_bytes(content)
    return part


def test_an_altered_partial_file_is_refused_and_deleted(cache, mirror):
    put_part(cache, b"9" * 50)
    assert "is not the published file" in refuse()
    assert files_in(cache) == []
    check_tiny(load_uci("tiny"))


def test_a_complete_partial_file_is_not_requested_again(cache, mirror):
    put_part(cache, FOLDED_FILES["data.txt"])
    check_tiny(load_uci("tiny"))
    assert mirror.requests_for(DATA) == [(f"bytes={len(FOLDED_FILES['data.txt'])}-", 0)]


def test_a_partial_file_longer_than_the_file_is_deleted(cache, mirror):
    size = len(FOLDED_FILES["data.txt"])
    put_part(cache, FOLDED_FILES["data.txt"] + b"more")
    check_tiny(load_uci("tiny"))
    assert mirror.requests_for(DATA) == [(f"bytes={size + 4}-", 0), (None, size)]


def test_a_cache_that_cannot_be_made_is_refused(cache, mirror):
    cache.parent.parent.write_text("a file where a directory must be")
    message = refuse()
    assert "cannot make" in message
    assert "NKCME_DATA" in message


@pytest.fixture
def read_only():
    """A directory that will be made read-only."""
    with directory_for_all() as parent:
        home = parent / "home"
        home.mkdir()
        yield home
        os.chmod(home, 0o755)


@pytest.mark.skipif(os.name == "nt", reason="permissions of directories are those of POSIX")
@pytest.mark.parametrize("holds", ["nothing", "an incomplete data set"])
def test_a_read_only_cache_is_refused(holds, read_only, mirror, tmp_path):
    fetch_uci("tiny", tmp_path)  # all imports now, which need permissions
    mirror.sent.clear()
    if holds == "an incomplete data set":
        (write_folded(read_only) / "data.txt").unlink()
        os.chmod(FOLDED.directory(read_only), 0o555)
    os.chmod(read_only, 0o555)
    with unprivileged():
        message = refuse(data_home=read_only)
    assert "permission denied" in message.lower()
    assert str(read_only) in message
    assert not mirror.sent


def test_a_complete_read_only_cache_is_read(read_only):
    directory = write_folded(read_only)
    os.chmod(directory, stat.S_IRUSR | stat.S_IXUSR)
    check_tiny(load_uci("tiny", read_only))
    os.chmod(directory, 0o755)


def test_without_pooch_the_error_names_the_package_to_install(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert "pip install 'nkcme[data]'" in refuse()
    assert files_in(cache) == []


def test_pooch_is_imported_only_for_a_download(tmp_path):
    """Machines that only read must not need it, nor wait for it."""
    write_folded(tmp_path)
    code = f"""
import sys
from support import uci_mirror
uci_mirror.register()
from nkcme.datasets import load_uci
load_uci("tiny", {str(tmp_path)!r})
print(sorted({{"pooch", "requests"}} & set(sys.modules)))
"""
    command = [sys.executable, "-c", code]
    printed = subprocess.check_output(command, text=True)
    assert printed == "[]\n"


def test_simultaneous_downloads_request_each_file_once(tmp_path, mirror):
    """The first request is held for a while, in which the other process must not send one."""
    code = f"""
from support import uci_mirror
uci_mirror.register()
from nkcme.datasets.uci import fetch_uci
print("ready", flush=True)
input()
fetch_uci("tiny", {str(tmp_path)!r})
"""
    mirror.faults[DATA] = "late"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    both = [subprocess.Popen([sys.executable, "-c", code], text=True, **pipes) for _ in range(2)]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
    wait_until(lambda: mirror.n_held)
    time.sleep(0.5)  # time for a second request, which a correct lock prevents
    mirror.go_on.set()
    assert [process.communicate(timeout=300) for process in both] == [("", "")] * 2
    check_tiny(load_uci("tiny", tmp_path))
    assert files_in(FOLDED.directory(tmp_path)) == sorted(FOLDED_FILES)
    assert len(mirror.sent) == len(FOLDED_FILES)
