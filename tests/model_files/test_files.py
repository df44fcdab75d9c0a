"""Models and checkpoints: exact round trips, crash safety, and hostile files."""

import functools
import hashlib
import itertools
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkcme.errors import ModelFileError
from nkcme.model_files import files as persistence
from nkcme.model_files import (
    CheckpointFile,
    check_destination,
    read_checkpoint,
    read_header,
    read_model,
    write_checkpoint,
    write_model,
)
from support.fuzz_model_files import fuzz, write_sample_model
from support.permissions import directory_for_all, unprivileged

OLD = ({"name": "old", "value": 0.1}, {"w": np.zeros(5), "b": np.ones((2, 3), np.float32)})
NEW = ({"name": "new", "value": 0.2}, {"w": np.ones(4), "c": np.arange(6, dtype=np.int32)})
CONFIG, TENSORS = "config.json", "model.safetensors"
STORES = pytest.mark.parametrize(
    ("write", "read"),
    [(write_model, read_model), (write_checkpoint, read_checkpoint)],
    ids=["model", "checkpoint"],
)


def assert_same(found, wanted):
    assert found[0] == wanted[0]
    assert list(found[1]) == sorted(wanted[1])
    for name, array in wanted[1].items():
        assert found[1][name].dtype == array.dtype.newbyteorder("=")
        assert found[1][name].shape == array.shape
        np.testing.assert_array_equal(found[1][name], array)


def is_same(found, wanted):
    try:
        assert_same(found, wanted)
    except AssertionError:
        return False
    return True


def refused(call: Callable, *arguments: object) -> str:
    """The one-line message with which `call` refuses."""
    with pytest.raises(ModelFileError) as caught:
        call(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert "expected" in message
    assert "found" in message
    return message


def reseal(directory: Path, **changes: object) -> None:
    """Change fields of config.json and make every digest right again, as an attacker would."""
    document = json.loads((directory / CONFIG).read_bytes())
    data = (directory / TENSORS).read_bytes()
    document["tensors"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    document |= changes
    del document["config_sha256"]
    text = json.dumps(document, ensure_ascii=False, sort_keys=True).encode()
    document["config_sha256"] = hashlib.sha256(text).hexdigest()
    (directory / CONFIG).write_text(json.dumps(document))


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "model", *OLD)
    return tmp_path / "model"


# Round trips


@STORES
def test_every_kind_of_array_comes_back(write, read, tmp_path):
    arrays = {
        dtype: np.array([[0, 1, 1], [1, 0, 1]], dtype)
        for dtype in ("float32", "float64", "int32", "int64", "uint32", "uint8", "bool")
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
def test_no_arrays_at_all(write, read, tmp_path):
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
def test_any_config_comes_back_exactly(tmp_path_factory, config):
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


def test_a_model_is_two_files_that_people_and_other_tools_can_read(tmp_path):
    from safetensors.numpy import load_file

    write_model(tmp_path / "a" / "b" / "m", {"parameters": {"größe": 0.1}}, OLD[1])
    directory = tmp_path / "a" / "b" / "m"
    assert sorted(os.listdir(directory)) == [CONFIG, TENSORS]
    assert os.listdir(tmp_path / "a" / "b") == ["m"]
    text = (directory / CONFIG).read_text(encoding="utf-8")
    assert '\n    "parameters": {\n      "größe": 0.1\n    }\n' in text
    document = json.loads(text)
    assert (document["format"], document["format_version"]) == ("nkcme-model", 1)
    assert document["library_version"] == persistence.__version__
    assert_same(({}, dict(sorted(load_file(directory / TENSORS).items()))), ({}, OLD[1]))


def test_files_get_the_permissions_of_the_users_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_model(tmp_path / "m", *OLD)
    finally:
        os.umask(before)
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "m" / CONFIG).stat().st_mode & 0o777 == 0o640


def test_the_module_needs_safetensors_only_to_save_and_load():
    script = "import sys; sys.modules['safetensors'] = None; import nkcme.model_files"
    subprocess.run([sys.executable, "-c", script], check=True)


# What is not saved


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
def test_what_the_format_cannot_hold_is_refused_before_a_file_is_touched(
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


def test_nothing_of_the_users_is_overwritten(tmp_path):
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


def test_a_link_in_the_place_of_a_temporary_file_is_not_followed(model, tmp_path):
    (tmp_path / "precious").write_text("mine")
    (model / f"{TENSORS}.new").symlink_to(tmp_path / "precious")
    write_model(model, *NEW)
    assert_same(read_model(model), NEW)
    assert (tmp_path / "precious").read_text() == "mine"


def test_a_model_is_replaced_and_files_beside_it_stay(model):
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
def test_a_path_that_cannot_be_written_or_read_is_our_error(write, read, path, tmp_path):
    (tmp_path / "file").touch()
    refused(write, tmp_path / path, *NEW)
    refused(read, tmp_path / path)


@STORES
def test_a_path_that_is_none_is_our_error(write, read):
    refused(write, None, *NEW)
    refused(read, None)


@STORES
def test_a_read_only_directory_is_our_error(write, read):
    with directory_for_all() as directory:
        directory.chmod(0o555)
        with unprivileged():
            assert "ermission" in refused(write, directory / "it", *NEW)


# Asking before saving


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


def test_the_header_says_which_versions_wrote_a_model(model, tmp_path):
    versions = {"format_version": 1, "library_version": persistence.__version__}
    assert read_header(model) == versions
    assert "found nothing" in refused(read_header, tmp_path / "absent")
    for version in (None, 3, ["9.1"]):
        reseal(model, library_version=version)
        assert "library_version" in refused(read_header, model)
        assert "library_version" in refused(read_model, model)


def test_a_checkpoint_file_is_known_by_its_path(tmp_path):
    assert str(CheckpointFile(tmp_path / "c")) == str(tmp_path / "c")


# Crashes


class PowerCut(BaseException):
    """Not an Exception: no handler of the code under test may tidy up after it."""


STEPS = ("replace", "rename", "fsync", "unlink", "mkdir", "rmdir")


def run_with_crash(monkeypatch, step: int, after: bool, error: BaseException, action) -> bool:
    """Run `action` with `error` at its `step`-th change on disk; False when it ends before."""
    calls = 0

    def crashing(original, name):
        def call(*arguments, **options):
            nonlocal calls
            calls += 1
            if calls == step and not after:
                if name == "fsync" and os.path.isfile(f"/proc/self/fd/{arguments[0]}"):
                    os.truncate(arguments[0], os.fstat(arguments[0]).st_size // 2)
                raise error
            if name != "fsync":  # slow, and without effect on what a test can see
                original(*arguments, **options)
            if calls == step:
                raise error

        return call

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(os, name, crashing(getattr(os, name), name))
        try:
            action()
        except PowerCut:
            return True
        except ModelFileError:
            assert isinstance(error, OSError)
            return True
    return calls >= step  # a failed tidying-up step may be survived


def crashes(monkeypatch, action, prepare, error=None):
    """Crash `action` before and after each of its steps, each time from a fresh state."""
    for after in (False, True):
        step, crashed = 0, True
        while crashed:
            step += 1
            prepare()
            crashed = run_with_crash(monkeypatch, step, after, error or PowerCut(), action)
            if crashed:
                yield step
        assert step > 4


@STORES
def test_a_crash_at_any_step_leaves_the_old_or_the_new(write, read, tmp_path, monkeypatch):
    monkeypatch.setattr(persistence.os, "fsync", lambda descriptor: None)
    outcomes = set()
    path = tmp_path / "it"
    for _ in crashes(monkeypatch, lambda: write(path, *NEW), lambda: write(path, *OLD)):
        found = read(path)
        assert is_same(found, OLD) or is_same(found, NEW)
        outcomes.add(found[0]["name"])
    assert outcomes == {"old", "new"}
    assert os.listdir(tmp_path) == ["it"]


def test_two_crashes_in_a_row_leave_one_whole_model(model, monkeypatch):
    third = ({"name": "third"}, {"w": np.full(7, 3.0)})
    outcomes = set()

    def crash_once(step, after):
        write_model(model, *OLD)
        run_with_crash(monkeypatch, step, after, PowerCut(), lambda: write_model(model, *NEW))

    monkeypatch.setattr(persistence.os, "fsync", lambda descriptor: None)
    for step, after in itertools.product(range(1, 16), (False, True)):
        prepare = functools.partial(crash_once, step, after)
        for _ in crashes(monkeypatch, lambda: write_model(model, *third), prepare):
            found = read_model(model)
            assert any(is_same(found, wanted) for wanted in (OLD, NEW, third))
            outcomes.add(found[0]["name"])
    write_model(model, *NEW)
    assert sorted(os.listdir(model)) == [CONFIG, TENSORS]
    assert outcomes == {"old", "new", "third"}


@pytest.mark.parametrize("exists", [False, True])
def test_a_crashed_first_save_leaves_nothing_or_all_and_the_next_cleans_up(
    exists, tmp_path, monkeypatch
):
    path, count = tmp_path / "it", 0

    def prepare():
        nonlocal count, path
        count += 1
        path = tmp_path / str(count) / "it"
        path.mkdir(parents=True) if exists else path.parent.mkdir()

    monkeypatch.setattr(persistence.os, "fsync", lambda descriptor: None)
    for _ in crashes(monkeypatch, lambda: write_model(path, *NEW), prepare):
        try:
            assert_same(read_model(path), NEW)
        except ModelFileError:
            assert not (path / CONFIG).exists()
        write_model(path, *OLD)
        assert_same(read_model(path), OLD)
        assert os.listdir(path.parent) == ["it"]
        assert sorted(os.listdir(path)) == [CONFIG, TENSORS]


@STORES
def test_a_full_disk_at_any_step_is_our_error_and_keeps_a_whole_model(
    write, read, tmp_path, monkeypatch
):
    monkeypatch.setattr(persistence.os, "fsync", lambda descriptor: None)
    path, full = tmp_path / "it", OSError(28, "No space left on device")
    for _ in crashes(monkeypatch, lambda: write(path, *NEW), lambda: write(path, *OLD), full):
        found = read(path)
        assert is_same(found, OLD) or is_same(found, NEW)
        assert os.listdir(tmp_path) == ["it"]
        if path.is_dir():
            assert sorted(os.listdir(path)) == [CONFIG, TENSORS]


def test_what_a_step_relies_on_is_on_the_disk_before_it(model, monkeypatch):
    """No test can cut the power, so the order of the system calls is the evidence."""
    calls = []

    def named(path):
        name = os.path.basename(os.path.realpath(path))
        return {"model": "directory", "c.new": "checkpoint"}.get(name, name)

    replace = os.replace
    monkeypatch.setattr(
        os, "fsync", lambda fd: calls.append(f"sync {named(f'/proc/self/fd/{fd}')}")
    )
    monkeypatch.setattr(
        os, "replace", lambda old, new: (calls.append(f"move {named(old)}"), replace(old, new))
    )
    write_model(model, *NEW)
    assert calls[-8:] == [
        "sync directory",  # no leftovers
        f"sync {TENSORS}.new",
        f"sync {CONFIG}.new",
        "sync directory",
        f"move {CONFIG}.new",
        "sync directory",
        f"move {TENSORS}.new",
        "sync directory",
    ]
    calls.clear()
    write_checkpoint(model / "c", *NEW)
    assert calls == ["sync checkpoint", "move checkpoint", "sync directory"]


def test_a_mount_without_directory_fsync_is_no_obstacle(tmp_path, monkeypatch):
    def fsync(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    write_model(tmp_path / "m", *NEW)
    assert_same(read_model(tmp_path / "m"), NEW)


def test_a_save_that_ends_while_we_read_is_read_whole(model, monkeypatch):
    read_file, pending = persistence._read_file, [NEW]

    def interleaved(path, *arguments):
        data = read_file(path, *arguments)
        if path.name == CONFIG and pending:
            write_model(model, *pending.pop())
        return data

    monkeypatch.setattr(persistence, "_read_file", interleaved)
    assert_same(read_model(model), NEW)


SAVER = """
import sys, numpy as np
from nkcme.model_files import write_checkpoint, write_model
for i in range(10**9):
    arrays = {"w": np.full(50_000, i), "b": np.full(i % 7, i, np.float32)}
    write_model(sys.argv[1] + "/model", {"i": i}, arrays)
    write_checkpoint(sys.argv[1] + "/checkpoint", {"i": i}, arrays)
    if i == 0:
        print("ready", flush=True)
"""


def test_sigkill_at_a_random_moment_and_reading_meanwhile(tmp_path):
    rng = random.Random(0)

    def check():
        for config, arrays in (
            read_model(tmp_path / "model"),
            read_checkpoint(tmp_path / "checkpoint"),
        ):
            assert arrays["w"].shape == (50_000,)
            assert arrays["b"].shape == (config["i"] % 7,)
            assert (arrays["w"] == config["i"]).all()
            assert (arrays["b"] == config["i"]).all()

    for _ in range(5):
        command = [sys.executable, "-c", SAVER, str(tmp_path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as saver:
            assert saver.stdout is not None
            assert saver.stdout.readline() == b"ready\n"
            end = time.monotonic() + rng.uniform(0, 0.3)
            while time.monotonic() < end:
                check()
            saver.send_signal(signal.SIGKILL)
        check()
    write_model(tmp_path / "model", *NEW)
    assert sorted(os.listdir(tmp_path / "model")) == [CONFIG, TENSORS]


# Hostile files


def test_missing_and_foreign_paths_say_what_was_found(model, tmp_path):
    assert "found nothing" in refused(read_model, tmp_path / "absent")
    assert "found a file" in refused(read_model, model / CONFIG)
    assert "No such file" in refused(read_checkpoint, tmp_path / "absent")
    assert "regular file" in refused(read_checkpoint, model)
    assert "foreign file" in refused(read_checkpoint, model / TENSORS)
    (tmp_path / "empty").mkdir()
    assert CONFIG in refused(read_model, tmp_path / "empty")
    (model / TENSORS).unlink()
    assert TENSORS in refused(read_model, model)


def test_a_newer_version_says_which_and_to_upgrade(model):
    reseal(model, format_version=7, library_version="9.1")
    message = refused(read_model, model)
    assert "found 7 by nkcme '9.1'" in message
    assert "upgrade nkcme" in message


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "pickle"},
        {"format": ["nkcme-model"]},
        {"format_version": 0},
        {"format_version": True},
        {"format_version": "1"},
        {"format_version": None},
        {"format_version": 1.0},
        {"model": []},
        {"model": None},
        {"tensors": []},
        {"tensors": {}},
        {"tensors": {"bytes": "9", "sha256": ""}},
        {"tensors": {"bytes": -1, "sha256": ""}},
        {"tensors": {"bytes": 10**200, "sha256": ""}},
        {"tensors": {"bytes": 1000, "sha256": 3}},
        {"tensors": {"bytes": 1000, "sha256": "\x1b[2J\n"}},
    ],
    ids=str,
)
def test_a_foreign_envelope_is_refused(model, changes):
    reseal(model, **changes)
    assert str(model) in refused(read_model, model)


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"null", b"[]", b"{}", b"{", b"\xff\xfe", b"\x80", b'{"format": "nkcme-model"}'),
        *(b'{"a": NaN}', b'{"a": -Infinity}', b'{"a": 1e999}', b'{"a": 1, "a": 2}'),
        *(b"9" * 10_000, b"[" * 100_000, b'{"a":' * 100_000, b"[" + b"{}," * 2_100_000 + b"1]"),
        b'"' + b'\\"' * 4_000_000,
        json.dumps({"format": "nkcme-model"}).encode("utf-16"),
    ],
    ids=lambda text: repr(text[:30]),
)
def test_json_that_is_not_strict_or_not_ours_is_refused_quickly(model, text):
    (model / CONFIG).write_bytes(text)
    start = time.monotonic()
    assert CONFIG in refused(read_model, model)
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(
    ("found", "replacement", "reason"),
    [
        (b'"model": {', b'"model": {}, "model": {', "twice"),
        (b'"name": "old"', b'"name": "older", "name": "old"', "twice"),
        (b'"value": 0.1', b'"value": 1e999', "non-finite number 1e999"),
        (b'"value": 0.1', b'"value": NaN', "non-finite number NaN"),
        (b'"value": 0.1', b'"value": 0.2', "altered"),
    ],
)
def test_an_edited_config_is_refused(model, found, replacement, reason):
    text = (model / CONFIG).read_bytes()
    assert text.count(found) == 1
    (model / CONFIG).write_bytes(text.replace(found, replacement))
    assert reason in refused(read_model, model)


def test_a_huge_config_is_refused_unread(model):
    os.truncate(model / CONFIG, 100 * 2**30)  # sparse
    assert "at most 16777216 bytes" in refused(read_model, model)


def test_tensors_larger_than_saved_are_refused_unread(model):
    os.truncate(model / TENSORS, 100 * 2**30)
    assert TENSORS in refused(read_model, model)


@STORES
def test_every_truncation_is_refused(write, read, tmp_path):
    write(tmp_path / "it", *NEW)
    for file in [tmp_path / "it"] if (tmp_path / "it").is_file() else (tmp_path / "it").iterdir():
        whole = file.read_bytes()
        for length in range(len(whole)):
            file.write_bytes(whole[:length])
            refused(read, tmp_path / "it")
        file.write_bytes(whole)
    assert_same(read(tmp_path / "it"), NEW)


@STORES
def test_every_flipped_bit_is_refused_or_without_effect(write, read, tmp_path):
    write(tmp_path / "it", *NEW)
    without_effect = 0
    for file in [tmp_path / "it"] if (tmp_path / "it").is_file() else (tmp_path / "it").iterdir():
        whole = bytearray(file.read_bytes())
        for bit in range(8 * len(whole)):
            whole[bit // 8] ^= 1 << bit % 8
            file.write_bytes(whole)
            whole[bit // 8] ^= 1 << bit % 8
            try:
                assert_same(read(tmp_path / "it"), NEW)
                without_effect += 1
            except ModelFileError:
                pass
        file.write_bytes(whole)
    assert without_effect <= 16  # white space for white space


def _entry(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


@pytest.mark.parametrize(
    ("header", "payload"),
    [
        ({"a": _entry(offsets=(0, 2**60))}, bytes(8)),
        ({"a": _entry(offsets=(8, 0))}, bytes(8)),
        ({"a": _entry(offsets=(0, 4))}, bytes(8)),
        ({"a": _entry(offsets=(-8, 0))}, bytes(8)),
        ({"a": _entry(offsets=(4, 12))}, bytes(8)),
        ({"a": _entry(shape=(2**40,))}, bytes(8)),
        ({"a": _entry(shape=(2**62, 4), offsets=(0, 0))}, b""),
        ({"a": _entry(shape=(-2,))}, bytes(8)),
        ({"a": _entry(shape=(0,) * 80, offsets=(0, 0))}, b""),
        ({"a": _entry(shape="22")}, bytes(8)),
        ({"a": _entry(), "b": _entry()}, bytes(8)),
        ({"a": _entry()}, bytes(9)),
        ({"a": _entry("F16", (4,))}, bytes(8)),
        ({"a": _entry("C64", (1,))}, bytes(8)),
        ({"a": _entry("OBJECT", (1,))}, bytes(8)),
        ({"a": _entry(["F32"])}, bytes(8)),
        ({"a": _entry("BOOL", (8,))}, b"\x00\x01\x02" + bytes(5)),
        ({"a": 3}, b""),
        ({"a": {}}, b""),
        ({"__metadata__": {"a": 1}}, b""),
        ([], b""),
        (b'{"a": {"dtype": "F32"}, "a": {"dtype": "F32"}}', b""),
        (b'{"a": ' + b"[" * 100_000, b""),
        (b"\xff" * 20, b""),
        (b"", b""),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_lying_header_behind_a_right_digest_is_refused(model, header, payload):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (model / TENSORS).write_bytes(struct.pack("<Q", len(text)) + text + payload)
    reseal(model)
    assert TENSORS in refused(read_model, model)


@pytest.mark.parametrize("length", [0, 1, 10**8 + 1, 2**31, 2**60, 2**63, 2**64 - 1])
def test_a_lying_header_length_is_refused(model, length):
    data = (model / TENSORS).read_bytes()
    (model / TENSORS).write_bytes(struct.pack("<Q", length) + data[8:])
    reseal(model)
    message = refused(read_model, model)
    assert TENSORS in message
    assert "header of at most" in message or length < len(data)
    for short in (b"", b"\x00" * 7, b"\x00" * 8):
        (model / TENSORS).write_bytes(short)
        reseal(model)
        refused(read_model, model)


@pytest.mark.parametrize("name", [CONFIG, TENSORS])
@pytest.mark.parametrize("kind", ["pipe", "link", "loop", "directory", "device"])
def test_only_regular_files_are_read(model, tmp_path, name, kind):
    os.replace(model / name, tmp_path / "elsewhere")
    if kind == "pipe":
        os.mkfifo(model / name)
    elif kind == "directory":
        (model / name).mkdir()
    else:
        target = {"link": tmp_path / "elsewhere", "loop": name, "device": "/dev/zero"}
        (model / name).symlink_to(target[kind])
    assert name in refused(read_model, model)
    if kind == "pipe":
        refused(read_checkpoint, model / name)


def test_an_error_is_one_line_whatever_the_file_is_called(tmp_path):
    assert "a\\nb" in refused(read_model, tmp_path / "a\nb")


def test_fuzzing_finds_nothing(tmp_path):
    write_sample_model(tmp_path / "sample")
    counts = fuzz(read_model, tmp_path / "sample", n=300, seed=20240607)
    assert counts["loaded"] + counts["refused"] == 300
    assert min(counts["loaded"], counts["refused"]) > 50


def test_reading_costs_little_more_than_the_file(tmp_path):
    # In a process of its own: ru_maxrss would be inherited, VmHWM starts anew.
    script = (
        "import sys, pathlib, safetensors.numpy\n"
        "from nkcme.model_files import read_model\n"
        "def memory(kind):\n"
        "    status = pathlib.Path('/proc/self/status').read_text()\n"
        "    return int(status.split(kind)[1].split()[0])\n"
        "before = memory('VmRSS:'); read_model(sys.argv[1]); print(memory('VmHWM:') - before)"
    )
    write_model(tmp_path / "m", {}, {"a": np.zeros(8 * 2**20), "b": np.ones(2**24, bool)})
    command = [sys.executable, "-c", script, str(tmp_path / "m")]
    kibibytes = int(subprocess.run(command, check=True, capture_output=True).stdout)
    assert 80 * 1024 < kibibytes < 2.5 * 80 * 1024


def test_a_small_file_cannot_cost_much_memory(tmp_path):
    """The worst that the bounds let through, in JSON and in tensors."""
    write_sample_model(tmp_path / "sample")
    directory = tmp_path / "sample"
    (directory / CONFIG).write_bytes(b"[" + b"{}," * 490_000 + b"1]")
    refused(read_model, directory)
    tracemalloc.start()
    try:
        refused(read_model, directory)
        assert tracemalloc.get_traced_memory()[1] < 200 * 2**20
    finally:
        tracemalloc.stop()
    refused(write_model, tmp_path / "many", {}, {str(i): np.zeros(0) for i in range(10_000)})
    arrays = {str(i): np.zeros(0) for i in range(9_999)}
    write_model(tmp_path / "many", {}, arrays)
    assert len(read_model(tmp_path / "many")[1]) == 9_999
