"""What the tests of UCI data sets share: tiny data sets, an empty cache, and a server."""

import pytest

from nkcme.datasets import UCI
from support.uci_mirror import CHUNK, FOLDED, ORDERED, serving


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, tiny data sets beside the real ones, and no NKCME_DATA."""
    for known in (FOLDED, ORDERED):
        monkeypatch.setitem(UCI, known.name, known)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda name: str(tmp_path / "cache" / name))
    monkeypatch.setattr("nkcme.datasets.download._CHUNK", CHUNK)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("NKCME_DATA_URL", "http://127.0.0.1:9")  # where nothing listens
    monkeypatch.delenv("NKCME_DATA", raising=False)
    return tmp_path / "cache" / "nkcme" / "uci"


@pytest.fixture
def mirror(cache, monkeypatch):
    with serving() as server:
        monkeypatch.setenv("NKCME_DATA_URL", server.url)
        yield server
