"""The report of a model: its content, its safety, and how a browser draws it."""

import html
import io
import os
import re

import numpy as np
import pandas as pd
import pytest

from nkcme import NKCME, KernelCME, NkcmeError, metrics, presets
from nkcme.distributions.embedding import Embedding
from nkcme.distributions.sample import SampleDistribution
from nkcme.number_text import written
from nkcme.report import model_report as report
from nkcme.report.chart_elements import axis, plain
from nkcme.report.density_charts import densities
from nkcme.report.model_charts import pit_histogram
from nkcme.report.model_report import write_report
from nkcme.report.single_rows import spread_rows
from support.browser import charts_of, figures, needs_browser, rendered
from support.known_model import KnownModel, sample
from support.playwright_browser import browser, opened
from support.tiny_estimators import tiny

EVIL = "</script><img src=x onerror=\"document.title='hacked'\"><b>bold</b> %{x} $y$ ${body}"


def evil_table(n=80):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            f"a {EVIL}": rng.normal(size=n),
            "b & <i>c</i>": rng.normal(size=n),
            "kind": rng.choice([EVIL, "plain"], n),
            "flag": rng.random(n) > 0.5,
        }
    )
    return X, X.iloc[:, 0].to_numpy() + 0.3 * rng.normal(size=n)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report of a tiny model on a table in which every text contains HTML."""
    X, y = evil_table()
    model = NKCME(
        **presets.QUICK, epochs=2, hidden=(16,), n_atoms=30, validation_fraction=0.2, random_state=0
    )
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(model.fit(X, y), X, y, path, title=f"title {EVIL}", target=f"target {EVIL}")
    return path


def steps_area(trace):
    """The area below a curve of horizontal steps that change at its points."""
    return float(np.sum(np.diff(trace["x"]) * trace["y"][:-1]))


def known_report(tmp_path, n=200, **options):
    X, y = sample(n)
    write_report(KnownModel(), X, y, tmp_path / "r.html", **options)
    return (tmp_path / "r.html").read_text("utf-8"), X, y


# ------------------------------------------------------------------------------------ the content


def test_the_report_has_every_section_in_one_small_file(page):
    text = page.read_text("utf-8")
    for heading in ("Scores", "Predictions for single rows", "Drivers", "Partial dependence",
                    "Predicted against actual", "Worst rows", "Calibration",
                    "Training"):  # fmt: skip
        assert re.search(f"<h2>[^<]*{heading}", text), heading
    # 6 densities, 4 kinds of importance, 2 features, predicted against actual, 60 rows to pick,
    # PIT, coverage, loss, bandwidth, validation
    assert len(figures(text)) == 6 + 4 + 2 + 1 + 60 + 2 + 3
    assert page.stat().st_size < 8e6
    assert os.listdir(page.parent) == ["report.html"]
    assert "default-src 'none'" in text  # the page may load nothing
    assert not re.search(
        r"<(script|link|img|iframe)[^>]+(src|href)=", text.partition("<script>")[0]
    )


def test_the_scores_of_all_rows_are_explained(tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MAX_POINTS", 50)
    text, _, y = known_report(tmp_path)
    for name in ("rmse", "crps", "nll", "qice", "coverage", "interval_width"):
        assert html.escape(metrics.EXPLANATIONS[name]) in text
    assert f"{100 * metrics.qice_floor(200):.2f}&nbsp;% for a perfect model on 200 rows" in text
    assert f"{y.std():.4g} without the features" in text
    assert "50 of them, chosen at random" in text


def test_the_summary_distinguishes_a_calibrated_model_from_a_wrong_one(tmp_path):
    text, X, y = known_report(tmp_path, n=1000)
    assert "as expected" in text
    assert re.search(r"\d\d&nbsp;% lower than that of a prediction without features", text)
    write_report(KnownModel(), X, y + 3, tmp_path / "r.html")
    wrong = (tmp_path / "r.html").read_text("utf-8")
    assert "too narrow or in the wrong place" in wrong
    write_report(KnownModel(), -X, y, tmp_path / "r.html")
    assert "higher than that of a prediction without" in (tmp_path / "r.html").read_text("utf-8")


def test_rows_of_density_zero_are_counted(tmp_path):
    X, y = sample(20)
    y[:3] += 1000
    write_report(KnownModel(), X, y, tmp_path / "r.html")
    assert "3 true values had a predicted density of zero" in (tmp_path / "r.html").read_text()


def test_a_model_without_a_history_has_no_section_on_training(tmp_path):
    text, *_ = known_report(tmp_path)
    assert "<h2>Training" not in text
    assert len(figures(text)) == 6 + 4 + 2 + 1 + 60 + 2


def test_point_masses_are_drawn_as_stems_and_the_support_is_named(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 1))
    for y, support, share in (
        (np.maximum(X[:, 0] + 0.5 * rng.normal(size=300), 0.0), "numbers from 0", None),
        (rng.poisson(np.exp(X[:, 0])), "whole numbers from 0", 0.0),
    ):
        write_report(tiny("NKCME").fit(X, y), X, y, tmp_path / "r.html", target="rain & <b>")
        text = (tmp_path / "r.html").read_text("utf-8")
        assert f"rain &amp; &lt;b&gt; takes {support}" in text
        for drawn in figures(text)[:6]:
            interval, curve, inside, outside, _ = drawn.data
            assert np.all(np.isfinite(curve.y))
            area = steps_area(curve)
            stems = sum(np.sum(trace.customdata[::3]) for trace in (inside, outside))
            assert area + stems == pytest.approx(1.0, abs=0.011)  # the range ends at quantiles
            within = steps_area(interval) + np.sum(inside.customdata[::3])
            assert within >= 0.9 - 1e-6
            if share is not None:
                assert area == pytest.approx(share, abs=1e-6)


def test_charts_show_predictions_and_observations(tmp_path):
    text, X, y = known_report(tmp_path, target="height (m)")
    drawn = figures(text)
    density, along, against, pit, coverage = (drawn[i] for i in (0, 10, 12, -2, -1))
    interval, curve, truth = density.data
    row = int(re.search(r"Row (\d+)", density.layout.title.text)[1]) - 1
    assert truth.x[0] == y[row]
    assert steps_area(curve) == pytest.approx(1, abs=0.011)
    assert steps_area(interval) == pytest.approx(0.9, abs=1e-6)
    assert density.layout.xaxis.title.text == "height (m)"
    assert {figure.layout.xaxis.range for figure in drawn[:6]} == {density.layout.xaxis.range}
    assert along.layout.xaxis.title.text == "x0"  # the feature that changes the median
    np.testing.assert_array_equal(along.data[1].x, X[:, 0])
    assert sum(len(trace.x) for trace in against.data[1:]) == len(y)
    assert sum(pit.data[0].y) == pytest.approx(100)
    assert (coverage.data[-1].x[-1], coverage.data[-1].y[-1]) == (100, 100)


@pytest.mark.parametrize("reading", ["law", "atomic", "smoothed"])
def test_the_shaded_interval_has_its_mass_in_every_reading(reading):
    """The curve is the density that the intervals come from, not a smoothed one."""
    dist = Embedding(
        np.linspace(-2, 2, 9), np.random.default_rng(0).dirichlet(np.ones(9), 3),
        bandwidth=0.5, location=300_000, scale=40_000, reading=reading,
    )  # fmt: skip
    drawn = densities(dist, dist.median(), ["a", "b", "c"], "price")
    for figure, (low, high) in zip(drawn, dist.interval(0.9), strict=True):
        interval, curve, _ = figure["data"]
        assert (interval["x"][0], interval["x"][-1]) == (low, high)
        assert steps_area(interval) == pytest.approx(0.9, abs=1e-6)
        assert steps_area(curve) == pytest.approx(1.0, abs=0.011)


def test_draws_have_a_density_that_can_be_read():
    rng = np.random.default_rng(0)
    drawn = densities(SampleDistribution(rng.normal(size=(500, 2))), np.zeros(2), ["a", "b"], "y")
    assert max(np.max(figure["data"][1]["y"]) for figure in drawn) < 1.0
    assert steps_area(drawn[0]["data"][0]) == pytest.approx(0.9, abs=1e-6)


def test_ticks_are_written_as_people_write_numbers():
    assert axis("y", range=[0, 1_200_000])["exponentformat"] == "none"
    assert axis("y", range=[0, 3e9])["exponentformat"] == "B"
    assert axis("y", range=[-1e-5, 1e-5])["exponentformat"] == "power"
    assert axis("y")["exponentformat"] == "none"


def test_the_range_of_the_pit_lies_behind_its_bars():
    drawn = pit_histogram(np.linspace(0.01, 0.5, 500))
    (band,) = drawn["layout"]["shapes"]
    assert band["layer"] == "below"
    assert not any("fill" in trace for trace in drawn["data"])
    assert drawn["layout"]["yaxis"]["range"][1] > drawn["data"][0]["y"].max()


def test_worst_rows_are_listed_and_can_be_picked(tmp_path):
    X, y = sample(300)
    y[123] += 40.0
    write_report(KnownModel(), X, y, tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8")
    listed = re.findall(r'<tr><th scope="row">(\d+)</th>.*?data-pick="(\d+)"', text)
    assert len(listed) == 10
    assert listed[0][0] == "124"
    picks = re.findall(r'<option data-caption="([^"]*)">Row (\d+)</option>', text)
    assert len(picks) == 60
    for number, place in listed:
        assert picks[int(place)][1] == number
    assert picks[int(listed[0][1])][0].startswith(f"x0 = {written(X[123, 0])}; x1 = ")


def test_the_predictions_can_be_downloaded_as_they_are(tmp_path):
    text, X, y = known_report(tmp_path)
    stored = re.search(r'<script type="text/csv">(.*?)</script>', text, re.S)[1]
    table = pd.read_csv(io.StringIO(stored))
    np.testing.assert_array_equal(table["row"], np.arange(1, 201))
    np.testing.assert_allclose(table["actual"], y, rtol=1e-8)
    dist = KnownModel().predict_dist(X)
    np.testing.assert_allclose(table[["lower_0.9", "upper_0.9"]], dist.interval(0.9), rtol=1e-8)
    np.testing.assert_allclose(table["crps"], dist.crps(y), rtol=1e-8)


def test_drivers_are_drawn_in_the_order_of_their_importance(tmp_path):
    text, *_ = known_report(tmp_path)
    whole, centre, spread, tails = figures(text)[6:10]
    assert list(whole.layout.yaxis.ticktext) == ["x1", "x0"]  # from below
    assert whole.data[0].x[1] > 50
    assert whole.data[0].x[0] == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(np.abs([spread.data[0].x, tails.data[0].x]), 0.0, atol=1e-9)
    assert centre.data[0].x[1] > 50


def test_unused_columns_are_left_out_and_missing_values_named(tmp_path):
    n = 70
    X = pd.DataFrame(
        {"key": [f"secret{i}" for i in range(n)], "x": np.arange(n) % 9.0, "floor": 1.0}
    )
    X.loc[::2, "floor"] = np.nan
    write_report(KernelCME().fit(X, X["x"]), X, X["x"], tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text("utf-8")
    assert "secret" not in text
    assert "2 features" in text
    assert "floor = missing" in text
    assert "= nan" not in text


def test_few_rows_and_tables_without_numeric_columns(tmp_path):
    X, y = evil_table(40)
    model = NKCME(**presets.QUICK, epochs=1, hidden=(8,), n_atoms=10, random_state=0).fit(
        X[["kind", "flag"]], y
    )
    write_report(model, X[["kind", "flag"]], y, tmp_path / "r.html")
    assert "<h2>Partial dependence" not in (tmp_path / "r.html").read_text("utf-8")
    write_report(model, X[["kind", "flag"]][:1], y[:1], tmp_path / "r.html")
    assert "All rows of the table" in (tmp_path / "r.html").read_text("utf-8")


def test_histories_of_wrong_shapes_are_ignored(tmp_path):
    model = KnownModel()
    model.history_ = {"step": np.arange(3), "loss": np.zeros((3, 2)), "bandwidth": np.zeros(2)}
    write_report(model, *sample(10), tmp_path / "r.html")
    assert "<h2>Training" not in (tmp_path / "r.html").read_text("utf-8")


def test_selected_rows_have_different_medians_and_widths():
    rng = np.random.default_rng(0)
    median, width = rng.normal(size=300), rng.random(300)
    chosen = spread_rows(median, width, 6)
    assert len(set(chosen)) == 6
    narrow, wide = chosen[::2], chosen[1::2]
    assert np.all(width[narrow] < 0.25)
    assert np.all(width[wide] > 0.75)
    assert np.all(np.diff(median[narrow]) > 0)
    assert spread_rows(median[:4], width[:4], 6).tolist() == [0, 1, 2, 3]


# ------------------------------------------------------------------------------------- the safety


def test_texts_of_the_user_are_escaped(page):
    text = page.read_text("utf-8")
    body = text.partition("<body>")[2]
    script = "<script>" + body.partition("<script>")[2]  # plotly's and the page's own
    users = text.replace(script, "")
    assert "<img" not in users
    assert "<b>bold" not in users
    assert "<i>c" not in users
    assert html.escape(f"title {EVIL}") in users
    assert len(re.findall("</script>", users)) == len(figures(text)) + 1  # and the CSV


def test_plain_escapes_what_plotly_would_interpret():
    assert plain("a<b>{x} $y$\n&") == "a&lt;b&gt;&#123;x&#125; &#36;y&#36; &amp;"
    assert plain("x" * 99, 10) == "x" * 9 + "…"


def test_half_a_surrogate_pair_is_replaced(tmp_path):
    text, *_ = known_report(tmp_path, title="\ud800 half", target="\udfff")
    assert "? half" in text


# --------------------------------------------------------------------------------------- the file


@pytest.mark.parametrize("path", ["absent/r.html", "", "directory"])
def test_a_path_that_cannot_be_written_is_refused_before_the_work(tmp_path, path):
    (tmp_path / "directory").mkdir()
    model = KnownModel()
    with pytest.raises(NkcmeError, match="cannot be written") as caught:
        write_report(model, *sample(10), tmp_path / path)
    assert "\n" not in str(caught.value)
    assert model.largest_block == 0


def test_devices_are_not_replaced_by_files():
    with pytest.raises(NkcmeError, match="cannot be written"):
        write_report(KnownModel(), *sample(10), os.devnull)


def test_a_failure_keeps_the_old_report_and_no_other_file(tmp_path, monkeypatch):
    path = tmp_path / "r.html"
    path.write_text("old")
    with pytest.raises(NkcmeError, match="3 rows"):
        write_report(KnownModel(), np.zeros((3, 1)), np.zeros(2), path)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(NkcmeError, match="No space left"):
        write_report(KnownModel(), *sample(10), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.html"]


# ------------------------------------------------------------------------------------ the browser


@needs_browser
def test_a_browser_draws_every_chart_without_a_network(page, tmp_path):
    dom, console = rendered(page, tmp_path)
    assert console == []
    charts = charts_of(dom)
    assert len(charts) == page.read_text("utf-8").count('<div class="chart"') == 18
    for chart in charts:
        assert 'class="main-svg"' in chart
        marks = re.findall(r'<path class="(?:js-line|js-fill|point)"[^>]* d="M[^"]+"', chart)
        marks += re.findall(r'class="point[^"]*"[^>]*><path d="M[^"]+"', chart)
        marks += re.findall(r"<image [^>]*data:image/png", chart)
        assert marks, chart[:300]
    assert "<image" in charts[10]  # the shade of the density
    assert "<title>title &lt;/script&gt;" in dom  # and not "hacked"
    assert "<img" not in dom.partition("<script>")[0]
    drawn = "".join(charts)
    assert "a &lt;/script&gt;&lt;img" in drawn or "b &amp; &lt;i&gt;c&lt;/i&gt;" in drawn
    assert "target &lt;/script&gt;&lt;img" in drawn  # axes show names as they are


@needs_browser
def test_selecting_another_feature_draws_its_chart(page, tmp_path):
    chosen = """<script>
      const select = document.querySelector("select"); select.selectedIndex = 1;
      select.dispatchEvent(new Event("change"));
    </script></body>"""
    changed = tmp_path / "changed.html"
    changed.write_text(page.read_text("utf-8").replace("</body>", chosen), "utf-8")
    dom, console = rendered(changed, tmp_path / "profile")
    assert console == []
    titles = re.findall(r'class="xtitle"[^>]*>([^<]*)<', charts_of(dom)[10])
    names = list(evil_table()[0].columns)
    options = [html.unescape(o) for o in re.findall("<option>(.*?)</option>", dom)]
    assert set(options) == set(names[:2])
    assert html.unescape(titles[0])[:8] == options[1][:8]


def test_a_row_is_picked_and_predictions_are_saved_in_a_browser(tmp_path):
    X, y = sample(150)
    y[140] += 40.0
    write_report(KnownModel(), X, y, tmp_path / "r.html")
    with browser() as started, opened(started, (tmp_path / "r.html").as_uri(), 400) as seen:
        assert seen.evaluate("document.documentElement.scrollWidth") <= 400
        seen.locator("button[data-pick]").first.press("Enter")
        picked = seen.locator(".picked")
        assert picked.locator("select").input_value() == "Row 141"
        assert picked.locator(".gtitle").text_content() == "Row 141"
        assert f"x0 = {written(X[140, 0])}" in picked.locator("figcaption").text_content()
        with seen.expect_download() as saved:
            seen.locator("button[data-save]").click()
        assert saved.value.suggested_filename == "predictions.csv"
        saved.value.save_as(tmp_path / "p.csv")
    table = pd.read_csv(tmp_path / "p.csv")
    np.testing.assert_allclose(table["mean"], KnownModel().predict_dist(X).mean(), rtol=1e-8)
