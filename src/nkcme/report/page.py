"""The elements of every report: one self-contained HTML page that needs no network.

This is the only module that imports plotly. Its script is written into the file. The content
security policy of the page forbids to load anything, and all texts of the user are escaped.
"""

from __future__ import annotations

import datetime
import errno
import html
import os
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from nkcme._version import __version__
from nkcme.errors import NkcmeError
from nkcme.model_files.atomic_files import replacing
from nkcme.report.chart_elements import Figure


def write_page(path: str | Path, title: str, make_body: Callable[[], list[str]]) -> None:
    """Write the sections that ``make_body`` returns; the file is complete or does not change."""
    path = Path(path)
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EEXIST, "it exists and is not a file")
        # Opened first, so that a bad path fails before the work.
        with replacing(path, path.with_name(f".{os.getpid()}-{path.name}")) as file:
            page = _page(title, make_body())
            # A column name may contain half a surrogate pair.
            file.write(page.encode("utf-8", "replace"))
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise NkcmeError(
            f"the report {path} cannot be written: {reason}; choose another path"
        ) from error


def _page(title: str, body: list[str]) -> str:
    template = resources.files("nkcme.report").joinpath("template.html").read_text("utf-8")
    return Template(template).substitute(
        title=html.escape(title), version=__version__, body="\n".join(body), plotly=get_plotlyjs()
    )


def header(title: str, facts: list[str], text: str, settings: Mapping[str, Any], of: str) -> str:
    """The top of a page; ``facts`` and ``text`` are HTML, the rest is escaped."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")
    line = " &middot; ".join([*facts, f"nkcme {__version__}", now])
    listed = ", ".join(f"{key}={value!r}" for key, value in sorted(settings.items()))
    return (
        f'<h1>{html.escape(title)}</h1><p class="facts">{line}</p><p>{text}</p>'
        f"<details><summary>Settings of {html.escape(of)}</summary>"
        f"<code>{html.escape(listed)}</code></details>"
    )


def section(heading: str, text: str, content: str) -> str:
    """A section; all arguments are HTML."""
    text = text.replace(" %", "&nbsp;%")
    return f"<section><h2>{heading}</h2><p>{text}</p>{content}</section>"


def chart(figures: Figure | list[Figure], label: str, caption: str = "", above: str = "") -> str:
    """A chart with its data, or several of which a <select> in ``above`` shows one."""
    stored = "".join(_stored(f) for f in (figures if isinstance(figures, list) else [figures]))
    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return (
        f'<figure>{above}<div class="chart" role="img" aria-label="{html.escape(label)}"></div>'
        f"{below}{stored}</figure>"
    )


def _stored(figure: Figure) -> str:
    """A figure as JSON for the page's script; plotly checks it and escapes "<", ">" and "/"."""
    checked = go.Figure(figure, layout_template="none").to_json(engine="json")
    return f'<script type="application/json">{checked}</script>'


def percent(share: float, digits: int = 1) -> str:
    """A share as HTML, in percent."""
    return f"{100 * share:.{digits}f}&nbsp;%"
