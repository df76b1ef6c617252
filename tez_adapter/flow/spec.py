"""A flow as its client wrote it down: a part of the job file."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from tez_adapter.flow.plan import FlowPlan
from yaqd.mapreduce.flow import Flow


@dataclass(frozen=True, slots=True)
class FlowOutput:
    #: qualified
    path: str
    format: str


@dataclass(frozen=True, slots=True)
class FlowSpec:
    plan: FlowPlan
    outputs: tuple[FlowOutput, ...]
    #: what the script's flow looked like: each task makes it anew, and it must be the same
    shape: tuple[str, ...] = ()
    #: by step: encoded keys in hex that divide the key space of a total order
    boundaries: Mapping[int, tuple[str, ...]] | None = None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "plan": self.plan.as_json()}

    @classmethod
    def of_json(cls, found: Mapping[str, Any]) -> Self:
        """Raises KeyError, TypeError, ValueError."""
        keys = found["boundaries"] or {}
        return cls(
            FlowPlan.of_json(found["plan"]),
            tuple(FlowOutput(**output) for output in found["outputs"]),
            tuple(map(str, found["shape"])),
            {int(step): tuple(map(str, each)) for step, each in keys.items()},
        )


def shape_of(flow: Flow) -> tuple[str, ...]:
    """Return a line for each node by which two flows are told apart."""
    return tuple(_lines(flow))


def _lines(flow: Flow) -> Iterator[str]:
    for node in flow.nodes:
        sides = ",".join(f"{name}={number}" for name, number in node.sides.items())
        yield f"{node.kind} {node.name} {node.inputs} {node.reduces} {node.is_apart} {sides}"
