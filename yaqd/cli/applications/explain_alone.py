"""The part of `yaq explain` about a training job whose cores nobody divides, as under a stock ResourceManager.

What the ResourceManager does not know, the job's own manager says; of a job that has ended, what it left.
"""

from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.output import print_fields
from yaqd.config import Configuration
from yaqd.model import ApplicationId

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import ApplicationReport
    from tez_adapter.client.training_view import TrainingView

#: where the ResourceManager is none of ours
STOCK = "this ResourceManager is a stock one: it does not say why containers wait, nor what it decided"
WHY = "nobody divides cores among training jobs here, and no node throttles them"


def of_the_job(conf: Configuration, application: ApplicationId, *, is_stock: bool) -> dict[str, Any] | None:
    """Return what a training job says of its cores; None: it is another kind of job, or its cores are divided.

    `is_stock`: the ResourceManager is, so nobody divides them.
    """
    from tez_adapter.client.rm_client import RmUnavailable
    from tez_adapter.client.training import APPLICATION_TYPE
    from tez_adapter.client.training_view import TrainingWatch
    from yaqd.cli.client import rm_client
    from yaqd.ipc import RemoteException

    try:
        with rm_client(conf) as rm:
            report = rm.report(application)
    except (RmUnavailable, RemoteException):
        return None  # its web server alone answers, or it knows no such application
    if report.type != APPLICATION_TYPE or (report.state.is_final and not is_stock):
        return None  # of one that has ended, a ResourceManager that divides cores may have ordered them
    watch = TrainingWatch(conf, report)
    try:
        view = watch.look(report)
    finally:
        watch.close()
    return _facts(report, view) if is_stock or view.is_alone else None


def _facts(report: "ApplicationReport", view: "TrainingView") -> dict[str, Any]:
    is_over = report.state.is_final
    # a job that has ended left its cores beside its losses
    cores = view.points[-1].cores if view.cores is None and view.points else view.cores
    return {
        "id": str(report.id),
        "name": report.name,
        "user": report.user,
        "queue": report.queue,
        "state": report.state.name,
        "finalState": report.final_status.name if is_over else None,
        "isAlone": True,
        "cores": cores,
        "why": WHY,
        "iteration": view.iteration,
        "iterationsExpected": view.iterations_expected,
        "loss": view.loss,
        "workers": view.workers,
        "workersWanted": view.workers_wanted,
        "diagnostics": "" if is_over else report.diagnostics.strip(),
    }


def show_application(found: dict[str, Any]) -> None:
    """Print which application it is, where the ResourceManager does not."""
    fields = [(name, found[name]) for name in ("id", "name", "user", "queue", "state")]
    if found["finalState"]:
        fields.append(("final state", found["finalState"]))
    if found["diagnostics"]:
        fields.append(("waits for", found["diagnostics"]))
    print_fields(fields)


def show_alone(found: dict[str, Any]) -> None:
    """Print that the job has all its cores, and how many workers use them."""
    cores = found["cores"]
    # without cores its job manager has not answered yet, or never said any
    verbs = ("could use", "may use") if cores is None else ("had", "has")
    verb = verbs[0 if found["finalState"] else 1]
    many = "" if cores is None else f"{cores:g} core{'s' * (cores != 1)}, "
    click.echo(f"\nIt {verb} {many}all of its --max-cores: {found['why']}")
    if found["loss"] is not None:
        click.echo(f"  loss {found['loss']:.6g} after iteration {found['iteration']}")
    if found["workersWanted"]:
        click.echo(f"  {_workers(found['workers'], found['workersWanted'])}")


def _workers(number: int, wanted: int) -> str:
    if number >= wanted:
        return f"{number} worker{'s' * (number != 1)} compute{'s' * (number == 1)}"
    return f"{number} of {wanted} workers compute; the others have no container, or start"
