"""The sides: which ResourceManager, with which settings, on a core of its own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..rm_load import Manager, our_manager, stock_manager
from ..stock.artifacts import HadoopJars

_HEARTBEAT: Final = "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms"
_QUEUES: Final = "yaq.queue.enabled"
_CS: Final = "yarn.scheduler.capacity"
_ASYNC: Final = {
    f"{_CS}.schedule-asynchronously.enable": "true",
    f"{_CS}.schedule-asynchronously.scheduling-interval-ms": 5,
}


@dataclass(frozen=True, slots=True)
class Side:
    """One way to run a ResourceManager."""

    name: str
    is_ours: bool
    site: Mapping[str, object]

    @property
    def has_queues(self) -> bool:
        """Tell whether containers may wait at nodes."""
        return self.site.get(_QUEUES, "false") != "false"


#: stock's give many containers a heartbeat (`benchmarks.rm_load`)
SIDES: Final = {
    side.name: side
    for side in (
        Side("off", True, {_QUEUES: "false"}),
        Side("auto", True, {_QUEUES: "auto"}),
        Side("always", True, {_QUEUES: "true"}),
        Side("stock", False, {}),
        Side("stock-async", False, _ASYNC),
    )
}


@contextmanager
def manager_of(side: Side, heartbeat_s: float, jars: HadoopJars | None, folder: Path, core: int) -> Iterator[Manager]:
    """Run the side's ResourceManager. `heartbeat_s`: of the nodes, s."""
    site: dict[str, object] = {_HEARTBEAT: round(1000 * heartbeat_s), **side.site}
    folder.mkdir()
    if side.is_ours:
        with our_manager(folder, core, site) as manager:
            yield manager
        return
    if jars is None:
        raise ValueError("the stock side needs the stock jars")
    scheduler = {key: text for key, text in site.items() if key.startswith(_CS)}
    with stock_manager(jars, folder, core, site, scheduler) as manager:
        yield manager
