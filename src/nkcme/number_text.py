"""Numbers as people write them: 348,600 rather than 3.486e+05."""

from __future__ import annotations

import math


def written(value: float, digits: int = 4) -> str:
    """A number with about so many significant digits, and commas between thousands.

    Digits before the decimal point are all written; four of them have no comma, because they may
    be a year. Very large and very small numbers have an exponent.

    Examples
    --------
    >>> written(348612.31), written(1999.0), written(0.012345), written(-2.0), written(3e-9)
    ('348,612', '1999', '0.01235', '-2', '3e-09')
    """
    size = abs(value)
    if not math.isfinite(value) or (size and not 1e-4 <= size < 1e12):
        return f"{value:.{digits}g}"
    decimals = max(digits - 1 - math.floor(math.log10(size)), 0) if size else 0
    text = f"{value:,.{decimals}f}" if size >= 9999.5 else f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def written_change(value: float) -> str:
    """A difference: with its sign, rounded to three significant digits.

    Examples
    --------
    >>> written_change(178739.0), written_change(-0.5)
    ('+179,000', '-0.5')
    """
    rounded = float(f"{value:.3g}")
    return f"{'+' if rounded >= 0 else ''}{written(rounded, 3)}"
