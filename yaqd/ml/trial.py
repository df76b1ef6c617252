"""The trial that this process is, if an exploration runs it: `from yaqd.ml import trial`.

    model = Model(rate=trial.params["rate"])

Outside an exploration there are no values, so `trial.params.get("rate", 0.1)` makes a program that runs in both.
"""

from collections.abc import Mapping
from typing import Any, Final

from yaqd.mapreduce.errors import JobError


class UnknownParam(JobError, KeyError):
    """A hyperparameter that the program asks for and the space does not have."""

    __str__ = Exception.__str__


class TrialParams(dict[str, Any]):
    """A trial's values by name. What the program changes in them stays in the program."""

    def __missing__(self, name: str) -> Any:
        known = f"the space has {', '.join(self)}" if self else "no exploration runs this program"
        raise UnknownParam(f"no hyperparameter {name!r}: {known}")


class Trial:
    """One trial as its program sees it."""

    def __init__(self) -> None:
        #: from 0; None outside an exploration
        self.number: int | None = None
        self.params = TrialParams()
        #: epochs that are done already: more than 0 where it goes on from a checkpoint
        self.epoch = 0
        #: values that the space does not have, which the program drew: told with its reports
        self.drawn: dict[str, Any] = {}


trial: Final = Trial()


def begin_trial(number: int, params: Mapping[str, Any], epoch: int = 0) -> None:
    """Make this process a trial; what runs trials calls it before the program."""
    trial.number, trial.params, trial.epoch, trial.drawn = number, TrialParams(params), epoch, {}
