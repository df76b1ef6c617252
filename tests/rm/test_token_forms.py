"""Container tokens are written into one form after the other: none says what the one before it said."""

import random

from rm.applications.records import RmContainer
from rm.scheduler.decisions import Allocate
from rm.security.tokens import TokenMint
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, ExecutionType, NodeId, Resource
from yaqd.policies.asks.rows import Locality
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server


def mint() -> TokenMint:
    return TokenMint(
        now=0.0,
        random=random.Random(1).randbytes,
        rm_identifier=7,
        container_interval_s=100.0,
        nm_interval_s=100.0,
        amrm_interval_s=100.0,
        nm_activation_s=10.0,
        amrm_activation_s=10.0,
        container_lifetime_s=60.0,
    )


def container(number: int, like: random.Random) -> RmContainer:
    """Where it matters, one of two values each."""
    app = ApplicationId(5, like.choice((1, 2)))
    allocation = Allocate(
        ContainerId(ApplicationAttemptId(app, 1), number),
        NodeId(like.choice(("a", "b")), 8041),
        like.choice((Resource(1024, 1), Resource(1024, 1, {"yarn.io/gpu": 1}))),
        like.choice((1, 2)),
        like.choice((-1, 3)),
        like.choice(list(ExecutionType)),
        Locality.NONE,
        like.random() < 0.2,
        "",
        like.choice(((), ("web",))),
    )
    made = RmContainer(allocation, None, "a:1", 1000 + number)  # type: ignore[arg-type]
    made.version = like.choice((0, 1))
    return made


def test_a_form_used_again_says_what_a_new_one_says() -> None:
    used, choices = mint(), random.Random(3)
    logs = (None, common.LogAggregationContext(include_pattern="x"))
    used.task_facts = lambda made: server.TaskFacts(estimate_ms=9) if made.id.id % 3 == 0 else None
    for number in range(300):
        made, user, log = container(number, choices), choices.choice(("ann", "bob")), choices.choice(logs)
        fresh = mint()
        fresh.task_facts = used.task_facts
        token = used.container_token(made, user, 50 + number, log)
        assert token == fresh.container_token(made, user, 50 + number, log)
        said = server.ContainerTokenIdentifier.FromString(token.identifier)
        assert convert.container_id(said.containerId) == made.id
        assert (said.appSubmitter, said.nmHostAddr, said.version) == (user, str(made.node_id), made.version)
        assert (said.expiryTimeStamp, said.creationTime) == (60_050 + number, 1000 + number)
        assert said.HasField("yaq_task") == (number % 3 == 0)
        assert said.HasField("logAggregationContext") == (log is not None)
