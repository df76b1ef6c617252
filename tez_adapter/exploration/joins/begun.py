"""What a trial's process is told before its program runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yaqd.mapreduce.errors import JobError


@dataclass(frozen=True, slots=True)
class Begun:
    """One trial that begins, or goes on."""

    number: int
    params: Mapping[str, Any]
    #: the metric that the exploration looks at
    metric: str
    #: of a command: finds the metric in its output
    pattern: str = ""
    #: last epoch that is wanted
    epochs: int = 0
    #: epochs that are done already
    epoch: int = 0
    seed: int = 0
    further: Mapping[str, Any] = field(default_factory=dict)


class TrialError(JobError):
    """A program that failed: a line, and in `detail` its traceback."""
