"""CSV files: which are found, what their targets are, and how their rows are split."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from benchmarks.experiments import table_files
from benchmarks.experiments.table_files import TableFile, find_tables, load_table
from nkcme.errors import NkcmeError
from support import table_folder


@pytest.fixture
def folder(tmp_path):
    table_folder.make(tmp_path / "tables")
    return tmp_path / "tables"


def test_a_folder_names_its_targets(folder, monkeypatch):
    chosen = find_tables(folder, names=["shuffled", "numbered"])
    assert chosen == [
        TableFile("shuffled", folder / "shuffled.csv", "y"),
        TableFile("numbered", folder / "numbered.csv.gz", "y"),
    ]
    monkeypatch.setenv(table_files.FOLDER_VARIABLE, str(folder))
    assert find_tables(None, names=["shuffled", "numbered"]) == chosen


def test_one_file_has_the_target_of_its_folder_or_the_given_one(folder):
    assert find_tables(folder / "shuffled.csv")[0].target == "y"
    assert find_tables(folder / "shuffled.csv", target="x")[0].target == "x"
    every = find_tables(folder, target="x")
    assert [(file.name, file.target) for file in every] == [
        ("numbered", "x"), ("shuffled", "x"), ("unlisted", "x"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["houses"], "no table 'houses'; choose from numbered"), ([], "unlisted.csv is not known")],
)
def test_unknown_tables_and_targets_are_errors(folder, names, expected):
    with pytest.raises(NkcmeError, match=expected):
        find_tables(folder, names=names)


@pytest.mark.parametrize("text", ["no JSON", "[1]", '{"numbered": {}}'])
def test_a_bad_list_of_targets_is_an_error_that_names_it(folder, text):
    (folder / "tables.json").write_text(text)
    with pytest.raises(NkcmeError, match=r"tables\.json must be JSON"):
        find_tables(folder)


def test_two_files_of_one_name_are_an_error(folder):
    (folder / "shuffled.csv.gz").touch()
    with pytest.raises(NkcmeError, match="have the same name"):
        find_tables(folder)


def test_the_digest_is_that_of_the_text(folder):
    plain, packed = folder / "shuffled.csv", folder / "packed.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    digests = [TableFile("name", path, "y").digest() for path in (plain, packed)]
    assert digests[0] == digests[1]
    assert TableFile("name", folder / "numbered.csv.gz", "y").digest() != digests[0]


def test_numbered_folds_are_those_of_the_column(folder):
    table = load_table(TableFile("numbered", folder / "numbered.csv.gz", "y"), n_shuffled=7)
    assert table.n_folds == table_folder.N_FOLDS
    assert list(table.X.columns) == ["x", "colour"]
    train, test = table.fold(3)
    assert np.array_equal(test, np.arange(3, table_folder.N_ROWS, 4))
    assert np.array_equal(np.sort(np.append(train, test)), np.arange(table_folder.N_ROWS))


def test_shuffled_folds_are_equally_large_and_always_the_same(folder):
    file = TableFile("shuffled", folder / "shuffled.csv", "y")
    table = load_table(file, n_shuffled=7)
    sizes = np.bincount(table.fold_of_row)
    assert len(sizes) == 7
    assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(table.fold_of_row, load_table(file, n_shuffled=7).fold_of_row)
    assert np.any(np.diff(table.fold_of_row) != 1)


@pytest.mark.parametrize("folds", [[1, 2, 3], [0, 0, 0], [0.5, 1.5, 0.5], ["a", "b", "a"]])
def test_folds_that_are_not_numbered_are_an_error(tmp_path, folds):
    path = tmp_path / "table.csv"
    path.write_text(table_folder.csv_text({"x": [1, 2, 3], "y": [1, 2, 3], "fold": folds}))
    with pytest.raises(NkcmeError, match=r"'fold' must number two or more folds 0, 1, 2"):
        load_table(TableFile("table", path, "y"), 2)


def test_too_few_rows_to_shuffle_are_an_error(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(table_folder.csv_text({"x": [1, 2, 3], "y": [1, 2, 3]}))
    with pytest.raises(NkcmeError, match="3 rows, too few for 4 folds"):
        load_table(TableFile("table", path, "y"), 4)
