"""How far the logs of an application are on their way to the file system, from what its nodes report.

As Hadoop's RMAppLogAggregation counts it: a node counts once it has run something of the application; an application
whose nodes have all said how it went is SUCCEEDED or FAILED, one that has ended and waited too long for them TIME_OUT.
"""

import logging
from typing import Final

from rm.applications.records import Application
from yaqd.model import NodeId
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

log = logging.getLogger(__name__)

#: nodes that may report on one application without having run anything of it that this ResourceManager knows of
_NODES_MAX: Final = 100_000
_DONE: Final = (common.LOG_SUCCEEDED, common.LOG_FAILED)


class LogStatuses:
    def __init__(self, *, is_enabled: bool, timeout_ms: int) -> None:
        """`timeout_ms` is what nodes have after an application's end."""
        self._is_enabled = is_enabled
        self._timeout_ms = timeout_ms

    def reported(self, app: Application, node: NodeId, report: server.LogAggregationReport) -> None:
        if not self._is_enabled or app.log_status is not None:
            return
        status, before = report.log_aggregation_status, app.log_nodes.get(node)
        if before is None and len(app.log_nodes) >= _NODES_MAX:
            return
        if status == common.LOG_RUNNING and before == common.LOG_RUNNING_WITH_FAILURE:
            return  # a failure is shown until the end
        app.log_nodes[node] = status
        if status == common.LOG_FAILED:
            log.warning("%s: its logs on %s are not uploaded: %s", app.id, node, report.diagnostics[:500])
        if app.is_concluded and all(said in _DONE for said in app.log_nodes.values()):
            has_failed = common.LOG_FAILED in app.log_nodes.values()
            app.log_status = common.LOG_FAILED if has_failed else common.LOG_SUCCEEDED
            app.log_nodes.clear()

    def of(self, app: Application, now_ms: int) -> "common.LogAggregationStatus":
        if not self._is_enabled:
            return common.LOG_DISABLED
        if app.log_status is not None:
            return app.log_status
        said = list(app.log_nodes.values())
        if all(status == common.LOG_NOT_START for status in said) and not self._is_late(app, now_ms):
            return common.LOG_NOT_START
        if all(status in _DONE for status in said):
            return self._when_all_said(app, said)
        if self._is_late(app, now_ms):
            return common.LOG_FAILED if common.LOG_FAILED in said else common.LOG_TIME_OUT
        return common.LOG_RUNNING_WITH_FAILURE if common.LOG_RUNNING_WITH_FAILURE in said else common.LOG_RUNNING

    def _is_late(self, app: Application, now_ms: int) -> bool:
        ended_ms = app.conclusion.finished_ms if app.conclusion is not None else now_ms
        return now_ms - ended_ms > self._timeout_ms

    @staticmethod
    def _when_all_said(app: Application, said: "list[common.LogAggregationStatus]") -> "common.LogAggregationStatus":
        if not said:
            return common.LOG_NOT_START
        if not app.is_concluded:
            return common.LOG_RUNNING  # other containers may come to these nodes
        return common.LOG_FAILED if common.LOG_FAILED in said else common.LOG_SUCCEEDED
