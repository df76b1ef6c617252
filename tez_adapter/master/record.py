"""What the job manager keeps beside the machine: counters and phases of attempts, and the story at the end.

Counters of an attempt count once it has succeeded, and no longer once its output is lost; the job's own counters
are Hadoop's (JobCounter), taken from the machine.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tez_adapter.core.dag import AttemptId
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.records import Attempt, Vertex
from tez_adapter.core.states import AttemptState, JobState
from tez_adapter.jobspec import JobSpec, attempt_name
from tez_adapter.kinds.registry import KINDS
from yaqd.mapreduce.counters import JOB_GROUP, JobCounter, taken_together
from yaqd.model import DEFAULT_RACK

CounterList = list[tuple[str, str, int]]

_NOTES_MAX = 20

_KINDS = {
    "map": (
        JobCounter.TOTAL_LAUNCHED_MAPS,
        JobCounter.NUM_FAILED_MAPS,
        JobCounter.NUM_KILLED_MAPS,
        JobCounter.MILLIS_MAPS,
    ),
    "reduce": (
        JobCounter.TOTAL_LAUNCHED_REDUCES,
        JobCounter.NUM_FAILED_REDUCES,
        JobCounter.NUM_KILLED_REDUCES,
        JobCounter.MILLIS_REDUCES,
    ),
}


class JobRecord:
    def __init__(self, spec: JobSpec, machine: JobMachine, epoch_ms: Callable[[float], int]) -> None:
        self._spec = spec
        self._machine = machine
        #: from the machine's clock to epoch ms
        self.epoch_ms = epoch_ms
        self._counters: dict[AttemptId, CounterList] = {}
        self._phases: dict[AttemptId, dict[str, int]] = {}
        #: what was odd about the input, and no error; each line once, however many tasks read the file
        self._notes: dict[str, None] = {}

    def note_counters(self, attempt: AttemptId, counters: CounterList) -> None:
        self._counters[attempt] = counters

    def counters_of(self, attempt: AttemptId) -> CounterList:
        return self._counters.get(attempt, [])

    def note_phases(self, attempt: AttemptId, phases: dict[str, int]) -> None:
        self._phases[attempt] = phases

    def note_input(self, lines: list[str]) -> None:
        for line in lines:
            if len(self._notes) < _NOTES_MAX:
                self._notes[line] = None

    def attempt_name(self, attempt: AttemptId) -> str:
        vertex = self._machine.spec.vertices[attempt.vertex]
        letter = (vertex.phase or vertex.name)[0]
        return attempt_name(self._spec.job_id, letter, vertex.first_name + attempt.task, attempt.number)

    def exit_code(self, state: JobState) -> int:
        """Return what the user's program answers; else 0 for success, 1 for failure."""
        code = KINDS[self._spec.kind].exit_code(self._attempts())
        if code is not None:
            return code
        return 0 if state in (JobState.RUNNING, JobState.SUCCEEDED) else 1

    def counters(self) -> CounterList:
        sums: dict[tuple[str, str], int] = {}
        for attempt in self._attempts():
            if attempt.state is AttemptState.SUCCEEDED or attempt.live:
                for group, name, value in self._counters.get(attempt.id, ()):
                    sums[(group, name)] = taken_together(group, name, sums.get((group, name), 0), value)
        for vertex in self._machine.vertices:
            self._job_counters(vertex, sums)
        return [(group, name, value) for (group, name), value in sorted(sums.items())]

    def _job_counters(self, vertex: Vertex, sums: dict[tuple[str, str], int]) -> None:
        phase = vertex.spec.phase or vertex.spec.name
        names = _KINDS.get(phase)
        if names is None:
            return
        launched, failed, killed, millis = (name.value for name in names)
        attempts = [a for t in vertex.tasks for a in t.attempts]
        found = {launched: len(attempts), millis: sum(map(_ran_ms, attempts))}
        if vertex.ended[AttemptState.FAILED]:
            found[failed] = vertex.ended[AttemptState.FAILED]
        if vertex.ended[AttemptState.KILLED]:
            found[killed] = vertex.ended[AttemptState.KILLED]
        if phase == "map":
            found |= {counter.value: number for counter, number in Counter(map(self._locality, attempts)).items()}
        for name, number in found.items():
            sums[(JOB_GROUP, name)] = sums.get((JOB_GROUP, name), 0) + number

    def _locality(self, attempt: Attempt) -> JobCounter:
        """How far from its input a map ran; input that no host has is nowhere near."""
        hosts = self._machine.spec.vertices[attempt.id.vertex].hosts
        near = hosts[attempt.id.task] if hosts else ()
        if attempt.host in near:
            return JobCounter.DATA_LOCAL_MAPS
        racks = self._spec.racks
        rack = racks.get(attempt.host, DEFAULT_RACK)
        is_near = any(racks.get(host, DEFAULT_RACK) == rack for host in near)
        return JobCounter.RACK_LOCAL_MAPS if is_near else JobCounter.OTHER_LOCAL_MAPS

    def _attempts(self) -> Iterator[Attempt]:
        for vertex in self._machine.vertices:
            for task in vertex.tasks:
                yield from task.attempts

    def history(
        self,
        state: JobState,
        *,
        started_ms: int,
        finished_ms: int,
        diagnostics: str,
        shuffle: dict[str, Any] | None = None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the lines of the history file; `shuffle` says what was decided about merging map outputs."""
        spec = self._spec
        yield {
            "type": "job",
            "job_id": spec.job_id,
            "name": spec.name,
            "user": spec.user,
            "kind": spec.kind.value,
            "output": ", ".join(spec.outputs),
            "started_ms": started_ms,
            "vertices": {v.name: v.tasks for v in self._machine.spec.vertices},
        } | ({} if spec.flow is None else {"edges": self._edges()})
        for attempt in self._attempts():
            yield self._attempt_line(attempt)
        nested: dict[str, dict[str, int]] = {}
        for group, name, value in self.counters():
            nested.setdefault(group, {})[name] = value
        yield {
            "type": "end",
            "state": state.value,
            "diagnostics": diagnostics,
            "exit_code": self.exit_code(state),
            "finished_ms": finished_ms,
            "counters": nested,
            "notes": list(self._notes),
        } | ({} if shuffle is None else {"shuffle": shuffle})

    def _edges(self) -> list[list[str]]:
        """Return which stages read which, by name: (the one that is read, the one that reads)."""
        dag = self._machine.spec
        return [[dag.vertices[edge.source].name, dag.vertices[edge.target].name] for edge in dag.edges]

    def _attempt_line(self, attempt: Attempt) -> dict[str, Any]:
        vertex = self._machine.spec.vertices[attempt.id.vertex]
        return {
            "type": "attempt",
            "name": self.attempt_name(attempt.id),
            "vertex": vertex.name,
            "task": attempt.id.task,
            "number": attempt.id.number,
            "state": attempt.state.value,
            "container": attempt.container,
            "node": attempt.node,
            "started_ms": self.epoch_ms(attempt.started),
            "began_ms": self.epoch_ms(attempt.began) if attempt.began is not None else None,
            "finished_ms": self.epoch_ms(attempt.finished) if attempt.finished is not None else None,
            "exit_status": attempt.exit_status,
            "error": attempt.error,
            "phases_ms": self._phases.get(attempt.id, {}),
            "counters": {f"{g}:{n}": v for g, n, v in self._counters.get(attempt.id, ())},
        }


def _ran_ms(attempt: Attempt) -> int:
    """How long its process had its task: what its container waited at a node before that is nobody's work."""
    if attempt.finished is None or attempt.began is None:
        return 0
    return int(1000 * (attempt.finished - attempt.began))
