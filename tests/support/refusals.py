"""The one-line error with which bad input is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from nkcme.errors import NkcmeError


def refusal(
    action: Callable[..., Any],
    *arguments: Any,
    error: type[Exception] = NkcmeError,
    **options: Any,
) -> str:
    """The message of the error that ``action`` raises, which must be one line."""
    with pytest.raises(error) as caught:
        action(*arguments, **options)
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message
