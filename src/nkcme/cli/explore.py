"""The command `nkcme explore`."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path
from typing import Any

from nkcme.cli.loading import Note, load_for_exploring
from nkcme.cli.serve import need_free
from nkcme.errors import NkcmeError

HOST = "127.0.0.1"


def explore_table(
    path: Path, table: Path, target: str | None, *, port: int, open_browser: bool, note: Note
) -> None:
    """Serve the explorer of a model and a table until the process is stopped."""
    app = explorer_of(path, table, target, note)
    import uvicorn

    need_free(HOST, port)
    url = f"http://{HOST}:{port}"
    note(f"explore {path} at {url}; Ctrl-C to stop")
    if open_browser:  # once the server has had time to start
        threading.Timer(1.0, webbrowser.open, [url]).start()
    uvicorn.run(app, host=HOST, port=port, log_level="warning", access_log=False)


def explorer_of(path: Path, table: Path, target: str | None, note: Note) -> Any:
    """The web application of the explorer."""
    try:
        import uvicorn  # noqa: F401  refused here, before anything is loaded

        from nkcme.serving.app import load_one_output
        from nkcme.serving.explored_table import ExploredTable
        from nkcme.serving.explorer_app import make_explorer
        from nkcme.serving.exploring import Exploration
    except ImportError as error:
        raise NkcmeError(
            f"nkcme explore needs FastAPI and uvicorn, and {error.name} is not installed; install "
            "nkcme[serve]"
        ) from error
    X, y = load_for_exploring(path, table, target, note)
    model = load_one_output(path)
    columns = [X.iloc[:, j].astype(object).tolist() for j in range(X.shape[1])]
    explored = ExploredTable(model, list(map(str, X.columns)), columns, y)
    return make_explorer(path, Exploration(model, explored, path.absolute().name), explored)
