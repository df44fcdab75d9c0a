"""Two tiny UCI data sets, and a local server that publishes them, with faults on request."""

import hashlib
import io
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

from nkcme.datasets import download
from nkcme.datasets.uci_formats import FoldedSet, OrderedSet
from nkcme.datasets.uci_sets import UCI


def _text(numbers):
    return "".join(f"{number}\n" for number in numbers).encode()


def _folded_files():
    """12 rows of five columns: 0, 1 and 3 are features and 2 is the target; two folds."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(12, 5)).round(3)
    files = {
        "data.txt": "\n".join("  ".join(map(str, row)) for row in table).encode() + b"\n",
        "index_features.txt": _text([0, 1, 3]),
        "index_target.txt": _text([2]),
        "n_splits.txt": _text([2]),
    }
    for k in range(2):
        rows = rng.permutation(12)
        files[f"index_train_{k}.txt"] = _text(rows[:9])
        files[f"index_test_{k}.txt"] = _text(rows[9:])
    return table, files


TABLE, FOLDED_FILES = _folded_files()
FOLDED = FoldedSet(
    "tiny",
    "tinySet",
    n_rows=12,
    n_features=3,
    n_folds=2,
    hashes={name: hashlib.sha256(text).hexdigest() for name, text in FOLDED_FILES.items()},
)

ORDERED = OrderedSet(
    "tinyyear",
    "TinyYear",
    n_rows=10,
    n_features=4,
    n_folds=1,
    file="TinyYear.txt",
    archive="tinyyear.zip",
    n_train=7,
)
YEARS = np.column_stack(
    [np.arange(2001, 2011), np.random.default_rng(1).normal(size=(10, 4)).round(5)]
)


def year_text(rows=YEARS):
    return "".join(f"{int(r[0])}," + ",".join(map(str, r[1:])) + "\n" for r in rows).encode()


def zipped(text, name="TinyYear.txt"):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
    return packed.getvalue()


#: Bytes written at a time; fewer than in the library, because the data sets are tiny.
CHUNK = 16


def kept_of_half(size):
    """The bytes that are kept when a server sends half of a file."""
    return size // 2 // CHUNK * CHUNK


def register():
    """Add the tiny data sets to the registry, in a new process."""
    UCI.update({FOLDED.name: FOLDED, ORDERED.name: ORDERED})
    download._CHUNK = CHUNK


def write_folded(home):
    directory = FOLDED.directory(home)
    directory.mkdir(parents=True)
    for name, text in FOLDED_FILES.items():
        (directory / name).write_bytes(text)
    return directory


def files_in(directory):
    """The names of all files and directories below a directory."""
    return sorted(path.name for path in directory.rglob("*")) if directory.exists() else []


def check_tiny(table):
    """The table is that of the tiny data set."""
    assert (TABLE[:, [0, 1, 3]] == table.X).all()
    assert (table.y == TABLE[:, 2]).all()
    assert table.n_folds == 2
    for k in range(2):
        train, test = table.fold(k)
        assert train.tolist() == list(map(int, FOLDED_FILES[f"index_train_{k}.txt"].split()))
        assert test.tolist() == list(map(int, FOLDED_FILES[f"index_test_{k}.txt"].split()))


class Mirror(ThreadingHTTPServer):
    """Serves ``files``; ``faults`` holds the fault of a path, ``sent`` what was sent.

    Faults: ``truncated`` (half of it, then the connection ends), ``stalled`` (half of it, then
    nothing until ``go_on`` is set), ``late`` (all of it then), ``silent`` (nothing even then).
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.files = {f"/tinySet/data/{name}": text for name, text in FOLDED_FILES.items()}
        self.files["/tinyyear.zip"] = zipped(year_text())
        self.faults = {}
        self.ranges = True
        self.sent = []  # (path, Range header, bytes of the body)
        self.go_on = threading.Event()
        self.n_held = 0  # requests that waited for it, or still do

    def requests_for(self, path):
        return [(wanted, n) for at, wanted, n in self.sent if at == path]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Mirror

    def do_GET(self):
        body = self.server.files.get(self.path)
        fault = self.server.faults.get(self.path)
        wanted = self.headers.get("Range")
        assert self.headers["Accept-Encoding"] == "identity"
        if fault in ("late", "silent"):
            self.server.n_held += 1
            self.server.go_on.wait()
            self.close_connection = True
        if fault == "silent":
            return
        if body is None:
            self._head(404, 0)
            self.server.sent.append((self.path, wanted, 0))
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
        if wanted and self.server.ranges and start >= len(body):
            self._head(416, 0, f"bytes */{len(body)}")
            self.server.sent.append((self.path, wanted, 0))
            return
        if wanted and self.server.ranges:
            rest = body[start:]
            self._head(206, len(rest), f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            rest = body
            self._head(200, len(rest))
        part = rest[: len(rest) // 2] if fault in ("truncated", "stalled") else rest
        self.server.sent.append((self.path, wanted, len(part)))
        self.wfile.write(part)
        self.wfile.flush()
        if fault == "stalled":
            self.server.go_on.wait()
        self.close_connection = bool(fault)

    def _head(self, status, length, content_range=None):
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()

    def log_message(self, *arguments):
        """Write nothing to standard error, which tests read."""


@contextmanager
def serving():
    server = Mirror()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()
