"""Which containers a node's heartbeats name, read once each."""

from hypothesis import given
from hypothesis import strategies as st

from rm.node_queues.named import NamedContainers
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

_STATES = {
    "waits": (common.C_RUNNING, common.CSS_SCHEDULED),
    "runs": (common.C_RUNNING, common.CSS_RUNNING),
    "over": (common.C_COMPLETE, common.CSS_DONE),
}


def _id(number: int) -> ContainerId:
    return ContainerId.make(ApplicationAttemptId(ApplicationId(1_700_000_000_000, 1), 1), number)


def _heartbeat(said: dict[int, str]) -> server.NodeStatus:
    status = server.NodeStatus()
    for number, word in said.items():
        added = status.containersStatuses.add()
        convert.put_container_id(added.container_id, _id(number))
        added.state, added.container_sub_state = _STATES[word]
    return status


@given(st.lists(st.dictionaries(st.integers(1, 6), st.sampled_from(sorted(_STATES)), max_size=6), max_size=6))
def test_each_heartbeat_names_what_waits_and_what_runs(heartbeats: list[dict[int, str]]) -> None:
    named = NamedContainers()
    for said in heartbeats:
        waiting, started = named.read(_heartbeat(said))
        assert waiting == {_id(number) for number, word in said.items() if word == "waits"}
        assert started == {_id(number) for number, word in said.items() if word == "runs"}


def test_the_same_words_are_the_same_objects() -> None:
    named = NamedContainers()
    first = named.read(_heartbeat({1: "runs", 2: "waits"}))
    assert named.read(_heartbeat({1: "runs", 2: "waits", 3: "over"})) is first
    assert named.read(_heartbeat({1: "runs", 2: "runs"})) is not first
