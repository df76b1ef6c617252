"""What heartbeats tell the ResourceManager of the logs of applications: each report until one with it is answered.

A ResourceManager that the node registers with may have forgotten what it was told: it gets the last report of each.
"""

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final

from yaqd.model import ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

_WAITING_MAX: Final = 10_000
_PER_HEARTBEAT_MAX: Final = 200
_LATEST_MAX: Final = 1000
_DIAGNOSTICS_CHARS_MAX: Final = 2000


class LogReports:
    def __init__(self) -> None:
        self._waiting: deque[server.LogAggregationReport] = deque(maxlen=_WAITING_MAX)
        self._latest: OrderedDict[ApplicationId, server.LogAggregationReport] = OrderedDict()

    def add(self, application: ApplicationId, status: "common.LogAggregationStatus", diagnostics: str = "") -> None:
        report = server.LogAggregationReport(log_aggregation_status=status)
        report.application_id.CopyFrom(convert.application_id_pb(application))
        if diagnostics:
            report.diagnostics = diagnostics[:_DIAGNOSTICS_CHARS_MAX]
        self._waiting.append(report)
        self._latest[application] = report
        self._latest.move_to_end(application)
        if len(self._latest) > _LATEST_MAX:
            self._latest.popitem(last=False)

    def latest(self) -> list[server.LogAggregationReport]:
        """Returns the last report of each application, for a registration, as far back as is remembered."""
        return list(self._latest.values())

    def pending(self) -> list[server.LogAggregationReport]:
        """Returns the reports for the next heartbeat, oldest first."""
        return [report for report, _ in zip(self._waiting, range(_PER_HEARTBEAT_MAX), strict=False)]

    def answered(self, reports: Sequence[server.LogAggregationReport]) -> None:
        """Notes that a heartbeat with these reports was answered."""
        for report in reports:
            if self._waiting and self._waiting[0] is report:
                self._waiting.popleft()
