"""Pages as a headless Chromium draws them, and the charts' data inside."""

import base64
import json
import re
import shutil
import subprocess

import numpy as np
import plotly.graph_objects as go
import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


def figures(text):
    """The charts' data, after plotly has checked them again."""
    stored = re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    return [go.Figure(json.loads(figure, object_hook=_numbers)) for figure in stored]


def _numbers(item):
    """The array that plotly wrote as base64, or the item itself."""
    if "bdata" not in item:
        return item
    array = np.frombuffer(base64.b64decode(item["bdata"]), item["dtype"])
    return array.reshape([int(n) for n in item.get("shape", "-1").split(",")])


def rendered(path, profile):
    """The document after its scripts ran without a network, and the lines of its console."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
               "--disable-background-networking", "--disable-component-update", "--disable-sync",
               "--host-resolver-rules=MAP * ~NOTFOUND", "--window-size=1200,900",
               f"--user-data-dir={profile}", "--virtual-time-budget=10000",
               "--enable-logging=stderr", "--dump-dom", path.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def charts_of(dom):
    """The drawn part of each chart: from its element to the data that lie beside it."""
    return re.findall(r'<div class="chart.*?<script type="application/json">', dom, re.DOTALL)
