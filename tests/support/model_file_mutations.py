"""Mutations of a valid model directory, half of which recompute the digests.

Each gets the two valid files and writes a mutated model to ``target``.
"""

import copy
import hashlib
import json
import os
import random
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CONFIG, TENSORS = "config.json", "model.safetensors"
Files = dict[str, bytes]

HOSTILE_VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        1,
        2,
        255,
        2**31,
        2**32,
        2**63 - 1,
        2**63,
        2**64,
        10**18,
        -(10**18),
    ),
    *(10**30, 10**299, 0.5, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf")),
    *("", "x", "NaN", "../../etc/passwd", "\x00", "\ud800", "é" * 1000, "__class__", "os.system"),
    *([], {}, [0], [[]], {"": None}, [None] * 1000, ["x"] * 1000, [1e308] * 3, list(range(500))),
    json.loads("[" * 50 + "]" * 50),
    json.loads('{"a":' * 40 + "1" + "}" * 40),
]
DTYPES = ["F32", "F64", "I32", "I64", "U32", "U8", "BOOL", "F16", "BF16", "U64", "C64", "F8_E4M3"]
DTYPES += ["F4", "OBJ", "", "f32"]
HUGE = [-1, 0, 1, 7, 2**20, 2**31, 2**32, 2**40, 2**60, 2**62, 2**63, 2**64 - 1, 2**64, 10**30]


def damaged_bytes(rng: random.Random, files: Files, target: Path) -> None:
    name = rng.choice(list(files))
    files[name] = _damage(rng, files[name], rng.choice(list(files.values())))
    _write(files, target)


def damaged_tensors_resealed(rng: random.Random, files: Files, target: Path) -> None:
    files[TENSORS] = _damage(rng, files[TENSORS], files[CONFIG])
    _write(_reseal(files), target)


def damaged_both(rng: random.Random, files: Files, target: Path) -> None:
    _write({name: _damage(rng, data, data[::-1]) for name, data in files.items()}, target)


def files_moved(rng: random.Random, files: Files, target: Path) -> None:
    """Swapped, missing, empty, duplicated, or something that is no regular file."""
    name, other = rng.sample(list(files), 2)
    kind = rng.choice(["swap", "same", "missing", "empty", "new", "link", "pipe", "directory"])
    if kind == "swap":
        files = {name: files[other], other: files[name]}
    elif kind == "same":
        files[name] = files[other]
    elif kind == "empty":
        files[name] = b""
    elif kind == "new":
        new = files[rng.choice([name, other])]
        files[f"{name}.new"] = rng.choice([new, _damage(rng, new, files[other])])
        if rng.random() < 0.5:
            files[name] = _damage(rng, files[name], files[other])
    else:
        data = files.pop(name)
        if kind == "link":
            (target.parent / "elsewhere").write_bytes(data)
            (target / name).symlink_to(rng.choice([target.parent / "elsewhere", "/dev/zero", name]))
        elif kind == "pipe":
            os.mkfifo(target / name)
        elif kind == "directory":
            (target / name).mkdir()
    _write(files, target)


def header_length(rng: random.Random, files: Files, target: Path) -> None:
    data = files[TENSORS]
    length = rng.choice([*(v for v in HUGE if 0 <= v < 2**64), rng.randrange(2 * len(data))])
    files[TENSORS] = struct.pack("<Q", length) + data[8:]
    _write(_reseal(files) if rng.random() < 0.8 else files, target)


def config_values_resealed(rng: random.Random, files: Files, target: Path) -> None:
    """One to three values of the caller's config replaced, removed, renamed or repeated."""
    document = json.loads(files[CONFIG])
    for _ in range(rng.randint(1, 3)):
        _edit(rng, document["model"])
    _write(_reseal(files, document), target)


def envelope_values_resealed(rng: random.Random, files: Files, target: Path) -> None:
    """The format, its version and the tensors' digest edited."""
    document = json.loads(files[CONFIG])
    key = rng.choice([*document, "tensors/bytes", "tensors/sha256", "tensors/extra"])
    holder = document["tensors"] if "/" in key else document
    holder[key.rpartition("/")[2]] = rng.choice([*HUGE, *HOSTILE_VALUES])
    if rng.random() < 0.2:
        document = rng.choice([[document], document["model"], None, 3, "model"])
    if isinstance(document, dict):
        document["config_sha256"] = _config_digest(document)
    _write(files | {CONFIG: json.dumps(document).encode()}, target)


def config_text(rng: random.Random, files: Files, target: Path) -> None:
    """JSON that a lenient or recursive parser would accept, or choke on."""
    text = files[CONFIG].decode()
    deep = rng.choice([60, 100, 10_000, 1_000_000])
    bad = rng.choice(
        [
            *(
                "NaN",
                "-Infinity",
                "1e999",
                "9" * 5000,
                "0x10",
                "1_000",
                "'x'",
                '"\\ud800"',
                '"\x00"',
            ),
            *("[" * deep, "[" * deep + "]" * deep, '{"a":' * deep + "1" + "}" * deep),
            *('"' + '\\"' * deep, "[" + "{}," * deep + "{}]", '{"a":1,"a":2}', "\ufeff1", "/**/1"),
        ]
    )
    at = rng.choice([i for i, character in enumerate(text) if character == ":"])
    end = rng.choice([i for i in range(at, len(text)) if text[i] in ",}\n"])
    mutated = rng.choice([text[: at + 1] + bad + text[end:], bad, text + bad, bad + text])
    encoding = rng.choice(["utf-8"] * 6 + ["utf-16", "utf-32", "utf-8-sig"])
    _write(files | {CONFIG: mutated.encode(encoding)}, target)


def header_entries_resealed(rng: random.Random, files: Files, target: Path) -> None:
    """Tensors with a false dtype, shape, offsets, name or number."""
    header, payload = _split(files[TENSORS])
    for _ in range(rng.randint(1, 2)):
        name = rng.choice(list(header) or ["a"])
        entry = header.setdefault(name, {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]})
        kind = rng.choice(["dtype", "shape", "reshape", "offsets", "name", "copy", "drop", "any"])
        if not isinstance(entry, dict) or kind == "any":
            header[name] = rng.choice(HOSTILE_VALUES)
        elif kind == "dtype":
            entry["dtype"] = rng.choice(DTYPES)
        elif kind == "shape":
            entry["shape"] = [rng.choice(HUGE) for _ in range(rng.choice([0, 1, 2, 3, 40, 100]))]
        elif kind == "reshape" and isinstance(entry.get("shape"), list):
            entry["shape"] = rng.choice([entry["shape"][::-1], [1, *entry["shape"]], [0, 2**40]])
        elif kind == "offsets":
            ends = [*HUGE, rng.randrange(len(payload) + 1), rng.randrange(len(payload) + 1)]
            entry["data_offsets"] = [rng.choice(ends) for _ in range(rng.choice([2, 2, 2, 0, 3]))]
        elif kind == "name":
            header[rng.choice(["", "__metadata__", "x" * 10_000, "\ud800", name + " "])] = entry
            if rng.random() < 0.7:
                del header[name]
        elif kind == "copy":
            header |= {f"{name}-{i}": entry for i in range(rng.choice([1, 10, 3000]))}
        elif kind == "drop":
            del header[name]
    encoded = json.dumps(header)
    if rng.random() < 0.1:  # the same key twice
        encoded = encoded[:-1] + "," + encoded[1:]
    _write(_reseal(files | {TENSORS: _join(encoded.encode(), payload)}), target)


def consistent_tensors_resealed(rng: random.Random, files: Files, target: Path) -> None:
    """A valid safetensors file, but with arrays dropped, resized, retyped or full of NaN."""
    header, payload = _split(files[TENSORS])
    arrays = {
        name: (entry["dtype"], entry["shape"], payload[slice(*entry["data_offsets"])])
        for name, entry in header.items()
    }
    for name in rng.sample(sorted(arrays), rng.randint(1, min(3, len(arrays)))):
        dtype, shape, data = arrays[name]
        kind = rng.choice(["drop", "empty", "bytes", "nan", "inf", "huge", "scalar", "longer"])
        if kind == "drop":
            del arrays[name]
        elif kind == "empty":
            arrays[name] = (dtype, [0, *shape], b"")
        elif kind == "bytes":
            arrays[name] = ("U8", [len(data)], data)
        elif kind == "scalar":
            arrays[name] = ("F32", [], struct.pack("<f", rng.choice([0.0, -1.0, 1e38])))
        elif kind == "longer":
            arrays[name] = (dtype, [2, *shape], data * 2)
        elif dtype in ("F32", "F64"):
            value = {"nan": float("nan"), "inf": float("-inf"), "huge": 3e38}[kind]
            pattern = struct.pack("<f" if dtype == "F32" else "<d", value)
            arrays[name] = (dtype, shape, pattern * (len(data) // len(pattern)))
        else:
            arrays[name] = (dtype, shape, b"\xff" * len(data))
    header, body = {}, b""
    for name, (dtype, shape, data) in arrays.items():
        offsets = [len(body), len(body) + len(data)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        body += data
    _write(_reseal(files | {TENSORS: _join(json.dumps(header).encode(), body)}), target)


MUTATIONS = [
    damaged_bytes,
    damaged_tensors_resealed,
    damaged_both,
    files_moved,
    header_length,
    config_values_resealed,
    config_values_resealed,
    config_values_resealed,
    envelope_values_resealed,
    config_text,
    header_entries_resealed,
    header_entries_resealed,
    consistent_tensors_resealed,
    consistent_tensors_resealed,
]


def _damage(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Flip, cut, insert, overwrite or splice bytes."""
    if not data:
        return b"\x00"
    start, stop = sorted(rng.choices(range(len(data) + 1), k=2))
    kind = rng.choice(["flip", "flip", "cut", "remove", "insert", "overwrite", "splice", "append"])
    if kind == "flip":
        flipped = bytearray(data)
        for _ in range(rng.choice([1, 1, 1, 8, 100])):
            flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        return bytes(flipped)
    if kind == "cut":
        return data[:start]
    if kind == "remove":
        return data[:start] + data[stop:]
    if kind == "insert":
        return data[:start] + rng.randbytes(rng.choice([1, 8, 1000])) + data[start:]
    if kind == "overwrite":
        stop = min(stop, start + 64)
        return data[:start] + rng.choice([bytes, rng.randbytes])(stop - start) + data[stop:]
    if kind == "splice":
        return data[:start] + other[rng.randrange(len(other) + 1) :]
    return data + rng.choice([data, other, b"\x00", rng.randbytes(100)])


def _edit(rng: random.Random, tree: dict[str, Any]) -> None:
    """Edit one random place of a JSON tree."""
    holders: list[Any] = [node for node in _nodes(tree) if isinstance(node, dict | list) and node]
    if not holders:
        tree["x"] = rng.choice(HOSTILE_VALUES)
        return
    holder = rng.choice(holders)
    key: Any = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    kind = rng.choice(["replace", "replace", "huge", "near", "wrap", "remove", "repeat", "move"])
    if kind == "remove":
        del holder[key]
    elif kind == "repeat" and isinstance(holder, list):
        holder.extend([copy.deepcopy(holder[key])] * rng.choice([1, 1000]))
    elif kind == "move":
        holder[key] = copy.deepcopy(rng.choice(list(_nodes(tree))))
    elif kind == "wrap":
        holder[key] = rng.choice([[holder[key]], {"a": holder[key]}, str(holder[key])])
    elif kind == "near" and isinstance(holder[key], int | float):
        holder[key] = rng.choice([-1, 2, 1000]) * holder[key] + rng.choice([-1, 0, 1])
    elif kind == "huge":
        holder[key] = rng.choice(HUGE)
    else:
        holder[key] = copy.deepcopy(rng.choice(HOSTILE_VALUES))


def _nodes(tree: Any) -> Iterable[Any]:
    yield tree
    if isinstance(tree, dict | list):
        for child in tree.values() if isinstance(tree, dict) else tree:
            yield from _nodes(child)


def _config_digest(document: dict[str, Any]) -> str:
    """The format's digest of a config, written again here: a second opinion on what it is."""
    content = {key: value for key, value in document.items() if key != "config_sha256"}
    text = json.dumps(content, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()


def _reseal(files: Files, document: dict[str, Any] | None = None) -> Files:
    """Make the digests in config.json right for mutated content."""
    document = json.loads(files[CONFIG]) if document is None else document
    data = files[TENSORS]
    document["tensors"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    document["config_sha256"] = _config_digest(document)
    return files | {CONFIG: json.dumps(document).encode()}


def _split(data: bytes) -> tuple[dict[str, Any], bytes]:
    end = 8 + int.from_bytes(data[:8], "little")
    return json.loads(data[8:end]), data[end:]


def _join(header: bytes, payload: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + payload


def _write(files: Files, target: Path) -> None:
    for name, data in files.items():
        (target / name).write_bytes(data)
