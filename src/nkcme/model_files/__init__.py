"""Models and checkpoints on disk: strict JSON and safetensors, written atomically.

Nothing is pickled, so loading a file runs no code. Each file carries SHA-256 digests; they catch
accidents but are no signature, so the content is validated behind them too.
"""

from nkcme.model_files.checkpoints import CheckpointFile, read_checkpoint, write_checkpoint
from nkcme.model_files.model_directory import (
    check_destination,
    read_header,
    read_model,
    write_model,
)

__all__ = [
    "CheckpointFile",
    "check_destination",
    "read_checkpoint",
    "read_header",
    "read_model",
    "write_checkpoint",
    "write_model",
]
