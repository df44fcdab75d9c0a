"""The arguments of `nkcme rl`; what its commands do is in `nkcme.cli.agents`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from nkcme.cli.options import AsJson, Seed
from nkcme.cli.running import STOPPED, numbers, say

rl = typer.Typer(help="Agents that foresee the whole distribution of their return.")

AgentsPath = Annotated[
    Path, typer.Argument(metavar="DIR", help="A directory that `nkcme rl train` wrote.")
]
Backend = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="gymnax or gymnasium.", show_default="gymnax where it has ENV"
    ),
]
Risk = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Choose actions by the mean of this worst share of returns, such as 0.1.",
        show_default="by the mean of all",
    ),
]


@rl.command("train", epilog="Example: nkcme rl train CartPole-v1 --out cartpole")
def rl_train(
    context: typer.Context,
    env: Annotated[
        str,
        typer.Argument(
            metavar="ENV", help="An environment of gymnax or Gymnasium, such as CartPole-v1."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The directory to save the agents in; agents there are replaced.",
            show_default="ENV-AGENT",
        ),
    ] = None,
    agent: Annotated[
        str, typer.Option(metavar="NAME", help="fuse, single, c51, mmdqn or dqn.")
    ] = "fuse",
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Steps of each agent.")] = 50_000,
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, help="How many agents, side by side.")
    ] = 1,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**31, help="The first agent's seed.")
    ] = 0,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="Our recipe or the paper's: tuned or paper.")
    ] = "tuned",
    support: Annotated[
        str,
        typer.Option(
            metavar="LOW,HIGH",
            help="The lowest and highest return, as --support=-10,10.",
            show_default="of the preset",
        ),
    ] = "",
    backend: Backend = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Where to keep the state.", show_default="DIR.checkpoint"
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Train agents in an environment.

    Leaves in DIR the agents, a picture of their curves and a report. The state of training is kept
    in DIR.checkpoint until then, so a training that was stopped in any way goes on with the same
    command and gives the agents it would have given; one through Gymnasium cannot, and keeps what
    was learned.
    """
    limits = numbers(support, "--support", "-10,10") if support else None
    from nkcme.cli import display
    from nkcme.cli.agents import train_agents
    from nkcme.cli.fit import FitStopped

    try:
        result = train_agents(
            env,
            out or Path(f"{env}-{agent}".replace("/", "-")),
            agent=agent,
            preset=preset,
            n_steps=steps,
            seeds=range(seed, seed + seeds),
            backend=backend,
            support=limits,
            checkpoint=checkpoint,
            note=say,
        )
    except FitStopped as stop:
        say(f"{stop}; to go on: {shlex.join(['nkcme', *context.obj])}")
        raise SystemExit(STOPPED) from stop
    display.show_json(result) if json else display.show_training(result)
    if result["interrupted"]:
        say(f"stopped by Ctrl-C at step {result['steps']}; what was learned is saved")
        raise SystemExit(STOPPED)


@rl.command("eval", epilog="Example: nkcme rl eval cartpole --episodes 100 --backend gymnasium")
def rl_eval(
    agents: AgentsPath,
    episodes: Annotated[
        int, typer.Option(metavar="N", min=1, help="Episodes of each agent.")
    ] = 100,
    backend: Backend = None,
    risk: Risk = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Let trained agents play, and score them.

    Every action is the best the agent knows, and all agents play from the same starts.
    """
    from nkcme.cli import display
    from nkcme.cli.agents import evaluate_agents

    result = evaluate_agents(agents, n_episodes=episodes, backend=backend, risk=risk, seed=seed)
    display.show_json(result) if json else display.show_episodes(result)


@rl.command("watch", epilog="Example: nkcme rl watch cartpole --out episode.gif")
def rl_watch(
    agents: AgentsPath,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="A .gif or, where ffmpeg is installed, .mp4 file.",
            show_default="DIR/episode.gif",
        ),
    ] = None,
    agent_number: Annotated[
        int | None,
        typer.Option(metavar="K", min=0, help="Which agent, from 0.", show_default="the best"),
    ] = None,
    risk: Risk = None,
    seed: Seed = 0,
) -> None:
    """Film an episode with the returns the agent foresees.

    Beside each picture is the distribution of the return of every action, the chosen one in blue.
    """
    from nkcme.cli.agents import watch_agent

    made = watch_agent(agents, out, number=agent_number, seed=seed, risk=risk)
    print(
        f"Wrote {made['film']}: {made['steps']} steps of agent {made['agent']}, "
        f"return {made['return']:.4g}"
    )


@rl.command("report", epilog="Example: nkcme rl report cartpole -o report.html")
def rl_report(
    agents: AgentsPath,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The HTML file to write.")
    ],
) -> None:
    """Write a page on how agents learned and play.

    Curves, returns, settings, and what the best agent foresees beside what came. The HTML page
    needs no network and nothing beside it.
    """
    from nkcme.cli.agents import report_agents

    report_agents(agents, out, say)
    print(f"Wrote {out}")
