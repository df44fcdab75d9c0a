"""Elements of the charts of a report: plotly's figures as plain dictionaries, without plotly.

Every text of the user passes through `plain`, because plotly interprets texts as HTML. Colours are
those of Okabe and Ito, which colour-blind readers can distinguish.
"""

from __future__ import annotations

import html
from typing import Any

BLUE, SKY, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
INK, GREY, LIGHT = "#1a1a1a", "#666666", "#e4e4e4"

Figure = dict[str, Any]

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


def plain(text: object, limit: int = 60) -> str:
    """A user's text so that plotly shows it unchanged, on one line, shortened to ``limit``."""
    words = " ".join(str(text).split())
    shown = words if len(words) <= limit else words[: limit - 1] + "…"
    # Braces are syntax of hover templates, dollars of TeX where a page has MathJax.
    escaped = html.escape(shown, quote=False)
    return escaped.replace("{", "&#123;").replace("}", "&#125;").replace("$", "&#36;")


def figure(data: list[Figure], *, height: int, legend: bool = True, **layout: Any) -> Figure:
    """A figure of these traces; ``layout`` adds to the layout of all charts or replaces it."""
    top = 44 if legend or "title" in layout else 16
    return {
        "data": data,
        "layout": {
            "height": height,
            "margin": {"l": 12, "r": 26, "t": top, "b": 12},
            "font": {"family": _FONT, "size": 13, "color": INK},
            "paper_bgcolor": "white",
            "plot_bgcolor": "white",
            "showlegend": legend,
            "legend": {
                "orientation": "h",
                "x": 0,
                "y": 1.01,
                "yanchor": "bottom",
                "font": {"size": 12},
            },
            "dragmode": False,  # so that a finger scrolls the page
            "hoverlabel": {"bgcolor": "white", "font": {"color": INK}},
            **layout,
        },
    }


def axis(title: str, **settings: Any) -> dict[str, Any]:
    """An axis with a title."""
    return {
        "title": {"text": title, "standoff": 8, "font": {"size": 13}},
        "automargin": True,
        "fixedrange": True,
        "showline": True,
        "linecolor": GREY,
        "ticks": "outside",
        "tickcolor": GREY,
        "gridcolor": LIGHT,
        "zeroline": False,
        "nticks": 7,
        "exponentformat": _exponents(settings.get("range", ())),
        **settings,
    }


def _exponents(reach: Any) -> str:
    """How ticks are written: 250,000 in full, ten million as 10M, a ten thousandth as a power."""
    largest = max((abs(float(end)) for end in reach), default=1.0)
    if largest >= 1e7:
        return "B"
    return "none" if largest >= 1e-3 else "power"


def line(
    x: Any,
    y: Any,
    name: str,
    colour: str = BLUE,
    width: float = 2,
    dash: str = "solid",
    **more: Any,
) -> Figure:
    """A trace drawn as a line."""
    style = {"color": colour, "width": width, "dash": dash}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": name, "line": style, **more}


def points(x: Any, y: Any, name: str, colour: str, size: int, symbol: str = "circle") -> Figure:
    """A trace drawn as points."""
    marker = {"color": faded(colour, 0.65), "size": size, "symbol": symbol}
    return {"type": "scatter", "mode": "markers", "x": x, "y": y, "name": name, "marker": marker}


def faded(colour: str, opacity: float) -> str:
    """A colour with an opacity between 0 and 1."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
