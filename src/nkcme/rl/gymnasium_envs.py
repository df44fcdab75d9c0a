"""Gymnasium environments: how they are made and copied, and what their spaces are.

An environment is a name, an object, or a class or function that makes one. Training needs several:
one to train in and one to evaluate in for each agent. No other module imports Gymnasium.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from nkcme.errors import NkcmeError
from nkcme.rl.observations import Observations

#: The length at which an evaluation episode is cut off where the environment has no time limit.
DEFAULT_MAX_STEPS = 1000

_FACTORY_ADVICE = "give a class or a function without arguments that makes it"


@dataclass(frozen=True)
class Made:
    """A Gymnasium environment and how to make others like it.

    Attributes
    ----------
    name : str
        The name that results keep.
    env : gymnasium.Env or gymnasium.vector.VectorEnv
        The environment.
    make : callable or None
        Makes such an environment, given a render mode or None; None where an object was given.
    by_name : bool
        Whether `nkcme.rl.make` makes such an environment from the name alone.
    """

    name: str
    env: Any
    make: Callable[[str | None], Any] | None
    by_name: bool

    @classmethod
    def from_name(cls, name: str, render_mode: str | None = None) -> Self:
        """Make a registered environment."""
        make = partial(_registered, name)
        return cls(name, make(render_mode), make, True)

    @classmethod
    def from_object(cls, given: Any, name: str | None = None) -> Self:
        """Take an environment object, or call a class or function for one."""
        if is_environment(given) and not isinstance(given, type):
            return cls(name or _name_of(given), given, None, False)
        if not callable(given):
            raise NkcmeError(
                "expected an environment: a name, a Gymnasium environment, or a class or function "
                f"that makes one; got {type(given).__name__}"
            )
        address = _address(given)
        called = str(name or address or getattr(given, "__name__", type(given).__name__))
        make = partial(_called, given, called)
        env = make(None)
        if "<" in called:  # a lambda has no name of its own
            called = _name_of(env)
        return cls(called, env, make, address is not None)

    def another(self, render_mode: str | None = None) -> Made:
        """Make another environment of the same kind.

        A named one is made again and a class or function is called again. An object is copied
        with `copy.deepcopy`, or made from its specification (``env.spec``) where that fails.
        """
        env = self._copied() if self.make is None else self.make(render_mode)
        return Made(self.name, env, self.make, self.by_name)

    def _copied(self) -> Any:
        import gymnasium

        why: Exception | None = None
        # A copy of an AsyncVectorEnv would close the pipes of the original.
        if not isinstance(self.env.unwrapped, gymnasium.vector.AsyncVectorEnv):
            try:
                return copy.deepcopy(self.env)
            except Exception as error:  # whatever an environment's own attributes raise
                why = error
        if self.env.spec is not None:
            vector = isinstance(self.env, gymnasium.vector.VectorEnv)
            try:
                return (gymnasium.make_vec if vector else gymnasium.make)(self.env.spec)
            except Exception as error:
                why = why or error
        reason = "" if why is None else f" ({one_line(why)})"
        raise NkcmeError(
            f"{self.name} cannot be copied{reason}, and each agent needs one environment to train "
            f"in and one to evaluate in: {_FACTORY_ADVICE}"
        )


def is_environment(given: Any) -> bool:
    """Whether this is an environment object of Gymnasium, or a class of such, vectorised or not."""
    gymnasium = sys.modules.get("gymnasium")
    if gymnasium is None:  # then there is no object of it either
        return False
    kinds = (gymnasium.Env, gymnasium.vector.VectorEnv)
    return issubclass(given, kinds) if isinstance(given, type) else isinstance(given, kinds)


def is_vector(env: Any) -> bool:
    """Whether an environment object is vectorised."""
    import gymnasium

    return isinstance(env, gymnasium.vector.VectorEnv)


def is_registered(name: str) -> bool:
    """Whether Gymnasium has an environment of that name now."""
    import gymnasium

    return name in gymnasium.registry


def discrete_actions(name: str, space: Any) -> tuple[int, int]:
    """Return the number of actions of a space and the first; refuse other spaces."""
    import gymnasium

    if not isinstance(space, gymnasium.spaces.Discrete):
        raise NkcmeError(
            f"{name}: expected a discrete action space, found {one_line(space)}; these agents "
            "choose among a few actions"
        )
    return int(space.n), int(space.start)


def observations_of(name: str, space: Any) -> Observations:
    """Return what the observations of a space are; refuse spaces that are no array or state."""
    import gymnasium

    if isinstance(space, gymnasium.spaces.Discrete):
        return Observations((), str(space.dtype), int(space.n), int(space.start))
    if not isinstance(space, gymnasium.spaces.Box):
        raise NkcmeError(
            f"{name}: expected an array or a discrete state as observation, found "
            f"{one_line(space)}; wrap the environment (gymnasium.wrappers.FlattenObservation)"
        )
    return Observations(tuple(int(n) for n in space.shape), str(space.dtype))


def time_limit(env: Any) -> int:
    """Return the length at which episodes end, or `DEFAULT_MAX_STEPS` where nothing ends them."""
    import gymnasium

    spec = env.spec
    if spec is not None and spec.max_episode_steps is not None:
        return int(spec.max_episode_steps)
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, gymnasium.wrappers.TimeLimit):
            return int(env._max_episode_steps)
        env = env.env
    return DEFAULT_MAX_STEPS


def imported(module: str) -> Any:
    """Import a module that registers or defines environments."""
    try:
        return importlib.import_module(module)
    except Exception as error:  # whatever the module's own code raises
        raise NkcmeError(
            f"the module {module!r} cannot be imported ({one_line(error)}): check its name, or run "
            "from the directory that holds it"
        ) from error


def found_in_module(address: str) -> Any:
    """Return the class or function at "module:name", or None where Gymnasium has that name.

    A module may register its environments: then ``name`` is one of Gymnasium's.
    """
    module, _, name = address.partition(":")
    try:
        value = imported(module)
    except NkcmeError as error:
        raise NkcmeError(f"there is no environment {address!r}: {error}") from error
    if is_registered(name):
        return None
    for part in name.split("."):
        value = getattr(value, part, None)
    if not callable(value):
        raise NkcmeError(
            f"there is no environment {address!r}: the module {module!r} neither registers an "
            f"environment {name!r} nor has a class or function of that name"
        )
    return value


def _registered(name: str, render_mode: str | None) -> Any:
    """Make a registered environment. A render mode is passed only where one is wanted."""
    import gymnasium

    # Our own checks replace those of Gymnasium, which are warnings.
    options: dict[str, Any] = {"disable_env_checker": True}
    if render_mode is not None:
        _draw_without_screen()
        options["render_mode"] = render_mode
    try:
        if render_mode is not None and not _has_render_mode(gymnasium.spec(name)):
            del options["render_mode"]
        with warnings.catch_warnings():
            # Of a version that is out of date: the error says so, or the version still works.
            warnings.simplefilter("ignore", DeprecationWarning)
            return gymnasium.make(name, **options)
    except gymnasium.error.DependencyNotInstalled as error:
        raise NkcmeError(f"{name} needs a library: {one_line(error)}") from error
    except gymnasium.error.Error as error:
        unknown = (gymnasium.error.NameNotFound, gymnasium.error.NamespaceNotFound)
        remedy = " (if a module of yours registers it, import that module first; on the command "
        remedy += "line with --import MODULE)"
        raise NkcmeError(
            f"Gymnasium has no environment {name!r}: {one_line(error)}"
            f"{remedy * isinstance(error, unknown)}"
        ) from error
    except Exception as error:  # whatever the environment's own constructor raises
        raise NkcmeError(_failed(name, error)) from error


def _called(factory: Callable[..., Any], name: str, render_mode: str | None) -> Any:
    """Call a class or function for an environment."""
    options = {}
    if render_mode is not None and _accepts_render_mode(factory):
        _draw_without_screen()
        options["render_mode"] = render_mode
    try:
        env = factory(**options)
    except Exception as error:  # whatever the user's own code raises
        raise NkcmeError(_failed(name, error)) from error
    if isinstance(env, type) or not is_environment(env):
        raise NkcmeError(
            f"expected a Gymnasium environment from {name}, got {type(env).__name__}: return an "
            "object of gymnasium.Env or gymnasium.vector.VectorEnv"
        )
    return env


def _failed(name: str, error: Exception) -> str:
    return (
        f"{name} could not be made: {one_line(error)}; correct it, or {_FACTORY_ADVICE} with the "
        "arguments that it needs"
    )


def _accepts_render_mode(factory: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return False
    named = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    return named or "render_mode" in parameters


def _has_render_mode(spec: Any) -> bool:
    """Whether the constructor of a registered environment has a render mode."""
    import gymnasium

    entry = spec.entry_point
    return _accepts_render_mode(
        gymnasium.envs.registration.load_env_creator(entry) if isinstance(entry, str) else entry
    )


def _draw_without_screen() -> None:
    """Keep pygame from a screen, a sound card and its greeting."""
    for driver in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):
        os.environ.setdefault(driver, "dummy")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")


def _address(factory: Callable[..., Any]) -> str | None:
    """Return "module:name" where that is where this class or function is found; else None."""
    module = getattr(factory, "__module__", None)
    name = getattr(factory, "__qualname__", "<")
    if module in (None, "__main__") or "<" in name:
        return None
    value: Any = sys.modules.get(module)
    for part in name.split("."):
        value = getattr(value, part, None)
    return f"{module}:{name}" if value is factory else None


def _name_of(env: Any) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def one_line(value: object) -> str:
    """Return a text in one line; of an error of other libraries also its kind."""
    text = " ".join(str(value).split())
    named = isinstance(value, Exception) and type(value).__module__ == "builtins"
    return f"{type(value).__name__}: {text}" if named else text
