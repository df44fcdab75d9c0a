"""Films of episodes: what is drawn, and what is refused."""

import numpy as np
import pytest
from PIL import Image

from nkcme.cli.app import run
from nkcme.errors import NkcmeError
from nkcme.report import plots
from nkcme.report.agent_plots import action_names, draw_curves, film_episode, foreseen
from nkcme.rl.play import frames, record, stage
from nkcme.rl.risky_path import RiskyPath as TwoRoads
from support.agents_at_hand import hardly_trained


@pytest.fixture(scope="module")
def cartpole():
    return hardly_trained("CartPole-v1")


@pytest.fixture(scope="module")
def saved(cartpole, tmp_path_factory):
    path = tmp_path_factory.mktemp("agents") / "cartpole"
    cartpole.save(path)
    return path


def test_a_film_has_a_picture_a_step(saved, capsys):
    assert run(["rl", "watch", str(saved), "--seed", "3", "--agent-number", "1"]) == 0
    out = capsys.readouterr().out
    steps = int(out.partition(": ")[2].partition(" steps")[0])
    assert out.startswith(
        f"Wrote {saved / 'episode.gif'}: {steps} steps of agent 1, return {steps}"
    )
    with Image.open(saved / "episode.gif") as film:
        assert film.n_frames == min(steps, 200)
        first = np.asarray(film.convert("RGB")).astype(int)
        film.seek(film.n_frames - 1)
        last = np.asarray(film.convert("RGB")).astype(int)
    half = first.shape[1] // 2
    for part in (slice(0, half), slice(half, None)):  # the stage, and what is foreseen
        assert np.abs(first[:, part] - last[:, part]).max() > 100
    blue = np.abs(first - [0, 114, 178]).sum(axis=2) < 60
    assert blue[:, half:].any()
    assert not blue[:, :half].any()
    assert [p.name for p in saved.iterdir() if p.name.startswith(".")] == []


def test_agents_that_are_no_embeddings_are_drawn_too(tmp_path):
    for name in ("mmdqn", "dqn"):  # c51 foresees what fuse does, an embedding
        result = hardly_trained("CartPole-v1", name, seeds=1)
        env = stage("CartPole-v1")
        episode = record(result, env, seed=1)
        short = episode._replace(**{
            part: getattr(episode, part)[:3] for part in ("observations", "actions", "rewards")
        })  # fmt: skip
        assert film_episode(result, short, env, tmp_path / f"{name}.gif") == 3
        curves = foreseen(result.return_distribution(episode.observations))[1]
        assert (curves is None) == (name == "dqn")


def test_what_is_drawn_is_what_is_foreseen(cartpole):
    observations = np.zeros((3, 4), np.float32)
    grid, curves = foreseen(cartpole.return_distribution(observations))
    assert curves.shape == (2, 3, len(grid))
    np.testing.assert_allclose(np.trapezoid(curves, grid), 1.0, atol=0.02)
    means = np.stack([d.mean() for d in cartpole.return_distribution(observations)])
    np.testing.assert_allclose(np.trapezoid(curves * grid, grid), means, atol=2.0)


def test_the_episode_that_is_drawn_is_the_one_that_was_played(cartpole):
    env = stage("CartPole-v1")
    episode = record(cartpole, env, seed=7)
    pictures = list(frames(episode, env, every=1))
    assert len(pictures) == len(episode.actions)
    assert pictures[0].shape == (400, 600, 3)
    again = record(cartpole, stage("CartPole-v1"), seed=7)
    np.testing.assert_array_equal(again.observations, episode.observations)
    assert len(list(frames(episode, env, every=4))) == -(-len(episode.actions) // 4)


def test_games_on_a_grid_are_drawn_from_their_observations(tmp_path):
    result = hardly_trained("Breakout-MinAtar", "dqn", seeds=1)
    env = stage("Breakout-MinAtar")
    episode = record(result, env, seed=0)
    first = next(frames(episode, env, every=1))
    assert first.shape == (10, 10, 3)
    planes = episode.observations[0].reshape(10, 10, -1)
    seen = np.any(planes > 0, axis=2)
    assert seen.any()
    np.testing.assert_array_equal(np.all(first == 245, axis=2), ~seen)


def test_what_nobody_draws_is_refused(tmp_path, capsys):
    hardly_trained(TwoRoads(), "dqn", seeds=1).save(tmp_path / "a")
    assert run(["rl", "watch", str(tmp_path / "a")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(NkcmeError, match="cannot be drawn"):
        stage("DeepSea-bsuite")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--out", "e.txt"], ".gif or .mp4"),
        (["--agent-number", "2"], "2 agents, numbered from 0; got 2"),
        (["--risk", "2"], "risk"),
    ],
)
def test_films_that_cannot_be(arguments, why, saved, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["rl", "watch", str(saved), *arguments]) == 2
    assert why in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_mp4_without_ffmpeg_is_refused_before_the_work(saved, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["rl", "watch", str(saved), "--out", str(tmp_path / "e.mp4")]) == 2
    assert capsys.readouterr().err == (
        "nkcme: MP4 films need ffmpeg, which is not on the path; give a name that ends in .gif\n"
    )


def test_a_film_that_fails_leaves_nothing(tmp_path):
    def fail():
        with plots.film(tmp_path / "e.gif", (2, 2), 10) as (_, add):
            add()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_curves_are_drawn_for_one_agent_and_for_several(cartpole, tmp_path):
    draw_curves(cartpole, tmp_path / "two.png")
    draw_curves(hardly_trained("CartPole-v1", "dqn", seeds=1), tmp_path / "one.png")
    for name in ("one.png", "two.png"):
        with Image.open(tmp_path / name) as picture:
            assert picture.size == (1280, 720)


def test_actions_have_names():
    assert list(action_names("CartPole-v1", 2)) == ["push left", "push right"]
    assert list(action_names("Elsewhere", 2)) == ["action 0", "action 1"]
