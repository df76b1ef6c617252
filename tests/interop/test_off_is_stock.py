"""`yaq.compat=stock` decides as a stock ResourceManager does: scripts and random plays go to both, step by step.

After each heartbeat of a node the masters have the same containers: size, priority, id and node. The test sends every
heartbeat itself, one at a time, and waits until the scheduler has taken it in. So no clock decides anything.
"""

from collections.abc import Iterator

import pytest

from benchmarks.stock.artifacts import HadoopJars
from tests.interop.interop_plays import RACKS, Both, Play
from tests.interop.interop_scenarios import SCENARIOS, Scenario
from tests.interop.interop_two_managers import Driven, OurManager, StockManager

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
CLIENT = "decisions as stock's"
_PREFIX = "yarn.scheduler.capacity."
_CALCULATORS = "org.apache.hadoop.yarn.util.resource"
_QUEUES = {
    "maximum-am-resource-percent": 1.0,
    "node-locality-delay": 3,
    "root.queues": "a,b,c",
    "root.a.capacity": 40,
    "root.a.maximum-capacity": 70,
    "root.a.minimum-user-limit-percent": 25,
    "root.a.user-limit-factor": 2,
    "root.b.capacity": 35,
    "root.b.queues": "one,two",
    "root.b.one.capacity": 60,
    "root.b.one.user-limit-factor": 3,
    "root.b.two.capacity": 40,
    "root.b.two.maximum-capacity": 60,
    "root.b.two.ordering-policy": "fair",
    "root.b.two.user-limit-factor": 2,
    "root.b.two.minimum-user-limit-percent": 33,
    "root.c.capacity": 25,
    "root.c.maximum-capacity": 50,
    "root.c.ordering-policy": "fair",
    "root.c.user-limit-factor": 1.5,
    "root.c.minimum-user-limit-percent": 50,
}
#: name -> what is set beside; the first is what all runs of CI go by
_SETTINGS: dict[str, dict[str, object]] = {
    "as shipped, cores count": {"resource-calculator": f"{_CALCULATORS}.DominantResourceCalculator"},
    "memory alone, many a heartbeat": {"per-node-heartbeat.maximum-offswitch-assignments": 4},
    "three a heartbeat, further offers for a rack": {
        "resource-calculator": f"{_CALCULATORS}.DominantResourceCalculator",
        "per-node-heartbeat.maximum-offswitch-assignments": 100,
        "per-node-heartbeat.maximum-container-assignments": 3,
        "rack-locality-additional-delay": 2,
        "node-locality-delay": 1,
    },
    "one a heartbeat": {"per-node-heartbeat.multiple-assignments-enabled": "false"},
}
_FIRST = next(iter(_SETTINGS))


@pytest.fixture(scope="module")
def pair(
    request: pytest.FixtureRequest, hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[StockManager, OurManager]]:
    """A stock ResourceManager and ours with the same settings, which the test names."""
    folder = tmp_path_factory.mktemp("two")
    table = folder / "racks"
    table.write_text("".join(f"{host} {rack}\n" for host, rack in RACKS.items()))
    site = {
        "yarn.scheduler.minimum-allocation-mb": 1024,
        "yarn.scheduler.maximum-allocation-mb": 8192,
        "yarn.cluster.max-application-priority": 10,
        "net.topology.node.switch.mapping.impl": "org.apache.hadoop.net.TableMapping",
        "net.topology.table.file.name": table,
        # else the largest container is the configured one at first, and later the largest node
        "yarn.resourcemanager.work-preserving-recovery.scheduling-wait-ms": 0,
    }
    queues = {f"{_PREFIX}{key}": value for key, value in (_QUEUES | _SETTINGS[request.param]).items()}
    # Hadoop counts masters outside the cluster as its smallest container against the share for masters, and we do not
    masters = {f"{_PREFIX}maximum-am-resource-percent": 100.0}
    with (
        StockManager(hadoop, folder / "stock", site, queues | masters) as stock,
        OurManager(folder / "ours", site, queues) as ours,
    ):
        yield stock, ours


@pytest.fixture
def both(pair: tuple[StockManager, OurManager]) -> Iterator[Both]:
    """The two without nodes and applications; what is left of them at the end goes."""
    stock, ours = pair
    both = Both(Driven(stock), Driven(ours))
    yield both
    both.clear()
    ours.validate()


@pytest.mark.parametrize("pair", [_FIRST], indirect=True)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_script_gives_the_same(both: Both, scenario: Scenario) -> None:
    assert scenario(both) == SCENARIOS[scenario]


@pytest.mark.parametrize("pair", [_FIRST], indirect=True)
@pytest.mark.parametrize("seed", range(6))
def test_a_random_play_gives_the_same(both: Both, seed: int) -> None:
    assert Play(both, seed).run(60) > 5


@pytest.mark.full
@pytest.mark.parametrize("pair", _SETTINGS, indirect=True)
@pytest.mark.parametrize("seed", range(100, 150))
def test_further_plays_give_the_same(both: Both, seed: int) -> None:
    assert Play(both, seed).run(80) > 5
