"""`yaq ml explore` on a cluster: submitted, followed, and shown at its end."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from yaqd.cli.ml.explore.asked import Asked, seconds, text_of
from yaqd.config import Configuration
from yaqd.ml.space import Space

if TYPE_CHECKING:
    from tez_adapter.client.exploration import ExplorationWatch
    from tez_adapter.client.follow import SubmittedJob
    from yaqd.model import ApplicationId


def submit(
    conf: Configuration,
    given: Asked,
    *,
    memory_mb: int | None,
    files: Sequence[str],
    py_files: Sequence[str],
    environment: Mapping[str, str],
    queue: str | None,
    name: str | None,
    no_wait: bool,
    as_json: bool,
    is_quiet: bool,
) -> int:
    """Submit an exploration and follow it; return the exit code."""
    from tez_adapter.client.exploration import submit_exploration
    from tez_adapter.client.submission import Attachments

    job = submit_exploration(
        conf,
        given.script,
        given.terms,
        memory_mb=memory_mb,
        attachments=Attachments(list(files), list(py_files)),
        environment=environment,
        queue=queue or conf.require("mapreduce.job.queuename"),
        name=name,
    )
    return follow_exploration(job, no_wait=no_wait, as_json=as_json, is_quiet=is_quiet)


def go_on(
    conf: Configuration,
    user: str,
    application_id: "ApplicationId",
    queue: str,
    *,
    target: float | None,
    max_time: str | None,
    slots: int | None,
    space: Path | None,
) -> "SubmittedJob":
    """Submit an exploration anew that has ended, with other terms where some are said. Its space must be the same."""
    from tez_adapter.client.exploration import resume_exploration

    changes: dict[str, float | int | str] = {}
    if space is not None:
        said = text_of("--space", space)
        Space.parse(said, str(space))
        changes["space"] = said
    if target is not None:
        changes["target"] = target
    if max_time is not None:
        changes["max_time_s"] = seconds(max_time)
    if slots is not None:
        changes["slots"] = slots
    return resume_exploration(conf, user, application_id, queue=queue, changes=changes)


def follow_exploration(job: "SubmittedJob", *, no_wait: bool, as_json: bool, is_quiet: bool) -> int:
    """Show an exploration to its end, and what it has found."""
    from tez_adapter.client.exploration import ExplorationWatch
    from yaqd.cli.applications.following import follow

    watch: list[ExplorationWatch] = []
    try:
        return follow(
            job,
            wait=not no_wait,
            as_json=as_json,
            is_quiet=is_quiet,
            reached=partial(_reached, job, as_json=as_json),
            stands=partial(_stands, job, watch),
            ends_with="yaq ml stop",
        )
    finally:
        for each in watch:
            each.close()


def _stands(job: "SubmittedJob", watch: "list[ExplorationWatch]") -> str:
    """Return how far an exploration is, in a line; "" where nobody says. `watch`: keeps the way to it."""
    from tez_adapter.client.exploration import ExplorationWatch
    from tez_adapter.client.rm_client import RmUnavailable
    from yaqd.cli.ml.explore.table import headline
    from yaqd.ipc import RemoteException

    try:
        if not watch:
            watch.append(ExplorationWatch(job.conf, job.report()))
        view = watch[0].look()
    except (RmUnavailable, RemoteException):
        return ""
    return "" if view is None else headline(view)


def _reached(job: "SubmittedJob", *, as_json: bool) -> dict[str, object]:
    """Return what was found; nothing where it cannot be read."""
    from tez_adapter.client.exploration import ExplorationWatch
    from tez_adapter.client.rm_client import RmUnavailable
    from yaqd.cli.ml.explore.table import best_fields, summary

    try:
        watch = ExplorationWatch(job.conf, job.report())
        try:
            view = watch.look()
        finally:
            watch.close()
    except RmUnavailable:
        return {}
    if view is None:
        return {}
    facts = summary(view)
    if as_json:
        return facts
    return {"ended": view.ending, **best_fields(view), "trials": f"yaq ml trials {job.application_id}"}
