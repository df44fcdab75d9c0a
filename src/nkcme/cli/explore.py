"""The command `nkcme explore`."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nkcme.cli.loading import Note
from nkcme.cli.serve import need_free
from nkcme.errors import NkcmeError

if TYPE_CHECKING:
    import numpy as np

HOST = "127.0.0.1"


#: Loads the features of a table, and its true y where it holds them.
Load = Callable[[], tuple[Any, "np.ndarray | None"]]


def explore_table(path: Path, load: Load, *, port: int, open_browser: bool, note: Note) -> None:
    """Serve the explorer of a model and a table until the process is stopped."""
    app = explorer_of(path, load)
    import uvicorn

    need_free(HOST, port, "--port")
    url = f"http://{HOST}:{port}"
    note(f"explore {path} at {url}; Ctrl-C to stop")
    if open_browser:  # once the server has had time to start
        threading.Timer(1.0, webbrowser.open, [url]).start()
    uvicorn.run(app, host=HOST, port=port, log_level="warning", access_log=False)


def explorer_of(path: Path, load: Load) -> Any:
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
    X, y = load()
    model = load_one_output(path)
    columns = [X.iloc[:, j].astype(object).tolist() for j in range(X.shape[1])]
    explored = ExploredTable(model, list(map(str, X.columns)), columns, y)
    return make_explorer(path, Exploration(model, explored, path.absolute().name), explored)
