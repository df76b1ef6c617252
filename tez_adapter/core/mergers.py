"""Mergers that a job runs in containers of its own: which it asks for, holds, and when it does without.

They run beside the job's tasks and are none: the job's machine does not know them, and nothing of the job depends on
them. A container of theirs is as large as a map's, so whatever gives those gives these. They are asked for before maps,
since a merger that comes after the last map is too late, and they give way: where the tasks get no room, where none has
come when the map stage is over, or where they end again and again. Then there are no mergers and outputs are read as
they are.

As in the machine, events go in, decisions come out, and time is handed in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tez_adapter.core import events as ev
from tez_adapter.core.counted import Counted
from tez_adapter.core.demand import Ask
from tez_adapter.core.records import Vertex
from yaqd.model import ANY_HOST, Resource

#: of their asks, before those of any vertex
MERGER_PRIORITY: Final = 5
#: containers that end early are replaced by so many for each merger wanted
_STARTS_EACH: Final = 3
#: tasks that wait for so long while none runs need the mergers' room: where the ResourceManager says that there is no
#: other, s, and whatever it says, since room in pieces holds no container
_YIELD_S: Final = 2.0
_YIELD_ANYHOW_S: Final = 10.0
#: reduces wait for a merger that no room is known for, s: as long as the ResourceManager may take to say that there is
_FULL_WAIT_S: Final = 1.5


@dataclass(slots=True)
class _Held:
    node: str
    host: str
    #: where it listens; 0 until it has said so
    port: int = 0


class OwnMergers:
    def __init__(self, resource: Resource, *, wait_s: float) -> None:
        """`resource`: of one container. `wait_s`: how long reduces wait for the first merger once all maps are done."""
        self._resource = resource
        self._wait_s = wait_s
        self._count = 0
        self._held: dict[str, _Held] = {}
        #: told to end and not over yet
        self._ending: set[str] = set()
        self._headroom: Resource | None = None
        self._counted = Counted()
        self._starved_since: float | None = None
        self._awaited_since: float | None = None
        #: containers started so far
        self.starts = 0
        #: none runs and none will be asked for any more
        self.is_over = False
        #: why that was too early; "" where all was well
        self.trouble = ""

    # ---- what there is

    def asks(self) -> list[Ask]:
        wanted = self.wanted
        return [Ask(MERGER_PRIORITY, ANY_HOST, wanted, self._resource)] if wanted else []

    @property
    def wanted(self) -> int:
        """Containers still asked for."""
        if self.is_over:
            return 0
        left = _STARTS_EACH * self._count - self.starts
        return max(0, min(self._count - len(self._held), left))

    @property
    def may_come(self) -> bool:
        """Whether who finds none that can be used shall wait for one."""
        if self.is_over:
            return False
        return not self._count or bool(self.wanted) or any(not held.port for held in self._held.values())

    def known(self) -> list[tuple[str, int]]:
        """List where the mergers that run listen: host and port."""
        return [(held.host, held.port) for held in self._held.values() if held.port]

    def is_wanted(self, container: str) -> bool:
        return container in self._held

    # ---- what happens

    def want(self, count: int) -> int:
        """Have so many run, and return how many more these are than before. Asked for fewer later, none ends."""
        more = 0 if self.is_over else max(0, count - self._count)
        self._count += more
        return more

    def handle(self, event: ev.Event) -> list[ev.Decision] | None:
        """Handle an event; None: it is not theirs alone."""
        match event:
            case ev.ClusterSeen():
                self._headroom = event.headroom
            case ev.ResourcesCounted():
                self._counted.cores = event.cores
            case ev.ContainerAllocated() if event.priority == MERGER_PRIORITY:
                return self._allocated(event)
            case ev.ContainerCompleted() if self._forget(event.container):
                return []
            case ev.LaunchFailed() if self._forget(event.container):
                return [ev.Release(event.container)]
        return None

    def heard(self, container: str, port: int) -> None:
        """Note that a container's process listens there."""
        held = self._held.get(container)
        if held is not None and 0 < port < 65536:
            held.port = port

    def lost(self, host: str, port: int) -> list[ev.Decision]:
        """Give up a container where nothing answers; another one is asked for."""
        return self._stop([c for c, held in self._held.items() if (held.host, held.port) == (host, port)], "no answer")

    def end(self, trouble: str = "") -> list[ev.Decision]:
        """End them: no merger is needed any more; or, with `trouble`, none can be had."""
        if not self.is_over:
            self.is_over, self.trouble = True, trouble or self._ended_early()
        return self._stop(list(self._held), trouble or "all outputs are settled")

    def tick(self, vertices: Sequence[Vertex], now: float) -> list[ev.Decision]:
        """Note that time has passed. `vertices`: of the job's machine, that of the maps first."""
        if self.is_over or not self._count:
            return []
        if self._ended_early():
            return self.end()
        if self._held and self._is_starved(vertices, now):
            return self.end("the job's tasks needed their room")
        if self.known() or not vertices[0].complete:
            self._awaited_since = None
        elif self._awaited_since is None:
            self._awaited_since = now
        elif now - self._awaited_since > self._wait_s:
            return self.end(f"none ran {self._wait_s:g} s after the last map (yaq.riffle.hdfs.merger-wait-ms)")
        elif not self._held and self._is_full(self._resource) and now - self._awaited_since > _FULL_WAIT_S:
            return self.end("the cluster had no room for them")
        return []

    def _allocated(self, event: ev.ContainerAllocated) -> list[ev.Decision]:
        if event.container in self._held or not self.wanted:
            return [ev.Release(event.container)]
        self._held[event.container] = _Held(event.node, event.host)
        self.starts += 1
        return [ev.LaunchMerger(event.container, event.node)]

    def _ended_early(self) -> str:
        """Whether no other will be started for those that ended."""
        is_last = self._count and not self._held and not self.wanted
        return f"{self.starts} of them ended early" if is_last else ""

    def _forget(self, container: str) -> bool:
        is_known = container in self._held or container in self._ending
        self._held.pop(container, None)
        self._ending.discard(container)
        return is_known

    def _stop(self, containers: list[str], reason: str) -> list[ev.Decision]:
        nodes = [self._held.pop(container).node for container in containers]
        self._ending.update(containers)
        return [ev.Stop(c, node, f"merger: {reason}") for c, node in zip(containers, nodes, strict=True)]

    def _is_starved(self, vertices: Sequence[Vertex], now: float) -> bool:
        """Whether the tasks that all others wait for have no room, and none of them runs."""
        vertex = next((vertex for vertex in vertices if not vertex.complete), None)
        if vertex is None or not vertex.pending or vertex.running:
            self._starved_since = None
            return False
        if self._starved_since is None:
            self._starved_since = now
        patience_s = _YIELD_S if self._is_full(vertex.spec.resource) else _YIELD_ANYHOW_S
        return now - self._starved_since > patience_s

    def _is_full(self, resource: Resource) -> bool:
        """Whether the cluster has no room for such a container, as far as the ResourceManager says."""
        return self._headroom is not None and not self._counted.fits(resource, self._headroom)
