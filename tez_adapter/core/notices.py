"""What a user should hear of the cluster while the job runs: why nothing moves, and what is done about it.

One line each, said once for as long as it holds. The ResourceManager misses a dead node only after its expiry; until
then the silence of its tasks is all there is to say.
"""

from collections.abc import Iterable

from tez_adapter.core.dag import Limits
from tez_adapter.core.records import Attempt
from tez_adapter.core.states import AttemptState

#: task processes report every second: silence of all on a node for so long is worth a word, seconds
QUIET_S = 5.0
#: lines kept for an owner that does not fetch them
_PENDING_MAX = 100


class Notices:
    def __init__(self, limits: Limits) -> None:
        self._quiet_s = min(QUIET_S, limits.silence_s or QUIET_S)
        #: not yet taken
        self._pending: list[str] = []
        #: nodes of which something is said that holds still
        self._quiet: set[str] = set()
        self._unreachable: set[str] = set()
        self._full: set[str] = set()

    def take(self) -> list[str]:
        """Take the lines since the last call, oldest first."""
        taken, self._pending = self._pending, []
        return taken

    def watch(self, live: Iterable[Attempt], now: float) -> None:
        """Say which nodes are not heard any more, and which are again. It is called with every live attempt."""
        heard: dict[str, float] = {}
        tasks: dict[str, int] = {}
        for attempt in live:
            if attempt.state is not AttemptState.ASSIGNED:  # else nobody expects a word of it
                heard[attempt.node] = max(heard.get(attempt.node, 0.0), attempt.heard)
                tasks[attempt.node] = tasks.get(attempt.node, 0) + 1
        for node, at in heard.items():
            if now - at < self._quiet_s:
                if node in self._quiet:
                    self._quiet.discard(node)
                    self._say(f"node {node} is heard again")
            elif node not in self._quiet:
                self._quiet.add(node)
                what = _count(tasks[node], "task")
                self._say(f"nothing was heard for {self._quiet_s:g} s from node {node}, which runs {what}")

    def lost(self, node: str, running: int, outputs: int) -> None:
        """Say that the ResourceManager has given a node up with so many running tasks and finished tasks' outputs."""
        for said in (self._quiet, self._unreachable, self._full):
            said.discard(node)
        what = [_count(running, "running task")] if running else []
        what += [f"the output of {_count(outputs, 'finished task')}"] if outputs else []
        if what:
            again = "it runs" if running + outputs == 1 else "they run"
            self._say(f"node {node} was lost with {' and '.join(what)}: {again} again")

    def unreachable(self, node: str, reason: str) -> None:
        self._once(self._unreachable, node, f"node {node} does not answer, its tasks go elsewhere: {reason}")

    def disk_full(self, node: str, reason: str) -> None:
        self._once(self._full, node, f"node {node} has no room on its disks, its tasks wait or go elsewhere: {reason}")

    def not_avoided(self, host: str, times: int) -> None:
        """Say that so many containers in a row came there though the job had asked for none."""
        self._say(
            f"host {host} is avoided no more: the ResourceManager gave {times} containers in a row there all the same"
        )

    def started(self, node: str) -> None:
        """Note that a container runs there."""
        self._unreachable.discard(node)
        self._full.discard(node)

    def _once(self, said: set[str], node: str, line: str) -> None:
        if node not in said:
            said.add(node)
            self._say(line)

    def _say(self, line: str) -> None:
        if len(self._pending) < _PENDING_MAX:
            self._pending.append(" ".join(line.split()))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
