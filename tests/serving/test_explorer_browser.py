"""The explorer in a browser: inputs are moved, and the numbers are what Python says."""

import threading
import time
from functools import partial

import numpy as np
import pandas as pd
import pytest
import uvicorn

from nkcme import NKCME, runtime
from nkcme.cli.explore import explorer_of
from nkcme.cli.loading import load_for_exploring
from nkcme.number_text import written
from support.houses import make_table
from support.playwright_browser import browser, opened
from support.tiny_estimators import TINY_RECIPE
from support.waiting import wait_until

#: The days of the table; the explorer begins at the middle one.
DAYS = pd.date_range("2023-01-01", periods=200)
MIDDLE = "2023-04-11"


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explorer")
    table = make_table(200)
    table["price"] = 1000 * (300 + 40 * table["price"])
    table["day"] = DAYS.astype(str)
    table.to_csv(folder / "houses.csv", index=False)
    X = table.drop(columns="price")
    model = NKCME(recipe=TINY_RECIPE, hidden=(8,), n_atoms=20, random_state=0)
    model.fit(X, table["price"])
    model.target_name_ = "price"  # as `nkcme fit` does
    model.save(folder / "model")
    return folder / "model", folder / "houses.csv"


@pytest.fixture(scope="module")
def url(paths):
    path, table = paths
    load = partial(load_for_exploring, path, table, None, lambda text: None)
    app = explorer_of(path, load)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def started():
    with browser() as one:
        yield one


def value(page, row, of="a"):
    return page.locator(f'tr[data-row="{row}"] td[data-of="{of}"]').text_content()


def settled(page):
    """Wait until the page shows the answer to what was changed last."""
    wait_until(lambda: page.evaluate("document.body.dataset.state") == "answered")


def dist_of(paths, **row):
    return runtime.load(paths[0]).predict_dist([{"day": MIDDLE} | row])


def test_a_slider_is_moved_and_the_numbers_are_those_of_python(url, paths, started):
    with opened(started, url) as page:
        settled(page)
        first = value(page, "mean")
        page.get_by_label("x", exact=True).fill("1")
        page.get_by_label("colour", exact=True).select_option("green")
        page.get_by_label("sold", exact=True).select_option("yes")
        page.get_by_label("limit of the event", exact=True).fill("310000")
        settled(page)
        dist = dist_of(paths, x=1.0, colour="green", sold=True)
        assert value(page, "mean") == written(dist.mean()[0]) != first
        for level in (0.05, 0.5, 0.95):
            assert value(page, f"q{level}") == written(dist.ppf(level)[0])
        assert value(page, "event") == f"{100 * dist.sf(310_000)[0]:.1f} %"
        assert "P(price > 310,000)" in page.locator("#numbers").text_content()


def test_a_date_has_a_slider_and_a_field(url, paths, started):
    with opened(started, url) as page:
        settled(page)
        kept = page.get_by_label("colour", exact=True).input_value()
        sold = page.get_by_label("sold", exact=True).input_value() == "yes"
        slider = page.get_by_label("day", exact=True)
        field = page.get_by_label("day, as a date", exact=True)
        assert field.input_value() == MIDDLE
        slider.press("ArrowRight")
        settled(page)
        assert field.input_value() == "2023-04-12"
        slider.press("End")
        settled(page)
        assert field.input_value() == str(DAYS[-1].date())
        field.fill("2023-02-03")
        settled(page)
        assert int(slider.input_value()) == (pd.Timestamp("2023-02-03") - pd.Timestamp(0)).days
        dist = dist_of(paths, x=page_x(page), colour=kept, sold=sold, day="2023-02-03")
        assert value(page, "mean") == written(dist.mean()[0])


def page_x(page):
    return float(page.get_by_label("x, as a number", exact=True).input_value())


def test_two_scenarios_are_compared(url, paths, started):
    with opened(started, url) as page:
        settled(page)
        page.locator("#compare").check()
        page.get_by_label("x", exact=True).fill("1")
        page.get_by_label("x, scenario B", exact=True).fill("-1")
        settled(page)
        kept = page.get_by_label("colour", exact=True).input_value()
        sold = page.get_by_label("sold", exact=True).input_value() == "yes"
        a, b = (dist_of(paths, x=x, colour=kept, sold=sold).mean()[0] for x in (1.0, -1.0))
        assert (value(page, "mean"), value(page, "mean", "b")) == (written(a), written(b))
        change = "+" * int(b >= a) + written(b - a)
        assert value(page, "mean", "difference") == change
        assert page.locator("path[data-density]").count() == 2
        page.locator("#copy").click()
        settled(page)
        assert value(page, "mean", "b") == value(page, "mean")


def test_the_keyboard_and_a_narrow_page_are_enough(url, paths, started):
    with opened(started, url, width=400) as page:
        settled(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        slider = page.get_by_label("x", exact=True)
        before = slider.input_value()
        slider.press("ArrowRight")
        settled(page)
        after = float(slider.input_value())
        assert after > float(before)
        page.keyboard.press("Tab")
        name = "document.activeElement.getAttribute('aria-label')"
        assert page.evaluate(name) == "x, as a number"
        page.keyboard.press("Tab")
        assert page.evaluate(name) == "colour"
        # A real row, by its number.
        table = pd.read_csv(paths[1])
        page.locator("#row").fill("8")
        page.locator('button[data-load="0"]').press("Enter")
        settled(page)
        row = table.iloc[7]
        own = row[["x", "colour", "day"]].to_dict()
        dist = dist_of(paths, sold=bool(row["sold"]), **own)
        assert value(page, "mean") == written(dist.mean()[0])
        assert page.locator("#nearest-0 td").first.text_content() == "8"
        assert page.locator("#nearest-0 td").nth(2).text_content() == written(row["price"], 6)


def test_inputs_far_from_the_rows_are_warned_of(url, started):
    with opened(started, url) as page:
        settled(page)
        assert page.locator("#warning-0").text_content() == ""
        page.get_by_label("x, as a number", exact=True).fill("1000")
        settled(page)
        text = page.locator("#warning-0").text_content()
        assert "Outside the values of the table: x (there" in text
        assert "far from the training rows" in text


def test_missing_values_and_bad_rows(url, paths, started):
    with opened(started, url, expected="404 (Not Found)") as page:
        settled(page)
        page.get_by_label("x, as a number", exact=True).fill("")
        settled(page)
        kept = page.get_by_label("colour", exact=True).input_value()
        sold = page.get_by_label("sold", exact=True).input_value() == "yes"
        dist = dist_of(paths, x=None, colour=kept, sold=sold)
        assert value(page, "mean") == written(dist.mean()[0])
        assert np.isfinite(dist.mean()[0])
        page.locator("#row").fill("999")
        page.locator('button[data-load="0"]').click()
        settled(page)
        assert "row 999 of the table is not here" in page.locator("#failure").text_content()
