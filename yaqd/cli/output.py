"""How results are printed: aligned tables for people, one JSON value for programs."""

import json
import re
from collections.abc import Sequence
from typing import Any

import click

from yaqd.model.endings import without_middle

TRUNCATED_CHARS = 60
_BEFORE_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, sort_keys=False, default=str))


def snake_keys(value: Any) -> Any:
    """Rewrite the keys of a daemon's REST answer as commands have them: mergedBytes becomes merged_bytes."""
    if isinstance(value, dict):
        return {_BEFORE_CAPITAL.sub("_", key).lower(): snake_keys(found) for key, found in value.items()}
    return [snake_keys(found) for found in value] if isinstance(value, list) else value


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Print columns as wide as their widest cell; numbers to the right.

    `empty` is what to say when there are no rows.
    """
    if not rows:
        click.echo(empty)
        return
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in [list(headings), *cells]) for i in range(len(headings))]
    is_number = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(headings))]
    for line in [list(headings), *cells]:
        padded = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, is_number, strict=True)
        )
        click.echo("  ".join(padded).rstrip())


def print_fields(fields: Sequence[tuple[str, object]]) -> None:
    """Print one `name: value` a line, values aligned.

    A value of several lines is indented under its name.
    """
    width = max(len(name) for name, _ in fields) + 2
    for name, value in fields:
        text = str(value).rstrip()
        if "\n" in text:
            click.echo(f"{name}:")
            for line in text.splitlines():
                click.echo(f"  {line}")
        else:
            click.echo(f"{name + ':':<{width}}{text}".rstrip())


def duration(milliseconds: float) -> str:
    """Write a duration: `850ms`, `12.3s`, `4m05s`, `2h03m`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f}ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02d}s"
    return f"{minutes // 60}h{minutes % 60:02d}m"


def size(count: float) -> str:
    """Write a size: `512 B`, `1.5 KB`, `64.0 MB`: powers of 1024."""
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TB"


def priority_text(application_id: object, given: int, asked: int) -> str:
    """Say what became of a priority that was asked for."""
    cut = f": {asked} was cut to yarn.cluster.max-application-priority" if given < asked else ""
    return f"{application_id} has priority {given}{cut}"


def shortened(text: str, chars: int = TRUNCATED_CHARS) -> str:
    """Shorten a text to one line of at most `chars` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= chars else flat[: chars - 3] + "..."


def shortened_error(text: str, chars: int) -> str:
    """Shorten what went wrong to such a line: its end tells as much as its beginning."""
    return without_middle(" ".join(text.split()), chars)
