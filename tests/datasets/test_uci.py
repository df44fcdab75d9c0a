"""UCI sets: found in the right order, verified, and downloaded so that nothing wrong stays."""

import hashlib
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from nkcme.datasets import UCI, load_uci
from nkcme.datasets.download import part_of
from nkcme.datasets.uci import TIMEOUT, describe_uci, fetch_uci, find_uci
from nkcme.errors import DataError
from support.permissions import directory_for_all, unprivileged
from support.uci_mirror import (
    CHUNK,
    FOLDED,
    FOLDED_FILES,
    ORDERED,
    TABLE,
    YEARS,
    kept_of_half,
    serving,
    write_folded,
    year_text,
    zipped,
)

ROOT = Path(__file__).parents[2]
DATA = "/tinySet/data/data.txt"
YEAR = "/tinyyear.zip"

#: The paper's sizes (its table of data sets), and the sha256 the reference material gives.
PUBLISHED = {
    "boston": (506, 13, 20, "baadf72995725d76efe787b664e1f083388c79ba21ef9a7990d87f774184735a"),
    "concrete": (1030, 8, 20, "43d290fd2c2a399ad7e62c45cab5337ba94ece69ebdcf5875aa668cb886243de"),
    "energy": (768, 8, 20, "7f8bf024cea437267d56be99b7af7bb3faebec8a7bccfbb20d06d52d9372a950"),
    "kin8nm": (8192, 8, 20, "a694ce0c7a21390f2bd2a205c36f2482cd974637a207038696716e22f3bbe810"),
    "naval": (11934, 16, 20, "de0ea69da1efaab8b9655ffed828547d10dd68c1fb8c6e0163e6a988def393a6"),
    "power": (9568, 4, 20, "daebd20c408dfc5c4979604f240e891be162c3a5d00d662380aa669044a1fb31"),
    "protein": (45730, 9, 5, "d35f332707e8a73f21e021039250a1e7b26e14f7dd826a0337ffa8e8e48b9727"),
    "year": (515345, 90, 1, None),
}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Tiny sets beside the real ones, and a cache of one's own; no set is given."""
    for known in (FOLDED, ORDERED):
        monkeypatch.setitem(UCI, known.name, known)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache" / name))
    monkeypatch.setattr("nkcme.datasets.download._CHUNK", CHUNK)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("NKCME_DATA_URL", "http://127.0.0.1:9")  # where nothing listens
    monkeypatch.delenv("NKCME_DATA", raising=False)
    return tmp_path / "cache" / "nkcme" / "uci"


@pytest.fixture
def mirror(monkeypatch):
    with serving() as server:
        monkeypatch.setenv("NKCME_DATA_URL", server.url)
        yield server


def files_in(directory):
    return sorted(path.name for path in directory.rglob("*")) if directory.exists() else []


def with_helpers():
    """The environment of a process that can import what this file does."""
    return os.environ | {"PYTHONPATH": str(ROOT / "tests")}


def refuse(name="tiny", **options):
    """The one line that a download is refused with."""
    with pytest.raises(DataError) as refusal:
        fetch_uci(name, **options)
    assert "\n" not in str(refusal.value)
    return str(refusal.value)


# --- what is known of the sets --------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_sets_are_those_of_the_paper(name):
    known = UCI[name]
    assert (known.n_rows, known.n_features, known.n_folds, known.sha256) == PUBLISHED[name]


def test_every_file_of_the_seven_has_a_hash():
    for name, (_, _, n_folds, _) in PUBLISHED.items():
        if name != "year":
            others = {"data.txt", "index_features.txt", "index_target.txt", "n_splits.txt"}
            splits = {f"index_{p}_{k}.txt" for p in ("train", "test") for k in range(n_folds)}
            assert set(UCI[name].files) == others | splits


def test_year_is_split_as_its_authors_ask():
    year = UCI["year"]
    assert year.n_train == 463_715
    assert year.n_rows - year.n_train == 51_630


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(DataError, match=r"'bostn'.*boston, concrete"):
        load_uci("bostn")


# --- reading --------------------------------------------------------------------------------------


def check_tiny(table):
    assert (TABLE[:, [0, 1, 3]] == table.X).all()
    assert (table.y == TABLE[:, 2]).all()
    assert table.n_folds == 2
    for k in range(2):
        train, test = table.fold(k)
        assert train.tolist() == list(map(int, FOLDED_FILES[f"index_train_{k}.txt"].split()))
        assert test.tolist() == list(map(int, FOLDED_FILES[f"index_test_{k}.txt"].split()))


def test_columns_and_folds_are_those_of_the_files(tmp_path):
    write_folded(tmp_path)
    table = load_uci("tiny", tmp_path)
    check_tiny(table)
    for k in (-1, 2):
        with pytest.raises(DataError, match=f"folds 0 to 1; got {k}"):
            table.fold(k)


def test_a_year_file_is_split_by_the_order_of_its_rows(tmp_path):
    directory = ORDERED.directory(tmp_path)
    directory.mkdir(parents=True)
    (directory / "TinyYear.txt").write_bytes(year_text())
    table = load_uci("tinyyear", tmp_path)
    assert (YEARS[:, 1:] == table.X).all()
    assert (table.y == YEARS[:, 0]).all()
    assert table.n_folds == 1
    assert [part.tolist() for part in table.fold(0)] == [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9]]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (year_text(YEARS[:9]), r"\(10, 4\).*\(9, 4\)"),
        (year_text(YEARS[:, :4]), r"\(10, 4\).*\(10, 3\)"),
        (b"a,b,c,d,e\n" + year_text(YEARS[1:]), "no table of numbers"),
    ],
)
def test_a_year_file_of_another_shape_is_refused(tmp_path, text, why):
    directory = ORDERED.directory(tmp_path)
    directory.mkdir(parents=True)
    (directory / "TinyYear.txt").write_bytes(text)
    with pytest.raises(DataError, match=why):
        load_uci("tinyyear", tmp_path)


# --- where sets are looked for --------------------------------------------------------------------


def test_the_given_directory_comes_before_the_cache_and_the_cache_before_a_download(
    tmp_path, cache, monkeypatch, mirror
):
    assert find_uci("tiny") is None
    check_tiny(load_uci("tiny"))  # downloaded
    assert len(mirror.sent) == len(FOLDED_FILES)
    assert find_uci("tiny") == FOLDED.directory(cache)
    check_tiny(load_uci("tiny"))  # from the cache
    given = write_folded(tmp_path / "given")
    monkeypatch.setenv("NKCME_DATA", str(tmp_path / "given"))
    assert find_uci("tiny") == fetch_uci("tiny") == given
    check_tiny(load_uci("tiny"))
    assert len(mirror.sent) == len(FOLDED_FILES)  # nothing was downloaded again


def test_what_the_given_directory_does_not_hold_is_looked_for_in_the_cache(
    tmp_path, cache, monkeypatch
):
    write_folded(cache)
    monkeypatch.setenv("NKCME_DATA", str(tmp_path))
    assert find_uci("tiny") == FOLDED.directory(cache)


def test_a_data_home_is_looked_in_alone(tmp_path, cache, mirror):
    write_folded(cache)
    assert find_uci("tiny", tmp_path / "own") is None
    check_tiny(load_uci("tiny", tmp_path / "own"))
    assert len(mirror.sent) == len(FOLDED_FILES)
    assert find_uci("tiny", tmp_path / "own") == FOLDED.directory(tmp_path / "own")


def test_a_given_directory_that_is_none_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("NKCME_DATA", str(tmp_path / "absent"))
    with pytest.raises(DataError, match="NKCME_DATA must name a directory"):
        load_uci("tiny")


def test_a_given_directory_that_lacks_a_file_is_refused_by_its_name(tmp_path, monkeypatch, mirror):
    (write_folded(tmp_path) / "index_test_1.txt").unlink()
    monkeypatch.setenv("NKCME_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"lacks index_test_1\.txt"):
        load_uci("tiny")
    assert not mirror.sent


def test_where_each_set_is(tmp_path, cache, monkeypatch):
    def where():
        return {one["name"]: one["where"] for one in describe_uci()}

    assert set(where().values()) == {"not here"}
    (write_folded(cache) / "data.txt").unlink()
    assert where()["tiny"] == "the cache, in part"
    (FOLDED.directory(cache) / "data.txt").write_bytes(FOLDED_FILES["data.txt"])
    assert where()["tiny"] == "the cache"
    write_folded(tmp_path / "given")
    monkeypatch.setenv("NKCME_DATA", str(tmp_path / "given"))
    assert where()["tiny"] == "NKCME_DATA"
    assert where()["boston"] == "not here"


# --- files that are not as published --------------------------------------------------------------


@pytest.mark.parametrize("name", ["data.txt", "index_train_1.txt"])
@pytest.mark.parametrize("place", ["given", "cache"])
def test_an_altered_file_is_refused(place, name, tmp_path, cache, monkeypatch, mirror):
    directory = write_folded(cache if place == "cache" else tmp_path)
    if place == "given":
        monkeypatch.setenv("NKCME_DATA", str(tmp_path))
    (directory / name).write_bytes(FOLDED_FILES[name].replace(b"1", b"2"))
    with pytest.raises(DataError, match="is not the file that was published") as refusal:
        load_uci("tiny")
    assert str(directory / name) in str(refusal.value)
    assert "\n" not in str(refusal.value)
    assert not mirror.sent


def test_fetch_replaces_an_altered_file_of_the_cache_and_only_that(cache, mirror):
    directory = write_folded(cache)
    (directory / "data.txt").write_bytes(b"1 2 3 4 5\n")
    assert fetch_uci("tiny") == directory
    check_tiny(load_uci("tiny"))
    assert [path for path, _, _ in mirror.sent] == [DATA]


def test_fetch_does_not_touch_an_altered_file_of_a_given_directory(tmp_path, monkeypatch, mirror):
    directory = write_folded(tmp_path)
    (directory / "data.txt").write_bytes(b"1 2 3 4 5\n")
    monkeypatch.setenv("NKCME_DATA", str(tmp_path))
    assert "is not the file that was published" in refuse()
    assert (directory / "data.txt").read_bytes() == b"1 2 3 4 5\n"
    assert not mirror.sent


# --- downloads ------------------------------------------------------------------------------------


def test_a_good_download_leaves_the_published_files_and_nothing_else(cache, mirror, capfd):
    directory = fetch_uci("tiny")
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == FOLDED_FILES
    assert capfd.readouterr() == ("", "")  # no terminal, no bar; and pooch is quiet


def test_an_altered_download_is_refused_and_leaves_nothing(cache, mirror):
    mirror.files[DATA] = FOLDED_FILES["data.txt"].replace(b"1", b"2")
    message = refuse()
    assert FOLDED.sha256 in message
    assert mirror.url + DATA in message
    assert files_in(cache) == []


def test_a_missing_file_is_refused_and_leaves_nothing(cache, mirror):
    del mirror.files[DATA]
    message = refuse()
    assert "404" in message
    assert mirror.url + DATA in message
    assert files_in(cache) == []


def test_a_server_that_is_not_there_leaves_nothing(cache):
    assert "no connection" in refuse()
    assert files_in(cache) == []


def test_a_silent_server_is_given_up_and_leaves_nothing(cache, mirror):
    mirror.faults[DATA] = "silent"
    assert "no answer within 0.2 s; try again later" in refuse(timeout=0.2)
    assert files_in(cache) == []


@pytest.mark.parametrize(
    ("fault", "why"),
    [("truncated", "the connection broke off"), ("stalled", "no answer within 0.2 s")],
)
def test_a_broken_download_is_no_file_and_its_retry_asks_for_the_rest(fault, why, cache, mirror):
    size = len(FOLDED_FILES["data.txt"])
    kept = kept_of_half(size)
    mirror.faults[DATA] = fault
    message = refuse(timeout=0.2)
    assert why in message
    assert f"{kept} bytes are kept; try again to go on" in message
    assert files_in(cache / "tinySet" / "data") == ["data.txt.part"]
    assert find_uci("tiny") is None
    mirror.faults.clear()
    check_tiny(load_uci("tiny"))
    assert mirror.requests_for(DATA) == [(None, size // 2), (f"bytes={kept}-", size - kept)]
    assert files_in(FOLDED.directory(cache)) == sorted(FOLDED_FILES)


def test_whole_files_of_a_broken_download_are_not_sent_again(cache, mirror):
    last = "/tinySet/data/" + FOLDED.files[-1]
    mirror.faults[last] = "truncated"
    refuse()
    assert files_in(FOLDED.directory(cache)) == sorted(FOLDED.files[:-1])
    mirror.faults.clear()
    mirror.sent.clear()
    check_tiny(load_uci("tiny"))
    assert [path for path, _, _ in mirror.sent] == [last]


def test_a_server_that_knows_no_ranges_sends_all_again(cache, mirror):
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


def test_an_altered_part_does_not_survive_its_hash(cache, mirror):
    put_part(cache, b"9" * 50)
    assert "is not the published file" in refuse()
    assert files_in(cache) == []
    check_tiny(load_uci("tiny"))


def test_a_part_that_is_complete_is_not_sent_again(cache, mirror):
    put_part(cache, FOLDED_FILES["data.txt"])
    check_tiny(load_uci("tiny"))
    assert mirror.requests_for(DATA) == [(f"bytes={len(FOLDED_FILES['data.txt'])}-", 0)]


def test_a_part_longer_than_the_file_is_thrown_away(cache, mirror):
    size = len(FOLDED_FILES["data.txt"])
    put_part(cache, FOLDED_FILES["data.txt"] + b"more")
    check_tiny(load_uci("tiny"))
    assert mirror.requests_for(DATA) == [(f"bytes={size + 4}-", 0), (None, size)]


def test_a_cache_that_cannot_be_made_is_one_line(cache, mirror):
    cache.parent.parent.write_text("a file where a directory must be")
    message = refuse()
    assert "cannot make" in message
    assert "NKCME_DATA" in message


@pytest.fixture
def read_only():
    """A directory that may not be written in; root, who may, becomes nobody for the while."""
    with directory_for_all() as parent:
        home = parent / "home"
        home.mkdir()
        yield home
        os.chmod(home, 0o755)


@pytest.mark.skipif(os.name == "nt", reason="permissions of directories are those of POSIX")
@pytest.mark.parametrize("holds", ["nothing", "a set in part"])
def test_a_read_only_cache_is_one_line(holds, read_only, mirror, tmp_path):
    fetch_uci("tiny", tmp_path)  # imports all there is to import, which nobody may not
    mirror.sent.clear()
    if holds == "a set in part":
        (write_folded(read_only) / "data.txt").unlink()
        os.chmod(FOLDED.directory(read_only), 0o555)
    os.chmod(read_only, 0o555)
    with unprivileged():
        message = refuse(data_home=read_only)
    assert "permission denied" in message.lower()
    assert str(read_only) in message
    assert not mirror.sent


def test_a_read_only_cache_that_is_complete_serves(read_only):
    directory = write_folded(read_only)
    os.chmod(directory, stat.S_IRUSR | stat.S_IXUSR)
    check_tiny(load_uci("tiny", read_only))
    os.chmod(directory, 0o755)


def test_without_pooch_one_line_says_how_to_get_it(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert "pip install 'nkcme[data]'" in refuse()
    assert files_in(cache) == []


def test_pooch_is_imported_for_a_download_only(tmp_path):
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
    printed = subprocess.check_output(command, text=True, env=with_helpers())
    assert printed == "[]\n"


def test_two_processes_at_once_download_once(tmp_path, mirror):
    """Each is held at its first request until both had time to ask; only one may have."""
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
    both = [
        subprocess.Popen([sys.executable, "-c", code], text=True, env=with_helpers(), **pipes)
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
    time.sleep(1)
    mirror.go_on.set()
    assert [process.communicate(timeout=60) for process in both] == [("", "")] * 2
    check_tiny(load_uci("tiny", tmp_path))
    assert files_in(FOLDED.directory(tmp_path)) == sorted(FOLDED_FILES)
    assert len(mirror.sent) == len(FOLDED_FILES)


# --- the download of Year -------------------------------------------------------------------------


def test_year_is_unpacked_and_its_hash_is_kept(cache, mirror):
    table = load_uci("tinyyear")
    assert (table.y == YEARS[:, 0]).all()
    directory = ORDERED.directory(cache)
    assert files_in(directory) == ["TinyYear.txt", "TinyYear.txt.sha256"]
    known = hashlib.sha256(year_text()).hexdigest()
    assert (directory / "TinyYear.txt.sha256").read_text() == f"{known}  TinyYear.txt\n"


def test_a_year_file_altered_after_its_download_is_noticed_and_fetch_replaces_it(cache, mirror):
    path = fetch_uci("tinyyear") / "TinyYear.txt"
    path.write_bytes(year_text(YEARS + 1))  # of the right shape
    with pytest.raises(DataError, match="is not the file"):
        load_uci("tinyyear")
    fetch_uci("tinyyear")
    assert path.read_bytes() == year_text()


def test_another_year_file_at_a_later_download_is_noticed(cache, mirror):
    directory = fetch_uci("tinyyear")
    (directory / "TinyYear.txt").unlink()
    mirror.files[YEAR] = zipped(year_text(YEARS + 1))
    assert f"delete {directory / 'TinyYear.txt.sha256'}" in refuse("tinyyear")
    assert files_in(directory) == ["TinyYear.txt.sha256"]
    (directory / "TinyYear.txt.sha256").unlink()
    assert (load_uci("tinyyear").y == YEARS[:, 0] + 1).all()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (zipped(year_text(YEARS[:9])), "10 rows of 5 columns; it differs at row 9"),
        (zipped(year_text(YEARS) + b"2011,1,1,1,1\n"), "differs at row 11"),
        (zipped(year_text(YEARS[:, :4])), "differs at row 1"),
        (zipped(b""), "differs at row 0"),
        (zipped(b"1" * 200_000), "differs at row 1"),
        (zipped(year_text(), "other.txt"), "no zip file that holds TinyYear.txt"),
        (b"<html>sorry</html>", "no zip file"),
        (zipped(year_text())[:100], "no zip file"),
        (zipped(year_text())[:60] + b"xxxx" + zipped(year_text())[64:], "no zip file"),
    ],
    ids=["short", "long", "narrow", "empty", "line", "other", "html", "half", "altered"],
)
def test_a_wrong_year_archive_is_refused_and_leaves_nothing(content, why, cache, mirror):
    mirror.files[YEAR] = content
    assert why in refuse("tinyyear")
    assert files_in(cache) == []


def test_a_broken_year_download_resumes(cache, mirror):
    size = len(mirror.files[YEAR])
    kept = kept_of_half(size)
    mirror.faults[YEAR] = "truncated"
    refuse("tinyyear")
    assert files_in(ORDERED.directory(cache)) == ["tinyyear.zip.part"]
    mirror.faults.clear()
    assert (YEARS[:, 1:] == load_uci("tinyyear").X).all()
    assert mirror.requests_for(YEAR)[1] == (f"bytes={kept}-", size - kept)


def test_ctrl_c_while_unpacking_keeps_the_archive(cache, mirror, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("nkcme.datasets.uci_sets.OrderedSet._checked_lines", stop)
        with pytest.raises(KeyboardInterrupt):
            fetch_uci("tinyyear")
    assert files_in(ORDERED.directory(cache)) == ["tinyyear.zip"]
    load_uci("tinyyear")
    assert len(mirror.requests_for(YEAR)) == 1


# --- the real sets --------------------------------------------------------------------------------

REAL = os.environ.get("NKCME_DATA", "")


@pytest.mark.skipif(not REAL, reason="NKCME_DATA names no directory with the real UCI sets")
@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "year"])
def test_the_real_sets(name):
    table = load_uci(name, REAL)
    n, p, n_folds, _ = PUBLISHED[name]
    assert table.X.shape == (n, p)
    assert table.y.shape == (n,)
    assert np.isfinite(table.X).all()
    assert np.isfinite(table.y).all()
    assert (UCI[name].directory(Path(REAL)) / "n_splits.txt").read_text().strip() == str(n_folds)
    assert table.n_folds == n_folds
    for k in range(n_folds):
        rows = np.concatenate(table.fold(k))
        assert np.array_equal(np.sort(rows), np.arange(n))  # disjoint, and all of them
        assert len(table.fold(k)[1]) == pytest.approx(n / 10, abs=1)


def test_the_default_patience_of_both_faces_is_the_same():
    from typer.main import get_command

    from nkcme.cli.app import app

    options = get_command(app).commands["data"].commands["fetch"].params
    assert next(option for option in options if option.name == "timeout").default == TIMEOUT
