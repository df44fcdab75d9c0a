"""The arguments of `nkcme rl`. Each command is in its own file, `nkcme.cli.rl_train` and so on."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from nkcme.cli.options import AsJson, Seed
from nkcme.cli.running import STOPPED, numbers, print_note
from nkcme.errors import NkcmeError

rl = typer.Typer(help="Train and score agents that predict return distributions.")

AgentsPath = Annotated[
    Path, typer.Argument(metavar="DIR", help="A directory that `nkcme rl train` wrote.")
]
Backend = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="gymnax or gymnasium.", show_default="gymnax where it has ENV"
    ),
]
Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="A module that registers or defines ENV; may be repeated.",
    ),
]
OtherEnv = Annotated[
    str | None,
    typer.Option(
        metavar="ENV",
        help="An environment like that of training, such as MODULE:NAME.",
        show_default="that of training",
    ),
]
Risk = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Choose actions by the mean of the worst share of returns, such as 0.1.",
        show_default="by the mean return",
    ),
]


@rl.command("train", epilog="Example: nkcme rl train CartPole-v1 --out cartpole")
def rl_train(
    context: typer.Context,
    env: Annotated[
        str | None,
        typer.Argument(
            metavar="ENV",
            help="An environment of gymnax or Gymnasium, such as CartPole-v1, or MODULE:NAME: a "
            "class or function of yours.",
            show_default="that of --continue",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="The directory to save the agents in; existing agents are replaced.",
            show_default="ENV-AGENT",
        ),
    ] = None,
    agent: Annotated[
        str, typer.Option(metavar="NAME", help="fuse, single, c51, mmdqn or dqn.")
    ] = "fuse",
    steps: Annotated[
        int, typer.Option(metavar="N", min=1, max=10**9, help="Steps of each agent.")
    ] = 50_000,
    seeds: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=10_000, help="Number of agents, trained together."),
    ] = 1,
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**31, help="The first agent's seed.")
    ] = 0,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help="tuned, our settings; or paper, the paper's.")
    ] = "tuned",
    support: Annotated[
        str,
        typer.Option(
            metavar="LOW,HIGH",
            help="The lowest and highest return, as in --support=-10,10.",
            show_default="that of the preset",
        ),
    ] = "",
    backend: Backend = None,
    imports: Imports = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to keep the training state.",
            show_default="DIR.checkpoint",
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--continue",
            metavar="DIR",
            help="Train the agents in DIR further, to --steps steps in all.",
        ),
    ] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Write the learning curves for TensorBoard to DIR."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Train agents in an environment.

    Writes the agents, a plot of their learning curves and a report to DIR. Until then, the state of
    training is kept in DIR.checkpoint: a run that was stopped continues with the same command and
    gives the same agents. A run through Gymnasium cannot be resumed like that; when stopped, it
    saves the agents as they are. --continue DIR trains saved agents further.
    """
    if run is not None:
        _only_with_continue(context)
    elif env is None:
        raise NkcmeError("name the environment, as in nkcme rl train CartPole-v1; ENV is missing")
    limits = numbers(support, "--support", "-10,10") if support else None
    from nkcme.cli import display
    from nkcme.cli.rl_train import continue_agents, train_agents
    from nkcme.cli.stopping import TrainingStopped

    try:
        result = (
            continue_agents(
                run,
                out,
                n_steps=steps,
                env_name=env,
                backend=backend,
                imports=imports or (),
                tensorboard=tensorboard,
                note=print_note,
            )
            if run is not None
            else train_agents(
                env or "",
                out or Path(f"{env}-{agent}".replace("/", "-").replace(":", "-")),
                agent=agent,
                preset=preset,
                n_steps=steps,
                seeds=range(seed, seed + seeds),
                backend=backend,
                support=limits,
                imports=imports or (),
                checkpoint=checkpoint,
                tensorboard=tensorboard,
                note=print_note,
            )
        )
    except TrainingStopped as stop:
        print_note(f"{stop}; to continue: {shlex.join(['nkcme', *context.obj])}")
        raise SystemExit(STOPPED) from stop
    display.show_json(result) if json else display.show_training(result, imports or ())
    if result["interrupted"]:
        more = f"nkcme rl train --continue {shlex.quote(result['agents'])} --steps N"
        print_note(
            f"stopped by Ctrl-C at step {result['steps']}; the agents are saved as they are; to go "
            f"on to N steps: {more}"
        )
        raise SystemExit(STOPPED)


def _only_with_continue(context: typer.Context) -> None:
    """Refuse the options that the saved agents decide, and `--continue` without `--steps`."""
    given = {
        name
        for name in context.params
        if getattr(context.get_parameter_source(name), "name", "") != "DEFAULT"
    }
    for name in ("agent", "seeds", "seed", "preset", "support", "checkpoint"):
        if name in given:
            raise NkcmeError(f"--continue keeps what the agents were trained with: omit --{name}")
    if "steps" not in given:
        raise NkcmeError("--continue needs the number of steps in all: add --steps N")


@rl.command("eval", epilog="Example: nkcme rl eval cartpole --episodes 100 --backend gymnasium")
def rl_eval(
    agents: AgentsPath,
    episodes: Annotated[
        int, typer.Option(metavar="N", min=1, max=10**6, help="Episodes of each agent.")
    ] = 100,
    backend: Backend = None,
    env: OtherEnv = None,
    imports: Imports = None,
    risk: Risk = None,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Score trained agents.

    Every agent plays episodes from the same starts, without exploration.
    """
    from nkcme.cli import display
    from nkcme.cli.rl_eval import evaluate_agents

    result = evaluate_agents(
        agents,
        n_episodes=episodes,
        backend=backend,
        env_name=env,
        imports=imports or (),
        risk=risk,
        seed=seed,
    )
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
    env: OtherEnv = None,
    imports: Imports = None,
    risk: Risk = None,
    seed: Seed = 0,
) -> None:
    """Film an episode with the predicted returns.

    Beside each frame are the return distributions of all actions, the chosen one in blue.
    """
    from nkcme.cli.rl_watch import watch_agent

    made = watch_agent(
        agents,
        out,
        number=agent_number,
        env_name=env,
        imports=imports or (),
        seed=seed,
        risk=risk,
    )
    print(
        f"Wrote {made['animation']}: {made['steps']} steps of agent {made['agent']}, "
        f"return {made['return']:.4g}"
    )


@rl.command("report", epilog="Example: nkcme rl report cartpole -o report.html")
def rl_report(
    agents: AgentsPath,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The HTML file to write.")
    ],
    env: OtherEnv = None,
    imports: Imports = None,
) -> None:
    """Write an HTML page on how agents learned and play.

    Learning curves, returns, settings, and the returns that the best agent predicts beside those
    observed. The page is one file that works without a network.
    """
    from nkcme.cli.rl_report import report_agents

    report_agents(agents, out, print_note, env_name=env, imports=imports or ())
    print(f"Wrote {out}")
