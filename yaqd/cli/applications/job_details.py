"""What `yaq app status` and the demo tell about a job of ours beyond the ResourceManager's report.

While it runs its job manager answers; after its end the history file does.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from yaqd.cli.applications.following import show_counters
from yaqd.cli.output import duration, print_table, shortened_error
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import ApplicationReport
    from tez_adapter.history import JobHistory

_ERRORS_SHOWN = 5
#: of an attempt: its name, and the path of its container's folder
_OWN_NAMES: Final = re.compile(r"attempt_\d+_\d+_[mr]_\d+_\d+|(?:/[^\s\"']*/)?container_(?:e\d+_)?\d+_\d+_\d+_\d+")
#: of one: what happened, what helps, and the end of what the node said
_ERROR_CHARS = 500
_TASK_GROUP = "org.apache.hadoop.mapreduce.TaskCounter"
_TASK_KEYS = ("name", "state", "node")


def job_details(conf: Configuration, report: "ApplicationReport") -> dict[str, Any]:
    """Return vertices, counters, timeline and errors; {} for an application that is no job of ours."""
    from tez_adapter.client.follow import SubmittedJob
    from tez_adapter.history import NoHistory, read_history
    from yaqd.storage import StorageError

    if report.state.is_final:
        try:
            return _from_history(read_history(conf, report.id), report)
        except (NoHistory, StorageError):
            return {}
    if report.rpc_port == 0 or report.type not in ("YAQ", "MAPREDUCE", "TRAINING"):
        return {}
    status = SubmittedJob(conf, report.id).status(report, with_counters=True)
    return {
        "vertices": [
            {"name": v.name, "tasks": v.tasks, "done": v.done, "running": v.running, "failed": v.failed}
            for v in status.vertices
        ],
        "counters": {group: dict(values) for group, values in status.counters.items()},
    }


def show_job_details(details: dict[str, Any], diagnostics: str = "", *, with_tasks: bool = False) -> None:
    """Print the details. `diagnostics`: what the reader has seen of the job's own end."""
    if with_tasks and "tasks" not in details:
        click.echo("tasks: listed for a job of ours, once it has ended")
    if not details:
        return
    vertices = details["vertices"]
    if vertices:
        click.echo()
        headings = [key.replace("_", " ").removesuffix(" ms") for key in vertices[0]]
        rows = [[duration(v) if k.endswith("_ms") else v for k, v in row.items()] for row in vertices]
        print_table(headings, rows, empty="")
    show_timeline(details.get("timeline", []))
    if "tasks" in details:
        click.echo()
        rows = [[*(t[key] for key in _TASK_KEYS), *_measured(t)] for t in details["tasks"]]
        print_table(("attempt", "state", "node", "took", "cpu", "peak memory"), rows, empty="no task")
    for line in error_lines(details.get("errors", []), diagnostics):
        click.echo(line)
    if details["counters"]:
        click.echo()
        show_counters(details["counters"], err=False)


def _measured(task: dict[str, Any]) -> tuple[str, ...]:
    """In words; of an attempt that did not get so far as to say it, nothing."""
    peak = task["peak_memory_bytes"]
    times = [duration(task[key]) if task[key] is not None else "" for key in ("took_ms", "cpu_ms")]
    return (*times, f"{peak / (1 << 20):.0f} MB" if peak is not None else "")


def error_lines(errors: Iterable[dict[str, Any]], seen: str) -> list[str]:
    """Say what attempts failed of, each error once however many failed of it.

    Of an error that the text `seen` has shown, only who failed is said.
    """
    alike: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for error in errors:
        alike[_without_names(error["error"])].append(error)
    seen = _without_names(seen)
    lines = []
    for what, failed in list(alike.items())[:_ERRORS_SHOWN]:
        named = [f"{error['name']} on {error['node']}" for error in failed]
        who = named[-1] if len(named) == 1 else f"{len(named)} attempts failed alike, last {named[-1]}"
        lines.append(
            f"{who}: as above" if what in seen else f"{who}: {shortened_error(failed[-1]['error'], _ERROR_CHARS)}"
        )
    return lines


def _without_names(error: str) -> str:
    """Without what differs from attempt to attempt, in one line."""
    return " ".join(_OWN_NAMES.sub("*", error).split())


def show_timeline(timeline: Sequence[dict[str, Any]]) -> None:
    """Print where the time went: one line for each span, with its start relative to the submission."""
    if not timeline:
        return
    click.echo()
    rows = [
        (span["what"], "" if span["from_ms"] is None else duration(span["from_ms"]), duration(span["ms"]))
        for span in timeline
    ]
    print_table(("where the time went", "from", "took"), rows, empty="")


def _from_history(history: "JobHistory", report: "ApplicationReport") -> dict[str, Any]:
    by_vertex: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for attempt in history.attempts:
        by_vertex[attempt["vertex"]].append(attempt)
    tasks: dict[str, int] = history.job.get("vertices", {})
    return {
        "vertices": [_vertex(name, count, by_vertex[name]) for name, count in tasks.items()],
        "timeline": _timeline(history, report, by_vertex),
        "errors": [
            {"name": a["name"], "node": a["node"], "error": a["error"]} for a in history.attempts if a.get("error")
        ],
        "counters": history.end.get("counters", {}),
        "tasks": [_task(attempt) for attempt in history.attempts],
    }


def _task(attempt: dict[str, Any]) -> dict[str, Any]:
    counters = attempt.get("counters", {})
    begin, end = attempt.get("began_ms") or attempt["started_ms"], attempt.get("finished_ms")
    peak = f"{_TASK_GROUP}:{attempt['vertex'].upper()}_PHYSICAL_MEMORY_BYTES_MAX"
    return {
        "name": attempt["name"],
        "state": attempt["state"],
        "node": attempt["node"],
        "took_ms": None if end is None else end - begin,
        "cpu_ms": counters.get(f"{_TASK_GROUP}:CPU_MILLISECONDS"),
        "peak_memory_bytes": counters.get(peak),
    }


def _vertex(name: str, tasks: int, attempts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    # what its container waited at its node is not the task's time, and one that was taken from a queue never ran
    ran = [a for a in attempts if a.get("finished_ms") and (a.get("began_ms") or a["state"] != "KILLED")]
    times = sorted(a["finished_ms"] - (a.get("began_ms") or a["started_ms"]) for a in ran)
    waits = sorted(max(0, a["began_ms"] - a["started_ms"]) for a in attempts if a.get("began_ms"))
    return {
        "name": name,
        "tasks": tasks,
        "attempts": len(attempts),
        "failed": sum(a["state"] == "FAILED" for a in attempts),
        "waited_ms": waits[len(waits) // 2] if waits else 0,
        "median_ms": times[len(times) // 2] if times else 0,
        "longest_ms": times[-1] if times else 0,
        "all_ms": sum(times),
    }


def _timeline(
    history: "JobHistory", report: "ApplicationReport", by_vertex: dict[str, list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Spans in order; maps and reduces overlap, and phases are sums over the tasks of their vertex."""
    submitted = report.start_ms
    spans: list[tuple[str, float, float]] = []
    manager_started = history.job.get("started_ms")
    if manager_started:
        spans.append(("submission to job manager", submitted, manager_started))
    for name, attempts in by_vertex.items():
        started = min((a["started_ms"] for a in attempts), default=None)
        finished = max((a["finished_ms"] for a in attempts if a.get("finished_ms")), default=None)
        if started and finished:
            spans.append((f"{name} tasks, first start to last end", started, finished))
    finished_ms = history.end.get("finished_ms")
    last = max((end for _, _, end in spans), default=submitted)
    if finished_ms:
        spans.append(("commit and report", last, finished_ms))
    timeline = [{"what": what, "from_ms": max(0, a - submitted), "ms": max(0, b - a)} for what, a, b in spans]
    return timeline + [
        {"what": f"  {phase} phase of all {name} tasks", "from_ms": None, "ms": spent}
        for name, attempts in by_vertex.items()
        for phase, spent in _phase_sums(attempts)
    ]


def _phase_sums(attempts: Iterable[dict[str, Any]]) -> list[tuple[str, int]]:
    sums: dict[str, int] = defaultdict(int)
    for attempt in attempts:
        for phase, spent in attempt.get("phases_ms", {}).items():
            sums[phase] += spent
    return list(sums.items())
