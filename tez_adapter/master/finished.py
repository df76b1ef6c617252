"""Which stages of a job are finished, noted in its staging folder for a job manager that takes this one's place.

A stage's note says where each task's output is, and what the task counted. The map outputs stay at their nodes, and the
parts in the output folders, as long as the application runs. A stage without a note runs again.
"""

import json
import logging
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tez_adapter.core.dag import AttemptId
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.records import Vertex
from tez_adapter.core.restored import DoneAttempt
from tez_adapter.core.states import JobState, TaskState
from tez_adapter.flow.plan import FlowPlan
from tez_adapter.jobspec import JobSpec
from tez_adapter.master.ended import write_note
from tez_adapter.master.record import CounterList, JobRecord
from yaqd.config import Configuration
from yaqd.model import NodeId
from yaqd.storage import PathNotFound, StorageError, get_filesystem

log = logging.getLogger(__name__)

#: a larger note is not read
_BYTES_MAX: Final = 64 << 20
#: numbers of attempts from one job manager to the next, as MapReduce has it
NUMBERS: Final = 1000


@dataclass(frozen=True, slots=True)
class Finished:
    """What former job managers have finished."""

    attempts: tuple[DoneAttempt, ...] = ()
    counters: tuple[tuple[AttemptId, CounterList], ...] = ()
    #: of nodes' shuffle services
    ports: Mapping[NodeId, int] = field(default_factory=dict)


def read_finished(spec: JobSpec, conf: Configuration, plan: FlowPlan) -> Finished:
    """Read the notes. One that is missing or cannot be read counts for nothing: its stage runs again. Blocking."""
    offset_s = time.time() - time.monotonic()
    attempts: list[DoneAttempt] = []
    counters: list[tuple[AttemptId, CounterList]] = []
    ports: dict[NodeId, int] = {}
    for stage in range(len(plan.stages)):
        path = _path(spec, stage)
        try:
            files = get_filesystem(path, conf)
            if files.status(path).length > _BYTES_MAX:
                raise ValueError(f"it is larger than {_BYTES_MAX} bytes")
            found = json.loads(b"".join(files.open_range(path, 0)))
            lines = [_done(stage, line, offset_s) for line in found["tasks"]]
            if sorted(done.id.task for done, _ in lines) != list(range(plan.stages[stage].tasks)):
                raise ValueError("it has not each of the stage's tasks once")
            known = {NodeId.parse(str(node)): int(port) for node, port in found["ports"].items()}
        except PathNotFound:
            continue
        except (StorageError, ValueError, KeyError, TypeError) as error:
            log.warning("%s is not read, so its stage runs again: %s", path, error)
            continue
        attempts += [done for done, _ in lines]
        counters += [(done.id, counted) for done, counted in lines]
        ports |= known
    return Finished(tuple(attempts), tuple(counters), ports)


def _done(stage: int, line: dict[str, Any], offset_s: float) -> tuple[DoneAttempt, CounterList]:
    """`offset_s`: what the time of day is ahead of the machine's clock."""
    attempt = AttemptId(stage, int(line["task"]), int(line["number"]))
    counted = [(str(group), str(name), int(value)) for group, name, value in line["counters"]]
    started, finished = (float(line[name]) / 1000 - offset_s for name in ("started_ms", "finished_ms"))
    return DoneAttempt(attempt, str(line["node"]), str(line["host"]), started, finished), counted


def _path(spec: JobSpec, stage: int) -> str:
    return f"{spec.staging}/stage-{stage:04d}.json"


class FinishedStages:
    """Notes each stage once it is finished; the file system may take its time."""

    def __init__(
        self,
        spec: JobSpec,
        conf: Configuration,
        machine: JobMachine,
        record: JobRecord,
        ports: Mapping[NodeId, int],
    ) -> None:
        """`ports`: of nodes' shuffle services, as they become known."""
        self._spec, self._conf, self._machine, self._record, self._ports = spec, conf, machine, record, ports
        #: by stage: how much had come and gone of its outputs when it was noted
        self._noted: dict[int, int] = {}
        self._to_write: queue.SimpleQueue[tuple[str, bytes] | None] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="finished stages", daemon=True).start()

    def follow(self) -> None:
        """Note what has been finished since the last call. Of a job that is over nobody needs to know."""
        if self._machine.state is not JobState.RUNNING:
            return
        for vertex in self._machine.vertices:
            if vertex.done == vertex.spec.tasks and self._noted.get(vertex.index) != len(vertex.completions):
                self._noted[vertex.index] = len(vertex.completions)
                self._to_write.put((_path(self._spec, vertex.index), self._text(vertex)))

    def _text(self, vertex: Vertex) -> bytes:
        lines = [
            {
                "task": task.id.task,
                "number": task.last.id.number,
                "node": task.last.node,
                "host": task.last.host,
                "started_ms": self._record.epoch_ms(task.last.started),
                "finished_ms": self._record.epoch_ms(task.last.finished or 0.0),
                "counters": self._record.counters_of(task.last.id),
            }
            for task in vertex.tasks
            if task.last is not None and task.state is TaskState.SUCCEEDED
        ]
        nodes = {NodeId.parse(str(line["node"])) for line in lines}
        ports = {str(node): self._ports[node] for node in nodes if node in self._ports}
        return json.dumps({"tasks": lines, "ports": ports}).encode()

    def _write(self) -> None:
        """In a thread, one note after the other: sources are finished before what reads from them."""
        while (note := self._to_write.get()) is not None:
            path, text = note
            try:
                write_note(path, self._conf, text, make_parents=False)
            except PathNotFound:
                return  # the job is over, and its folder gone
            except StorageError as error:
                log.warning("another job manager would run a finished stage again: %s is not written: %s", path, error)

    def close(self) -> None:
        """Write no more than what waits."""
        self._to_write.put(None)
