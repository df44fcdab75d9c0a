"""Damaged and hostile files are refused, at little cost."""

import json
import os
import random
import struct
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest

from nkcme.errors import ModelFileError
from nkcme.model_files import (
    read_checkpoint,
    read_model,
    write_model,
)
from support.fuzz_model_files import fuzz, write_sample_model
from support.stored_models import (
    CONFIG,
    NEW,
    STORES,
    TENSORS,
    assert_same,
    refused,
    reseal,
)


def test_the_error_for_a_missing_or_foreign_path_names_what_was_found(model, tmp_path):
    assert "found nothing" in refused(read_model, tmp_path / "absent")
    assert "found a file" in refused(read_model, model / CONFIG)
    assert "No such file" in refused(read_checkpoint, tmp_path / "absent")
    assert "regular file" in refused(read_checkpoint, model)
    assert "foreign file" in refused(read_checkpoint, model / TENSORS)
    (tmp_path / "empty").mkdir()
    assert CONFIG in refused(read_model, tmp_path / "empty")
    (model / TENSORS).unlink()
    assert TENSORS in refused(read_model, model)


def test_the_error_for_a_newer_version_advises_to_upgrade(model):
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
def test_json_that_is_not_strict_or_foreign_is_refused_quickly(model, text):
    (model / CONFIG).write_bytes(text)
    start = time.process_time()
    assert CONFIG in refused(read_model, model)
    assert time.process_time() - start < 30  # minutes where the cost is quadratic


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
def test_a_flipped_bit_is_refused_or_without_effect(write, read, tmp_path):
    write(tmp_path / "it", *NEW)
    without_effect, rng = 0, random.Random(0)
    for file in [tmp_path / "it"] if (tmp_path / "it").is_file() else (tmp_path / "it").iterdir():
        whole = bytearray(file.read_bytes())
        for i in range(len(whole)):
            flip = 1 << rng.randrange(8)
            whole[i] ^= flip
            file.write_bytes(whole)
            whole[i] ^= flip
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
def test_a_false_header_with_a_correct_digest_is_refused(model, header, payload):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (model / TENSORS).write_bytes(struct.pack("<Q", len(text)) + text + payload)
    reseal(model)
    assert TENSORS in refused(read_model, model)


@pytest.mark.parametrize("length", [0, 1, 10**8 + 1, 2**31, 2**60, 2**63, 2**64 - 1])
def test_a_false_header_length_is_refused(model, length):
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


def test_a_line_break_in_a_path_stays_on_one_line(tmp_path):
    assert "a\\nb" in refused(read_model, tmp_path / "a\nb")


def test_mutated_files_load_or_are_refused(tmp_path):
    write_sample_model(tmp_path / "sample")
    counts = fuzz(read_model, tmp_path / "sample", n=300, seed=20240607)
    assert counts["loaded"] + counts["refused"] == 300
    assert min(counts["loaded"], counts["refused"]) > 50


def test_reading_costs_little_more_than_the_file(tmp_path):
    # In a new process, where VmHWM starts at zero.
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
    """The most expensive files within the limits, in JSON and in tensors."""
    write_sample_model(tmp_path / "sample")
    directory = tmp_path / "sample"
    (directory / CONFIG).write_bytes(b"[" + b"{}," * 490_000 + b"1]")
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
