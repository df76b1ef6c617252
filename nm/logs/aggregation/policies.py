"""Which ended containers' logs are kept: Hadoop's ContainerLogAggregationPolicy classes, by their names.

A policy is a function of how one container ended. The sampling one decides by the container's id, so that all nodes
together keep the wanted share without speaking to each other.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from yaqd.model import ContainerId, ContainerType, ExitStatus

_FORCE_KILLED: Final = 137
_TERMINATED: Final = 143
_DEFAULT_SHARE: Final = 0.2
_DEFAULT_FIRST: Final = 20


class BadPolicy(ValueError):
    """There is no policy of this name."""


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    container_id: ContainerId
    type: ContainerType
    exit_status: int

    @property
    def is_master(self) -> bool:
        return self.type is ContainerType.APPLICATION_MASTER

    @property
    def has_failed(self) -> bool:
        """By itself: neither well ended nor killed."""
        return self.exit_status not in (0, _FORCE_KILLED, _TERMINATED)


ContainerLogPolicy = Callable[[ContainerEnd], bool]


@dataclass(frozen=True, slots=True)
class Sample:
    """Masters, whatever did not end well, the first `first` tasks and a `share` of the others."""

    share: float = _DEFAULT_SHARE
    first: int = _DEFAULT_FIRST

    @classmethod
    def parse(cls, parameters: str) -> "Sample":
        """Parses `SR:0.2,MIN:20`; what cannot be read stays at its default, as in Hadoop."""
        share, first = _DEFAULT_SHARE, _DEFAULT_FIRST
        for item in parameters.split(","):
            name, _, value = item.strip().partition(":")
            try:
                if name == "SR" and 0 <= float(value) <= 1:
                    share = float(value)
                elif name == "MIN" and int(value) >= 0:
                    first = int(value)
            except ValueError:
                continue
        return cls(share, first)

    def __call__(self, end: ContainerEnd) -> bool:
        # container 1 is the master's, tasks begin at 2
        if end.is_master or end.exit_status != 0 or end.container_id.sequence < self.first + 2:
            return True
        return zlib.crc32(str(end.container_id).encode()) < self.share * (1 << 32)


_BY_NAME: Final[dict[str, Callable[[str], ContainerLogPolicy]]] = {
    "AllContainerLogAggregationPolicy": lambda _: lambda end: True,
    "NoneContainerLogAggregationPolicy": lambda _: lambda end: False,
    "AMOnlyLogAggregationPolicy": lambda _: lambda end: end.is_master,
    "AMOrFailedContainerLogAggregationPolicy": lambda _: lambda end: end.is_master or end.has_failed,
    "FailedContainerLogAggregationPolicy": lambda _: lambda end: end.has_failed,
    "FailedOrKilledContainerLogAggregationPolicy": lambda _: lambda end: end.exit_status != 0,
    "LimitSizeContainerLogAggregationPolicy": lambda _: (
        lambda end: end.exit_status != ExitStatus.KILLED_FOR_EXCESS_LOGS
    ),
    "SampleContainerLogAggregationPolicy": Sample.parse,
}


def parse_policy(class_name: str, parameters: str) -> ContainerLogPolicy:
    """Finds a policy by the class' name, with or without its package. Raises BadPolicy."""
    make = _BY_NAME.get(class_name.strip().rpartition(".")[2])
    if make is None:
        raise BadPolicy(f"there is no log aggregation policy {class_name[:200]!r}")
    return make(parameters)
