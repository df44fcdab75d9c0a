"""What all tests of the command line share: a table, a fitted model, and how to run a command."""

import contextlib
import io
from dataclasses import dataclass
from pathlib import Path

import pytest

from nkcme.cli.app import run
from support.houses import make_table


@dataclass(frozen=True)
class Fitted:
    """A model that `nkcme fit` wrote, and what the command printed."""

    path: Path
    printed: str


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "houses.csv"
    make_table().to_csv(path, index=False)
    return path


@pytest.fixture(scope="session")
def fitted(table, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "price-model"
    command = ["fit", table, "--target", "price", "--out", path, "--preset", "quick"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert run([*map(str, command), "--epochs", "2"]) == 0
    return Fitted(path, printed.getvalue())


@pytest.fixture
def model(fitted):
    """The directory of a fitted model, which tests must not change."""
    return fitted.path


@pytest.fixture
def call(capsys):
    """Run a command that must succeed; returns what it printed to stdout and stderr."""

    def call(*arguments):
        status = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert status == 0, err
        return out, err

    return call


@pytest.fixture
def refuse(capsys):
    """Run a command that must be refused; returns the one line on stderr."""

    def refuse(*arguments):
        status = run([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert status == 2, err
        assert out == ""
        assert err.startswith("nkcme: ")
        assert err.count("\n") == 1
        assert err.endswith("\n")
        return err

    return refuse
