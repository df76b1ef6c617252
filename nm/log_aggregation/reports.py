"""What heartbeats tell the ResourceManager of the logs of applications: each report until one with it is answered."""

from collections import deque
from collections.abc import Sequence
from typing import Final

from yaqd.model import ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

_WAITING_MAX: Final = 10_000
_PER_HEARTBEAT_MAX: Final = 200
_DIAGNOSTICS_CHARS_MAX: Final = 2000


class LogReports:
    def __init__(self) -> None:
        self._waiting: deque[server.LogAggregationReport] = deque(maxlen=_WAITING_MAX)

    def add(self, application: ApplicationId, status: "common.LogAggregationStatus", diagnostics: str = "") -> None:
        report = server.LogAggregationReport(log_aggregation_status=status)
        report.application_id.CopyFrom(convert.application_id_pb(application))
        if diagnostics:
            report.diagnostics = diagnostics[:_DIAGNOSTICS_CHARS_MAX]
        self._waiting.append(report)

    def pending(self) -> list[server.LogAggregationReport]:
        """For the next heartbeat, oldest first."""
        return [report for report, _ in zip(self._waiting, range(_PER_HEARTBEAT_MAX), strict=False)]

    def answered(self, reports: Sequence[server.LogAggregationReport]) -> None:
        """A heartbeat with these was answered."""
        for report in reports:
            if self._waiting and self._waiting[0] is report:
                self._waiting.popleft()
