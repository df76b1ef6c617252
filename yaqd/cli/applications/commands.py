"""`yaq app`: applications of any kind, ours or stock."""

import time
from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.applications.known import known_application
from yaqd.cli.applications.states import CHOICES, matches, none_found, states_to_ask_for
from yaqd.cli.ended import clears_up
from yaqd.cli.exits import CommandError
from yaqd.cli.options import json_option, quiet_option, with_conf, words
from yaqd.cli.output import duration, print_fields, print_json, print_table, priority_text, shortened
from yaqd.cli.shell.completing import all_applications, open_applications
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import ApplicationReport, RmClient

#: Hadoop's LogAggregationStatus, by its numbers on the wire
_LOG_STATES = {
    1: "on their nodes",
    2: "not uploaded yet",
    3: "being uploaded",
    4: "uploaded",
    5: "not uploaded, see the NodeManagers' logs",
    6: "not all uploaded: nodes are silent",
    7: "being uploaded, with failures",
}
#: fields that those are not told who may not view the application
_KEPT_BACK = (
    "progress",
    "containers",
    "waiting",
    "waiting_mb",
    "waiting_vcores",
    "used_mb",
    "used_vcores",
    "memory_seconds",
    "vcore_seconds",
    "tracking_url",
    "logs",
    "diagnostics",
)
_KILL_TIMEOUT_S = 30.0


@click.group(help="List applications, look at one, end it, read its logs.")
def app() -> None:
    pass


@app.command("list")
@click.option("--all", "show_all", is_flag=True, help="Also those that have ended.")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(CHOICES, case_sensitive=False),
    help="Only in this state, or ended with this final status; may be repeated.",
)
@click.option("--user", "users", multiple=True, help="Only this user's; may be repeated.")
@click.option("--queue", "queues", multiple=True, help="Only this queue's; may be repeated.")
@click.option("--tags", multiple=True, metavar="WORDS", help="Only those with one of these tags, commas.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many, the latest.")
@json_option
@with_conf
def list_applications(
    conf: Configuration,
    show_all: bool,
    states: tuple[str, ...],
    users: tuple[str, ...],
    queues: tuple[str, ...],
    tags: tuple[str, ...],
    limit: int | None,
    as_json: bool,
) -> None:
    """List applications that wait or run.

    \b
    Example:
      yaq app list --all --limit 10
    """
    from yaqd.cli.client import rm_client
    from yaqd.model import YarnApplicationState

    wanted = states_to_ask_for(states)
    if not wanted and not show_all:
        wanted = [state for state in YarnApplicationState if not state.is_final]
    with rm_client(conf) as rm:
        reports = rm.applications(states=wanted, users=users, queues=queues, tags=words(tags))
    if states:
        reports = [report for report in reports if matches(report, states)]
    reports.sort(key=lambda report: (report.id.cluster_timestamp, report.id.id), reverse=True)
    reports = reports[:limit]
    if as_json:
        print_json([report_as_dict(report) for report in reports])
        return
    rows = [
        (r.id, shortened(r.name, 30), r.type, r.user, r.queue, r.state.name, _verdict(r), _progress(r), _took(r))
        for r in reports
    ]
    headings = ("application", "name", "type", "user", "queue", "state", "final", "progress", "time")
    filters = {"state": states, "user": users, "queue": queues, "tags": tags}
    print_table(headings, rows, empty=none_found(filters, show_all=show_all))


@app.command("status")
@click.argument("application", shell_complete=all_applications)
@click.option("--tasks", is_flag=True, help="Also each attempt of a job of ours that has ended, with its peak memory.")
@json_option
@with_conf
def status(conf: Configuration, application: str, tasks: bool, as_json: bool) -> None:
    """Show one application; for jobs of ours also their tasks, counters and where the time went.

    \b
    Example:
      yaq app status application_1700000000000_0001 --tasks
    """
    from yaqd.cli.applications.attempts import as_dict, show_attempts
    from yaqd.cli.applications.job_details import job_details, show_job_details
    from yaqd.cli.client import rm_client

    application_id = known_application(conf, application)
    with rm_client(conf) as rm:
        report, user = rm.report(application_id), rm.user
        attempts = [] if report.is_hidden else rm.attempts(application_id)
    details = {} if report.is_hidden else job_details(conf, report)
    if not tasks:
        details.pop("tasks", None)
    if as_json:
        shown = None if report.is_hidden else [as_dict(attempt) for attempt in attempts]
        print_json({**report_as_dict(report), "attempts": shown, "job": details})
        return
    print_fields(_fields(report, user, _why(conf, report)))
    show_attempts(attempts)
    show_job_details(details, report.diagnostics, with_tasks=tasks)


@app.command("kill")
@click.argument("applications", nargs=-1, required=True, metavar="APPLICATION...", shell_complete=open_applications)
@json_option
@with_conf
def kill(conf: Configuration, applications: tuple[str, ...], as_json: bool) -> None:
    """End applications and wait until they have ended.

    Of a job of yours that has ended already, files that it had to leave behind are removed.

    \b
    Example:
      yaq app kill application_1700000000000_0001
      yaq app kill 0001
    """
    from yaqd.cli.client import rm_client

    outcomes = []
    application_ids = [known_application(conf, text) for text in applications]
    with rm_client(conf) as rm:
        for application_id in application_ids:
            before = rm.report(application_id)
            _kill(conf, rm, before)
            if before.state.is_final:
                outcomes.append((str(application_id), f"had ended before ({_verdict(before)})"))
            else:
                outcomes.append((str(application_id), _verdict(rm.report(application_id))))
    if as_json:
        print_json([{"application_id": name, "outcome": outcome} for name, outcome in outcomes])
    else:
        for name, outcome in outcomes:
            click.echo(f"{name} {outcome}")


@app.command("move")
@click.argument("application", shell_complete=open_applications)
@click.argument("queue")
@json_option
@with_conf
def move(conf: Configuration, application: str, queue: str, as_json: bool) -> None:
    """Let an application go on in another queue, with all it holds.

    \b
    Example:
      yaq app move application_1700000000000_0001 root.night
    """
    from yaqd.cli.client import rm_client

    application_id = known_application(conf, application)
    with rm_client(conf) as rm:
        rm.move(application_id, queue)
        queue = rm.report(application_id).queue
    if as_json:
        print_json({"application_id": str(application_id), "queue": queue})
    else:
        click.echo(f"{application_id} is in {queue}")


@app.command("priority")
@click.argument("application", shell_complete=open_applications)
@click.argument("priority", type=click.IntRange(0, (1 << 31) - 1))
@json_option
@with_conf
def set_priority(conf: Configuration, application: str, priority: int, as_json: bool) -> None:
    """Change the priority of an application that has not ended, up to yarn.cluster.max-application-priority.

    \b
    Example:
      yaq app priority application_1700000000000_0001 5
    """
    from yaqd.cli.client import rm_client

    application_id = known_application(conf, application)
    with rm_client(conf) as rm:
        given = rm.set_priority(application_id, priority)
        report = rm.report(application_id)
    if report.state.is_final:
        raise CommandError(f"{application_id} has ended ({_verdict(report)}) and keeps its priority {given}")
    if as_json:
        print_json({"application_id": str(application_id), "priority": given})
        return
    click.echo(priority_text(application_id, given, priority))


@app.command("wait")
@click.argument("application", shell_complete=open_applications)
@quiet_option
@json_option
@clears_up
@with_conf
@click.pass_context
def wait(ctx: click.Context, conf: Configuration, application: str, quiet: bool, as_json: bool) -> None:
    """Wait until an application has ended, and show it meanwhile; exit code 1 unless it succeeded.

    \b
    Example:
      yaq app wait $(yaq run --no-wait -- sleep 60)
    """
    from tez_adapter.client.follow import SubmittedJob
    from yaqd.cli.applications.following import follow

    job = SubmittedJob(conf, known_application(conf, application))
    ctx.exit(follow(job, wait=True, as_json=as_json, is_quiet=quiet, is_new=False))


@app.command("logs")
@click.argument("application", shell_complete=all_applications)
@click.option("--container", "containers", multiple=True, help="Only this container; may be repeated.")
@click.option("--file", "files", multiple=True, help="Only this file, for example stderr; may be repeated.")
@click.option("--list", "only_list", is_flag=True, help="Name the containers and files instead of printing them.")
@click.option("--follow", is_flag=True, help="Go on while it runs; with --json a line for each piece.")
@click.option("--owner", help="Whose application it is, for one that the ResourceManager has forgotten.")
@json_option
@clears_up
@with_conf
@click.pass_context
def logs(
    ctx: click.Context,
    conf: Configuration,
    application: str,
    containers: tuple[str, ...],
    files: tuple[str, ...],
    only_list: bool,
    follow: bool,
    owner: str | None,
    as_json: bool,
) -> None:
    """Print what an application's containers wrote to their log folders.

    From their nodes while they have it, else from where nodes, ours or stock, have uploaded it. Exit code 2: there is
    no such container, or none of them has a file of that name; 1: a node or a file that has some of it cannot be read.

    \b
    Example:
      yaq app logs application_1700000000000_0001 --file stderr
      yaq app logs 0001
    """
    from yaqd.cli.applications.logs import Choice, print_logs

    application_id = known_application(conf, application)
    choice = Choice(containers, files, owner=owner)
    if follow and not only_list:
        from yaqd.cli.applications.follow_logs import follow_logs

        ctx.exit(follow_logs(conf, application_id, choice, as_json=as_json))
    ctx.exit(print_logs(conf, application_id, choice, only_list=only_list, as_json=as_json))


def _why(conf: Configuration, report: "ApplicationReport") -> str:
    """Why it waits for its master, in a sentence, as `yaq explain` has it; what the report says where nobody knows."""
    from yaqd.cli.applications.wait_reason import why_it_waits

    if report.state.name != "ACCEPTED" or report.is_hidden:
        return report.diagnostics
    return why_it_waits(conf, report.id) or report.diagnostics


def _fields(report: "ApplicationReport", user: str, why: str) -> list[tuple[str, object]]:
    """Labels and values; `why`: what keeps it from running, or what it ended with.

    What the ResourceManager keeps from this user is named, not made up.
    """
    fields: list[tuple[str, object]] = [
        ("application", report.id),
        ("name", report.name),
        ("type", report.type),
        ("user", report.user),
        ("queue", report.queue),
        ("priority", report.priority),
        ("tags", ", ".join(report.tags) or "-"),
        ("time left", duration(report.remaining_s) if report.remaining_s is not None else "no end"),
        ("state", report.state.name),
        ("final state", _verdict(report)),
        ("time", _took(report)),
    ]
    if report.is_hidden:
        return [*fields, ("not shown", f"progress, use, tracking, logs, diagnostics: {user} may not view it")]
    fields.insert(-1, ("progress", _progress(report)))
    waits = f"{report.waiting_containers} containers, {report.waiting}"
    return [
        *fields,
        ("in use", f"{report.used_containers} containers, {report.used}"),
        *([("waits at nodes", waits)] if report.waiting_containers else []),
        ("used", f"{report.memory_seconds} MB-seconds, {report.vcore_seconds} vcore-seconds"),
        ("tracking", report.tracking_url or "-"),
        ("logs", _LOG_STATES.get(report.log_aggregation, "-")),
        ("diagnostics", why or "-"),
    ]


def report_as_dict(report: "ApplicationReport") -> dict[str, Any]:
    """Return the report; null stands for what the ResourceManager keeps from whoever asks."""
    shown = _everything_as_dict(report)
    if report.is_hidden:
        shown |= dict.fromkeys(_KEPT_BACK)
    return shown | {"may_view": not report.is_hidden}


def _everything_as_dict(report: "ApplicationReport") -> dict[str, Any]:
    return {
        "id": str(report.id),
        "name": report.name,
        "type": report.type,
        "user": report.user,
        "queue": report.queue,
        "state": report.state.name,
        "final_status": report.final_status.name,
        "progress": None if _ended_early(report) else report.progress,
        "start_ms": report.start_ms,
        "finish_ms": report.finish_ms,
        "containers": report.used_containers,
        "waiting": report.waiting_containers,
        "used_mb": report.used.memory_mb,
        "used_vcores": report.used.vcores,
        "waiting_mb": report.waiting.memory_mb,
        "waiting_vcores": report.waiting.vcores,
        "memory_seconds": report.memory_seconds,
        "vcore_seconds": report.vcore_seconds,
        "tracking_url": report.tracking_url,
        "logs": _LOG_STATES.get(report.log_aggregation),
        "diagnostics": report.diagnostics,
        "tags": list(report.tags),
        "priority": report.priority,
        "remaining_s": report.remaining_s,
    }


def _kill(conf: Configuration, rm: "RmClient", report: "ApplicationReport") -> None:
    """A job manager of ours is asked first, so that it cleans up; else the ResourceManager ends it."""
    from tez_adapter.client.follow import SubmittedJob

    application_id = report.id
    if report.type in ("YAQ", "MAPREDUCE", "TRAINING"):
        SubmittedJob(conf, application_id).kill()
        return
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    while not report.state.is_final and not rm.kill(application_id, f"killed by user {rm.user}"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{application_id} has not ended {_KILL_TIMEOUT_S:g} s after it was killed")
        time.sleep(0.1)


def _verdict(report: "ApplicationReport") -> str:
    return report.final_status.name if report.state.is_final else "-"


def _progress(report: "ApplicationReport") -> str:
    return "-" if report.is_hidden or _ended_early(report) else f"{report.progress:.0%}"


def _ended_early(report: "ApplicationReport") -> bool:
    """Failed or killed: the ResourceManager calls that 100 %, as Hadoop's does, however far it came."""
    return report.state.is_final and report.final_status.name != "SUCCEEDED"


def _took(report: "ApplicationReport") -> str:
    end_ms = report.finish_ms or time.time() * 1000
    return duration(max(0.0, end_ms - report.start_ms)) if report.start_ms else "-"
