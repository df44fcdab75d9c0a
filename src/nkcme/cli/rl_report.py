"""The command `nkcme rl report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from nkcme.cli.loading import Note
from nkcme.errors import NkcmeError
from nkcme.report.agent_report import write_agents_report
from nkcme.rl import load
from nkcme.rl.envs import make

if TYPE_CHECKING:
    from nkcme.rl.envs import Hosted
    from nkcme.rl.loop import Environment


def report_agents(agents: Path, out: Path, note: Note) -> None:
    """Write the report of saved agents."""
    result = load(agents)
    env: Environment | Hosted | None = None
    try:
        env = make(result.env_name, None)
    except NkcmeError as error:
        note(f"the report is without the section in which an agent plays: {error}")
    write_agents_report(result, out, env)
