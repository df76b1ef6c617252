"""Explorations on the cluster, by the id of their application."""

from typing import TYPE_CHECKING

from yaqd.cli.exits import CommandError
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import ApplicationReport
    from tez_adapter.exploration.view import ExplorationView
    from yaqd.model import ApplicationId


def report_of(conf: Configuration, text: str) -> "ApplicationReport":
    """Return what the ResourceManager says of an application."""
    from yaqd.cli.applications.known import known_application
    from yaqd.cli.client import rm_client

    with rm_client(conf) as rm:
        return rm.report(known_application(conf, text))


def is_exploration(report: "ApplicationReport") -> bool:
    """Return whether an application is an exploration."""
    from tez_adapter.client.exploration import APPLICATION_TYPE

    return report.type == APPLICATION_TYPE


def was_exploration(conf: Configuration, user: str, application_id: "ApplicationId") -> bool:
    """Return whether a job that has ended was an exploration, by what it left; the ResourceManager may forget it."""
    from tez_adapter.client.training import folder_of
    from tez_adapter.jobspec import BadJobSpec, JobKind
    from tez_adapter.training.keeper import read_job
    from yaqd.storage import PathNotFound

    try:
        return read_job(conf, folder_of(conf, user, application_id)).kind is JobKind.EXPLORATION
    except (PathNotFound, BadJobSpec):
        return False


def looked_at(conf: Configuration, text: str) -> "ExplorationView":
    """Return how an exploration stands. CommandError: the application is another kind of job."""
    from tez_adapter.client.exploration import ExplorationWatch

    report = report_of(conf, text)
    if not is_exploration(report):
        raise CommandError(f"{report.id} is no exploration ({report.type}): yaq ml explore submits one")
    watch = ExplorationWatch(conf, report)
    try:
        view = watch.look()
    finally:
        watch.close()
    if view is None:
        known = "it has left nothing" if report.state.is_final else f"it has not begun yet: yaq explain {report.id}"
        raise CommandError(f"{report.id}: nothing is known of it: {known}")
    return view
