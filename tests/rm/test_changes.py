"""What users ask for their applications and change while they run: priority, tags, lifetime, queue, the end."""

from pathlib import Path

import pytest

from tests.rm.rm_harness import Harness, ManualClock, ask, cluster
from yaqd.ipc.errors import ApplicationAttemptNotFound, ApplicationNotFound, YarnError
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb
from yaqd.proto.protocols import ApplicationClientProtocol as Client

PRIORITIES = {"yarn.cluster.max-application-priority": "10"}
QUEUES = {
    "yarn.scheduler.capacity.root.queues": "default,night,closed,group",
    "yarn.scheduler.capacity.root.default.capacity": "50",
    "yarn.scheduler.capacity.root.night.capacity": "50",
    "yarn.scheduler.capacity.root.night.maximum-application-lifetime": "100",
    "yarn.scheduler.capacity.root.night.default-application-lifetime": "50",
    "yarn.scheduler.capacity.root.night.default-application-priority": "3",
    "yarn.scheduler.capacity.root.closed.capacity": "0",
    "yarn.scheduler.capacity.root.closed.state": "STOPPED",
    "yarn.scheduler.capacity.root.group.capacity": "0",
    "yarn.scheduler.capacity.root.group.queues": "inner",
    "yarn.scheduler.capacity.root.group.inner.capacity": "100",
    "yarn.scheduler.capacity.root.default.user-limit-factor": "-1",
    "yarn.scheduler.capacity.root.night.user-limit-factor": "-1",
}


async def set_priority(rm: Harness, app_id: ApplicationId, priority: int) -> int:
    request = pb.UpdateApplicationPriorityRequest(applicationId=convert.application_id_pb(app_id))
    request.applicationPriority.priority = priority
    return (await rm.client.call(Client.updateApplicationPriority, request)).applicationPriority.priority


async def set_expire_time(rm: Harness, app_id: ApplicationId, text: str) -> str:
    request = pb.UpdateApplicationTimeoutsRequest(applicationId=convert.application_id_pb(app_id))
    request.application_timeouts.add(application_timeout_type=common.APP_TIMEOUT_LIFETIME, expire_time=text)
    response = await rm.client.call(Client.updateApplicationTimeouts, request)
    return response.application_timeouts[0].expire_time


async def move(rm: Harness, app_id: ApplicationId, queue: str) -> None:
    request = pb.MoveApplicationAcrossQueuesRequest(target_queue=queue)
    request.application_id.CopyFrom(convert.application_id_pb(app_id))
    await rm.client.call(Client.moveApplicationAcrossQueues, request)


async def kill(rm: Harness, app_id: ApplicationId, diagnostics: str = "") -> bool:
    """Ask once, and wait until it is over; whether it was over when asked."""
    request = pb.KillApplicationRequest(diagnostics=diagnostics)
    request.application_id.CopyFrom(convert.application_id_pb(app_id))
    response = await rm.client.call(Client.forceKillApplication, request)
    await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
    return response.is_kill_completed


async def submit_with(
    rm: Harness,
    *,
    priority: int | None = None,
    lifetime_s: int | None = None,
    tags: tuple[str, ...] = (),
    queue: str = "",
) -> ApplicationId:
    context = await rm.submission(queue=queue or "default")
    if priority is not None:
        context.priority.priority = priority
    if lifetime_s is not None:
        context.application_timeouts.add(application_timeout_type=common.APP_TIMEOUT_LIFETIME, timeout=lifetime_s)
    context.applicationTags.extend(tags)
    await rm.client.call(Client.submitApplication, pb.SubmitApplicationRequest(application_submission_context=context))
    return convert.application_id(context.application_id)


async def lifetime(rm: Harness, app_id: ApplicationId) -> tuple[str, int]:
    timeout = (await rm.report(app_id)).appTimeouts[0].application_timeout
    return timeout.expire_time, timeout.remaining_time


# ---- priority


async def test_priority_is_no_higher_than_the_clusters_and_a_queue_gives_its_own() -> None:
    async with cluster({**QUEUES, **PRIORITIES}) as rm:
        for asked, queue, given in ((None, "", 0), (4, "", 4), (99, "", 10), (None, "night", 3), (-2, "night", -2)):
            app_id = await submit_with(rm, priority=asked, queue=queue)
            assert (await rm.report(app_id)).priority.priority == given
        assert await set_priority(rm, app_id, 50) == 10
        assert (await rm.report(app_id)).priority.priority == 10
    async with cluster() as rm:
        app_id = await submit_with(rm, priority=4)
        assert (await rm.report(app_id)).priority.priority == 0, "the cluster's highest is 0 unless it is set"


async def test_first_in_the_queue_is_whoever_has_the_highest_priority() -> None:
    async with cluster(PRIORITIES) as rm:
        low, middle, high = [await submit_with(rm, priority=n) for n in (1, 2, 3)]
        node = await rm.node(memory_mb=1024)
        await rm.until(lambda: len(node.started) == 1)
        assert [c.application_id for c in node.started] == [high]
        assert await set_priority(rm, low, 9) == 9
        await kill(rm, high)
        await rm.until(lambda: rm.manager.cluster.applications[high].is_over)
        await node.beat()
        await node.beat()
        await rm.until(lambda: len(node.started) == 2)
        assert [c.application_id for c in node.started] == [high, low]
        assert rm.manager.cluster.applications[middle].stage.name == "ACCEPTED"


async def test_priority_of_what_is_over_stays() -> None:
    async with cluster(PRIORITIES) as rm:
        app_id = await submit_with(rm, priority=4)
        await kill(rm, app_id)
        assert await set_priority(rm, app_id, 9) == 4
        with pytest.raises(ApplicationNotFound):
            await set_priority(rm, ApplicationId(1, 1), 9)


# ---- tags


@pytest.mark.parametrize(
    ("tags", "text"),
    [
        (tuple(f"t{n}" for n in range(11)), "Too many applicationTags, a maximum of only 10 are allowed!"),
        (("x" * 101,), f"Tag {'x' * 101} is too long, maximum allowed length of a tag is 100"),
        (("\u00e4",), "A tag can only have ASCII characters! Invalid tag - \u00e4"),
    ],
)
async def test_tags_are_few_and_short(tags: tuple[str, ...], text: str) -> None:
    async with cluster() as rm:
        with pytest.raises(YarnError) as caught:
            await submit_with(rm, tags=tags)
        assert caught.value.message == f"java.lang.IllegalArgumentException: {text}"
        assert not rm.manager.cluster.applications


async def test_queues_are_named_by_path_by_last_name_or_by_one_above() -> None:
    async with cluster(QUEUES) as rm:
        inner = await submit_with(rm, queue="root.group.inner")
        other = await submit_with(rm)
        assert (await rm.report(inner)).queue == "root.group.inner"

        async def listed(*queues: str) -> list[ApplicationId]:
            answer = await rm.client.call(Client.getApplications, pb.GetApplicationsRequest(queues=queues))
            return [convert.application_id(a.applicationId) for a in answer.applications]

        for name in ("inner", "root.group.inner", "root.group", "group"):
            assert await listed(name) == [inner]
        assert await listed("root") == [inner, other]
        assert await listed("nope") == [] == await listed("group.inner")


# ---- lifetime


@pytest.mark.parametrize("asked", [0, -4])
async def test_lifetime_is_positive(asked: int) -> None:
    async with cluster() as rm:
        with pytest.raises(YarnError, match=f"Invalid application timeout, value={asked} for type=LIFETIME"):
            await submit_with(rm, lifetime_s=asked)


async def test_application_ends_when_its_lifetime_does() -> None:
    clock = ManualClock()
    async with cluster(clock=clock) as rm:
        node = await rm.node()
        app_id = await submit_with(rm, lifetime_s=30)
        await (await rm.launched(app_id, node)).register()
        assert (await lifetime(rm, app_id))[1] == 30
        clock.seconds += 29
        assert (await lifetime(rm, app_id))[1] == 1
        assert not rm.manager.cluster.applications[app_id].is_concluded
        clock.seconds += 1
        await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
        report = await rm.report(app_id)
        assert report.yarn_application_state == common.KILLED
        assert report.diagnostics == (
            "Application is killed by ResourceManager as it has exceeded the lifetime period."
        )


async def test_queue_bounds_lifetimes() -> None:
    clock = ManualClock()
    async with cluster(QUEUES, clock=clock) as rm:
        for asked, given in ((None, 50), (70, 70), (700, 100)):
            app_id = await submit_with(rm, lifetime_s=asked, queue="night")
            assert (await lifetime(rm, app_id))[1] == given
        free = await submit_with(rm)
        assert await lifetime(rm, free) == ("UNLIMITED", -1)
        taken = await set_expire_time(rm, app_id, "2099-01-01T00:00:00.000+0100")
        assert taken == (await lifetime(rm, app_id))[0]
        assert (await lifetime(rm, app_id))[1] == 100
        taken = await set_expire_time(rm, free, "2099-01-01T00:00:00.250+0000")
        assert (await lifetime(rm, free))[0] == taken and ".250" in taken


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2001-01-01T00:00:00.000+0000", "Expire time is less than current time, current-time=2023-"),
        ("tomorrow", "Expire time is not in ISO8601 format"),
        ("2099-13-01T00:00:00.000+0000", "Expire time is not in ISO8601 format"),
        ("2099-01-01T00:00:00Z", "Expire time is not in ISO8601 format"),
        ("9" * 10_000, "Configured timeout value is 9"),
    ],
)
async def test_expire_times_that_are_none(text: str, why: str) -> None:
    async with cluster(clock=ManualClock()) as rm:
        app_id = await submit_with(rm)
        with pytest.raises(YarnError, match=why):
            await set_expire_time(rm, app_id, text)
        assert await lifetime(rm, app_id) == ("UNLIMITED", -1)


async def test_something_is_to_be_updated() -> None:
    async with cluster() as rm:
        app_id = await submit_with(rm)
        request = pb.UpdateApplicationTimeoutsRequest(applicationId=convert.application_id_pb(app_id))
        with pytest.raises(YarnError, match="At least one ApplicationTimeoutType should be configured"):
            await rm.client.call(Client.updateApplicationTimeouts, request)


# ---- queue


async def test_application_goes_on_in_another_queue_with_all_it_holds() -> None:
    async with cluster({**QUEUES, "yarn.scheduler.capacity.root.night.maximum-capacity": "50"}) as rm:
        node = await rm.node(memory_mb=8192)
        app_id, master = await rm.running(node)
        given = await master.allocate(ask(10))
        assert len(given.allocated_containers) == 7
        queues = rm.manager.scheduler.view.queues
        assert (queues["root.default"].used.memory_mb, queues["root.night"].used.memory_mb) == (8192, 0)
        assert given.limit.memory == 0
        await move(rm, app_id, "night")
        assert (await rm.report(app_id)).queue == "root.night"
        assert (queues["root.default"].used.memory_mb, queues["root.night"].used.memory_mb) == (0, 8192)
        rm.manager.scheduler.validate()
        released = tuple(c.id for c in given.allocated_containers[:4])
        answer = await master.allocate(release=released)
        assert not answer.allocated_containers, "what is left is all that the new queue may hold"
        assert queues["root.night"].used.memory_mb == 4096
        answer = await master.allocate(release=tuple(c.id for c in given.allocated_containers[4:]))
        assert len(answer.allocated_containers) == 3 and answer.limit.memory == 0
        await move(rm, app_id, "root.default")
        answer = await master.allocate()
        assert answer.limit.memory == 8192 - queues["root.default"].used.memory_mb
        rm.manager.scheduler.validate()


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        ("nope", "The specified Queue: nope doesn't exist"),
        ("group", "The specified Queue: group is not a Leaf Queue."),
        (
            "closed",
            "AccessControlException: Queue root.closed is STOPPED. Cannot accept submission of application: ",
        ),
    ],
)
async def test_queues_that_take_nothing(queue: str, why: str) -> None:
    async with cluster(QUEUES) as rm:
        app_id = await submit_with(rm)
        with pytest.raises(YarnError, match=why):
            await move(rm, app_id, queue)
        assert (await rm.report(app_id)).queue == "root.default"
        await kill(rm, app_id)
        await rm.until(lambda: rm.manager.cluster.applications[app_id].is_over)
        with pytest.raises(YarnError, match="App in KILLED state cannot be moved"):
            await move(rm, app_id, "night")


# ---- all of them over a restart


async def test_changes_outlive_a_restart(tmp_path: Path) -> None:
    store = tmp_path / "state.db"
    async with cluster({**QUEUES, **PRIORITIES}, store=store) as rm:
        app_id = await submit_with(rm, priority=1, lifetime_s=5000)
        ended = await submit_with(rm)
        await set_priority(rm, app_id, 8)
        await move(rm, app_id, "root.group.inner")
        expires = await set_expire_time(rm, app_id, "2099-01-01T00:00:00.125+0000")
        await move(rm, ended, "night")
        await kill(rm, ended)
    assert store.stat().st_mode & 0o077 == 0, "users' tokens and our keys are in it"
    async with cluster({**QUEUES, **PRIORITIES}, store=store) as rm:
        report = await rm.report(app_id)
        assert (report.priority.priority, report.queue) == (8, "root.group.inner")
        assert report.appTimeouts[0].application_timeout.expire_time == expires
        assert rm.manager.scheduler.view.applications[app_id].leaf.path == "root.group.inner"
        assert (await rm.report(ended)).queue == "root.night"


# ---- signals and ends


async def test_signal_goes_with_the_next_heartbeat() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node)
        container_id = convert.container_id_pb(ContainerId.make(ApplicationAttemptId(app_id, 1), 1))
        for command in (common.OUTPUT_THREAD_DUMP, common.FORCEFUL_SHUTDOWN):
            request = pb.SignalContainerRequest(container_id=container_id, command=command)
            await rm.client.call(Client.signalToContainer, request)
        response = await node.beat()
        assert [(s.container_id.id, s.command) for s in response.containers_to_signal] == [
            (1, common.OUTPUT_THREAD_DUMP),
            (1, common.FORCEFUL_SHUTDOWN),
        ]
        assert not (await node.beat()).containers_to_signal
        container_id.id = 77
        with pytest.raises(YarnError, match=r"Trying to signal an absent container container_.*_000077"):
            request.container_id.CopyFrom(container_id)
            await rm.client.call(Client.signalToContainer, request)


async def test_failed_attempt_is_followed_by_another_one() -> None:
    async with cluster() as rm:
        node = await rm.node()
        app_id, _ = await rm.running(node)
        attempt = pb.FailApplicationAttemptRequest(
            application_attempt_id=convert.attempt_id_pb(ApplicationAttemptId(app_id, 1))
        )
        await rm.client.call(Client.failApplicationAttempt, attempt)
        await rm.launched(app_id, node, attempt=2)
        first = rm.manager.cluster.applications[app_id].attempts[0]
        assert (first.state.name, first.diagnostics) == ("FAILED", "Attempt failed by user.")
        attempt.application_attempt_id.attemptId = 9
        with pytest.raises(ApplicationAttemptNotFound):
            await rm.client.call(Client.failApplicationAttempt, attempt)


async def test_killed_application_says_who_did_it_and_why() -> None:
    async with cluster() as rm:
        app_id = await submit_with(rm)
        await kill(rm, app_id, "because")
        assert await kill(rm, app_id, "again")
        assert (await rm.report(app_id)).diagnostics == (
            f"Application {app_id} was killed by user alice at 127.0.0.1 with diagnostic message: because"
        )
        with pytest.raises(ApplicationNotFound, match="Trying to kill an absent application application_1_0001"):
            await kill(rm, ApplicationId(1, 1))
