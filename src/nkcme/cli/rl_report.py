"""The command `nkcme rl report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nkcme.cli.loading import Note
from nkcme.cli.rl_env import environment_of
from nkcme.errors import NkcmeError
from nkcme.report.agent_report import write_agents_report
from nkcme.rl import load

if TYPE_CHECKING:
    from nkcme.rl.envs import AnyEnvironment


def report_agents(
    agents: Path, out: Path, note: Note, *, env_name: str | None, imports: Sequence[str]
) -> None:
    """Write the report of saved agents."""
    result = load(agents)
    env: AnyEnvironment | None = None
    try:
        env = environment_of(result, env_name, imports)
    except NkcmeError as error:
        note(f"the report is without the section in which an agent plays: {error}")
    write_agents_report(result, out, env)
