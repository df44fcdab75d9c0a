"""The web application: `/predict`, `/health`, `/docs`. The only module that imports FastAPI."""

from __future__ import annotations

import gc
import json
import os
import threading
import warnings
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

from nkcme._version import __version__
from nkcme.errors import NkcmeError, UnknownCategoryWarning
from nkcme.runtime import RuntimeModel, load
from nkcme.serving.answers import answer
from nkcme.serving.description import described, example_row, openapi_of_predict, page
from nkcme.serving.gathering import Gathering
from nkcme.serving.questions import MAX_BYTES, Question, RequestError

#: The variable that names the model to a worker process.
MODEL_VARIABLE = "NKCME_SERVED_MODEL"

#: Requests of more rows are answered in a thread, so that short ones need not wait for them.
_FEW_ROWS = 32


def app_of_environment() -> FastAPI:
    """The application of the model that `MODEL_VARIABLE` names; each worker calls it."""
    app = make_app(os.environ[MODEL_VARIABLE])
    # What is here now stays: looking through it for garbage would hold up requests.
    gc.collect()
    gc.freeze()
    return app


def load_one_output(path: str | os.PathLike[str]) -> RuntimeModel:
    """The model at a path, which must predict one output."""
    model = load(path)  # type: ignore[arg-type]
    if model.n_outputs_ != 1:
        raise NkcmeError(
            f"{path} predicts {model.n_outputs_} outputs and the command line handles one; use "
            "nkcme.load in Python"
        )
    return model


def make_app(path: str | os.PathLike[str]) -> FastAPI:
    """The application that answers with the model at a path."""
    # In answers they are notes.
    warnings.simplefilter("ignore", UnknownCategoryWarning)
    model = load_one_output(path)
    health = described(model, path)
    html = page(model, path)
    answer(model, Question([example_row(model)]))  # the first prediction makes the tables of trees
    # Predicting releases the interpreter's lock only in part: one long answer after the other.
    long_answers = threading.Lock()
    app = FastAPI(title="nkcme", version=__version__, docs_url=None, redoc_url=None)
    gathering = Gathering(model)

    def long_answer(question: Question) -> bytes:
        with long_answers:
            return answer(model, question)

    async def predict(request: Request) -> Response:
        try:
            question = Question.read(await body_of(request))
            if len(question.rows) <= _FEW_ROWS and not question.samples:
                content = await gathering.answer(question)
            else:
                content = await run_in_threadpool(long_answer, question)
        except RequestError as error:
            return error_response(str(error), error.status)
        return Response(content, media_type="application/json")

    def openapi() -> dict[str, Any]:
        schema = FastAPI.openapi(app)
        schema["paths"]["/predict"] = {"post": openapi_of_predict(model)}
        return schema

    # A plain route: FastAPI's would look for parameters in each request, and there are none.
    app.add_route("/predict", predict, methods=["POST"])
    app.openapi = openapi  # type: ignore[method-assign]

    @app.get("/health")
    async def get_health() -> dict[str, Any]:
        """The model, its version and its columns."""
        return health

    @app.get("/docs", include_in_schema=False)
    async def get_docs() -> Response:
        return Response(html, media_type="text/html; charset=utf-8")

    return app


async def body_of(request: Request) -> bytes:
    """The body of a request, refused as soon as it is too long."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BYTES:
            raise RequestError(f"the body has more than {MAX_BYTES} bytes; send fewer rows", 413)
        parts.append(part)
    return b"".join(parts)


def error_response(message: str, status: int) -> Response:
    """An error as one line of JSON."""
    content = json.dumps({"error": message}).encode()
    return Response(content, status_code=status, media_type="application/json")
