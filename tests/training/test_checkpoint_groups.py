"""Several runs in one checkpoint file."""

from __future__ import annotations

import numpy as np

from nkcme.training.checkpoint_groups import CheckpointGroups
from support.training_runs import MemoryCheckpoint


def test_each_run_finds_its_own_last_state():
    file = MemoryCheckpoint()
    groups = CheckpointGroups(file)
    first, second = groups.group("first"), groups.group("second")
    assert first.load() is None
    first.save({"fingerprint": "mine", "step": 5}, {"state": np.zeros(2)})
    first.save({"fingerprint": "mine", "step": 9}, {"state": np.ones(2)})
    assert second.load() is None
    second.save({"fingerprint": "mine", "step": 3}, {"state": np.full(3, 7.0)})

    config, arrays = file.saved[-1]
    assert config == {
        "phases": {
            "first": {"fingerprint": "mine", "step": 9},
            "second": {"fingerprint": "mine", "step": 3},
        },
        "fingerprint": "mine",
        "step": 3,
    }
    again = CheckpointGroups(MemoryCheckpoint((config, arrays)))
    for name, step, state in (("first", 9, np.ones(2)), ("second", 3, np.full(3, 7.0))):
        own, found = again.group(name).load()
        assert own["step"] == step
        np.testing.assert_array_equal(found["state"], state)
    assert again.group("third").load() is None
    assert str(again.group("first")) == "memory"
