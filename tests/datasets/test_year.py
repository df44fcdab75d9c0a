"""The download of Year, for which no hash is published."""

import hashlib

import pytest

from nkcme.datasets import fetch_uci, load_uci
from nkcme.errors import DataError
from support.refusals import refusal
from support.uci_mirror import (
    ORDERED,
    YEARS,
    files_in,
    kept_of_half,
    year_text,
    zipped,
)

DATA = "/tinySet/data/data.txt"
YEAR = "/tinyyear.zip"

pytestmark = pytest.mark.usefixtures("cache")


def refuse(name="tiny", **options):
    """The one line with which a download is refused."""
    return refusal(fetch_uci, name, error=DataError, **options)


def test_the_archive_is_unpacked_and_its_hash_kept(cache, mirror):
    table = load_uci("tinyyear")
    assert (table.y == YEARS[:, 0]).all()
    directory = ORDERED.directory(cache)
    assert files_in(directory) == ["TinyYear.txt", "TinyYear.txt.sha256"]
    known = hashlib.sha256(year_text()).hexdigest()
    assert (directory / "TinyYear.txt.sha256").read_text() == f"{known}  TinyYear.txt\n"


def test_a_file_altered_after_its_download_is_refused_and_replaced_by_fetch(cache, mirror):
    path = fetch_uci("tinyyear") / "TinyYear.txt"
    path.write_bytes(year_text(YEARS + 1))  # of the right shape
    with pytest.raises(DataError, match="is not the file"):
        load_uci("tinyyear")
    fetch_uci("tinyyear")
    assert path.read_bytes() == year_text()


def test_another_file_at_a_later_download_is_refused(cache, mirror):
    directory = fetch_uci("tinyyear")
    (directory / "TinyYear.txt").unlink()
    mirror.files[YEAR] = zipped(year_text(YEARS + 1))
    assert f"delete {directory / 'TinyYear.txt.sha256'}" in refuse("tinyyear")
    assert files_in(directory) == ["TinyYear.txt.sha256"]
    (directory / "TinyYear.txt.sha256").unlink()
    assert (load_uci("tinyyear").y == YEARS[:, 0] + 1).all()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (zipped(year_text(YEARS[:9])), "10 rows of 5 columns; it differs at row 9"),
        (zipped(year_text(YEARS) + b"2011,1,1,1,1\n"), "differs at row 11"),
        (zipped(year_text(YEARS[:, :4])), "differs at row 1"),
        (zipped(b""), "differs at row 0"),
        (zipped(b"1" * 200_000), "differs at row 1"),
        (zipped(year_text(), "other.txt"), "no zip file that holds TinyYear.txt"),
        (b"<html>sorry</html>", "no zip file"),
        (zipped(year_text())[:100], "no zip file"),
        (zipped(year_text())[:60] + b"xxxx" + zipped(year_text())[64:], "no zip file"),
    ],
    ids=["short", "long", "narrow", "empty", "line", "other", "html", "half", "altered"],
)
def test_a_wrong_archive_is_refused_and_not_kept(content, why, cache, mirror):
    mirror.files[YEAR] = content
    assert why in refuse("tinyyear")
    assert files_in(cache) == []


def test_an_interrupted_download_is_resumed(cache, mirror):
    size = len(mirror.files[YEAR])
    kept = kept_of_half(size)
    mirror.faults[YEAR] = "truncated"
    refuse("tinyyear")
    assert files_in(ORDERED.directory(cache)) == ["tinyyear.zip.part"]
    mirror.faults.clear()
    assert (YEARS[:, 1:] == load_uci("tinyyear").X).all()
    assert mirror.requests_for(YEAR)[1] == (f"bytes={kept}-", size - kept)


def test_ctrl_c_while_unpacking_keeps_the_archive(cache, mirror, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("nkcme.datasets.uci_sets.OrderedSet._checked_lines", stop)
        with pytest.raises(KeyboardInterrupt):
            fetch_uci("tinyyear")
    assert files_in(ORDERED.directory(cache)) == ["tinyyear.zip"]
    load_uci("tinyyear")
    assert len(mirror.requests_for(YEAR)) == 1
