"""How a user describes a table file, where that is not left to be found."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from nkcme.errors import TableError

#: Names of separators that a shell makes hard to type.
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " ", "pipe": "|"}


@dataclass(frozen=True)
class TableOptions:
    """How a table file is written.

    Parameters
    ----------
    separator, decimal : str or None
        Of text files; None: found in the file.
    encoding : str
        Of text files.
    missing : tuple of str
        Marks of missing values in all columns, beside the usual ones.
    """

    separator: str | None = None
    decimal: str | None = None
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()

    @classmethod
    def of_text(
        cls, sep: str | None, decimal: str | None, encoding: str | None, na: str | None
    ) -> TableOptions:
        """From the options of a command line, which are checked."""
        separator = sep if sep is None else _NAMED.get(sep, sep)
        if separator is not None and (len(separator) != 1 or separator in '"\n\r.'):
            raise TableError(f"--sep must be one character, such as ';' or tab; got {sep!r}")
        if decimal not in (None, ".", ","):
            raise TableError(f"--decimal must be . or ,; got {decimal!r}")
        try:
            codecs.lookup(encoding or "utf-8")
        except LookupError:
            raise TableError(
                f"--encoding must be the name of a text encoding, such as cp1252; got {encoding!r}"
            ) from None
        missing = tuple(mark.strip() for mark in na.split(",")) if na else ()
        return cls(separator, decimal, encoding or "utf-8", missing)


#: Everything is to be found in the file.
UNKNOWN = TableOptions()
