"""Applications that end badly, on any ResourceManager: one whose master fails, one that is killed at work."""

from concurrent.futures import ThreadPoolExecutor

from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import current_user
from tests.interop.interop_checks import application_of
from tests.interop.interop_master import await_value
from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol as Client

_PATIENCE_S = 60.0
#: long enough for its master to register
_UNTIL_KILLED_MS = 9000


def bad_ends(clients: StockClients, tag: str) -> dict[str, str]:
    """FAILED and KILLED: the ids of two applications that are over; KILLED_ATTEMPT and FAILED_ATTEMPT."""
    with ThreadPoolExecutor(1) as pool:
        killing = pool.submit(_killed, clients, tag)
        failed = _failed(clients, tag)
        killed = killing.result()
    attempts = {f"{name}_ATTEMPT": _first_attempt(app) for name, app in (("FAILED", failed), ("KILLED", killed))}
    return {"FAILED": failed, "KILLED": killed, **attempts}


def _first_attempt(application: str) -> str:
    return f"{application.replace('application', 'appattempt')}_000001"


def _killed(clients: StockClients, tag: str) -> str:
    """The distributed shell's client kills what takes longer than it was told to wait."""
    words = ("-appname", "ended", "-shell_command", "sleep 600", "-num_containers", "1", "-application_tags", tag)
    sizes = ("-container_memory", "128", "-master_memory", "256", "-timeout", str(_UNTIL_KILLED_MS))
    return application_of(clients.distributed_shell(*words, *sizes))


def _failed(clients: StockClients, tag: str) -> str:
    address = Configuration.load(clients.conf_dir).get_address("yarn.resourcemanager.address")
    with BlockingRpcClient(*address, user=current_user()) as manager:
        new = manager.call(Client.getNewApplication, service.GetNewApplicationRequest())
        context = common.ApplicationSubmissionContext(
            application_name="ended", queue="default", maxAppAttempts=1, applicationTags=[tag]
        )
        context.application_id.CopyFrom(new.application_id)
        context.resource.memory, context.resource.virtual_cores = 256, 1
        context.am_container_spec.command.append("exit 3")
        submission = service.SubmitApplicationRequest(application_submission_context=context)
        manager.call(Client.submitApplication, submission)
        request = service.GetApplicationReportRequest(application_id=new.application_id)

        def has_failed() -> bool | None:
            report = manager.call(Client.getApplicationReport, request).application_report
            return report.yarn_application_state == common.FAILED or None

        await_value("the failure", has_failed, _PATIENCE_S)
    return str(convert.application_id(new.application_id))
