"""Reports of log aggregation on their way to the ResourceManager."""

from nm.logs.aggregation.reports import LogReports
from tests.nm.nm_cluster import (
    application,
)
from yaqd.proto import yarn_common_pb2 as common


def test_reports_wait_in_order_until_their_heartbeat_is_answered() -> None:
    reports = LogReports()
    for number in range(3):
        reports.add(application(number + 1), common.LOG_RUNNING)
    told = reports.pending()
    reports.add(application(1), common.LOG_SUCCEEDED)
    assert len(reports.pending()) == 4
    reports.answered(told)
    assert [r.log_aggregation_status for r in reports.pending()] == [common.LOG_SUCCEEDED]
    assert [r.application_id.id for r in reports.latest()] == [2, 3, 1]
