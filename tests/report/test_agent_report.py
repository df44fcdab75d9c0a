"""The report of agents: its content, and how a browser draws it."""

import re

import numpy as np
import pytest

from nkcme.cli.app import run
from nkcme.errors import NkcmeError
from nkcme.report.agent_report import write_agents_report
from nkcme.rl import make
from support.browser import charts_of, figures, needs_browser, rendered


@pytest.fixture(scope="module")
def page(cartpole, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_agents_report(cartpole, path, make("CartPole-v1"))
    return path


def test_the_report_has_returns_settings_and_versions(page, cartpole):
    text = page.read_text("utf-8")
    late = cartpole.curve.last_fifth()
    for part in (f"an episode is {late.mean():.4g}", f"{late[1]:.4g}</td>", "seed 1", "2 agents",
                 "400 steps each", "kernels=&#x27;fuse", "gamma=0.99", "nkcme 0."):  # fmt: skip
        assert part in text, part
    assert len(figures(text)) == 3
    assert "default-src 'none'" in text


def test_the_curves_are_those_of_the_agents(page, cartpole):
    drawn = figures(page.read_text("utf-8"))[0]
    low, high, *agents, mean = drawn.data
    returns = cartpole.curve.returns
    np.testing.assert_allclose(np.stack([a.y for a in agents], axis=1), returns)
    np.testing.assert_allclose(mean.y, returns.mean(axis=1))
    np.testing.assert_allclose(np.array(high.y) - low.y, 2 * returns.std(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(mean.x, cartpole.curve.step)


def test_predicted_returns_are_densities_and_observed_ones_a_histogram(page):
    _, state, together = figures(page.read_text("utf-8"))
    for curve in state.data:
        assert np.trapezoid(curve.y, curve.x) == pytest.approx(1, abs=0.03)
    bars, curve = together.data
    assert np.sum(np.asarray(bars.y) * bars.width) == pytest.approx(1)
    assert np.trapezoid(curve.y, curve.x) == pytest.approx(1, abs=0.03)
    assert [("chosen" in curve.name) for curve in state.data].count(True) == 1


def test_one_agent_that_predicts_means_has_a_shorter_report(cartpole_dqn, tmp_path):
    write_agents_report(cartpole_dqn, tmp_path / "r.html", make("CartPole-v1"))
    text = (tmp_path / "r.html").read_text("utf-8")
    assert len(figures(text)) == 1
    assert "mean ± standard deviation" not in text
    assert "Predicted returns" not in text


def test_agents_of_an_unknown_environment_have_a_report_without_play(cartpole, tmp_path, capsys):
    from dataclasses import replace

    replace(cartpole, env_name="Elsewhere <b>-v0").save(tmp_path / "a")
    assert run(["rl", "report", str(tmp_path / "a"), "-o", str(tmp_path / "r.html")]) == 0
    assert "without the section in which an agent plays" in capsys.readouterr().err
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "Elsewhere &lt;b&gt;-v0" in text
    assert "Elsewhere <b>" not in text


def test_a_path_that_cannot_be_written_is_refused(cartpole, tmp_path):
    with pytest.raises(NkcmeError, match="cannot be written"):
        write_agents_report(cartpole, tmp_path / "absent" / "r.html")


@needs_browser
def test_a_browser_draws_every_chart(page, tmp_path):
    dom, console = rendered(page, tmp_path)
    assert console == []
    charts = charts_of(dom)
    assert len(charts) == 3
    for chart in charts:
        assert re.search(r'<path class="js-line"[^>]* d="M', chart)
