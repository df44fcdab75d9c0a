"""Environments by name, object, class or function: gymnax's, Gymnasium's and this package's.

`Compiled` environments (gymnax) are stepped inside the compiled loop, `Hosted` ones (Gymnasium)
from Python. Both distinguish an episode that *terminated* (nothing follows) from one that was
*truncated* (a time limit cut it off). Observations become vectors (`nkcme.rl.observations`).
"""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

from nkcme.errors import NkcmeError
from nkcme.rl.environment import Environment
from nkcme.rl.gymnasium_envs import Made, found_in_module, is_environment, is_vector
from nkcme.rl.gymnax_envs import Compiled, gymnax_has
from nkcme.rl.hosted import Hosted
from nkcme.rl.hosted_vector import HostedVector
from nkcme.rl.risky_path import RiskyPath

_INSTALL = "pip install 'nkcme[rl]'"

#: The values of ``backend`` in `make`.
BACKENDS = ("gymnax", "gymnasium")

#: The environments of this package; the second name is that of earlier versions.
_BUILT_IN = {"RiskyPath": RiskyPath, "TwoRoads": RiskyPath}

#: The attributes of an `Environment`.
_PROTOCOL = ("name", "n_actions", "observation_size", "max_steps", "reset", "step")

#: An environment that one of the two loops can train in.
AnyEnvironment = Environment | Hosted | HostedVector


def make(env: Any, backend: str | None = None) -> AnyEnvironment:
    """Make an environment from its name, or from an object, class or function.

    Parameters
    ----------
    env
        One of these, with discrete actions:

        - a name: "RiskyPath" (`nkcme.rl.risky_path`), or one that gymnax or Gymnasium has;
        - "module:name": a class, a function or a registered environment of a module, which is
          imported;
        - a Gymnasium environment, wrapped or not, or a `gymnasium.vector.VectorEnv`;
        - a class, or a function without arguments, that makes one of these;
        - an `nkcme.rl.environment.Environment`, which JAX compiles.
    backend
        "gymnax" or "gymnasium", for names. By default gymnax is used where it has the environment,
        because its environments run inside the compiled loop; otherwise Gymnasium.

    Returns
    -------
    Environment, Hosted or HostedVector
        `Hosted` and `HostedVector` for Gymnasium; otherwise an environment that JAX compiles.

    Raises
    ------
    NkcmeError
        If the environment does not exist or cannot be made, its actions are not discrete, its
        observation is neither an array nor a state, or the library is not installed.

    Examples
    --------
    >>> from nkcme import rl
    >>> env = rl.make("CartPole-v1")
    >>> env.n_actions, env.observation_size
    (2, 4)
    """
    if backend is not None and backend not in BACKENDS:
        raise NkcmeError(f"backend must be one of {', '.join(BACKENDS)}; got {backend!r}")
    if isinstance(env, str):
        return _named(env, backend)
    if isinstance(env, Hosted | HostedVector | Compiled):
        return env
    return _from_object(env, None)


def _from_object(env: Any, name: str | None) -> AnyEnvironment:
    if not is_environment(env) and all(hasattr(env, attribute) for attribute in _PROTOCOL):
        return env() if isinstance(env, type) else env
    _need("gymnasium")
    made = Made.from_object(env, name)
    return HostedVector(made) if is_vector(made.env) else Hosted(made)


def _named(name: str, backend: str | None) -> AnyEnvironment:
    if backend is None and name in _BUILT_IN:
        return _BUILT_IN[name]()
    if backend == "gymnax":
        _need("gymnax")
    if backend != "gymnasium" and _has("gymnax"):
        if gymnax_has(name):
            return Compiled(name)
        if backend == "gymnax":
            raise NkcmeError(f"gymnax has no environment {name!r} with discrete actions")
    _need("gymnasium")
    if ":" in name and (found := found_in_module(name)) is not None:
        return _from_object(found, name)
    return Hosted(name)


def make_again(name: str, by_name: bool, env: str | None, backend: str | None) -> AnyEnvironment:
    """Make the environment of saved agents again.

    Parameters
    ----------
    name, by_name
        The environment's name, and whether it can be made from that (`Result.env_by_name`).
    env
        The environment to make instead, if any.
    backend
        As in `make`.

    Raises
    ------
    NkcmeError
        If it cannot be made. A file never causes a module to be imported.
    """
    if env is not None:
        return make(env, backend)
    module = name.partition(":")[0] if ":" in name else None
    if not by_name:
        raise NkcmeError(
            f"the agents were trained in {name}, an object or function that their file cannot "
            "make: name an environment like it, as in --env MODULE:NAME (in Python: give it to "
            "nkcme.rl.play.play)"
        )
    if module is not None and module not in sys.modules:
        raise NkcmeError(
            f"the agents were trained in {name}, and a file does not decide what is imported: add "
            f"--import {module} (in Python: import {module})"
        )
    return make(name, backend)


def _has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def _need(library: str) -> None:
    if not _has(library):
        raise NkcmeError(f"{library} is not installed, and this environment needs it: {_INSTALL}")
