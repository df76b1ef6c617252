"""A job on the screen: progress while it runs, on standard error, and what became of it.

Bars only on a terminal; elsewhere a line whenever a tenth more is done. `rich` is imported only for bars.
"""

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.applications.attempts import story, told
from yaqd.cli.applications.wait_reason import PATIENCE_S, WaitingReason, why_it_waits
from yaqd.cli.ended import exit_code_of, say_last
from yaqd.cli.exits import FAILED
from yaqd.cli.output import duration, print_fields, print_json, priority_text

if TYPE_CHECKING:
    from tez_adapter.client.follow import JobResult, JobStatus, SubmittedJob

_STEP = 0.1
#: between looks at a job of which nothing but trouble is shown, or a line that says all, s
_QUIET_S = 2.0
#: between looks where lines are written, and where bars move, s
_LINES_S = 0.5
_BARS_S = 0.2


def follow(
    job: "SubmittedJob",
    *,
    wait: bool,
    as_json: bool,
    is_quiet: bool = False,
    is_new: bool = True,
    logs: Callable[[], list[dict[str, object]]] | None = None,
    reached: Callable[[], Mapping[str, object]] = dict,
    stands: Callable[[], str] | None = None,
    ends_with: str = "yaq app kill",
) -> int:
    """Shows the submitted job to its end (unless not `wait`) and returns the exit code. `logs` go into the JSON.
    `reached`: what a job that succeeded has come to, for standard output or the JSON. `stands`: how far it is, in a
    line; without it the tasks that are done say so. `ends_with`: the command that ends it.

    `is_quiet`: of a job that succeeds nothing but trouble on the way is said. `is_new`: this command submitted it.
    """
    application_id = job.application_id
    if is_new:
        _say_cut_priority(job)
    if not wait:
        print_json({"application_id": str(application_id)}) if as_json else click.echo(str(application_id))
        return 0
    if is_new and not as_json and not is_quiet:
        click.echo(f"{application_id} submitted", err=True)
    try:
        result = wait_with_progress(job, is_quiet=as_json or is_quiet, stands=stands)
    except KeyboardInterrupt as end:
        say_last(f"{application_id} goes on; end it with: {ends_with} {application_id}")
        return exit_code_of(end)
    if as_json:
        come_to = reached() if result.succeeded else {}
        print_json({**result_as_dict(result), **come_to, **({"logs": logs()} if logs is not None else {})})
    elif not (is_quiet and result.succeeded):
        show_result(result, is_quiet=is_quiet)
        if result.succeeded and (fields := reached()):
            print_fields(list(fields.items()))
    return 0 if result.succeeded else FAILED


def _say_cut_priority(job: "SubmittedJob") -> None:
    """The ResourceManager takes a job with a lower priority than was asked for, and says nothing."""
    from tez_adapter.client.rm_client import RmUnavailable
    from tez_adapter.client.terms import asked_priority
    from yaqd.ipc import RemoteException

    asked = asked_priority(job.conf)
    if asked is None:
        return
    try:
        given = job.report().priority
    except (RmUnavailable, RemoteException):
        return
    if given < asked:
        click.echo(priority_text(job.application_id, given, asked), err=True)


def wait_with_progress(
    job: "SubmittedJob", *, is_quiet: bool = False, stands: Callable[[], str] | None = None
) -> "JobResult":
    """Blocks until the job has ended. `stands`: as of `follow`."""
    if is_quiet:
        only_trouble = line_printer(_to_stderr, explain=_why(job), progress=False)
        return job.wait(only_trouble, progress_every_s=_QUIET_S, on_silence=_to_stderr)
    if sys.stderr.isatty():
        return _wait_with_bars(job, stands)
    show = line_printer(_to_stderr, explain=_why(job), stands=stands)
    return job.wait(show, progress_every_s=_LINES_S if stands is None else _QUIET_S, on_silence=_to_stderr)


def _why(job: "SubmittedJob") -> Callable[[], str | None]:
    return lambda: why_it_waits(job.conf, job.application_id)


def _to_stderr(line: str) -> None:
    click.echo(line, err=True)


def line_printer(
    write: Callable[[str], None],
    *,
    patience_s: float = PATIENCE_S,
    explain: Callable[[], str | None] = lambda: None,
    progress: bool = True,
    stands: Callable[[], str] | None = None,
) -> "Callable[[JobStatus], None]":
    """Writes a line when an attempt was lost, or the job waits for something else. Unless not `progress`, it also
    writes one when the state changes, a vertex has done a tenth more, or something happened on the cluster. `stands`:
    instead of the vertices, a line that is written when it is another."""
    last: tuple[Any, ...] = ()
    waiting = WaitingReason(patience_s=patience_s, explain=explain)
    notices = UnseenNotices()
    attempts = LostAttempts()

    def show(status: "JobStatus") -> None:
        nonlocal last
        for line in (*attempts.of(status), *(notices.of(status) if progress else ())):
            write(line)
        if (reason := waiting.of(status)) is not None:
            write(f"waiting: {reason}")
        if not progress:
            return
        if stands is not None:
            line = stands() if status.vertices else ""
            if line and (line,) != last:
                last = (line,)
                write(line)
            return
        steps = tuple(int(vertex.progress / _STEP) for vertex in status.vertices)
        if (status.state, steps) == last or not status.vertices:
            return
        last = (status.state, steps)
        parts = (f"{v.name} {v.progress:4.0%} ({v.done}/{v.tasks} tasks)" for v in status.vertices)
        write("  ".join(parts))

    return show


class LostAttempts:
    """What became of attempts, a line whenever another one follows."""

    def __init__(self) -> None:
        self._seen = 1

    def of(self, status: "JobStatus") -> list[str]:
        number, attempts = status.made
        if number <= self._seen:
            return []
        lines = story([told(attempt) for attempt in attempts], number)[self._seen - number :]
        self._seen = number
        return lines


class UnseenNotices:
    """What happened to a job on the cluster, each line once."""

    def __init__(self) -> None:
        self._seen = 0

    def of(self, status: "JobStatus") -> tuple[str, ...]:
        if not status.vertices:
            return ()  # the job manager did not answer
        if status.notices_total < self._seen:
            self._seen = 0  # another one, which begins anew
        unseen = min(status.notices_total - self._seen, len(status.notices))
        self._seen = status.notices_total
        return status.notices[len(status.notices) - unseen :]


def local_progress(*, is_quiet: bool) -> Callable[[str, int, int], None]:
    """Writes a line when a phase of a local run has done a tenth more of its tasks."""
    last: tuple[str, int] | None = None

    def show(phase: str, done: int, total: int) -> None:
        nonlocal last
        step = int(done / total / _STEP) if total else 0
        if not is_quiet and (phase, step) != last:
            last = (phase, step)
            click.echo(f"{phase} {done}/{total} tasks", err=True)

    return show


def _wait_with_bars(job: "SubmittedJob", stands: Callable[[], str] | None) -> "JobResult":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<8}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[tasks]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        waiting = bars.add_task("waiting", total=None, tasks="")
        rows: dict[str, Any] = {}
        reasons = WaitingReason(explain=_why(job))
        notices = UnseenNotices()
        attempts = LostAttempts()

        def show(status: "JobStatus") -> None:
            if (reason := reasons.of(status)) is not None:
                bars.console.print(f"waiting: {reason}", markup=False, highlight=False)
            for line in (*attempts.of(status), *notices.of(status)):
                bars.console.print(line, markup=False, highlight=False)
            if status.vertices:
                bars.update(waiting, visible=False)
            for vertex in status.vertices:
                if vertex.name not in rows:
                    rows[vertex.name] = bars.add_task(vertex.name, total=1.0, tasks="")
                tasks = f"{vertex.done}/{vertex.tasks} tasks, {vertex.running} running" if stands is None else stands()
                bars.update(rows[vertex.name], completed=vertex.progress, tasks=tasks)

        def silent(line: str) -> None:
            bars.console.print(line, markup=False, highlight=False)

        return job.wait(show, progress_every_s=_BARS_S if stands is None else _LINES_S, on_silence=silent)


def show_result(result: "JobResult", *, is_quiet: bool) -> None:
    """Prints the verdict, the counters unless quiet, and for a failure its diagnostics, on standard error."""
    took = duration(result.finish_ms - result.start_ms) if result.finish_ms > result.start_ms > 0 else "?"
    click.echo(f"{result.application_id} {result.state} after {took}", err=True)
    if result.diagnostics:
        click.echo(result.diagnostics.rstrip(), err=True)
    for line in result.notes:
        click.echo(f"note: {line}", err=True)
    if not is_quiet:
        show_counters(result.counters)
    if not result.succeeded:
        click.echo(f"logs: yaq app logs {result.application_id}", err=True)


def show_counters(groups: Any, *, err: bool = True) -> None:
    """Prints counters under their groups' short names, as Hadoop's client does."""
    for group in sorted(groups):
        click.echo(group.rpartition(".")[2], err=err)
        for name, value in sorted(groups[group].items()):
            click.echo(f"  {name:<32} {value:>16,}", err=err)


def result_as_dict(result: "JobResult") -> dict[str, object]:
    return {
        "application_id": str(result.application_id),
        "state": result.state,
        "exit_code": result.exit_code,
        "diagnostics": result.diagnostics,
        "notes": list(result.notes),
        "start_ms": result.start_ms,
        "finish_ms": result.finish_ms,
        "counters": {group: dict(values) for group, values in result.counters.items()},
    }
