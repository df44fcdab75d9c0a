"""Requests to a web application in this process, without a server."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    status_code: int
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


class Client:
    """Calls an ASGI application; an exception in it is raised here."""

    def __init__(self, app: Any):
        self._app = app

    def get(self, path: str) -> Answer:
        return asyncio.run(self._call("GET", path, b""))

    def post(self, path: str, *, json: Any = None, content: bytes | None = None) -> Answer:
        return asyncio.run(self._call("POST", path, as_body(json) if content is None else content))

    async def _call(self, method: str, path: str, body: bytes) -> Answer:
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(b"content-length", str(len(body)).encode())],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        return Answer(sent[0]["status"], b"".join(part.get("body", b"") for part in sent[1:]))


def as_body(content: Any) -> bytes:
    return json.dumps(content).encode()
