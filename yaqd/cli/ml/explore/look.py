"""Explorations on the cluster, by the id of their application."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from yaqd.cli.exits import CommandError
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.exploration import ExplorationWatch
    from tez_adapter.client.rm_client import ApplicationReport
    from tez_adapter.exploration.view import ExplorationView


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


@contextmanager
def watching(conf: Configuration, text: str) -> "Iterator[ExplorationWatch]":
    """Hand out a watch of an exploration. CommandError: the application is another kind of job."""
    from tez_adapter.client.exploration import ExplorationWatch

    report = report_of(conf, text)
    if not is_exploration(report):
        raise CommandError(f"{report.id} is no exploration ({report.type}): yaq ml explore submits one")
    watch = ExplorationWatch(conf, report)
    try:
        yield watch
    finally:
        watch.close()


def looked_at(conf: Configuration, text: str) -> "ExplorationView":
    """Return how an exploration stands."""
    with watching(conf, text) as watch:
        return watch.look()
