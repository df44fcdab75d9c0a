"""The generated apartments: their law, and that the messy table is read as the clean one."""

import numpy as np
import pandas as pd
import pytest

from nkcme import KernelCME
from nkcme.datasets import load_apartments
from nkcme.evaluation import evaluate
from nkcme.tables.encoding import TableEncoder
from nkcme.tables.files import read_table
from nkcme.tables.table_summary import TableSummary
from nkcme.tables.target_column import split_target

KINDS = {
    "id": "unused",
    "sold": "date",
    **dict.fromkeys(("area", "land", "rooms", "floor", "age"), "number"),
    **dict.fromkeys(("balcony", "lift"), "boolean"),
    **dict.fromkeys(("district", "heating"), "category"),
}


def test_prices_follow_the_law_that_is_given():
    apartments = load_apartments(4000, seed=3)
    below = apartments.price[:, None] < apartments.ppf([0.1, 0.5, 0.9])
    np.testing.assert_allclose(below.mean(axis=0), [0.1, 0.5, 0.9], atol=0.02)


def write_csv(frame, path):
    frame.to_csv(path, index=False, sep=";")


def write_excel(frame, path):
    """As a person has it: dates, whole numbers and floors are cells of their type."""
    typed = frame.assign(
        sold=pd.to_datetime(frame["sold"]),
        age=frame["age"].astype(int),
        floor=[x if x == "-" else int(x) for x in frame["floor"]],
    )
    typed.to_excel(path, index=False)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("messy.csv", write_csv),
        ("messy.xlsx", write_excel),
        ("messy.parquet", lambda frame, path: frame.to_parquet(path)),
    ],
)
def test_the_messy_table_is_read_as_the_clean_one_from_every_file(name, write, tmp_path):
    apartments = load_apartments(300)
    write(apartments.messy, tmp_path / name)
    notes = []
    X, y = split_target(read_table(tmp_path / name, note=notes.append), "price")
    np.testing.assert_array_equal(y, apartments.price)
    encoder = TableEncoder.fit(X)
    summary = TableSummary.of(X, encoder, y[:, None])
    assert {column.name: column.kind for column in summary} == KINDS
    assert [doubt.split()[0] for doubt in summary.doubts] == ["'id'"]
    clean = TableEncoder.fit(apartments.X)
    np.testing.assert_allclose(
        encoder.transform(X), clean.transform(apartments.X), rtol=1e-5, atol=1e-6
    )
    assert notes == (
        [f"read {tmp_path / name} as separated by ';' and with decimal commas"]
        if name.endswith("csv")
        else []
    )
    assert summary["area"].missing == np.isnan(apartments.X["area"]).sum()


def test_a_model_of_the_messy_file_scores_as_one_of_the_clean_table(tmp_path):
    apartments, clean = load_apartments(400), load_apartments(400).X
    write_csv(apartments.messy[:300], tmp_path / "train.csv")
    write_csv(apartments.messy[300:], tmp_path / "test.csv")
    X, y = split_target(read_table(tmp_path / "train.csv"), "price")
    model = KernelCME().fit(X, y)
    new = read_table(tmp_path / "test.csv", like=model.encoder_, target="price")
    found = evaluate(model, *split_target(new, "price"))
    expected = KernelCME().fit(clean[:300], apartments.price[:300])
    known = evaluate(expected, clean[300:], apartments.price[300:])
    assert found["crps"] == pytest.approx(known["crps"], rel=0.02)


def test_one_row_of_a_new_file_is_read_with_the_marks_of_training(tmp_path):
    apartments = load_apartments(300)
    encoder = TableEncoder.fit(apartments.messy.drop(columns="price"))
    for row in (0, 7, 40):
        write_csv(apartments.messy[row : row + 1], tmp_path / "one.csv")
        frame = read_table(tmp_path / "one.csv", like=encoder, target="price")
        expected = encoder.transform(apartments.messy[row : row + 1].drop(columns="price"))
        np.testing.assert_array_equal(encoder.transform(frame.drop(columns="price")), expected)
