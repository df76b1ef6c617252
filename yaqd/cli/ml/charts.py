"""Curves as characters."""

import math
from collections.abc import Sequence
from typing import Final

_LEVELS: Final = "▁▂▃▄▅▆▇█"


def spark(values: Sequence[float], columns: int) -> str:
    """Draw values in one line of at most so many columns: each is the last value of its part."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ""
    shown = min(columns, len(finite))
    picked = [finite[(i + 1) * len(finite) // shown - 1] for i in range(shown)]
    low, high = min(picked), max(picked)
    return "".join(_LEVELS[_place(value, low, high, len(_LEVELS))] for value in picked)


def chart(points: Sequence[tuple[float, float]], columns: int, rows: int) -> list[str]:
    """Draw (x, y) in so many columns and rows, with the ends of both axes."""
    finite = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    if not finite:
        return []
    left, right = min(x for x, _ in finite), max(x for x, _ in finite)
    low, high = min(y for _, y in finite), max(y for _, y in finite)
    lines = [[" "] * columns for _ in range(rows)]
    for x, y in finite:
        lines[rows - 1 - _place(y, low, high, rows)][_place(x, left, right, columns)] = "•"
    labels = {0: f"{high:.4g}", rows - 1: f"{low:.4g}"}
    width = max(map(len, labels.values()))
    drawn = [f"{labels.get(i, ''):>{width}} │{''.join(line).rstrip()}" for i, line in enumerate(lines)]
    first, last = f"{left:g}", f"{right:g}"
    drawn.append(f"{'':>{width}} └{'─' * columns}")
    drawn.append(f"{'':>{width}}  {first}{last:>{max(1, columns - len(first))}}")
    return drawn


def _place(value: float, low: float, high: float, places: int) -> int:
    span = high / 2 - low / 2  # halves, as the difference of two numbers may be none
    share = (value / 2 - low / 2) / span if span > 0 else 0.0
    return round(share * (places - 1))
