"""Attempts to run an application: what became of those before the present one, in one line and in a table."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from yaqd.cli.output import duration, print_table, shortened_error
from yaqd.model.endings import ENDED_WITH_RM, LOST_NODE

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import AttemptReport

_CHARS: Final = 200
_PAGES: Final = "For more detailed output, check"
_DOES: Final = {
    "ALLOCATED": "starts",
    "ALLOCATED_SAVING": "starts",
    "LAUNCHED": "starts",
    "RUNNING": "runs",
    "FINISHING": "has finished",
    "FINISHED": "has finished",
    "FAILED": "has failed",
    "KILLED": "was killed",
}


@dataclass(frozen=True, slots=True)
class Told:
    """One attempt."""

    number: int
    state: str
    #: where its master's container was; None: it had none, or nobody knows any more
    node: str | None
    #: epoch ms; 0: it goes on
    finished_ms: float
    diagnostics: str


def told(report: "AttemptReport") -> Told:
    node = str(report.node) if report.node is not None else None
    return Told(report.id.attempt, report.state.name, node, report.finish_ms, report.diagnostics)


def story(attempts: Sequence[Told], present: int) -> list[str]:
    """Write a line for each attempt that another one followed; `present`: the number of the last one."""
    known = {attempt.number: attempt for attempt in attempts}
    lines = []
    for number in range(max(1, min(known, default=present) - 1), present):
        follower = known.get(number + 1)
        does = _DOES.get(follower.state if follower is not None else "", "waits for its master's container")
        if number + 1 < present:
            does = "followed"
        lines.append(f"{_end(number, known.get(number))}; attempt {number + 1} {does}")
    return lines


def _end(number: int, attempt: Told | None) -> str:
    if attempt is None or ENDED_WITH_RM in attempt.diagnostics:
        return f"attempt {number} ended with the ResourceManager that knew of it"
    at = f" at {time.strftime('%H:%M:%S', time.localtime(attempt.finished_ms / 1000))}" if attempt.finished_ms else ""
    where = f" node {attempt.node}" if attempt.node is not None else " its master's node"
    if LOST_NODE in attempt.diagnostics:
        return f"attempt {number} was lost with{where}{at}"
    there = f" on{where}" if attempt.node is not None else ""
    return f"attempt {number} failed{there}{at}: {_shortened(attempt.diagnostics)}"


def _shortened(diagnostics: str) -> str:
    """Without the pages that ResourceManagers name at the end, Hadoop's and ours."""
    return shortened_error(diagnostics.partition(_PAGES)[0], _CHARS)


def show_attempts(attempts: "Sequence[AttemptReport]") -> None:
    """Print a table of the attempts where more than one was made.

    Of a single one the application's own fields say all there is.
    """
    if not any(attempt.id.attempt > 1 for attempt in attempts):
        return
    rows = []
    for attempt in attempts:
        took = (attempt.finish_ms or time.time() * 1000) - attempt.start_ms
        lost = LOST_NODE in attempt.diagnostics
        rows.append(
            (
                attempt.id.attempt,
                attempt.state.name,
                attempt.node or "-",
                duration(max(0.0, took)),
                "lost with its node" if lost else _shortened(attempt.diagnostics) or "-",
            )
        )
    click.echo()
    print_table(("attempt", "state", "master's node", "time", "diagnostics"), rows, empty="")


def as_dict(attempt: "AttemptReport") -> dict[str, Any]:
    return {
        "attempt": attempt.id.attempt,
        "state": attempt.state.name,
        "node": None if attempt.node is None else str(attempt.node),
        "start_ms": attempt.start_ms,
        "finish_ms": attempt.finish_ms,
        "diagnostics": attempt.diagnostics,
    }
