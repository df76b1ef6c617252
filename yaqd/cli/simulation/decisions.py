"""`yaq sim replay-decisions`: a recorded scheduler's events played again."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from rm.scheduler import recording
from rm.scheduler.decisions import Outcome
from rm.scheduler.recording import BadRecord, Difference
from yaqd.cli.exits import FAILED, CommandError
from yaqd.cli.output import print_json

_GZIP: Final = b"\x1f\x8b"
_TOLD_EVERY: Final = 5_000


class _RecordLines:
    """The lines of a record, compressed or not, which may end anywhere: its daemon may have been killed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.is_cut = False

    def __iter__(self) -> Iterator[str]:
        try:
            with self._path.open("rb") as file:
                is_packed = file.read(len(_GZIP)) == _GZIP
            with gzip.open(self._path) if is_packed else self._path.open("rb") as file:
                while line := file.readline(recording.LINE_CHARS_MAX + 1):
                    if not line.endswith(b"\n"):
                        self.is_cut = True
                        return
                    yield line.decode("utf-8", "replace")
        except EOFError:
            self.is_cut = True
        except (OSError, zlib.error) as error:
            raise CommandError(f"cannot read {self._path}: {getattr(error, 'strerror', None) or error}") from None


def show_replayed(path: Path, as_json: bool) -> None:
    """Raises CommandError."""
    lines = _RecordLines(path)
    is_shown = sys.stderr.isatty() and not as_json

    def told(events: int) -> None:
        if is_shown and events % _TOLD_EVERY == 0:
            click.echo(f"\r{events:,} events", nl=False, err=True)

    try:
        found = recording.replay(lines, told)
    except BadRecord as error:
        raise CommandError(f"{path}: {error}") from None
    if is_shown and found.events >= _TOLD_EVERY:
        click.echo(err=True)
    difference = found.difference
    if as_json:
        print_json(
            {
                "events": found.events,
                "decisions": found.decisions,
                "is_cut": lines.is_cut,
                "difference": _as_json(difference) if difference is not None else None,
            }
        )
    else:
        end = "; the record ends in the middle of a line" if lines.is_cut else ""
        click.echo(f"{found.events:,} events, {found.decisions:,} decisions{end}")
        click.echo("every decision is the same" if difference is None else _told(difference))
    if difference is not None:
        raise CommandError(f"{path}: line {difference.line} leads to other decisions", FAILED)


def _as_json(difference: Difference) -> dict[str, Any]:
    return {
        "line": difference.line,
        "now": difference.now,
        "event": recording.to_plain(difference.event),
        "recorded": recording.to_plain(difference.recorded),
        "decided": recording.to_plain(difference.decided),
    }


def _told(difference: Difference) -> str:
    return "\n".join(
        [
            f"line {difference.line}, at {difference.now:.3f} s: {difference.event}",
            "  recorded:",
            *_each(difference.recorded),
            "  decided now:",
            *_each(difference.decided),
        ]
    )


def _each(decided: tuple[Outcome, ...] | None) -> list[str]:
    if decided is None:
        return ["    the event was refused"]
    return [f"    {one}" for one in decided] or ["    nothing"]
