"""How large a job's containers are, and whether the cluster gives containers that large.

Asked at the submission and once more when the job manager has registered: nodes may have gone in between, and an ask
above the maximum ends a heartbeat with an exception instead of an answer.
"""

from dataclasses import dataclass

from tez_adapter.jobspec import JobKind
from yaqd.config import Configuration
from yaqd.model import Resource


@dataclass(frozen=True, slots=True)
class ContainerSize:
    #: whose containers: "map"
    what: str
    resource: Resource
    #: the keys that say so
    memory_key: str
    vcores_key: str

    def excess(self, largest: Resource) -> str | None:
        """One line that says what is more than the cluster's largest container has; None when nothing is."""
        for amount, most, unit, key in (
            (self.resource.memory_mb, largest.memory_mb, "MB", self.memory_key),
            (self.resource.vcores, largest.vcores, "virtual cores", self.vcores_key),
        ):
            if amount > most:
                return (
                    f"the {amount} {unit} of each {self.what} ({key}) are more than the {most} {unit} that a container "
                    "can have here"
                )
        return None


def task_size(what: str, conf: Configuration) -> ContainerSize:
    """Of a "map" or a "reduce"."""
    memory_key, vcores_key = f"mapreduce.{what}.memory.mb", f"mapreduce.{what}.cpu.vcores"
    resource = Resource(conf.get_int(memory_key, 1024, minimum=1), conf.get_int(vcores_key, 1, minimum=1))
    return ContainerSize(f"{what} task", resource, memory_key, vcores_key)


def command_size(conf: Configuration) -> ContainerSize:
    memory_key, vcores_key = "yaq.job.command.memory-mb", "yaq.job.command.vcores"
    resource = Resource(conf.get_int(memory_key, 256, minimum=1), conf.get_int(vcores_key, 1, minimum=1))
    return ContainerSize("container", resource, memory_key, vcores_key)


def too_large(kind: JobKind, reduces: int, conf: Configuration, largest: Resource) -> str | None:
    """Why the job's tasks cannot run on a cluster whose largest container this is; None when they can."""
    if kind is JobKind.COMMAND:
        sizes = [command_size(conf)]
    else:
        sizes = [task_size("map", conf), *([task_size("reduce", conf)] if reduces else [])]
    return next((line for size in sizes if (line := size.excess(largest)) is not None), None)
