"""The sides of the live benchmark: a ResourceManager and four NodeManagers, stock or ours, with the same settings.

Both serve the local file system, count memory alone, and place any number of containers in one node heartbeat. What
differs between variants of a side is a handful of settings, and those are printed.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from yaqd.config import Configuration

from .live_master import SLOT_MB, Addresses
from .ours import OurCluster
from .stock.artifacts import HadoopJars
from .stock.conf import NodeShape, capacity_site
from .stock.daemons import StockYarn, current_user

NODES = 4
#: in the log of a stock ResourceManager, a line for each node
_REGISTERED = "NodeManager from node "
_HEARTBEAT = "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"
_OUT_OF_TURN = "yaq.nm.out-of-turn-heartbeats"
_AT_ASKS = "yaq.rm.scheduler.at-asks"
#: of the one leaf queue
JOB_ORDER = "yarn.scheduler.capacity.root.default.ordering-policy"
_SAME = {"yarn.log-aggregation-enable": "false"}
#: by default a stock scheduler places one container per heartbeat where locality does not matter
STOCK_OFF_SWITCH = 100
_STOCK = {"yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments": STOCK_OFF_SWITCH}
_OPPORTUNISTIC = "yarn.resourcemanager.opportunistic-container-allocation.enabled"
_QUEUE_LENGTH = "yarn.nodemanager.opportunistic-containers-max-queue-length"
#: what the stock ResourceManager orders nodes to keep of their queues; they end the rest, and the job counts a failure
_KEPT = "yarn.resourcemanager.nm-container-queuing"


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run one side."""

    name: str
    is_ours: bool
    #: tasks are asked for as opportunistic containers
    opportunistic: bool = False
    #: of the nodes, ms
    heartbeat_ms: int = 3000
    #: nodes report at once that a container ended, ours that one started too. Those of Hadoop 3.4.2 do so always
    #: (`ContainerImpl$ContainerDoneTransition` calls `sendOutofBandHeartBeat`)
    out_of_turn: bool = False
    #: the ResourceManager decides when it is asked too; a stock one does so of opportunistic containers alone
    at_asks: bool = False
    site: Mapping[str, object] = field(default_factory=dict)

    @property
    def queue_length(self) -> int:
        """Of stock's own queues at the nodes; 0 where none is set."""
        return int(str(self.site.get(_QUEUE_LENGTH, 0)))

    def facts(self) -> str:
        """For people: what one has to know of it."""
        parts = [f"heartbeat {self.heartbeat_ms} ms", f"out-of-turn heartbeats {'on' if self.out_of_turn else 'off'}"]
        parts.append(f"decisions {'at asks too' if self.at_asks else 'at node heartbeats alone'}")
        parts += [f"{key} {value}" for key, value in self.site.items()]
        return ", ".join(parts)


def stock(heartbeat_ms: int = 3000) -> Variant:
    """Stock YARN as it comes, but for the heartbeat."""
    name = "stock" if heartbeat_ms == 3000 else f"stock at {heartbeat_ms} ms"
    return Variant(name, is_ours=False, heartbeat_ms=heartbeat_ms, out_of_turn=True)


def stock_fair(heartbeat_ms: int) -> Variant:
    """Stock YARN with its best policy of the study (docs/study.md), and many containers at a heartbeat."""
    site = {JOB_ORDER: "fair"}
    return Variant("stock, fair", is_ours=False, heartbeat_ms=heartbeat_ms, out_of_turn=True, site=site)


def stock_opportunistic(queue_length: int) -> Variant:
    """Stock YARN with its own queues at the nodes, of so many places each, all of which may be kept."""
    kept = {f"{_KEPT}-{which}-queue-length": queue_length for which in ("min", "max")}
    site = {_OPPORTUNISTIC: "true", _QUEUE_LENGTH: queue_length, **kept}
    return Variant("stock, opportunistic", is_ours=False, opportunistic=True, out_of_turn=True, at_asks=True, site=site)


def shipped(heartbeat_ms: int) -> Variant:
    """Our daemons as they come, but for the heartbeat."""
    return Variant("ours as shipped", is_ours=True, heartbeat_ms=heartbeat_ms, out_of_turn=True, at_asks=True)


def ours(
    *, queues: bool, events: bool, at_asks: bool = True, name: str = "", site: Mapping[str, object] = {}
) -> Variant:
    """Our daemons with or without queues at the nodes, out-of-turn heartbeats, and decisions at asks."""
    what = " and ".join(word for word, is_on in (("queues", queues), ("events", events)) if is_on) or "neither"
    return Variant(
        name or (f"ours, {what}" if at_asks else f"ours, {what}, nothing at asks"),
        is_ours=True,
        out_of_turn=events,
        at_asks=at_asks,
        site={"yaq.queue.enabled": str(queues).lower(), **site},
    )


def site_of(variant: Variant) -> dict[str, object]:
    """What its daemons are configured with, beside their addresses, folders, sizes and queues."""
    site: dict[str, object] = {**_SAME, _HEARTBEAT: variant.heartbeat_ms, **variant.site}
    if variant.is_ours:
        site |= {_OUT_OF_TURN: str(variant.out_of_turn).lower(), _AT_ASKS: str(variant.at_asks).lower()}
    return site


@contextmanager
def running(
    variant: Variant, jars: HadoopJars | None, folder: Path, slots: int, queues: Mapping[str, int] = {}
) -> Iterator[Addresses]:
    """A cluster of that kind with so many slots on each node; `queues`: names and shares in percent."""
    folder.mkdir(parents=True)
    shape = NodeShape(slots * SLOT_MB, slots)
    shares = _queues(queues)
    site = site_of(variant)
    if variant.is_ours:
        calculator = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
        site = {**capacity_site(), **shares, "yarn.scheduler.capacity.resource-calculator": calculator, **site}
        with OurCluster(folder / "ours", nodes=NODES, shape=shape, site=site) as cluster:
            yield _addresses(cluster.conf_dir)
    else:
        if jars is None:
            raise ValueError("the stock side needs the stock jars")
        yarn = StockYarn(
            jars, folder / "stock", nodes=NODES, shape=shape, history=False, site=_STOCK | site, queues=shares
        )
        with yarn:
            yield _addresses(yarn.conf_dir)


def beats_within(variant: Variant, folder: Path) -> float:
    """Return how far apart the nodes' heartbeats are, s, by their registrations; inf: the log does not say.

    `folder`: of `running`. A node beats an interval after it has registered, and so on. Stock's start at once and wait
    for their ResourceManager, so they register when it is there, nearly together.
    """
    if variant.is_ours:
        return math.inf
    lines = (folder / "stock" / "logs" / "resourcemanager.log").read_text(errors="replace").splitlines()
    times = [at for line in lines if _REGISTERED in line and (at := _log_time(line)) is not None]
    return max(times) - min(times) if len(times) == NODES else math.inf


def _log_time(line: str) -> float | None:
    """Of a line of a stock log, s."""
    try:
        return datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S,%f").timestamp()
    except ValueError:
        return None


def _addresses(conf_dir: Path) -> Addresses:
    conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(conf_dir)})
    keys = ("address", "scheduler.address", "webapp.address")
    client, scheduler, web = (conf.get_address(f"yarn.resourcemanager.{key}") for key in keys)
    return Addresses(client, scheduler, web, current_user())


def _queues(queues: Mapping[str, int]) -> dict[str, object]:
    if not queues:
        return {}
    prefix = "yarn.scheduler.capacity.root"
    site: dict[str, object] = {f"{prefix}.queues": ",".join(queues)}
    for name, share in queues.items():
        site |= {
            f"{prefix}.{name}.capacity": share,
            f"{prefix}.{name}.maximum-capacity": 100,
            f"{prefix}.{name}.user-limit-factor": 100,
        }
    return site
