"""The provenance of a result: its commit is that of the imported library, or unknown."""

from __future__ import annotations

import json
import subprocess

import pytest

import nkcme
from benchmarks import provenance


def test_the_commit_can_be_named(monkeypatch):
    monkeypatch.setenv(provenance.COMMIT_VARIABLE, "c0ffee")
    assert provenance.commit() == "c0ffee"


def git(*arguments, cwd):
    identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A repository that holds both the benchmarks and the library."""
    monkeypatch.delenv(provenance.COMMIT_VARIABLE, raising=False)
    for name in ("benchmarks/provenance.py", "src/nkcme/__init__.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.touch()
    git("init", "--quiet", cwd=tmp_path)
    git("add", ".", cwd=tmp_path)
    git("commit", "--quiet", "--message", "files", cwd=tmp_path)
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "benchmarks/provenance.py"))
    monkeypatch.setattr(nkcme, "__file__", str(tmp_path / "src/nkcme/__init__.py"))
    return tmp_path


def test_the_commit_is_that_of_the_checkout(checkout):
    head = git("rev-parse", "HEAD", cwd=checkout)[:12]
    assert provenance.commit() == head
    (checkout / "src/nkcme/__init__.py").write_text("changed")
    assert provenance.commit() == f"{head}-dirty"


def test_the_commit_is_unknown_where_the_library_is_of_another_place(checkout, monkeypatch):
    monkeypatch.setattr(nkcme, "__file__", provenance.json.__file__)
    assert provenance.commit() == "unknown"


def test_a_result_is_written_with_its_command_and_provenance(tmp_path):
    path = provenance.write_result("speed", "python -m benchmarks speed", {"ratio": 2}, tmp_path)
    assert path == tmp_path / "speed.json"
    record = json.loads(path.read_text())
    assert record["command"] == "python -m benchmarks speed"
    assert record["ratio"] == 2
    for name in ("when", "commit", "device", "cores", "python", "versions"):
        assert record[name]
