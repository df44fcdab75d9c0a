"""Objects from before are spared, and only for a while."""

import gc
import weakref

from nkcme.training.garbage import old_objects_spared


class Circle:
    def __init__(self):
        self.itself = self


def test_garbage_from_before_is_collected_afterwards_and_that_from_within_as_ever():
    gc.collect()
    before = weakref.ref(Circle())
    with old_objects_spared():
        within = weakref.ref(Circle())
        gc.collect()
        assert before() is not None
        assert within() is None
    assert gc.get_freeze_count() == 0
    gc.collect()
    assert before() is None


def test_objects_that_the_user_has_frozen_stay_frozen():
    gc.collect()
    before = weakref.ref(Circle())
    gc.freeze()
    try:
        with old_objects_spared():
            pass
        gc.collect()
        assert before() is not None
    finally:
        gc.unfreeze()
    gc.collect()
    assert before() is None
