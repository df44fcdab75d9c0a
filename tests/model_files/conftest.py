"""What all tests of model files share."""

import os

import pytest

from nkcme.model_files import write_model
from support.stored_models import OLD


@pytest.fixture(autouse=True, scope="module")
def without_fsync():
    """fsync is slow and has no effect that a test can see."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "model", *OLD)
    return tmp_path / "model"
