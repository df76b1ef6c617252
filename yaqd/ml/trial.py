"""The trial that this process is, if an exploration runs it: `from yaqd.ml import trial`.

    model = Model(rate=trial.params["rate"])

Outside an exploration there are no values, so `trial.params.get("rate", 0.1)` makes a program that runs in both.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from yaqd.mapreduce.errors import JobError


class UnknownParam(JobError, KeyError):
    """A hyperparameter that the program asks for and the space does not have."""

    __str__ = Exception.__str__


class TrialParams(Mapping[str, Any]):
    """A trial's values by name."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        try:
            return self._values[name]
        except KeyError:
            known = f"the space has {', '.join(self._values)}" if self._values else "no exploration runs this program"
            raise UnknownParam(f"no hyperparameter {name!r}: {known}") from None

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value, or the default where the space does not have it."""
        return self._values.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return repr(self._values)


class Trial:
    """One trial as its program sees it."""

    def __init__(self) -> None:
        #: from 0; None outside an exploration
        self.number: int | None = None
        self.params: Mapping[str, Any] = TrialParams({})
        #: epochs that are done already: more than 0 where it goes on from a checkpoint
        self.epoch = 0


trial: Final = Trial()


def begin_trial(number: int, params: Mapping[str, Any], epoch: int = 0) -> None:
    """Make this process a trial; what runs trials calls it before the program."""
    trial.number, trial.params, trial.epoch = number, TrialParams(params), epoch
