"""A crash at any moment leaves the old model or the new one."""

import functools
import itertools
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from nkcme.errors import ModelFileError
from nkcme.model_files import (
    model_directory,
    read_checkpoint,
    read_model,
    write_checkpoint,
    write_model,
)
from support.stored_models import (
    CONFIG,
    NEW,
    OLD,
    STORES,
    TENSORS,
    assert_same,
    is_same,
)


class PowerCut(BaseException):
    """Not an Exception, so no handler of the code under test can clean up after it."""


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
            if name != "fsync":  # slow, and without an effect that a test can see
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
    return calls >= step  # a failed clean-up step may raise nothing


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
    found_names = set()
    path = tmp_path / "it"
    for _ in crashes(monkeypatch, lambda: write(path, *NEW), lambda: write(path, *OLD)):
        found = read(path)
        assert is_same(found, OLD) or is_same(found, NEW)
        found_names.add(found[0]["name"])
    assert found_names == {"old", "new"}
    assert os.listdir(tmp_path) == ["it"]


def test_two_crashes_in_a_row_leave_one_whole_model(model, monkeypatch):
    third = ({"name": "third"}, {"w": np.full(7, 3.0)})
    found_names = set()

    def crash_once(step, after):
        write_model(model, *OLD)
        run_with_crash(monkeypatch, step, after, PowerCut(), lambda: write_model(model, *NEW))

    for step, after in itertools.product(range(1, 16), (False, True)):
        prepare = functools.partial(crash_once, step, after)
        for _ in crashes(monkeypatch, lambda: write_model(model, *third), prepare):
            found = read_model(model)
            assert any(is_same(found, wanted) for wanted in (OLD, NEW, third))
            found_names.add(found[0]["name"])
    write_model(model, *NEW)
    assert sorted(os.listdir(model)) == [CONFIG, TENSORS]
    assert found_names == {"old", "new", "third"}


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
def test_a_full_disk_at_any_step_is_refused_and_keeps_a_whole_model(
    write, read, tmp_path, monkeypatch
):
    path, full = tmp_path / "it", OSError(28, "No space left on device")
    for _ in crashes(monkeypatch, lambda: write(path, *NEW), lambda: write(path, *OLD), full):
        found = read(path)
        assert is_same(found, OLD) or is_same(found, NEW)
        assert os.listdir(tmp_path) == ["it"]
        if path.is_dir():
            assert sorted(os.listdir(path)) == [CONFIG, TENSORS]


def test_files_are_flushed_before_the_steps_that_rely_on_them(model, monkeypatch):
    """A test cannot cut the power, so it checks the order of the system calls."""
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


def test_a_mount_without_fsync_of_directories_is_accepted(tmp_path, monkeypatch):
    def fsync(descriptor):
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    write_model(tmp_path / "m", *NEW)
    assert_same(read_model(tmp_path / "m"), NEW)


def test_a_save_during_a_read_gives_the_new_model(model, monkeypatch):
    read_file, pending = model_directory.read_file, [NEW]

    def interleaved(path, *arguments):
        data = read_file(path, *arguments)
        if path.name == CONFIG and pending:
            write_model(model, *pending.pop())
        return data

    monkeypatch.setattr(model_directory, "read_file", interleaved)
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
