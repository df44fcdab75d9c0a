"""New files are parsed as the training file was, even if their values look like other types."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from nkcme.tables.encoding import TableEncoder
from nkcme.tables.files import read_table
from nkcme.tables.target_column import split_target
from support.refusals import refusal

TRAINING = "code,flag,size,y\n01,TRUE,1.5,1\n02,maybe,2.5,2\nA4,,3.5,3\n01,TRUE,4.5,4\n"


def fitted_on(path: Path) -> TableEncoder:
    return TableEncoder.fit(split_target(read_table(path), "y")[0])


@pytest.fixture
def training(tmp_path: Path) -> Path:
    path = tmp_path / "training.csv"
    path.write_text(TRAINING)
    return path


def test_rows_are_encoded_alike_in_any_file(training: Path, tmp_path: Path) -> None:
    """Each row alone in a file, where codes look like numbers and flags like booleans."""
    encoder = fitted_on(training)
    together = encoder.transform(split_target(read_table(training), "y")[0])
    header, *rows = TRAINING.splitlines()
    for row, expected in zip(rows, together, strict=True):
        (tmp_path / "one.csv").write_text(f"{header}\n{row}\n")
        frame = read_table(tmp_path / "one.csv", like=encoder)
        features, y = split_target(frame, "y")
        np.testing.assert_array_equal(encoder.transform(features), [expected])
        assert y.dtype == np.float64


@pytest.mark.parametrize("name", ["new.csv", "new.tsv", "new.csv.gz"])
def test_text_files_of_every_kind_are_parsed_as_in_training(
    name: str, training: Path, tmp_path: Path
) -> None:
    text = "flag,code,size,y\nTRUE,01,1.5,1\n".replace(",", "\t" if ".tsv" in name else ",")
    data = text.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    frame = read_table(tmp_path / name, like=fitted_on(training))
    assert frame.loc[0, ["code", "flag"]].tolist() == ["01", "TRUE"]
    assert frame["size"].dtype == np.float64


def test_missing_marks_stay_missing_in_a_column_read_as_text(
    training: Path, tmp_path: Path
) -> None:
    (tmp_path / "new.csv").write_text("code,flag,size\nNA,,1\n,null,2\n03,TRUE,3\n")
    frame = read_table(tmp_path / "new.csv", like=fitted_on(training))
    assert frame["code"].isna().tolist() == [True, True, False]
    assert frame["flag"].isna().tolist() == [True, True, False]


def test_columns_without_names_in_training_go_by_position(tmp_path: Path) -> None:
    encoder = TableEncoder.fit(np.array([["01", 1.0], ["A4", 2.0]], dtype=object))
    (tmp_path / "new.csv").write_text("y,code,size\n5,01,1\n6,02,2\n")
    frame = read_table(tmp_path / "new.csv", like=encoder, target="y")
    assert frame["code"].tolist() == ["01", "02"]
    assert frame["y"].tolist() == [5, 6]


def test_a_column_without_a_name_in_the_file_is_read_as_text_too(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text(",size,y\n01,1,1\nA4,2,2\n")
    encoder = fitted_on(tmp_path / "old.csv")
    (tmp_path / "new.csv").write_text(",size\n01,1\n02,2\n")
    frame = read_table(tmp_path / "new.csv", like=encoder)
    assert frame.iloc[:, 0].tolist() == ["01", "02"]


def test_a_stray_text_in_a_numeric_column_is_reported_with_column_row_and_value(
    training: Path, tmp_path: Path
) -> None:
    encoder = fitted_on(training)
    (tmp_path / "new.csv").write_text("code,flag,size\n01,TRUE,1.5\n02,TRUE,n/k\n")
    message = refusal(encoder.transform, read_table(tmp_path / "new.csv", like=encoder))
    assert "column 'size' of X held numbers in training but has 'n/k' in row 1" in message


def test_numbers_are_parsed_to_the_same_bits_with_and_without_a_model(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=200) * 10.0 ** np.arange(-100, 100)
    pd.DataFrame({"a": values, "b": "x"}).to_csv(tmp_path / "t.csv", index=False)
    plain = read_table(tmp_path / "t.csv")
    like = read_table(tmp_path / "t.csv", like=TableEncoder.fit(plain))
    pd.testing.assert_frame_equal(plain, like, check_exact=True)
