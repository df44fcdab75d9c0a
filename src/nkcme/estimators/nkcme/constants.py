"""Constants of recipes: their values, the reasons for them, and what they were tuned on."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any

#: What a value was tuned on.
NOTHING = "nothing"
TOY = "toy data (also scored)"
UCI = "UCI test folds (also scored)"
TOY_AND_UCI = "toy data and UCI test folds (both also scored)"
TABLES = "development tables (not scored elsewhere)"
UCI_AND_TABLES = "UCI test folds (also scored) and development tables"
CONFIRMED = "UCI test folds (also scored), confirmed on development tables"
TABLES_AND_SHIFTS = "development tables without a cluster, and simulated shifts (those also scored)"
TABLES_AND_POSITIVE = "development tables and simulated positive y (neither scored elsewhere)"
TABLES_AND_EXACT = "development tables and simulated exact functions (neither scored elsewhere)"
SHIFTS = "simulated shifts (also scored)"
BRANCHES = "simulated branches, shapes and supports (some of the branches and supports also scored)"
DEPENDENT = "simulated tables in time (not scored elsewhere)"
TWO_OUTPUTS = "two-output problems (also scored)"


def constant(value: Any, reason: str, tuned_on: str) -> Any:
    """A field of a recipe: its value, the reason for it, and what it was tuned on."""
    return field(default=value, metadata={"reason": reason, "tuned_on": tuned_on})


class Constants:
    """A dataclass whose text shows only what differs from the default."""

    def __repr__(self) -> str:
        changed = [
            f"{f.name}={getattr(self, f.name)!r}"
            for f in fields(self)  # type: ignore[arg-type]
            if getattr(self, f.name) != f.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"
