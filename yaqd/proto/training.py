"""The border for training: reports of masters and orders to them, and processor time and cores at nodes.

Whatever comes in has bounds when it leaves here: counts and cores are not negative, and no list is longer than it may
be. A loss is a float as it came; NaN and infinite ones are for whoever reads them.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from yaqd.model import ApplicationId
from yaqd.model.training import ConvergenceClass, CoresOrder, TrainingReport
from yaqd.proto import convert
from yaqd.proto import yarn_server_pb2 as server
from yaqd.proto import yarn_service_pb2 as service

#: losses of one report; of more the last ones count
LOSSES_MAX: Final = 1000
#: applications of one heartbeat or answer
APPS_MAX: Final = 10_000
#: thousandths of a core that one application may have: more than any cluster
MILLI_MAX: Final = 1_000_000_000
#: what the wire's numbers of 64 bits hold
_INT64_MAX: Final = 2**63 - 1


def training_report(message: service.TrainingReport) -> TrainingReport:
    losses = message.losses
    beyond = max(0, len(losses) - LOSSES_MAX)
    return TrainingReport(
        sequence=message.sequence,
        first_iteration=min(max(0, message.first_iteration) + beyond, _INT64_MAX),
        losses=tuple(losses[beyond:]),
        convergence=ConvergenceClass(message.class_hint) if message.HasField("class_hint") else None,
        target=message.target if message.HasField("target") else None,
        weight=message.weight if message.HasField("weight") else None,
        min_milli=_bounded(message.min_milli, MILLI_MAX) if message.HasField("min_milli") else None,
        max_milli=_bounded(message.max_milli, MILLI_MAX) if message.HasField("max_milli") else None,
        iterations_expected=max(0, message.iterations_expected) if message.HasField("iterations_expected") else None,
        cpu_ms_per_iteration=message.cpu_ms_per_iteration if message.HasField("cpu_ms_per_iteration") else None,
        partitions=max(0, message.partitions) if message.HasField("partitions") else None,
    )


def training_report_pb(report: TrainingReport) -> service.TrainingReport:
    """Write a report; losses beyond the most that one may have are left out, the oldest first."""
    beyond = max(0, len(report.losses) - LOSSES_MAX)
    hint = None if report.convergence is None else service.ConvergenceClass.Name(report.convergence)
    message = service.TrainingReport(sequence=report.sequence, class_hint=hint, losses=report.losses[beyond:])
    if report.losses:
        message.first_iteration = report.first_iteration + beyond
    for name in _AS_THEY_ARE:
        if (said := getattr(report, name)) is not None:
            setattr(message, name, said)
    return message


_AS_THEY_ARE: Final = (
    *("target", "weight", "min_milli", "max_milli", "iterations_expected", "cpu_ms_per_iteration", "partitions"),
)


def cores_order(message: service.CoresOrder) -> CoresOrder:
    milli = _bounded(message.milli, MILLI_MAX) if message.HasField("milli") else None
    return CoresOrder(message.sequence, milli, message.reason)


def cores_order_pb(order: CoresOrder) -> service.CoresOrder:
    return service.CoresOrder(sequence=order.sequence, milli=order.milli, reason=order.reason)


def apps_cores(message: server.AppsCores) -> dict[ApplicationId, int | None]:
    """Read thousandths of a core by application; None: as many as it can."""
    return {
        convert.application_id(app.application_id): _bounded(app.milli, MILLI_MAX) if app.HasField("milli") else None
        for app in message.apps[:APPS_MAX]
    }


def put_apps_cores(message: server.AppsCores, cores: Mapping[ApplicationId, int | None]) -> None:
    """Write the cores, also of none at all, which ends what was told before."""
    message.SetInParent()
    for app_id, milli in cores.items():
        app = message.apps.add(milli=milli)
        app.application_id.CopyFrom(convert.application_id_pb(app_id))


def cpu_totals(messages: Iterable[server.AppCpu]) -> dict[ApplicationId, int]:
    """Read milliseconds by application, as a node says."""
    said: dict[ApplicationId, int] = {}
    for message in messages:
        if len(said) >= APPS_MAX:
            break
        said[convert.application_id(message.application_id)] = max(0, message.total_ms)
    return said


def cpu_pb(app_id: ApplicationId, cpu_s: float) -> server.AppCpu:
    return server.AppCpu(
        application_id=convert.application_id_pb(app_id), total_ms=min(round(1000 * cpu_s), _INT64_MAX)
    )


def _bounded(number: int, most: int) -> int:
    return min(max(0, number), most)
