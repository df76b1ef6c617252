"""How failures are put to the user."""

import signal
from collections.abc import Iterable, Mapping

from tez_adapter.core.dag import VertexSpec
from tez_adapter.core.events import ContainerCompleted
from tez_adapter.core.records import Attempt, Container, Task, Vertex
from yaqd.model import ExitStatus, Resource

#: a program that a signal ended has it as its exit status, so much higher (bash)
_BY_SIGNAL = 128
_MEMORY_SETTINGS = "mapreduce.map.memory.mb, mapreduce.reduce.memory.mb, yaq run --memory"
#: what it took too much of, by exit status
_OVER: Mapping[int, str] = {
    ExitStatus.KILLED_EXCEEDED_PMEM: f", over its memory (give it more: {_MEMORY_SETTINGS}; or let it hold less)",
    ExitStatus.KILLED_EXCEEDED_VMEM: (
        ", with more address space than its memory x yarn.nodemanager.vmem-pmem-ratio "
        "(yarn.nodemanager.vmem-check-enabled=false on the nodes, a higher ratio there or more memory helps: "
        f"{_MEMORY_SETTINGS})"
    ),
}


def verdict(vertex: Vertex, task: Task, attempt: Attempt) -> str:
    """Say what ended the job, as far as its task goes; the attempt's own error comes behind it."""
    name = f"{vertex.spec.name} task {task.id.task}"
    if attempt.exit_status == ExitStatus.DISKS_FAILED:
        return f"no node has room on its disks for {name}, last {attempt.node}"
    return f"{name} failed {task.failures} time{'s' if task.failures != 1 else ''}, last on {attempt.node}"


def _signal(exit_status: int) -> str:
    """Which signal a shell's exit status stands for; "" for none. A node that ends what is over its memory says so."""
    if not _BY_SIGNAL < exit_status <= _BY_SIGNAL + signal.NSIG - 1:
        return ""
    number = exit_status - _BY_SIGNAL
    try:
        name = f" ({signal.Signals(number).name})"
    except ValueError:
        name = ""
    if number == signal.SIGKILL:
        name += ", often because the machine had no memory left"
    return f", killed by signal {number}{name}"


def exit_text(container: Container, event: ContainerCompleted) -> str:
    """Say what is wrong with the end of a container whose task had not ended."""
    how = "without reporting its task done" if event.exit_status == 0 else f"with exit status {event.exit_status}"
    how += _signal(event.exit_status)
    how += _OVER.get(event.exit_status, "")
    more = f": {event.diagnostics.strip()}" if event.diagnostics.strip() else ""
    return f"container {container.id} ended {how}{more}"


def given_up_text(vertices: Iterable[Vertex]) -> str:
    """Say what a job did without that has succeeded."""
    return "; ".join(left_out_text(v.spec.name, v.given_up, v.spec.tasks) for v in vertices if v.given_up)


def left_out_text(phase: str, count: int, tasks: int) -> str:
    return f"{count} of {tasks} {phase} tasks failed and were left out (mapreduce.{phase}.failures.maxpercent)"


def too_small_text(spec: VertexSpec, given: Resource, count: int) -> str:
    """Say why a job ends whose ResourceManager gives less than is asked for."""
    return (
        f"the ResourceManager gave {count} containers in a row that are too small for {spec.name} tasks: the last has "
        f"{given}, and each asks for {spec.resource}; ask for what it gives ({_MEMORY_SETTINGS}, "
        "mapreduce.map.cpu.vcores, mapreduce.reduce.cpu.vcores, yaq run --vcores), or look at what its scheduler counts"
    )
