"""Settings of queues at nodes: read at the start and anew while it runs, refused where they stand."""

from pathlib import Path

import pytest

from rm.daemon import ResourceManager
from rm.nodes.named_hosts import PATIENCE_S
from rm.settings.daemon import read_queues
from rm.settings.queues import QueueSettings
from tests.rm.rm_harness import Harness, ManualClock, ask, cluster, configuration
from tests.rm.rm_queueing import OFF, ON, beat, given, queueing_node, site
from yaqd.config import ConfigError
from yaqd.ipc import RpcClient
from yaqd.ipc.errors import RemoteException
from yaqd.policies.queueing.estimates import earlier, observed
from yaqd.proto import yarn_admin_pb2 as admin
from yaqd.proto.protocols import ResourceManagerAdministrationProtocol


def leaf_order(rm: Harness) -> str:
    leaf = rm.manager.scheduler.view.find_queue("default")
    assert leaf is not None
    return leaf.spec.ordering


async def test_switched_on_and_off_by_refreshing_the_queues(tmp_path: Path) -> None:
    async with cluster(conf=site(tmp_path, **OFF)) as rm:
        node = await queueing_node(rm)
        _, master = await rm.running(node)
        assert len(given(await master.allocate(ask(9)))) == 3
        operator = RpcClient("127.0.0.1", rm.manager.servers.admin.port, user="root")

        async def refresh() -> None:
            call = ResourceManagerAdministrationProtocol.refreshQueues
            await operator.call(call, admin.RefreshQueuesRequest())

        try:
            site(tmp_path, **{**ON, "yaq.queue.node.127.0.0.1.bound": "1"})
            await refresh()
            assert (await beat(node, running=4)).yaq_orders.settings.enabled
            assert leaf_order(rm) == "srjf"
            assert len(given(await master.allocate())) == 1, "this host's own bound"
            own = {
                "yaq.queue.node.127.0.0.1.order": "stf",
                "yaq.queue.node.127.0.0.1.target-utilization": "0.5",
                "yaq.queue.leaf.root.default.order": "lrtf+pack",
                "yaq.queue.leaf.root.default.starve-ms": "7s",
                "yaq.rm.scheduler.job-starve-ms": "5s",
                "yaq.distributed.rebalance.min-gain-ms": "-1",
            }
            site(tmp_path, **{**ON, **own})
            await refresh()
            orders = (await beat(node, running=4)).yaq_orders
            told = orders.settings
            assert orders.files_read_ms
            [leaf] = told.leaves
            assert (told.order, told.starve_ms, told.scope) == ("stf", 60_000, "queue")
            assert (leaf.queue, leaf.order, leaf.starve_ms) == ("root.default", "lrtf+pack", 7000)
            # nodes read their own files again, once for each refresh
            assert not (await beat(node, running=4)).yaq_orders.HasField("files_read_ms")
            assert rm.manager.queueing.settings.rebalance.least_gain_s == float("inf")
            site(tmp_path, **{**ON, "yaq.queue.leaf.root.defualt.enabled": "false"})
            with pytest.raises(RemoteException, match=r"yaq-site\.xml:\d+.*no leaf queue root\.defualt.*root\.default"):
                await refresh()
            site(tmp_path, **{**ON, "yaq.queue.leaf.root.default.oder": "lrtf"})
            with pytest.raises(RemoteException, match=r"yaq-site\.xml:\d+.*default\.oder.*did you mean order\?"):
                await refresh()
            site(tmp_path, **{**ON, "yaq.queue.order": "whatever"})
            with pytest.raises(RemoteException, match=r"yaq-site\.xml:.*yaq\.queue\.order|yaq\.queue\.order.*yaq-site"):
                await refresh()
            site(tmp_path, **OFF)
            await refresh()
            orders = (await beat(node, running=4, queued=1)).yaq_orders
            assert orders.HasField("settings") and not orders.settings.enabled
            assert leaf_order(rm) == "srjf", "jobs keep their order whatever waits at nodes"
            assert not (await beat(node, running=4, queued=1)).HasField("yaq_orders")
        finally:
            await operator.close()


#: what stock's rules need
_BARE = {"yaq.queue.enabled": "false", "yaq.rm.scheduler.at-asks": "false"}


@pytest.mark.parametrize(("before", "after"), [("stock", "yaq"), ("yaq", "stock")])
async def test_rules_stay_until_another_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, before: str, after: str
) -> None:
    rules = "yaq.rm.scheduler.rules"
    async with cluster(conf=site(tmp_path, **_BARE, **{rules: before})) as rm:
        await queueing_node(rm)
        operator = RpcClient("127.0.0.1", rm.manager.servers.admin.port, user="root")
        try:
            site(tmp_path, **(_BARE if after == "stock" else ON), **{rules: after})
            call = ResourceManagerAdministrationProtocol.refreshQueues
            await operator.call(call, admin.RefreshQueuesRequest())
        finally:
            await operator.close()
        settings = rm.manager.queueing.settings
        assert (settings.rules, settings.spec, settings.at_asks) == (before, None, False)
        assert f"yaq.rm.scheduler.rules is {after}: the next start takes it, until then {before}" in caplog.text


@pytest.mark.parametrize("queues", [OFF, ON])
async def test_containers_are_given_at_asks_only_where_the_key_says_so(tmp_path: Path, queues: dict[str, str]) -> None:
    key = "yaq.rm.scheduler.at-asks"
    async with cluster(conf=site(tmp_path, **queues, **{key: "false"})) as rm:
        node = await queueing_node(rm)
        app_id = await rm.submit()
        await rm.until(lambda: rm.manager.scheduler.has_waiting)
        await beat(node)
        master = await rm.launched(app_id, node)
        await master.register()
        operator = RpcClient("127.0.0.1", rm.manager.servers.admin.port, user="root")
        call = ResourceManagerAdministrationProtocol.refreshQueues
        try:
            for running, value in enumerate(("false", "true", "false"), 1):
                site(tmp_path, **queues, **{key: value})
                if running > 1:  # the first is what it started with
                    await operator.call(call, admin.RefreshQueuesRequest())
                assert len(given(await master.allocate(ask(1)))) == (value == "true")
                if value == "false":
                    assert not given(await master.allocate()), "no node has reported since"
                    await beat(node, running=running)
                    assert len(given(await master.allocate())) == 1
        finally:
            await operator.close()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("yaq.queue.bound", "-1"),
        ("yaq.queue.bound", "999999999"),
        ("yaq.queue.target-utilization", "1.5"),
        ("yaq.queue.bound-policy", "magic"),
        ("yaq.queue.node.host7.order", "alphabetic"),
        ("yaq.queue.node.host7.target-utilization", "7"),
        ("yaq.queue.leaf.root.default.starve-ms", "-3"),
        ("yaq.queue.order", "magic"),
        ("yaq.queue.job-order", "magic"),
        ("yaq.queue.placement", "magic"),
        ("yaq.queue.scope", "galaxy"),
        ("yaq.queue.starve-ratio", "nan"),
        ("yaq.queue.node.h1.bound", "many"),
        ("yaq.queue.leaf.root.a.enabled", "perhaps"),
        ("yaq.queue.default-estimate", "soon"),
        ("yaq.rm.scheduler.at-asks", "sometimes"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_file_and_line(tmp_path: Path, key: str, value: str) -> None:
    conf = site(tmp_path, **{key: value})
    with pytest.raises(ConfigError) as refused:
        QueueSettings.read(conf)
    assert key in str(refused.value) and "yaq-site.xml" in str(refused.value)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("yaq.queue.boundd", "no setting boundd; did you mean yaq.queue.bound?"),
        ("yaq.queue.leaf.root.default.oder", "no setting oder; did you mean order?"),
        ("yaq.queue.leaf.root.default.bound", "no setting bound; the settings are enabled, order"),
        ("yaq.queue.node.10.0.0.1.target-utilisation", "did you mean target-utilization?"),
    ],
)
def test_nothing_starts_with_a_setting_that_is_none(tmp_path: Path, key: str, words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ResourceManager(site(tmp_path, **{key: "srjf"}))
    assert f"yaq-site.xml:2: {key}" in str(refused.value) and words in str(refused.value)
    read_queues(site(tmp_path, **{key: ""}))


async def test_a_host_without_a_node_is_named_once_for_each_reading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    own = {"yaq.queue.node.127.0.0.1.bound": "1", "yaq.queue.node.host7.order": "stf", **ON}
    clock = ManualClock()
    conf = site(tmp_path, **own)

    def said() -> list[str]:
        return [r.getMessage() for r in caplog.records if "has registered" in r.getMessage()]

    async with cluster(conf=conf, clock=clock) as rm:
        await queueing_node(rm)
        check = rm.manager.queueing.named_hosts.check
        clock.seconds += PATIENCE_S - 1
        check(clock.now())
        assert not said(), "nodes may still be on their way"
        clock.seconds += 1
        for _ in range(2):
            check(clock.now())
        [line] = said()
        assert f"{tmp_path}/yaq-site.xml:3: yaq.queue.node.host7.order: no node of host host7" in line
        assert line.endswith("nodes are at: 127.0.0.1")
        rm.manager.queueing.refresh(QueueSettings.read(conf))
        check(clock.now())
        assert len(said()) == 2
        rm.manager.queueing.refresh(QueueSettings.read(site(tmp_path, **{**own, **OFF})))
        check(clock.now())
        assert len(said()) == 2, "queues are off"


def test_every_order_of_jobs_is_known_and_named_where_another_is_refused(tmp_path: Path) -> None:
    for name in ("fifo", "fair", "srjf", " LRTF "):
        conf = site(tmp_path, **{"yaq.queue.enabled": "true", "yaq.queue.job-order": name})
        assert QueueSettings.read(conf).job_order == name.strip().lower()
    with pytest.raises(ConfigError, match="known: fifo, fair, srjf"):
        QueueSettings.read(site(tmp_path, **{"yaq.queue.job-order": "magic"}))


@pytest.mark.parametrize("key", ["yaq.queue.estimates", "yaq.distributed.rebalance.policy"])
def test_a_policy_that_nobody_has_is_refused_with_those_there_are(key: str) -> None:
    with pytest.raises(ConfigError, match=rf"{key}.*'psychic'.*known: (blended|gain)"):
        QueueSettings.read(configuration({key: "psychic"}))


async def test_the_policy_of_estimates_is_the_configured_one() -> None:
    async with cluster({**ON, "yaq.queue.estimates": "earlier"}) as rm:
        assert rm.manager.queueing.estimates._known.policy is earlier
        settings = QueueSettings.read(configuration({**ON, "yaq.queue.estimates": "observed"}))
        rm.manager.queueing.refresh(settings)
        assert rm.manager.queueing.estimates._known.policy is observed
