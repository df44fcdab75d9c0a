"""The command `nkcme serve`."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

from nkcme.errors import NkcmeError


def serve_model(
    path: Path, *, host: str, port: int, workers: int, note: Callable[[str], object]
) -> None:
    """Answer requests with the model at a path until the process is stopped."""
    try:
        import uvicorn

        from nkcme.serving.app import MODEL_VARIABLE, load_one_output
    except ImportError as error:
        raise NkcmeError(
            f"nkcme serve needs FastAPI and uvicorn, and {error.name} is not installed; install "
            "nkcme[serve]"
        ) from error
    load_one_output(path)  # refused here, not in a worker
    need_free(host, port, "--port or --host")
    os.environ[MODEL_VARIABLE] = str(path.absolute())
    shown = f"[{host}]" if ":" in host else host
    note(f"serving {path} at http://{shown}:{port} (its page: /docs); Ctrl-C to stop")
    uvicorn.run(
        "nkcme.serving.app:app_of_environment",
        factory=True,
        host=host,
        port=port,
        workers=workers,
        log_level="warning",
        access_log=False,
    )


def need_free(host: str, port: int, choice: str) -> None:
    """Raise unless a server can listen there; ``choice`` names the options that choose where."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        raise NkcmeError(
            f"cannot listen at {host}:{port} ({error.strerror or error}); choose another {choice}"
        ) from error
