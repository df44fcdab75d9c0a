"""A process that is gone is named to all others; one that ends by itself is not."""

import threading
from queue import Queue

import pytest

from nkcme.training import process_watch
from nkcme.training.process_watch import ProcessWatch, watch_processes


@pytest.fixture
def watches(monkeypatch):
    """Three processes that watch each other, as threads of this one; none ends this process."""
    # They have seconds to end themselves after a loss, and do so below.
    monkeypatch.setattr(process_watch, "_GRACE_SECONDS", 60.0)
    port: Queue[int] = Queue()
    found: dict[int, ProcessWatch] = {}

    def agreed(own: int) -> int:
        if own:
            for _ in range(2):
                port.put(own)
            return own
        return port.get(timeout=10)

    def connect(number: int) -> None:
        found[number] = watch_processes("127.0.0.1", 3, number, agreed)

    threads = [threading.Thread(target=connect, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    yield found
    for watch in found.values():
        watch.end()
        for connection in watch._connections.values():
            connection.close()


def close(watch: ProcessWatch) -> None:
    """Close the connections of a process, as its death does, after which it sends nothing."""
    watch._ended.set()
    for connection in watch._connections.values():
        connection.shutdown(2)


@pytest.mark.parametrize(
    ("dead", "name"), [(2, "process 2 of 3 has died"), (0, "process 0, the coordinator, of 3")]
)
def test_all_others_learn_which_process_is_gone(watches, dead, name):
    close(watches[dead])
    for number in {0, 1, 2} - {dead}:
        message = watches[number].lost(10)
        assert message is not None
        assert message.startswith(name)
        assert "\n" not in message


def test_a_process_that_ends_by_itself_is_not_lost(watches):
    watches[1].end()
    close(watches[1])
    assert watches[0].lost(0.3) is None
    assert watches[2].lost() is None
