"""Small text files read without pandas: as pandas reads them, or not at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkcme.tables.columns import Table
from nkcme.tables.files import read_table
from nkcme.tables.plain_frame import PlainFrame


def both(tmp_path, text):
    """The plain frame of a file, None if there is none, and the frame of pandas."""
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    seen = []
    frame = read_table(path, check=seen.append)
    return (seen[0] if seen else None), frame


def assert_same(plain, frame):
    ours, theirs = Table.read(plain, "X"), Table.read(frame, "X")
    assert ours.names == theirs.names
    assert ours.n_rows == theirs.n_rows
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.where == other.where
        assert mine.kind == other.kind
        assert mine.decimal == other.decimal
        assert mine.array.dtype.kind == other.array.dtype.kind
        np.testing.assert_array_equal(mine.missing, other.missing)
        if mine.kind == "numeric":
            np.testing.assert_allclose(
                *(raw.array.astype(float) for raw in (mine, other)), rtol=1e-15
            )
        else:
            assert mine.labels() == other.labels()


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2.5\n-3,+1e-5\n",
        "a,b\n1,x\n,NA\n3,y/z\n",
        "a,b\n01,2020-01-31\n02,1999-12-01\n",
        'a,b\n"1","x, y"\n"2",""\n',
        "a;b\n1,5;north\n2,25;south\n",
        "a,b\n0.12345678901234567,null\n5.,NaN\n",
        "a,b\n12:30,€ 5\n13:00,7\n",
        "a,b\nTrue,x\nFALSE,True\n",
        "a,b\n1,-inf\n2,inf\n",
    ],
    ids=repr,
)
def test_a_plain_file_is_read_as_pandas_reads_it(text, tmp_path):
    plain, frame = both(tmp_path, text)
    assert plain is not None
    assert_same(plain, frame)


@pytest.mark.parametrize(
    "field", [" 1", "INF", "-Infinity", "1_000", "1" * 20 + ".5", "1e999", "1e", "e5", "Nan", "٣"]
)
def test_where_pandas_has_rules_of_its_own_nothing_is_read(field, tmp_path):
    plain, _ = both(tmp_path, f"a,b\n1,x\n{field},y\n")
    assert plain is None


@pytest.mark.parametrize("text", ["a,\n1,2\n", "a,b\n" + "1,2\n" * 30_000], ids=["name", "size"])
def test_names_that_pandas_makes_up_and_large_files_are_left_to_it(text, tmp_path):
    assert both(tmp_path, text)[0] is None


def test_truth_values_with_gaps_are_left_to_pandas(tmp_path):
    assert both(tmp_path, "a,b\nTrue,x\nNA,y\n")[0] is None


fields = st.one_of(
    st.sampled_from(["", "NA", "n/a", "nan", "x", "True", "inf", "1e5", " 7", "007", "<NA>"]),
    st.integers(-(10**20), 10**20).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.text("0123456789+-.eEinfaxyNA/: ", min_size=1, max_size=6),
)


@given(rows=st.lists(st.tuples(fields, fields), min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_any_fields_are_read_as_pandas_reads_them(rows, tmp_path_factory):
    text = "a,b,c\n" + "".join(f"{a},{b},z\n" for a, b in rows)
    plain, frame = both(tmp_path_factory.mktemp("fields"), text)
    if plain is not None:
        assert_same(plain, frame)


def test_rows_and_columns_are_selected_as_in_a_frame():
    frame = PlainFrame.read(("a", "b"), [["1", "x"], ["2", "y"], ["3", "z"]], (), None)
    assert list(frame[["b"]].columns) == ["b"]
    assert list(frame.drop(columns="b").columns) == ["a"]
    assert frame[np.array([True, False, True])].columns["a"].tolist() == [1, 3]
    assert frame.iloc[np.array([2, 0])].columns["b"].tolist() == ["z", "x"]
    assert len(frame) == 3
