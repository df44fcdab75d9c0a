"""UCI data sets: their sizes and hashes, how they are read, and where they are looked for."""

import os
from pathlib import Path

import numpy as np
import pytest

from nkcme.datasets import UCI, fetch_uci, find_uci, load_uci
from nkcme.datasets.uci import TIMEOUT, describe_uci
from nkcme.errors import DataError
from support.refusals import refusal
from support.uci_mirror import (
    FOLDED,
    FOLDED_FILES,
    ORDERED,
    YEARS,
    check_tiny,
    write_folded,
    year_text,
)

DATA = "/tinySet/data/data.txt"
YEAR = "/tinyyear.zip"

pytestmark = pytest.mark.usefixtures("cache")

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


# --- the registry


@pytest.mark.parametrize("name", PUBLISHED)
def test_sizes_and_hashes_are_the_published_ones(name):
    known = UCI[name]
    assert (known.n_rows, known.n_features, known.n_folds, known.sha256) == PUBLISHED[name]


def test_every_file_of_the_folded_data_sets_has_a_hash():
    for name, (_, _, n_folds, _) in PUBLISHED.items():
        if name != "year":
            others = {"data.txt", "index_features.txt", "index_target.txt", "n_splits.txt"}
            splits = {f"index_{p}_{k}.txt" for p in ("train", "test") for k in range(n_folds)}
            assert set(UCI[name].files) == others | splits


def test_year_has_the_split_of_its_authors():
    year = UCI["year"]
    assert year.n_train == 463_715
    assert year.n_rows - year.n_train == 51_630


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(DataError, match=r"'bostn'.*boston, concrete"):
        load_uci("bostn")


# --- reading


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
    assert [rows.tolist() for rows in table.fold(0)] == [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9]]


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


# --- places


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


def test_a_data_set_missing_from_the_given_directory_is_looked_for_in_the_cache(
    tmp_path, cache, monkeypatch
):
    write_folded(cache)
    monkeypatch.setenv("NKCME_DATA", str(tmp_path))
    assert find_uci("tiny") == FOLDED.directory(cache)


def test_only_the_data_home_is_searched(tmp_path, cache, mirror):
    write_folded(cache)
    assert find_uci("tiny", tmp_path / "own") is None
    check_tiny(load_uci("tiny", tmp_path / "own"))
    assert len(mirror.sent) == len(FOLDED_FILES)
    assert find_uci("tiny", tmp_path / "own") == FOLDED.directory(tmp_path / "own")


def test_a_given_path_that_is_not_a_directory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("NKCME_DATA", str(tmp_path / "absent"))
    with pytest.raises(DataError, match="NKCME_DATA must name a directory"):
        load_uci("tiny")


def test_an_incomplete_data_set_in_the_given_directory_is_refused(tmp_path, monkeypatch, mirror):
    (write_folded(tmp_path) / "index_test_1.txt").unlink()
    monkeypatch.setenv("NKCME_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"lacks index_test_1\.txt"):
        load_uci("tiny")
    assert not mirror.sent


def test_the_place_of_each_data_set_is_described(tmp_path, cache, monkeypatch):
    def where():
        return {one["name"]: one["where"] for one in describe_uci()}

    assert set(where().values()) == {"not downloaded"}
    (write_folded(cache) / "data.txt").unlink()
    assert where()["tiny"] == "the cache, incomplete"
    (FOLDED.directory(cache) / "data.txt").write_bytes(FOLDED_FILES["data.txt"])
    assert where()["tiny"] == "the cache"
    write_folded(tmp_path / "given")
    monkeypatch.setenv("NKCME_DATA", str(tmp_path / "given"))
    assert where()["tiny"] == "NKCME_DATA"
    assert where()["boston"] == "not downloaded"


# --- altered files


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
    assert "is not the file that was published" in refusal(fetch_uci, "tiny")
    assert (directory / "data.txt").read_bytes() == b"1 2 3 4 5\n"
    assert not mirror.sent


# --- the real data sets

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


def test_the_command_line_has_the_same_default_timeout():
    from typer.main import get_command

    from nkcme.cli.app import app

    options = get_command(app).commands["data"].commands["fetch"].params
    assert next(option for option in options if option.name == "timeout").default == TIMEOUT
