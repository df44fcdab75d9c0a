"""What a served model is: its columns for `/health`, its schema, and the page at `/docs`."""

from __future__ import annotations

import html
import json
import os
from string import Template
from typing import Any

import numpy as np

from nkcme._version import __version__
from nkcme.runtime.model import RuntimeModel
from nkcme.tables.column_encoding import Column


def described(model: RuntimeModel, path: str | os.PathLike[str]) -> dict[str, Any]:
    """The answer of `/health`."""
    return {
        "status": "ok",
        "model": os.path.basename(os.path.abspath(path)),
        "estimator": model.estimator,
        "version": __version__,
        "target": model.target_name_,
        "columns": [
            {"name": column.name, "kind": column.kind, "categories": list(column.categories)}
            for column in model.encoder_.columns
        ],
    }


def example_row(model: RuntimeModel) -> dict[str, Any] | list[Any]:
    """A row that the model can predict."""
    values = [_example(column) for column in model.encoder_.columns]
    names = model.encoder_.feature_names
    return values if names is None else dict(zip(names, values, strict=True))


def _example(column: Column) -> Any:
    if column.has_categories:
        return column.categories[0]
    if column.kind == "boolean":
        return True
    if column.kind == "date":
        days = np.datetime64(0, "D") + int(column.features[0].mean)
        return str(days)
    if column.kind == "time":
        return f"{int(column.features[0].mean):02d}:00"
    return float(f"{column.mean:.4g}") if column.kind == "numeric" else None


def example_question(model: RuntimeModel) -> dict[str, Any]:
    """A request that shows every option."""
    row = example_row(model)
    place = float(f"{np.ravel(model.predict([row]))[0]:.4g}")
    return {
        "rows": [row],
        "mean": True,
        "quantiles": [0.1, 0.5, 0.9],
        "intervals": [0.9],
        "probabilities": [{"above": place}, {"below": place}],
        "samples": 3,
        "seed": 0,
    }


def openapi_of_predict(model: RuntimeModel) -> dict[str, Any]:
    """The request and the answers of `/predict`, for the OpenAPI schema."""
    row: dict[str, Any] = {"type": "object", "description": "values by column, null if missing"}
    number = {"type": "number"}
    options = {
        "rows": {"type": "array", "items": {"oneOf": [row, {"type": "array"}]}},
        "mean": {"type": "boolean", "default": True},
        "quantiles": {"type": "array", "items": number},
        "intervals": {"type": "array", "items": number, "description": "coverages"},
        "probabilities": {
            "type": "array",
            "items": {
                "type": "object",
                "description": '{"above": a}, {"below": b} or {"between": [a, b]}',
            },
        },
        "samples": {"type": "integer", "minimum": 0},
        "seed": {"type": "integer", "minimum": 0},
    }
    batch = {"type": "object", "required": ["rows"], "properties": options}
    failure = {
        "description": "what was expected and what came, in one line",
        "content": {"application/json": {"example": {"error": "the table lacks column 'x'"}}},
    }
    return {
        "summary": "Predict the distribution of y for one row or for several.",
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"oneOf": [row, batch]},
                    "example": example_question(model),
                }
            },
        },
        "responses": {
            "200": {"description": "the predictions", "content": {"application/json": {}}},
            "400": failure,
            "413": failure,
            "422": failure,
        },
    }


_PAGE = Template("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>nkcme: $name</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
textarea, pre { width: 100%; box-sizing: border-box; font: 14px/1.4 monospace; padding: .5rem }
pre { background: #f4f4f6; overflow: auto; min-height: 3rem } table { border-collapse: collapse }
td, th { text-align: left; padding: .2rem 1rem .2rem 0; vertical-align: top }
</style></head><body>
<h1>$name</h1>
<p>$estimator predicts the distribution of <b>$target</b>. nkcme $version.</p>
<table><tr><th>column<th>kind<th>categories</tr>$columns</table>
<h2>POST /predict</h2>
<p>One row as an object of values by column, or <code>{"rows": [...]}</code> with options. Missing
values are <code>null</code>. The answer has for each row the mean, quantiles by level, intervals by
coverage, and probabilities and samples in the order asked.</p>
<textarea id="body" rows="14" spellcheck="false">$example</textarea>
<p><button id="send">Send</button></p><pre id="answer"></pre>
<h2>GET /health</h2><p>The model, its version and its columns: <a href="health">health</a>.</p>
<p>The schema for other programs: <a href="openapi.json">openapi.json</a>.</p>
<script>
document.getElementById("send").onclick = async () => {
  const body = document.getElementById("body").value;
  const answer = await fetch("predict", {method: "POST", body});
  document.getElementById("answer").textContent = JSON.stringify(await answer.json(), null, 2);
};
</script></body></html>
""")


def page(model: RuntimeModel, path: str | os.PathLike[str]) -> str:
    """The page at `/docs`, which needs no other server."""
    facts = described(model, path)
    rows = [
        f"<tr><td>{_text(c['name'] if c['name'] is not None else j)}<td>{_text(c['kind'])}"
        f"<td>{_text(', '.join(c['categories']))}</tr>"
        for j, c in enumerate(facts["columns"])
    ]
    return _PAGE.substitute(
        name=_text(facts["model"]),
        estimator=_text(facts["estimator"]),
        target=_text(facts["target"] or "y"),
        version=_text(__version__),
        columns="".join(rows),
        example=_text(json.dumps(example_question(model), indent=1, ensure_ascii=False)),
    )


def _text(value: Any) -> str:
    return html.escape(str(value)).encode(errors="replace").decode()
