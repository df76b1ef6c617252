"""How large a job's containers are, and whether the cluster gives containers that large.

Asked at the submission and once more when the job manager has registered: nodes may have gone in between, and an ask
above the maximum ends a heartbeat with an exception instead of an answer.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from yaqd.config import Configuration
from yaqd.config.resource_types import requested_resources, resource_types
from yaqd.model import Resource

COMMAND_RESOURCES: Final = "yaq.job.command.resource."
#: of a command's containers
MEMORY_KEY: Final = "yaq.job.command.memory-mb"
VCORES_KEY: Final = "yaq.job.command.vcores"
#: of the job manager
MASTER_MEMORY_KEY: Final = "yarn.app.mapreduce.am.resource.mb"
_TASK_RESOURCES: Final = {"map": "mapreduce.map.resource.", "reduce": "mapreduce.reduce.resource."}
#: Hadoop's names of memory and cores among the resources that a key asks for (MRJobConfig)
_MEMORY: Final = ("memory-mb", "memory")
_VCORES: Final = "vcores"
#: what bare numbers of these count in
_UNITS: Final = dict.fromkeys(_MEMORY, "Mi")
_MB: Final = 1 << 20


def sort_mb(conf: Configuration) -> int:
    """Return the memory for sorting and merging, MB, as configured. Raises ConfigError."""
    return conf.get_int("mapreduce.task.io.sort.mb", 256, minimum=1)


@dataclass(frozen=True, slots=True)
class ContainerSize:
    #: whose containers: "map"
    what: str
    resource: Resource
    #: the keys that say so
    memory_key: str
    vcores_key: str
    #: the keys of further resources, by name
    extra_keys: Mapping[str, str]

    def excess(self, largest: Resource) -> str | None:
        """Return one line that says what is more than the cluster's largest container has; None when nothing is."""
        for amount, most, unit, key in (
            (self.resource.memory_mb, largest.memory_mb, "MB", self.memory_key),
            (self.resource.vcores, largest.vcores, "virtual cores", self.vcores_key),
        ):
            if amount > most:
                return (
                    f"the {amount} {unit} of each {self.what} ({key}) are more than the {most} {unit} that a container "
                    "can have here"
                )
        for name, amount in self.resource.extras.items():
            most = largest.extras.get(name, 0)
            if amount > most:
                return (
                    f"the {amount} {name} of each {self.what} ({self.extra_keys[name]}) are more than the {most} that "
                    "a container can have here"
                )
        return None


def task_size(what: str, conf: Configuration) -> ContainerSize:
    """Return the container size of a "map" or a "reduce". Raises ConfigError."""
    memory_key, vcores_key = f"mapreduce.{what}.memory.mb", f"mapreduce.{what}.cpu.vcores"
    plain = Resource(conf.get_int(memory_key, 1024, minimum=1), conf.get_int(vcores_key, 1, minimum=1))
    return _with_named(ContainerSize(f"{what} task", plain, memory_key, vcores_key, {}), conf, _TASK_RESOURCES[what])


def command_size(conf: Configuration) -> ContainerSize:
    plain = Resource(conf.get_int(MEMORY_KEY, 256, minimum=1), conf.get_int(VCORES_KEY, 1, minimum=1))
    return _with_named(ContainerSize("container", plain, MEMORY_KEY, VCORES_KEY, {}), conf, COMMAND_RESOURCES)


def master_memory_mb(conf: Configuration) -> int:
    """Return the job manager's memory, MB, as configured. Raises ConfigError."""
    return conf.get_int(MASTER_MEMORY_KEY, minimum=1)


def said_twice(memory_mb: int | None, vcores: int | None, resources: Mapping[str, str]) -> str | None:
    """Return one line where options of a command say one thing twice: nobody could guess which of them counts."""
    memory = [f"--resource {name}={resources[name]}" for name in _MEMORY if name in resources]
    memory += [f"--memory {memory_mb}"] if memory_mb is not None else []
    cores = [f"--resource {_VCORES}={resources[_VCORES]}"] if _VCORES in resources else []
    cores += [f"--vcores {vcores}"] if vcores is not None else []
    for options, what in ((memory, "memory"), (cores, "virtual cores")):
        if len(options) > 1:
            return f"{' and '.join(options)} both say the {what} of each container: leave one of them out"
    return None


def in_single_units(conf: Configuration) -> Configuration:
    """Return the same requests with the units written out. Blocking.

    Only the submitting machine has `resource-types.xml` at hand.
    """
    units = {kind.name: kind.unit for kind in resource_types(conf)}
    written = {}
    for prefix in (COMMAND_RESOURCES, *_TASK_RESOURCES.values()):
        for name, (key, amount) in requested_resources(conf, prefix, _UNITS | units).items():
            written[key] = f"{amount // _MB}Mi" if name in _MEMORY else str(amount)
    return conf.with_overrides(written) if written else conf


def _with_named(size: ContainerSize, conf: Configuration, prefix: str) -> ContainerSize:
    """With what keys of this prefix ask for; as in Hadoop they count more than the keys of memory and cores alone."""
    memory_mb, vcores = size.resource.memory_mb, size.resource.vcores
    memory_key, vcores_key = size.memory_key, size.vcores_key
    extras: dict[str, int] = {}
    keys: dict[str, str] = {}
    for name, (key, amount) in requested_resources(conf, prefix, _UNITS).items():
        if name in _MEMORY:
            memory_key, memory_mb = key, amount // _MB
        elif name == _VCORES:
            vcores_key, vcores = key, amount
        elif amount:
            keys[name], extras[name] = key, amount
    for key, least in ((memory_key, memory_mb), (vcores_key, vcores)):
        if least < 1:
            raise conf.error(key, "less than 1", "give 1 or more")
    return ContainerSize(size.what, Resource(memory_mb, vcores, extras), memory_key, vcores_key, keys)


def too_large(sizes: Iterable[ContainerSize], largest: Resource) -> str | None:
    """Return why containers of these sizes cannot run where this is the largest one; None when they can."""
    return next((line for size in sizes if (line := size.excess(largest)) is not None), None)
