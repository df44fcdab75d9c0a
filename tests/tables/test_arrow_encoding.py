"""Arrow tables are encoded as `TableEncoder` does, to the bit."""

import numpy as np
import pyarrow as pa
import pytest

from nkcme.errors import TableError
from nkcme.tables.arrow_encoding import ArrowEncoder
from nkcme.tables.encoding import TableEncoder


def table(n: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    words = np.array([f"word {i}" for i in range(400)], object)
    return pa.table(
        {
            "number": pa.array(rng.normal(size=n), mask=rng.random(n) < 0.1),
            "whole": rng.integers(0, 9, n),
            "flag": rng.random(n) < 0.5,
            "level": pa.array(words[rng.integers(0, 8, n)], mask=rng.random(n) < 0.1),
            "declared": pa.array(words[rng.integers(0, 9, n)]).dictionary_encode(),
            "text": words[rng.integers(0, 400, n)],
            "when": (1_000_000 * rng.integers(0, 10**6, n)).astype("datetime64[ms]"),
            "as_text": [f"{value:.2f}" for value in rng.normal(size=n)],
        }
    )


@pytest.mark.parametrize("types", [None, {"whole": "category", "flag": "category"}])
def test_the_same_bits_as_the_encoder_of_tables(types):
    encoder = TableEncoder.fit(table(2000, 0), standardize="robust", types=types)
    new = pa.concat_tables([table(300, 1), table(200, 2)])
    np.testing.assert_array_equal(ArrowEncoder(encoder).transform(new), encoder.transform(new))


def test_only_the_columns_of_training_are_read_and_unused_ones_are_not():
    encoder = TableEncoder.fit(table(200, 0), types={"when": "drop"})
    arrow = ArrowEncoder(encoder)
    assert "when" not in arrow.names
    assert arrow.transform(table(5, 1).drop_columns(["when"])).shape == (5, encoder.n_outputs)
    with pytest.raises(TableError, match="held numbers in training"):
        arrow.transform(table(5, 1).set_column(0, "number", [["a"] * 5]))
