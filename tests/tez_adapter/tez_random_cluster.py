"""A cluster in a box for the job machine: slots, processes, faults, all from one seeded source."""

import random
from dataclasses import dataclass, field

from tests.tez_adapter.tez_invariants import validate
from tez_adapter.core import events as ev
from tez_adapter.core.dag import AttemptId
from tez_adapter.core.machine import JobMachine
from tez_adapter.core.states import JobState, TaskState
from yaqd.model import Resource


@dataclass
class Process:
    node: str
    attempt: AttemptId | None = None
    #: set when told to end
    ending: bool = False


@dataclass
class RandomCluster:
    machine: JobMachine
    rng: random.Random
    slots: int
    #: faults left to inject
    faults: int
    now: float = 0.0
    processes: dict[str, Process] = field(default_factory=dict)
    granted: dict[tuple[int, int], AttemptId] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    committed_twice: bool = False
    _serial: int = 0

    def send(self, event: ev.Event) -> None:
        for decision in self.machine.handle(event, self.now):
            self._perform(decision)
        validate(self.machine)

    def _perform(self, decision: ev.Decision) -> None:
        match decision:
            case ev.Launch(container=c, node=node):
                assert c not in self.processes
                self.processes[c] = Process(node)
            case ev.GiveTask(container=c, attempt=attempt):
                if c in self.processes:
                    self.processes[c].attempt = attempt
            case ev.GiveExit(container=c) | ev.Stop(container=c):
                if c in self.processes:
                    self.processes[c].ending = True
            case ev.AskNode(container=c):
                self.asked.append(c)
            case ev.AnswerCommit(attempt=attempt, granted=True):
                live = self.machine.attempt(self.granted.get(attempt.task_id, attempt))
                self.committed_twice |= live is not None and live.id != attempt and live.live
                self.granted[attempt.task_id] = attempt

    def run_to_the_end(self) -> None:
        for _ in range(20_000):
            if self.machine.state is not JobState.RUNNING and not self.processes:
                return
            self.now += self.rng.random()
            self._step()
        raise AssertionError(f"no end: {self.machine.state}, {self.machine.asks()}, {self.processes}")

    def _step(self) -> None:
        free = self.slots - len(self.processes)
        self.send(ev.ClusterSeen(Resource(1024 * free, free), 3))
        asks = self.machine.asks()
        if asks and free > 0:
            ask = self.rng.choice(asks)
            self._serial += 1
            host = ask.name if ask.name.startswith("h") else f"h{self.rng.randrange(3)}"
            self.send(ev.ContainerAllocated(f"c{self._serial}", f"{host}:1", host, Resource(1024, 1), ask.priority))
        if self.faults and self.rng.random() < 0.3:
            self.faults -= 1
            self._fault()
        for name in self.rng.sample(sorted(self.processes), len(self.processes)):
            if self.rng.random() < 0.7 and name in self.processes:
                self._turn(name)
        self.send(ev.Tick())
        asked, self.asked = self.asked, []
        for name in asked:
            if self.rng.random() < 0.5:  # a node may also answer late, wrongly or not at all
                self.send(ev.ContainerWaits(name))

    def _turn(self, name: str) -> None:
        process = self.processes[name]
        if process.ending:
            del self.processes[name]
            self.send(ev.ContainerCompleted(name, self.rng.choice([0, 143, -105])))
        elif process.attempt is None:
            self.send(ev.TaskRequested(name))
        else:
            attempt, process.attempt = process.attempt, None
            self.send(ev.AttemptReported(attempt, self.rng.random(), True))
            self.send(ev.CommitRequested(attempt))
            self.send(ev.AttemptSucceeded(attempt))

    def _fault(self) -> None:
        names = sorted(self.processes)
        kind = self.rng.randrange(7)
        if kind == 0 and names:
            name = self.rng.choice(names)
            del self.processes[name]
            self.send(ev.ContainerCompleted(name, self.rng.choice([-100, -101, -102, -108, 1, 137])))
        elif kind == 1:
            node = f"h{self.rng.randrange(3)}:1"
            for name in [n for n in names if self.processes[n].node == node]:
                del self.processes[name]
            self.send(ev.NodeLost(node))
        elif kind == 2:
            readers = [a for v in self.machine.vertices[1:] for a in v.running]
            outputs = [c.attempt for v in self.machine.vertices[:-1] for c in v.completions]
            if readers and outputs:
                self.send(ev.FetchReported(self.rng.choice(readers), (self.rng.choice(outputs),)))
        elif kind == 3:
            self.now += 40.0
        elif kind == 4 and names:
            attempt = self.processes[self.rng.choice(names)].attempt
            if attempt is not None and self.rng.random() < 0.3:
                self.send(ev.AttemptFailed(attempt, "error"))
        elif kind == 5 and names:
            # a node that refuses: its process never was
            name = self.rng.choice(names)
            if self.processes[name].attempt is None and not self.processes[name].ending and self.rng.random() < 0.3:
                del self.processes[name]
                refused, not_now = self.rng.random() < 0.5, self.rng.random() < 0.5
                self.send(ev.LaunchFailed(name, "disk full", refused, refused and not_now))
        else:
            # nonsense from peers
            self.send(ev.AttemptSucceeded(AttemptId(self.rng.randrange(-1, 4), self.rng.randrange(-1, 20), 0)))
            self.send(ev.ContainerCompleted("never heard of", 0))
            self.send(ev.TaskRequested("never heard of"))

    def check_end(self) -> None:
        """Hold that the job has ended for a reason, committed nothing twice and left no process behind."""
        machine = self.machine
        tasks = [task for vertex in machine.vertices for task in vertex.tasks]
        assert machine.state in (JobState.SUCCEEDED, JobState.FAILED)
        if machine.state is JobState.SUCCEEDED:
            assert all(task.state is TaskState.SUCCEEDED for task in tasks)
        else:
            assert any(task.failures == 4 or task.disk_failures >= 3 for task in tasks)
        # each commit was granted to the attempt of its moment
        assert not self.committed_twice
        assert not self.processes
