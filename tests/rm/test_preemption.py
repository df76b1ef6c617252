"""Containers that are taken back for queues below their guarantee: who, when, with which notice."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.scheduler.decisions import Allocate, Preempt, Warn
from rm.scheduler.events import (
    ContainerEnded,
    PreemptionDue,
)
from rm.scheduler.preemption.spec import PreemptionSpec
from rm.scheduler.queues.spec import PREFIX
from rm.scheduler.view.calculators import AllocationBounds
from tests.examples import examples
from tests.rm.rm_harness import FakeNode, Harness, ManualClock, ask, cluster, configuration
from tests.rm.rm_world import DOMINANT, GB, HALVES, SLOT, World, queues, row
from yaqd.config import Configuration
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import RemoteIOError
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol as Admin
from yaqd.proto.yarn_admin_pb2 import RefreshQueuesRequest

#: everything at once, no grace
AT_ONCE = PreemptionSpec(wait_s=0.0, per_round=1.0, ignored_over_capacity=0.0, natural_termination=1.0)
TWO = {**HALVES, "user-limit-factor": "-1"}
LINES = {
    **TWO,
    "maximum-am-resource-percent": "0.2",
    "resource-calculator": DOMINANT,
}


class Cluster(World):
    """One large node; masters count as containers of 1 GB."""

    def __init__(self, spec: PreemptionSpec = AT_ONCE, **more: str) -> None:
        super().__init__(queues(LINES, **more), bounds=AllocationBounds(SLOT, Resource(8 * GB, 8)), preemption=spec)
        self.join("n", SLOT * 20)

    def app(self, queue: str, count: int, gb: int = 1, *, master: bool = False) -> ApplicationAttemptId:
        attempt = self.begin(queue, f"user{self.apps + 1}", master=SLOT if master else None)
        self.ask(attempt, count, gb)
        return attempt

    def ask(self, attempt: ApplicationAttemptId, count: int, gb: int = 1, priority: int = 1) -> list[Allocate]:
        return self.asks(attempt, row(count=count, size=SLOT * gb, priority=priority))

    def look(self, after_s: float = 0.0) -> tuple[list[ContainerId], list[ContainerId]]:
        """Who is told, and who is killed; the killed end."""
        self.now += after_s
        decisions = self.tell(PreemptionDue())
        killed = [d.container_id for d in decisions if isinstance(d, Preempt)]
        for container_id in killed:
            self.tell(ContainerEnded(container_id))
        return [d.container_id for d in decisions if isinstance(d, Warn)], killed

    def used(self, queue: str) -> int:
        return self.scheduler.view.queues[f"root.{queue}"].used.memory_mb // GB


def test_queue_gets_its_guarantee_back_from_the_last_application_and_no_more() -> None:
    c = Cluster()
    first, second = c.app("a", 12), c.app("a", 8)
    c.app("b", 30)
    told, killed = c.look()
    assert (len(told), killed) == (10, [])
    assert {c.attempt_id for c in told[:8]} == {second}, "the last application gives first"
    assert [c.id for c in told if c.attempt_id == second] == sorted((c.id for c in told[:8]), reverse=True)
    assert {c.attempt_id for c in told[8:]} == {first}
    _, killed = c.look()
    assert killed == told, "no grace period here"
    assert (c.used("a"), c.used("b")) == (10, 10)
    assert c.look() == ([], [])


def test_nothing_is_taken_for_those_who_want_nothing_or_have_their_guarantee() -> None:
    c = Cluster()
    c.app("a", 30)
    assert c.look() == ([], [])
    c = Cluster(root__a__capacity="20", root__b__capacity="80")
    c.app("a", 4)
    c.app("b", 30)
    c.ask(ApplicationAttemptId(ApplicationId(1, 1), 1), 10)
    assert c.look() == ([], []), "each has what it is guaranteed"


def test_only_what_is_wanted_is_taken() -> None:
    c = Cluster()
    c.app("a", 20)
    c.app("b", 3)
    assert len(c.look()[0]) == 3


def test_grace_period_and_what_ends_meanwhile() -> None:
    c = Cluster(PreemptionSpec(wait_s=15.0, per_round=1.0, ignored_over_capacity=0.0, natural_termination=1.0))
    c.app("a", 20)
    b = c.app("b", 4)
    told, _ = c.look()
    assert len(told) == 4
    assert c.look(14.9) == ([], []), "told once, and the time is not up"
    gone = ContainerId.make(ApplicationAttemptId(ApplicationId(1, 1), 1), 1)
    assert gone not in told
    c.tell(ContainerEnded(gone))
    assert c.used("b") == 1, "what ended by itself went to b"
    _, killed = c.look(0.2)
    assert len(killed) == 3 and set(killed) < set(told)
    assert c.used("b") == 4
    attempt = c.scheduler.view.attempt(b)
    assert attempt is not None and not attempt.asks.pending


def test_a_part_is_chosen_at_a_time() -> None:
    c = Cluster(PreemptionSpec(wait_s=0.0, per_round=1.0, ignored_over_capacity=0.0, natural_termination=0.2))
    c.app("a", 20)
    c.app("b", 20)
    assert len(c.look()[0]) == 2, "a fifth of ten"
    c = Cluster(PreemptionSpec(wait_s=0.0, per_round=0.15, ignored_over_capacity=0.0, natural_termination=1.0))
    c.app("a", 20)
    c.app("b", 20)
    assert len(c.look()[0]) == 3, "15 % of the cluster"


def test_a_little_above_the_guarantee_is_left_alone() -> None:
    spec = PreemptionSpec(wait_s=0.0, per_round=1.0, ignored_over_capacity=0.1, natural_termination=1.0)
    c = Cluster(spec)
    c.app("a", 11)
    c.app("b", 9)
    c.app("b", 5)
    assert c.look() == ([], [])
    c = Cluster(spec)
    c.app("a", 12)
    c.app("b", 8)
    c.app("b", 5)
    assert len(c.look()[0]) == 2


def test_queue_may_be_exempt_and_so_are_those_below_it() -> None:
    c = Cluster(root__a__disable_preemption="true")
    c.app("a", 20)
    c.app("b", 20)
    assert c.look() == ([], [])
    nested = {"root__a__queues": "x", "root__a__x__capacity": "100", "root__a__disable_preemption": "true"}
    c = Cluster(AT_ONCE, **nested)
    c.app("root.a.x", 20)
    c.app("b", 20)
    assert c.look() == ([], [])
    c = Cluster(AT_ONCE, **nested, root__a__x__disable_preemption="false")
    c.app("root.a.x", 20)
    c.app("b", 20)
    assert len(c.look()[0]) == 10, "said again below"


def test_masters_go_last_and_their_queue_keeps_its_share_for_them() -> None:
    c = Cluster(maximum_am_resource_percent="0.8", root__a__capacity="20", root__b__capacity="80")
    masters = [c.app("a", 0, master=True) for _ in range(16)]
    c.ask(masters[0], 4)
    c.app("b", 20)
    told, _ = c.look()
    assert len(told) == 16, "down to the guarantee of 4"
    assert [t.attempt_id for t in told[:4]] == [masters[0]] * 4, "tasks before masters"
    assert [t.attempt_id for t in told[4:]] == list(reversed(masters))[:12], "the last masters first"


def test_tasks_of_low_priority_go_first() -> None:
    c = Cluster()
    app = c.app("a", 0)
    important = c.ask(app, 10, priority=1)
    other = c.ask(app, 10, priority=9)
    c.app("b", 5)
    told, _ = c.look()
    assert set(told) < {d.container_id for d in other}
    assert important


def test_watching_only_takes_nothing() -> None:
    c = Cluster(PreemptionSpec(wait_s=0.0, observe_only=True))
    c.app("a", 20)
    c.app("b", 20)
    assert c.look() == ([], [])


@settings(max_examples=examples(60), deadline=None)
@given(
    guarantees=st.sampled_from([(50, 50, 0), (30, 50, 20), (80, 10, 10), (100, 0, 0)]),
    wants=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(1, 25), st.sampled_from([1, 2, 3])), min_size=1, max_size=8
    ),
    per_round=st.sampled_from([0.1, 0.5, 1.0]),
    factor=st.sampled_from([0.2, 1.0]),
    exempt=st.sampled_from(["", "a", "b"]),
)
def test_nobody_loses_its_guarantee_and_it_comes_to_rest(
    guarantees: tuple[int, int, int],
    wants: list[tuple[str, int, int]],
    per_round: float,
    factor: float,
    exempt: str,
) -> None:
    spec = PreemptionSpec(wait_s=0.0, per_round=per_round, ignored_over_capacity=0.0, natural_termination=factor)
    queues = {f"root__{q}__capacity": str(g) for q, g in zip("abc", guarantees, strict=True)}
    if exempt:
        queues[f"root__{exempt}__disable_preemption"] = "true"
    c = Cluster(spec, root__queues="a,b,c", **queues)
    for queue, count, gb in wants:
        c.app(queue, count, gb)
    view = c.scheduler.view
    share_of = {q: g * 20 * GB / 100 for q, g in zip("abc", guarantees, strict=True)}
    for _ in range(200):
        c.now += 1.0
        before = {q: view.queues[f"root.{q}"].used.memory_mb for q in "abc"}
        decisions = c.tell(PreemptionDue())
        killed = [d.container_id for d in decisions if isinstance(d, Preempt)]
        taken = sum(view.containers[k].resource.memory_mb for k in killed)
        assert taken <= per_round * 20 * GB, "no more than a round's part"
        for container_id in killed:
            held = view.containers[container_id]
            queue = held.application.leaf.spec.name
            assert queue != exempt
            before[queue] -= held.resource.memory_mb
            assert before[queue] > share_of[queue] - held.resource.memory_mb, "at most one container too many"
        for container_id in killed:
            c.tell(ContainerEnded(container_id))
        if not decisions:
            break
    else:
        raise AssertionError("it never comes to rest")


# ---- on the wire

ENABLE = "yarn.resourcemanager.scheduler.monitor.enable"
KEYS = "yarn.resourcemanager.monitor.capacity.preemption."
WAIT = f"{KEYS}max_wait_before_kill"
SETTINGS = {
    "yarn.resourcemanager.scheduler.monitor.enable": "true",
    "yarn.resourcemanager.monitor.capacity.preemption.monitoring_interval": "1000",
    "yarn.resourcemanager.monitor.capacity.preemption.max_wait_before_kill": "5000",
    "yarn.resourcemanager.monitor.capacity.preemption.total_preemption_per_round": "1.0",
    "yarn.resourcemanager.monitor.capacity.preemption.natural_termination_factor": "1.0",
    "yarn.scheduler.capacity.root.queues": "a,b",
    "yarn.scheduler.capacity.root.a.capacity": "50",
    "yarn.scheduler.capacity.root.b.capacity": "50",
    "yarn.scheduler.capacity.user-limit-factor": "-1",
}


async def passes(rm: Harness, clock: ManualClock, node: FakeNode, seconds: float) -> None:
    """Time goes by, and the node's heartbeats with it."""
    clock.seconds += seconds
    looked = rm.manager.preemption._last
    await rm.until(lambda: rm.manager.preemption._last != looked)
    await node.beat()


async def test_master_is_told_once_and_its_containers_end_as_preempted() -> None:
    clock = ManualClock()
    async with cluster(SETTINGS, clock=clock) as rm:
        node = await rm.node(memory_mb=8 * GB)
        _, in_a = await rm.running(node, queue="a")
        granted = (await in_a.allocate(ask(7))).allocated_containers
        assert len(granted) == 7
        for container in granted:
            node.run(convert.container_id(container.id))
        await node.beat()
        waiting = await rm.submit(queue="b")
        await passes(rm, clock, node, 1.1)
        response = await in_a.allocate()
        (told,) = response.preempt.contract.container
        assert not response.preempt.HasField("strictContract"), "as Hadoop's CapacityScheduler"
        (request,) = response.preempt.contract.resource
        assert (request.resource.num_containers, request.resource.resource_name) == (1, "*")
        assert request.resource.capability.memory == GB
        await passes(rm, clock, node, 2)
        assert not (await in_a.allocate()).HasField("preempt"), "once"
        await passes(rm, clock, node, 4)
        (ended,) = (await in_a.allocate()).completed_container_statuses
        assert ended.container_id == told.id == granted[-1].id
        assert (ended.exit_status, ended.diagnostics) == (-102, "Container preempted by scheduler")
        await rm.launched(waiting, node)
        usage = (await rm.report(convert.application_id(told.id.app_attempt_id.application_id))).app_resource_Usage
        assert usage.preempted_memory_seconds == int(GB * 7.1)
        lost = {e.key: e.value for e in usage.application_preempted_resource_usage_map}
        assert lost == {"memory-mb": int(GB * 7.1), "vcores": 7}
        info = await queue_info(rm, "a")
        assert info.preemptionDisabled is False


async def test_container_that_its_master_does_not_know_yet_is_not_killed() -> None:
    clock = ManualClock()
    async with cluster(SETTINGS, clock=clock) as rm:
        small = await rm.node(memory_mb=2 * GB)
        _, in_a = await rm.running(small, queue="a")
        await in_a.allocate(ask(9))
        large = await rm.node(memory_mb=6 * GB)
        assert len(rm.manager.cluster.nodes[large.id].containers) == 6
        await rm.submit(queue="b")
        await passes(rm, clock, large, 1.1)
        await passes(rm, clock, large, 6)
        assert len(rm.manager.cluster.nodes[large.id].containers) == 6
        assert len((await in_a.allocate()).allocated_containers) == 6


async def queue_info(rm: Harness, name: str) -> common.QueueInfo:
    return (await rm.client.call(Client.getQueueInfo, pb.GetQueueInfoRequest(queueName=name))).queueInfo


def files(folder: Path, *, site: Mapping[str, str] | None = None, **queues: str) -> Configuration:
    """A configuration of files, with `queues` as capacity-scheduler.xml has them; written again by a second call."""
    halves = {PREFIX + name: value for name, value in TWO.items()}
    for name, pairs in (("yarn-site.xml", dict(site or {})), ("capacity-scheduler.xml", {**halves, **queues})):
        body = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in pairs.items())
        (folder / name).write_text(f"<configuration>{body}</configuration>")
    base = configuration()
    settings = {k: base.get(k) or "" for k in base.changed_keys() if "capacity" not in k}
    return Configuration.load(folder, overrides=settings, environ={})


async def test_a_refresh_of_the_queues_turns_preemption_on_and_off_and_takes_its_settings(tmp_path: Path) -> None:
    clock = ManualClock()
    on = {ENABLE: "true"}
    at_once = {WAIT: "0", f"{KEYS}total_preemption_per_round": "1.0", f"{KEYS}natural_termination_factor": "1.0"}
    async with cluster(conf=files(tmp_path), clock=clock) as rm, admin(rm) as refresh:
        node = await rm.node(memory_mb=8 * GB)
        _, in_a = await rm.running(node, queue="a")
        for container in (await in_a.allocate(ask(7))).allocated_containers:
            node.run(convert.container_id(container.id))
        await node.beat()
        await rm.submit(queue="b")
        assert (await queue_info(rm, "a")).preemptionDisabled is True
        files(tmp_path, site=on, **{**at_once, f"{PREFIX}root.a.disable_preemption": "true"})
        await refresh()
        await passes(rm, clock, node, 4)
        assert not (await in_a.allocate()).HasField("preempt"), "its queue is exempt"
        files(tmp_path, site={**on, WAIT: "3600000"}, **at_once)
        await refresh()
        assert (await queue_info(rm, "a")).preemptionDisabled is False
        await passes(rm, clock, node, 4)
        (told,) = (await in_a.allocate()).preempt.contract.container
        files(tmp_path, site=on, **{WAIT: "a while"})
        with pytest.raises(RemoteIOError, match=r"capacity-scheduler.xml:1: .*max_wait_before_kill"):
            await refresh()
        files(tmp_path)
        await refresh()
        assert (await queue_info(rm, "a")).preemptionDisabled is True
        files(tmp_path, site=on, **at_once)
        await refresh()
        await passes(rm, clock, node, 4)
        (again,) = (await in_a.allocate()).preempt.contract.container
        assert again.id == told.id, "told anew: what was said before it was off counts no more"
        await passes(rm, clock, node, 4)
        (ended,) = (await in_a.allocate()).completed_container_statuses
        assert ended.container_id == told.id, "and its time is up at once, by the file of the queues"


@asynccontextmanager
async def admin(rm: Harness) -> AsyncIterator[Callable[[], Awaitable[object]]]:
    """What refreshes the queues."""
    client = RpcClient("127.0.0.1", rm.manager.servers.admin.port, user="root")
    yield lambda: client.call(Admin.refreshQueues, RefreshQueuesRequest())
    await client.close()


GPU = "yarn.io/gpu"


def _with_gpus(own: int, wanted: int) -> tuple[list[Resource], World]:
    """Queue a holds all 8 GPUs, and three containers without one, which came last; b wants GPUs. What is taken back."""
    world = World(queues(LINES), bounds=AllocationBounds(SLOT, Resource(8 * GB, 8, {GPU: 8})), preemption=AT_ONCE)
    world.join("n", Resource(64 * GB, 64, {GPU: 8}))
    for number, (queue, each, count) in enumerate((("a", own, 8 // own), ("a", 0, 3), ("b", 1, wanted)), 1):
        size = Resource(GB, 1, {GPU: each} if each else {})
        world.asks(world.begin(queue, f"user{number}"), row(count=count, size=size))
    taken = []
    for now in (1.0, 2.0):
        world.now = now
        for decision in world.tell(PreemptionDue()):
            if isinstance(decision, Preempt):
                taken.append(world.scheduler.view.containers[decision.container_id].resource)
                world.ends(decision.container_id)
    return taken, world


@pytest.mark.parametrize(("own", "wanted", "expected"), [(1, 4, 4), (1, 2, 2), (1, 8, 4), (4, 4, 1), (4, 2, 1)])
def test_every_type_counts(own: int, wanted: int, expected: int) -> None:
    """Memory and cores are within a's guarantee; the GPUs alone are not, and only containers with some are taken."""
    taken, world = _with_gpus(own, wanted)
    assert taken == [Resource(GB, 1, {GPU: own})] * expected
    assert world.scheduler.view.queues["root.b"].used.extras[GPU] == min(wanted, 4)
