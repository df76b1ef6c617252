"""A function of a dict of values as a trial: `def train(config)`, as Ray Tune calls it.

It reports with `yaqd.ml.report`. A dict that it returns or yields counts as a report too, if it has the metric.
"""

import inspect
from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, Final

from tez_adapter.exploration.joins.begun import Begun, TrialError
from yaqd.ml.reporting import report_metrics, short

#: Ray's name for the number of epochs that are done
_ITERATION: Final = "training_iteration"
#: arguments of `report` that are no metrics
_RESERVED: Final = ("iteration", "checkpoint", "threads", _ITERATION)


def run_train(function: Callable[[Any], Any], begun: Begun) -> None:
    """Call a training function to its end. TrialError: what it yields is no dict of numbers."""
    returned = function(dict(begun.params))
    done = begun.epoch
    if not inspect.isgenerator(returned):
        if isinstance(returned, Mapping) and begun.metric in returned:
            _report(returned, done + 1, begun)
        return
    for found in returned:
        if not isinstance(found, Mapping) or begun.metric not in found:
            raise TrialError(f"the training function yielded {short(found)}: yield a dict with {begun.metric!r}")
        done = _iteration(found, done + 1)
        if _report(found, done, begun):
            returned.close()
            return


def _iteration(found: Mapping[str, Any], otherwise: int) -> int:
    said = found.get(_ITERATION, otherwise)
    return said if isinstance(said, int) and not isinstance(said, bool) else otherwise


def _report(found: Mapping[str, Any], iteration: int, begun: Begun) -> bool:
    """Report the numbers of a dict; return whether the trial is to end."""
    numbers = {
        str(name): value
        for name, value in found.items()
        if name == begun.metric or (isinstance(value, Real) and name not in _RESERVED)
    }
    return report_metrics(iteration, numbers).stop
