"""The environments that the commands of `nkcme rl` are given, and the modules that define them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from nkcme.rl import Result
from nkcme.rl.envs import AnyEnvironment, make_again
from nkcme.rl.gymnasium_envs import imported


def import_modules(modules: Sequence[str]) -> None:
    """Import modules, also from the current directory, which register or define environments."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)  # last: it must not hide a library
    for module in modules:
        imported(module.removesuffix(".py") if Path(module).exists() else module)


def environment_of(
    result: Result, env: str | None, modules: Sequence[str], backend: str | None = None
) -> AnyEnvironment:
    """Make the environment of saved agents, or the one that is named instead."""
    import_modules(modules)
    return make_again(result.env_name, result.env_by_name, env, backend)
