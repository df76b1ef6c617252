"""Which kinds of jobs there are."""

from collections.abc import Mapping
from typing import Final

from tez_adapter.jobspec import JobKind
from tez_adapter.kinds.command import CommandKind
from tez_adapter.kinds.exploration import ExplorationKind
from tez_adapter.kinds.flow import FlowKind
from tez_adapter.kinds.kind import Kind
from tez_adapter.kinds.mapreduce import MapReduceKind
from tez_adapter.kinds.training import TrainingKind

KINDS: Final[Mapping[JobKind, Kind]] = {
    JobKind.MAPREDUCE: MapReduceKind(),
    JobKind.STREAMING: MapReduceKind(),
    JobKind.COMMAND: CommandKind(),
    JobKind.TRAINING: TrainingKind(),
    JobKind.EXPLORATION: ExplorationKind(),
    JobKind.FLOW: FlowKind(),
}
