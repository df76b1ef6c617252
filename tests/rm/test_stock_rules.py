"""Stock's rules at heartbeats: what `tests/interop/test_off_is_stock.py` compares with Hadoop, in small, without it."""

import random

import pytest

from rm.scheduler.assign.stock_amounts import Amounts, f32
from rm.scheduler.decisions import Reserve, Unreserve
from rm.scheduler.events import AttemptEnded, NodeBeat, NodeLeft, NodeResized, SchedulerEvent
from rm.scheduler.limits import Rules
from rm.scheduler.queues.spec import QueueConfigError
from rm.settings.queues import QueueSettings
from tests.rm.rm_harness import ask, cluster
from tests.rm.rm_world import DEFAULT, DOMINANT, GB, HALVES, ONE_QUEUE, SLOT, World, queues, row, rows
from yaqd.config import ConfigError, Configuration
from yaqd.model import Resource

_MANY = {"per-node-heartbeat.maximum-offswitch-assignments": "100"}


def world(lines: dict[str, str] = ONE_QUEUE, **more: str) -> World:
    return World(queues({**lines, "resource-calculator": DOMINANT}, **more), rules=Rules.STOCK, at_asks=False)


def test_nothing_is_given_but_at_heartbeats() -> None:
    w = world(_MANY | ONE_QUEUE)
    node = w.join("a", SLOT * 2)
    app = w.begin(master=SLOT)
    assert w.asks(app, row(count=2)) == []
    first, second = w.beats(node)
    assert first.is_master and not second.is_master
    assert w.ends(second.container_id) == []
    w.tell(NodeResized(node, SLOT * 3))
    assert len(w.beats(node)) == 1
    w.asks(app, row())
    w.join("b")
    assert len(w.live) == 2, "given to a node that has only joined"


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("off-switch", "1", [1, 1, 1]),
        ("maximum-offswitch-assignments", "3", [3, 3, 2]),
        ("maximum-container-assignments", "2", [1, 1, 1]),
        ("multiple-assignments-enabled", "false", [1, 1, 1]),
    ],
)
def test_a_heartbeat_gives_as_much_as_is_set(name: str, value: str, expected: list[int]) -> None:
    w = world({**ONE_QUEUE, f"per-node-heartbeat.{name}": value} if name != "off-switch" else ONE_QUEUE)
    node = w.join("a", SLOT * 8)
    w.asks(w.begin(), row(count=8))
    assert [len(w.beats(node)) for _ in range(3)] == expected


@pytest.mark.parametrize(("most", "expected"), [("-1", [8, 0]), ("3", [3, 3, 2])])
def test_preferred_nodes_fill_at_once(most: str, expected: list[int]) -> None:
    w = world({**ONE_QUEUE, "per-node-heartbeat.maximum-container-assignments": most})
    node = w.join("a", SLOT * 8)
    w.asks(w.begin(), *rows("a", "/r1", count=8))
    assert [len(w.beats(node)) for _ in expected] == expected


def test_what_is_no_number_and_no_truth_is_refused() -> None:
    with pytest.raises(QueueConfigError, match="write true or false"):
        queues({**ONE_QUEUE, "per-node-heartbeat.multiple-assignments-enabled": "yes"})


def test_the_first_that_does_not_fit_has_the_node_reserved_and_counts_as_holding_it() -> None:
    w = world({**_MANY, **HALVES})
    node, other = w.join("a", SLOT * 4), w.join("b", SLOT * 4)
    small, large = w.begin("a"), w.begin("b")
    w.asks(small, *rows("a", "/r1", count=3))
    held = w.beats(node)
    assert len(held) == 3
    w.asks(large, row(size=SLOT * 2))
    [reserve] = w.tell(NodeBeat(node))
    assert isinstance(reserve, Reserve) and reserve.attempt_id == large
    w.asks(small, row(priority=2))
    assert w.beats(node) == [], "a reserved node is for one alone"
    assert w.ends(held[0].container_id) == []
    unreserve, fulfilled = w.tell(NodeBeat(node))
    assert isinstance(unreserve, Unreserve) and fulfilled in w.live.values()
    assert [one.attempt_id for one in (reserve, unreserve)] == [large, large]
    assert len(w.beats(other)) == 1


@pytest.mark.parametrize("how", ["node", "attempt", "ask"])
def test_a_reservation_ends_with_its_node_its_attempt_and_its_ask(how: str) -> None:
    w = world({**_MANY, **HALVES})
    node = w.join("a", SLOT * 4)
    w.join("b", SLOT * 4)
    w.asks(w.begin("a"), *rows("a", "/r1", count=3))
    w.beats(node)
    large = w.begin("b")
    w.asks(large, row(size=SLOT * 2))
    assert any(isinstance(one, Reserve) for one in w.tell(NodeBeat(node)))
    if how == "ask":
        assert w.asks(large, row(count=0, size=SLOT * 2)) == []
    events: dict[str, SchedulerEvent] = {
        "node": NodeLeft(node),
        "attempt": AttemptEnded(large),
        "ask": NodeBeat(node),
    }
    assert [type(one) for one in w.tell(events[how])] == [Unreserve]
    assert w.scheduler.has_waiting is (how == "node")


def test_who_waits_is_told_why() -> None:
    w = world({**_MANY, **HALVES})
    node, other = w.join("a", SLOT * 4), w.join("b", SLOT * 4, rack="/r2")
    small, large = w.begin("a"), w.begin("b")
    w.asks(small, *rows("a", "/r1", count=3))
    assert len(w.beats(node)) == 3
    w.asks(large, row(size=SLOT * 2))
    w.beats(node)
    assert w.why_waits(large) == "a:1 is reserved for it: what ends there leaves room for it"
    w.asks(small, *rows("a", "/r1", count=2, priority=3))
    w.beats(node)
    assert w.why_waits(small) == "it waits for one of the places that it prefers (0 other offers passed up so far)"
    w.beats(other)
    w.beats(other)
    assert w.why_waits(small) == "it waits for one of the places that it prefers (2 other offers passed up so far)"


def test_users_share_by_what_hadoop_rounds() -> None:
    """A user's limit is the equal part, in whole smallest containers, and may be passed by one."""
    lines = {**ONE_QUEUE, **_MANY, "root.default.minimum-user-limit-percent": "50"}
    w = world(lines)
    node = w.join("a", Resource(10 * GB, 16))
    first, second = w.begin(user="u1"), w.begin(user="u2")
    w.asks(first, row(count=16))
    w.asks(second, row(count=16))
    shares = [one.container_id.attempt_id for one in w.beats(node)]
    assert (shares.count(first), shares.count(second)) == (6, 4)


def test_amounts_are_rounded_as_javas_floats() -> None:
    total = Resource(10240, 10)
    both = Amounts(total, SLOT, counts_vcores=True)
    assert both.part(total, f32(0.7)) == Resource(7167, 6)
    assert both.down(Resource(7167, 6)) == Resource(6144, 6)
    assert both.up(Resource(7167, 6)) == Resource(7168, 6)
    assert both.up_part(total, f32(0.3)) == Resource(3072, 3), "rounded to 32 bits, that is 3,072 MB and no more"
    assert both.up_part(total, f32(0.3001)) == Resource(4096, 4)
    assert both.divided(Resource(4096, 4), 3) == Resource(1366, 2)
    assert both.divided(Resource(4096, 4), 0) == Resource()
    memory = Amounts(total, SLOT, counts_vcores=False)
    assert memory.up_part(total, f32(0.3)) == Resource(3072, 0)
    assert memory.compare(Resource(1, 9), Resource(1, 0)) == 0
    # by the scarcer type first, then by the other
    assert both.compare(Resource(1024, 5), Resource(4096, 1)) == 1
    assert both.compare(Resource(1024, 5), Resource(5120, 2)) == -1


def test_types_beside_memory_and_cores_count_too() -> None:
    amounts = Amounts(Resource(1024, 8, {"gpu": 2}), SLOT, counts_vcores=True)
    assert amounts.compare(Resource(512, 1, {"gpu": 2}), Resource(1024, 1)) == 1
    assert amounts.ratio(Resource(512, 1, {"gpu": 2}), amounts.total) == 1.0
    assert amounts.part(Resource(1024, 8, {"gpu": 3}), 0.5) == Resource(512, 4, {"gpu": 1})
    assert not amounts.fits(Resource(1, 1, {"gpu": 1}), Resource(1024, 8))


@pytest.mark.parametrize(
    ("key", "value"),
    [("yaq.queue.enabled", "true"), ("yaq.queue.enabled", "auto"), ("yaq.rm.scheduler.at-asks", "true")],
)
def test_what_stocks_rules_do_not_know_is_refused_beside_them(key: str, value: str) -> None:
    conf = Configuration.load(environ={}, overrides={"yaq.compat": "stock", key: value})
    with pytest.raises(ConfigError, match=f"{key} = .*is not for yaq.rm.scheduler.rules=stock; set it to false"):
        QueueSettings.read(conf)


async def test_a_manager_with_the_one_key_starts_masters_and_gives_containers_at_heartbeats() -> None:
    async with cluster({"yaq.compat": "stock"}) as rm:
        node = await rm.node()
        app_id = await rm.submit()
        await rm.until(lambda: rm.manager.scheduler.has_waiting)
        assert not rm.manager.scheduler.facts.root.containers
        await node.beat()
        master = await rm.launched(app_id, node)
        await master.register()
        assert not (await master.allocate(ask(3))).allocated_containers
        found = []
        for _ in range(4):
            await node.beat()
            found.append(len((await master.allocate()).allocated_containers))
        assert found == [1, 1, 1, 0]


def test_memory_alone_counts_where_that_is_set() -> None:
    w = World(queues({**ONE_QUEUE, **_MANY, "resource-calculator": DEFAULT}), rules=Rules.STOCK, at_asks=False)
    node = w.join("a", Resource(4 * GB, 1))
    w.asks(w.begin(), row(count=8, size=Resource(GB, 4)))
    assert len(w.beats(node)) == 4


@pytest.mark.parametrize("seed", range(8))
def test_random_lives_keep_the_books(seed: int) -> None:
    """The view is recounted after each event. What has reserved a node is there, and wanted it when it did."""
    draw, w = random.Random(seed), world({**_MANY, **HALVES}, root__a__minimum_user_limit_percent="25")
    nodes = [w.join(f"n{number}", SLOT * draw.choice((2, 4, 8)), rack=f"/r{number % 2}") for number in range(4)]
    attempts = [w.begin(draw.choice("ab"), draw.choice(("u1", "u2"))) for _ in range(5)]
    events = 0
    for _ in range(150):
        move, attempt = (
            draw.choices(("beat", "ask", "end", "stop", "leave"), (50, 25, 20, 2, 2))[0],
            draw.choice(attempts),
        )
        if move == "beat":
            events += len(w.tell(NodeBeat(draw.choice(nodes))))
        elif move == "ask":
            size, count = SLOT * draw.choice((1, 1, 2, 3)), draw.randint(0, 4)
            w.asks(attempt, *rows(*draw.choice(((), ("n1", "/r1"), ("n2", "/r0"))), count=count, size=size))
        elif move == "end" and w.live:
            w.ends(draw.choice(list(w.live)))
        elif move == "stop":
            w.tell(AttemptEnded(attempt))
            attempts[attempts.index(attempt)] = w.begin(draw.choice("ab"), "u3")
        elif move == "leave":
            w.tell(NodeLeft(nodes[-1]))
            nodes[-1] = w.join("n9", SLOT * 4)
        w.scheduler.validate()
    assert events > 20
