"""The merge scheduler of one shuffle: which map outputs become one file, and what reducers are told (Riffle, 4.3).

Map outputs come in one by one. Those of a node gather until the policy has enough for a merge, which is sent at once,
so that merging overlaps the map stage; on a small node, whose maps run in waves, one wave's outputs are merged while
the next one runs. When the last map is done, what is left on each node makes a last, smaller merge. Reducers hear of an
output when it is settled: merged, or to be read as it is. With best effort the shuffle is settled as a whole once the
given share of the merges is over; the rest is cancelled and read unmerged.

Whatever goes wrong with a merge (the merger fails, hangs, vanishes with its node) ends in the originals. An output that
is lost takes the merge it waits for with it, and the others of that merge gather again.

No clock and no I/O: `now` is seconds on the caller's clock. A decision costs no more on more nodes or for more maps.
The one at the end of the map stage does, which concerns them all.
"""

import math
from collections import deque
from dataclasses import dataclass, field

from riffle_merger.plan.decisions import CancelMerge, Decision, MapOutput, Publish, SendMerge
from riffle_merger.plan.policy import MergePolicy
from riffle_merger.plan.states import MERGE_TABLE, MergeEvent, MergeState


@dataclass(frozen=True, slots=True)
class MergeSpec:
    """One shuffle and how it is merged."""

    maps: int
    partitions: int
    policy: MergePolicy
    #: share of the merges after whose end reducers wait for no other, above 0 and at most 1
    best_effort: float = 0.95
    #: a merge that has not ended after so long is given up, s; 0: never
    timeout_s: float = 600.0
    #: merges under way at one merger, at most; more wait here, where they are cancelled at no cost
    outstanding: int = 8
    #: merges of one node that fail in a row; then its outputs are left alone
    node_failures: int = 3

    def __post_init__(self) -> None:
        if self.maps < 0 or self.partitions < 1:
            raise ValueError(f"a shuffle of {self.maps} maps in {self.partitions} partitions cannot be")
        if not (0 < self.best_effort <= 1 and self.timeout_s >= 0 and self.outstanding > 0 and self.node_failures > 0):
            raise ValueError(f"merging cannot go by {self}")


@dataclass(slots=True)
class _Merge:
    id: int
    node: str
    outputs: list[MapOutput]
    state: MergeState = MergeState.WAITING
    #: when it was sent
    sent: float = 0.0


@dataclass(slots=True)
class _Node:
    #: gather for the next merge, in order of their end
    gathering: dict[str, MapOutput] = field(default_factory=dict)
    gathered_bytes: int = 0
    waiting: deque[int] = field(default_factory=deque)
    sent: int = 0
    failures: int = 0
    #: merges here have failed too often, or there is no merger
    is_broken: bool = False
    #: its merger is being started: merges wait here for it
    is_awaited: bool = False


class MergeScheduler:
    """Call what happened; carry out what is returned, in order. Unknown or repeated news changes nothing.

    Invariant: an output that is present (finished and not lost) is in exactly one place: gathering at its node, in one
    open merge, or published; and it is published once.
    """

    def __init__(self, spec: MergeSpec) -> None:
        self.spec = spec
        #: all maps done and enough merges over: whatever comes now is read as it is
        self.is_settled = spec.maps == 0
        #: pairs of state and event that cannot be, for the log; drained by the owner
        self.anomalies: list[str] = []
        self.merges: dict[int, MergeState] = {}
        self._open: dict[int, _Merge] = {}
        self._nodes: dict[str, _Node] = {}
        self._outputs: dict[str, MapOutput] = {}
        self._of_map: dict[int, str] = {}
        self._in_merge: dict[str, int] = {}
        self._over = 0
        #: outputs that gather, over all nodes
        self._gathering = 0
        self._out: list[Decision] = []

    @property
    def pending(self) -> int:
        """Outputs present of which reducers have not heard."""
        return self._gathering + sum(len(merge.outputs) for merge in self._open.values())

    @property
    def is_over(self) -> bool:
        """Whether nothing will be merged any more: settled, or there is no place with a merger that works."""
        is_broken = bool(self._nodes) and all(node.is_broken for node in self._nodes.values())
        return not self._open and (self.is_settled or is_broken)

    # ---- events

    def finished(self, output: MapOutput, now: float) -> list[Decision]:
        """Note that a map attempt succeeded."""
        self._out = []
        former = self._of_map.get(output.map_index)
        if output.attempt in self._outputs or not 0 <= output.map_index < self.spec.maps:
            return self._out
        if former is not None:
            self._forget(former, now)
        self._outputs[output.attempt] = output
        self._of_map[output.map_index] = output.attempt
        self._place(output, now)
        if len(self._of_map) == self.spec.maps:
            self._settle(now)
        return self._out

    def lost(self, attempt: str, now: float) -> list[Decision]:
        """Note that the output of an attempt is gone. The caller has to tell whoever was told of it."""
        self._out = []
        self._forget(attempt, now)
        return self._out

    def merged(self, merge: int, now: float) -> list[Decision]:
        """Note that the merged file is there, whole."""
        self._out = []
        done = self._close(merge, MergeEvent.SUCCEED)
        if done is not None:
            self._nodes[done.node].failures = 0
            self._publish(done.node, done.outputs, done.id)
            self._after_merge(done.node, now)
        return self._out

    def failed(self, merge: int, now: float) -> list[Decision]:
        """Note that the merger refused or failed; nothing of its result exists."""
        self._out = []
        failed = self._close(merge, MergeEvent.FAIL)
        if failed is not None:
            self._give_up(failed, now)
        return self._out

    def without_merger(self, node: str, now: float) -> list[Decision]:
        """Note that there is no merger at the node: its outputs are read as they are."""
        self._out = []
        self._break(node, now)
        return self._out

    def await_merger(self, node: str) -> None:
        """Note that the node's merger is being started: merges are formed, and sent once it is there."""
        self._nodes.setdefault(node, _Node()).is_awaited = True

    def with_merger(self, node: str, now: float) -> list[Decision]:
        """Note that there is a merger at the node.

        What waits for it is sent, and what comes is merged, unless too many failed.
        """
        self._out = []
        found = self._nodes.setdefault(node, _Node())
        found.is_awaited = False
        if found.failures < self.spec.node_failures:
            found.is_broken = False
        self._send(found, now)
        return self._out

    def tick(self, now: float) -> list[Decision]:
        """Give up merges that take too long."""
        self._out = []
        if self.spec.timeout_s:
            late = [m for m in self._open.values() if m.state is MergeState.SENT and now - m.sent > self.spec.timeout_s]
            for merge in late:
                if self._close(merge.id, MergeEvent.FAIL) is not None:
                    self._out.append(CancelMerge(merge.id, merge.node))
                    self._give_up(merge, now)
        return self._out

    # ---- gathering

    def _place(self, output: MapOutput, now: float) -> None:
        node = self._nodes.setdefault(output.node, _Node())
        size = max(0, output.size)
        if self.is_settled or node.is_broken or self.spec.policy.leaves_alone(size / self.spec.partitions):
            self._publish(output.node, [output], None)
            return
        node.gathering[output.attempt] = output
        self._gathering += 1
        node.gathered_bytes += size
        if self.spec.policy.is_enough(len(node.gathering), node.gathered_bytes / self.spec.partitions):
            self._form(output.node, now)

    def _form(self, name: str, now: float) -> None:
        """What gathers at a node becomes a merge; a single output is better read as it is."""
        node = self._nodes[name]
        outputs = self._take(node)
        if len(outputs) < 2:
            self._publish(name, outputs, None)
            return
        merge = _Merge(len(self.merges), name, outputs)
        self.merges[merge.id] = merge.state
        self._open[merge.id] = merge
        self._in_merge.update((output.attempt, merge.id) for output in outputs)
        node.waiting.append(merge.id)
        self._send(node, now)

    def _take(self, node: _Node) -> list[MapOutput]:
        outputs = list(node.gathering.values())
        self._gathering -= len(outputs)
        node.gathering, node.gathered_bytes = {}, 0
        return outputs

    def _send(self, node: _Node, now: float) -> None:
        while node.waiting and node.sent < self.spec.outstanding and not node.is_awaited:
            merge = self._open.get(node.waiting.popleft())
            if merge is None or not self._move(merge, MergeEvent.SEND):
                continue
            merge.sent = now
            node.sent += 1
            self._out.append(SendMerge(merge.id, merge.node, tuple(merge.outputs)))

    # ---- ends of merges

    def _move(self, merge: _Merge, event: MergeEvent) -> bool:
        after = MERGE_TABLE.get((merge.state, event))
        if after is None:
            self._illegal(merge.id, merge.state, event)
            return False
        merge.state = self.merges[merge.id] = after
        return True

    def _illegal(self, merge: int, state: MergeState | None, event: MergeEvent) -> None:
        if len(self.anomalies) < 1000:
            self.anomalies.append(f"{event} does not apply to merge {merge} in state {state}")

    def _close(self, merge_id: int, event: MergeEvent) -> _Merge | None:
        merge = self._open.get(merge_id)
        if merge is None:
            # a cancelled merge may have been quicker than its cancelling
            if self.merges.get(merge_id) is not MergeState.CANCELLED:
                self._illegal(merge_id, self.merges.get(merge_id), event)
            return None
        was_sent = merge.state is MergeState.SENT
        if not self._move(merge, event):
            return None
        del self._open[merge_id]
        for output in merge.outputs:
            self._in_merge.pop(output.attempt, None)
        self._nodes[merge.node].sent -= was_sent
        self._over += 1
        return merge

    def _give_up(self, merge: _Merge, now: float) -> None:
        node = self._nodes[merge.node]
        self._publish(merge.node, merge.outputs, None)
        node.failures += 1
        if node.failures >= self.spec.node_failures:
            self._break(merge.node, now)
        self._after_merge(merge.node, now)

    def _break(self, name: str, now: float) -> None:
        node = self._nodes.setdefault(name, _Node())
        node.is_broken = True
        waiting, node.waiting = node.waiting, deque()
        for merge_id in waiting:
            if merge_id in self._open and (merge := self._close(merge_id, MergeEvent.FAIL)) is not None:
                self._publish(name, merge.outputs, None)
        self._publish(name, self._take(node), None)
        self._settle_if_enough(now)

    def _after_merge(self, node: str, now: float) -> None:
        self._send(self._nodes[node], now)
        self._settle_if_enough(now)

    # ---- the end of the map stage

    def _settle(self, now: float) -> None:
        """Every map is done: the last outputs of each node are merged too."""
        for name, node in self._nodes.items():
            if node.gathering:
                self._form(name, now)
        self._settle_if_enough(now)

    def _settle_if_enough(self, now: float) -> None:
        if self.is_settled or len(self._of_map) < self.spec.maps:
            return
        if not self._gathering and self._over >= math.ceil(self.spec.best_effort * len(self.merges) - 1e-9):
            self.is_settled = True
            self._cancel_rest()

    def _cancel_rest(self) -> None:
        for merge_id in list(self._open):
            was_sent = self._open[merge_id].state is MergeState.SENT
            merge = self._close(merge_id, MergeEvent.CANCEL)
            if merge is not None:
                if was_sent:
                    self._out.append(CancelMerge(merge.id, merge.node))
                self._publish(merge.node, merge.outputs, None)
        for node in self._nodes.values():
            node.waiting.clear()

    # ---- losses

    def _forget(self, attempt: str, now: float) -> None:
        output = self._outputs.pop(attempt, None)
        if output is None:
            return
        if self._of_map.get(output.map_index) == attempt:
            del self._of_map[output.map_index]
        node = self._nodes[output.node]
        if node.gathering.pop(attempt, None) is not None:
            node.gathered_bytes -= max(0, output.size)
            self._gathering -= 1
        merge_id = self._in_merge.get(attempt)
        if merge_id is None:
            return
        was_sent = self._open[merge_id].state is MergeState.SENT
        merge = self._close(merge_id, MergeEvent.CANCEL)
        if merge is None:
            return
        if was_sent:
            self._out.append(CancelMerge(merge.id, merge.node))
        for other in merge.outputs:
            if other.attempt != attempt:
                self._place(other, now)
        self._send(node, now)

    def _publish(self, node: str, outputs: list[MapOutput], merge: int | None) -> None:
        if outputs:
            self._out.append(Publish(node, tuple(outputs), merge))
