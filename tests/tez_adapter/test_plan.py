"""What a job's settings are refused for before it is submitted."""

import pytest

from tez_adapter.client.terms import PRIORITY_KEY, PRIORITY_MAX, set_terms
from tez_adapter.kinds.mapreduce import MapReduceKind
from yaqd.config import ConfigError, Configuration
from yaqd.proto import yarn_common_pb2 as pb


def conf(key: str, value: str) -> Configuration:
    return Configuration.load(None, overrides={key: value}, environ={})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mapreduce.map.maxattempts", "0"),
        ("mapreduce.reduce.maxattempts", "0"),
        ("mapreduce.job.reduce.slowstart.completedmaps", "7"),
        ("mapreduce.task.timeout", "-1"),
        ("mapreduce.task.io.sort.mb", "0"),
    ],
)
def test_settings_that_the_job_manager_or_a_task_would_refuse(key: str, value: str) -> None:
    MapReduceKind().check(2, conf(key, "1"))
    with pytest.raises(ConfigError, match=key):
        MapReduceKind().check(2, conf(key, value))


@pytest.mark.parametrize("value", [str(PRIORITY_MAX + 1), "-99999999999", "highest"])
def test_a_priority_that_the_protocol_has_no_room_for(value: str) -> None:
    context = pb.ApplicationSubmissionContext()
    with pytest.raises(ConfigError, match=PRIORITY_KEY):
        set_terms(context, conf(PRIORITY_KEY, value))
    set_terms(context, conf(PRIORITY_KEY, str(PRIORITY_MAX)))
    assert context.priority.priority == PRIORITY_MAX
