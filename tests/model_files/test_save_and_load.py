"""Models and checkpoints: exact round trips, and destinations that are refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkcme._version import __version__
from nkcme.model_files import (
    CheckpointFile,
    check_destination,
    read_checkpoint,
    read_header,
    read_model,
    write_checkpoint,
    write_model,
)
from support.permissions import directory_for_all, unprivileged
from support.stored_models import (
    CONFIG,
    NEW,
    OLD,
    STORES,
    TENSORS,
    assert_same,
    refused,
    reseal,
)


@STORES
def test_every_kind_of_array_is_restored(write, read, tmp_path):
    arrays = {
        dtype: np.array([[0, 1, 1], [1, 0, 1]], dtype)
        for dtype in ("float32", "float64", "int32", "int64", "int16", "uint32", "uint8", "bool")
    }
    arrays |= {
        "": np.array(3.5),
        "scalar flag": np.array(True),
        "empty": np.zeros((0, 3), np.float32),
        "big-endian / é\n\u2028": np.arange(5, dtype=">i4"),
        "transposed": np.arange(6.0).reshape(2, 3).T,
        "strided": np.arange(10, dtype=np.float32)[::-3],
        "special": np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]),
    }
    write(tmp_path / "it", {}, arrays)
    found = read(tmp_path / "it")
    assert_same(found, ({}, arrays))
    assert found[1]["special"].tobytes() == arrays["special"].tobytes()
    assert all(array.flags.writeable and array.flags.aligned for array in found[1].values())


@STORES
def test_a_config_without_arrays_is_restored(write, read, tmp_path):
    write(tmp_path / "it", {"a": 1}, {})
    assert read(tmp_path / "it") == ({"a": 1}, {})


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**290), 10**290)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('aé"\\\n/'), inner),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(config=st.dictionaries(st.text('aé"\\\n/'), json_values, max_size=5))
def test_any_config_is_restored_exactly(tmp_path_factory, config):
    directory = tmp_path_factory.mktemp("any")
    for write, read in ((write_model, read_model), (write_checkpoint, read_checkpoint)):
        write(directory / write.__name__, config, {})
        assert repr(read(directory / write.__name__)[0]) == repr(_sorted_keys(config))


def _sorted_keys(value):
    if isinstance(value, dict):
        return {key: _sorted_keys(value[key]) for key in sorted(value)}
    return [_sorted_keys(item) for item in value] if isinstance(value, list) else value


def test_a_lone_surrogate_numpy_floats_and_tuples_are_accepted(tmp_path):
    write_model(tmp_path / "m", {"a": "\ud800", "b": np.float64(0.1), "c": (1, 2)}, {})
    assert read_model(tmp_path / "m")[0] == {"a": "\ud800", "b": 0.1, "c": [1, 2]}


def test_a_model_is_two_files_that_other_tools_can_read(tmp_path):
    from safetensors.numpy import load_file

    write_model(tmp_path / "a" / "b" / "m", {"parameters": {"größe": 0.1}}, OLD[1])
    directory = tmp_path / "a" / "b" / "m"
    assert sorted(os.listdir(directory)) == [CONFIG, TENSORS]
    assert os.listdir(tmp_path / "a" / "b") == ["m"]
    text = (directory / CONFIG).read_text(encoding="utf-8")
    assert '\n    "parameters": {\n      "größe": 0.1\n    }\n' in text
    document = json.loads(text)
    assert (document["format"], document["format_version"]) == ("nkcme-model", 1)
    assert document["library_version"] == __version__
    assert_same(({}, dict(sorted(load_file(directory / TENSORS).items()))), ({}, OLD[1]))


def test_files_get_the_permissions_of_the_users_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_model(tmp_path / "m", *OLD)
    finally:
        os.umask(before)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "m" / CONFIG).stat().st_mode & 0o777 == 0o640


def test_the_package_imports_without_safetensors():
    script = "import sys; sys.modules['safetensors'] = None; import nkcme.model_files"
    subprocess.run([sys.executable, "-c", script], check=True)


# --- content and destinations that are refused


@STORES
@pytest.mark.parametrize(
    ("config", "arrays", "reason"),
    [
        ({"a": float("nan")}, {}, "JSON"),
        ({"a": float("inf")}, {}, "JSON"),
        ({"a": object()}, {}, "object"),
        ({"a": np.float32(1)}, {}, "float32"),
        ({1: 2}, {}, "the key 1"),
        ({"a": [({None: 2},)]}, {}, "the key None"),
        ({}, {"a": np.array([None])}, "dtype object"),
        ({"a": 10**301}, {}, "digits"),
        ({"a": "x" * (16 * 2**20)}, {}, "16777216 bytes"),
        ({"a": json.loads("[" * 64 + "]" * 64)}, {}, "levels"),
        ([1], {}, "TypeError"),
        ({}, {"a": np.array(["text"])}, "dtype <U4"),
        ({}, {"a": np.zeros(2, np.complex64)}, "complex64"),
        ({}, {"a": np.zeros(2, np.float16)}, "float16"),
        ({}, {"a": np.zeros(2, "m8[s]")}, "timedelta"),
        ({}, {"__metadata__": np.zeros(2)}, "__metadata__"),
        ({}, {"\ud800": np.zeros(2)}, "surrogates"),
        ({}, {3: np.zeros(2)}, "named 3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_content_that_the_format_cannot_hold_is_refused_before_writing(
    write, read, config, arrays, reason, tmp_path
):
    message = refused(write, tmp_path / "it", config, arrays)
    assert reason in message
    assert str(tmp_path / "it") in message
    assert os.listdir(tmp_path) == []


def test_a_config_that_contains_itself_is_refused(tmp_path):
    config: dict = {}
    config["self"] = config
    assert "recursion" in refused(write_model, tmp_path / "m", config, {})


def test_other_files_are_never_overwritten(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert "nothing was overwritten" in refused(write_model, tmp_path, *NEW)
    assert "found a file" in refused(write_model, tmp_path / "notes.txt", *NEW)
    assert "nothing was overwritten" in refused(write_checkpoint, tmp_path / "notes.txt", *NEW)
    assert "regular file" in refused(write_checkpoint, tmp_path, *NEW)
    (tmp_path / CONFIG).write_text('{"format": "of another program"}')
    assert "nothing was overwritten" in refused(write_model, tmp_path, *NEW)
    (tmp_path / CONFIG).write_text("[1]")
    assert "nothing was overwritten" in refused(write_model, tmp_path, *NEW)
    assert (tmp_path / CONFIG).read_text() == "[1]"
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == [CONFIG, "notes.txt"]


def test_a_link_at_the_path_of_a_temporary_file_is_not_followed(model, tmp_path):
    (tmp_path / "precious").write_text("mine")
    (model / f"{TENSORS}.new").symlink_to(tmp_path / "precious")
    write_model(model, *NEW)
    assert_same(read_model(model), NEW)
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_model_is_replaced_and_other_files_in_its_directory_are_kept(model):
    (model / "report.html").write_text("mine")
    write_model(str(model), *NEW)
    assert_same(read_model(str(model)), NEW)
    assert sorted(os.listdir(model)) == [CONFIG, TENSORS, "report.html"]


def test_a_damaged_model_can_be_replaced_and_an_empty_directory_filled(model, tmp_path):
    (model / TENSORS).write_bytes(b"")
    write_model(model, *NEW)
    assert_same(read_model(model), NEW)
    (tmp_path / "empty").mkdir()
    write_model(tmp_path / "empty", *NEW)
    assert_same(read_model(tmp_path / "empty"), NEW)


def test_a_checkpoint_replaces_a_checkpoint_or_an_empty_file(tmp_path):
    (tmp_path / "c").touch()
    for contents in (OLD, NEW):
        write_checkpoint(tmp_path / "c", *contents)
        assert_same(read_checkpoint(tmp_path / "c"), contents)
    assert os.listdir(tmp_path) == ["c"]


@STORES
@pytest.mark.parametrize("path", ["file/below", "\0", "x" * 300, "/proc/nkcme", "/"])
def test_a_path_that_cannot_be_written_or_read_is_refused(write, read, path, tmp_path):
    (tmp_path / "file").touch()
    message = refused(write, tmp_path / path, *NEW)
    assert "change the config" not in message  # the path is at fault, not the content
    refused(read, tmp_path / path)


@STORES
def test_a_path_of_none_is_refused(write, read):
    refused(write, None, *NEW)
    refused(read, None)


@STORES
def test_a_read_only_directory_is_refused(write, read):
    with directory_for_all() as directory:
        directory.chmod(0o555)
        with unprivileged():
            assert "ermission" in refused(write, directory / "it", *NEW)


def everything_below(directory: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
    }


@pytest.mark.parametrize(
    ("path", "fine"),
    [
        *(("new", True), ("new/and/deep", True), ("empty", True), ("model", True), ("link", True)),
        *(("file", False), ("file/below", False), ("full", False), ("dangling", False)),
        *(("\0", False), ("x" * 300, False), ("new/" + "x" * 250, False)),
        *(("/proc/nkcme", False), ("/", False), ("busy", False)),
    ],
)
def test_a_destination_is_refused_exactly_when_a_save_there_would_be(path, fine, tmp_path):
    (tmp_path / "file").touch()
    for name in ("full", "empty", ".busy.nkcme-partial"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "thesis").touch()
    (tmp_path / ".busy.nkcme-partial" / "thesis").touch()
    write_model(tmp_path / "model", *OLD)
    (tmp_path / "link").symlink_to(tmp_path / "model")
    (tmp_path / "dangling").symlink_to(tmp_path / "nothing")
    before = everything_below(tmp_path)
    if fine:
        check_destination(tmp_path / path)
        assert everything_below(tmp_path) == before
        write_model(tmp_path / path, *NEW)
        assert_same(read_model(tmp_path / path), NEW)
    else:
        message = refused(check_destination, tmp_path / path)
        assert everything_below(tmp_path) == before
        assert message == refused(write_model, tmp_path / path, *NEW)


def test_a_destination_without_permission_is_refused():
    with directory_for_all() as directory:
        write_model(directory / "model", *OLD)
        for locked, destination in (("model", "model"), (".", "new")):
            (directory / locked).chmod(0o555)
            with unprivileged():
                assert "ermission" in refused(check_destination, directory / destination)
                assert "ermission" in refused(write_model, directory / destination, *NEW)


def test_the_header_holds_the_versions_that_wrote_a_model(model, tmp_path):
    versions = {"format_version": 1, "library_version": __version__}
    assert read_header(model) == versions
    assert "found nothing" in refused(read_header, tmp_path / "absent")
    for version in (None, 3, ["9.1"]):
        reseal(model, library_version=version)
        assert "library_version" in refused(read_header, model)
        assert "library_version" in refused(read_model, model)


def test_the_text_of_a_checkpoint_file_is_its_path(tmp_path):
    assert str(CheckpointFile(tmp_path / "c")) == str(tmp_path / "c")
