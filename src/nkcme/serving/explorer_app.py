"""The web application of `nkcme explore`: that of `nkcme serve` with the explorer's page."""

from __future__ import annotations

import json
import os
from importlib import resources
from typing import Any

from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response

from nkcme.serving.app import body_of, error_response, make_app
from nkcme.serving.exploring import Exploration
from nkcme.serving.questions import RequestError

#: Nothing is loaded from elsewhere, and only this server is asked.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"
)


def make_explorer(path: str | os.PathLike[str], exploration: Exploration, table: Any) -> Any:
    """The application that explores the model at a path.

    Parameters
    ----------
    path : path
        The directory of the model.
    exploration : Exploration
        Its answers.
    table : ExploredTable
        The rows that can be loaded.
    """
    app = make_app(path)
    # A page elsewhere must not read answers by a name of its own for this address.
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    html = page(exploration.start)

    async def get_page(_: Request) -> Response:
        headers = {"Content-Security-Policy": _POLICY}
        return Response(html, media_type="text/html; charset=utf-8", headers=headers)

    async def explore(request: Request) -> Response:
        try:
            content = exploration.answer(await body_of(request))
        except RequestError as error:
            return error_response(str(error), error.status)
        return Response(content, media_type="application/json")

    async def get_row(request: Request) -> Response:
        number = request.path_params["number"]
        row = table.row_of_number(number)
        if row is None:
            return error_response(f"row {number} of the table is not here", 404)
        return Response(json.dumps(row), media_type="application/json")

    app.add_route("/", get_page, methods=["GET"])
    app.add_route("/explore", explore, methods=["POST"])
    app.add_route("/rows/{number:int}", get_row, methods=["GET"])
    return app


def page(start: dict[str, Any]) -> str:
    """The page, with what it shows first inside."""
    template = resources.files("nkcme.serving").joinpath("explorer.html").read_text("utf-8")
    # No text of the user can end the script element.
    data = json.dumps(start, ensure_ascii=True).replace("<", "\\u003c")
    return template.replace("/* what the page shows first */ null", data)
