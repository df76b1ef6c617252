"""What goes wrong in a simulated cluster: nodes that fail or differ, tasks that take longer than they should."""

import dataclasses
import math
import re
from collections.abc import Callable
from typing import Any, Final

import click

from yaqd.cli.exits import CommandError
from yaqd.cli.options import FiniteFloat

#: NODE@SECONDS, and after how many more seconds the node is back
_FAILURE: Final = re.compile(r"(?P<node>\d{1,6})@(?P<at>\d+(\.\d+)?)(\+(?P<down>\d+(\.\d+)?))?", re.ASCII)
#: a node that is so much faster or larger than another is a mistake
_LARGEST: Final = 1000.0


def world_options(command: Any) -> Any:
    """Adds the options; `world_of` reads them from the command's arguments."""
    options: tuple[Callable[[Any], Any], ...] = (
        click.option("--noise", type=FiniteFloat(0, 5), metavar="X",
                     help="Deviation of the logarithm of how much longer tasks take than they should, as 0.3."),
        click.option("--speeds", metavar="X[,X...]",
                     help="Speeds of the nodes in turn: 1,1,0.5 makes every third half as fast."),
        click.option("--sizes", metavar="X[,X...]",
                     help="Sizes of the nodes in turn: 1,2 gives every second one twice the slots."),
        click.option("--crowding", type=FiniteFloat(0, 100), metavar="X",
                     help="With 1 a task takes twice as long on a node full of tasks of its own stage."),
        click.option("--fail", "failures", multiple=True, metavar="NODE@S[+S]",
                     help="A node is lost after so many seconds, and back after so many more; may be repeated."),
    )  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def world_of(options: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of a `ClusterShape` that were given. Raises CommandError."""
    found: dict[str, Any] = {name: options[name] for name in ("noise", "crowding") if options[name] is not None}
    if any(isinstance(number, float) and not math.isfinite(number) for number in found.values()):
        raise CommandError("--noise, --crowding: must be a finite number")
    for name in ("speeds", "sizes"):
        if options[name] is not None:
            found[name] = _numbers(name, options[name])
    if options["failures"]:
        found["failures"] = tuple(map(_failure, options["failures"]))
    return found


def in_world(experiment: Any, world: dict[str, Any]) -> Any:
    """Returns the experiment with all its clusters changed. Raises CommandError."""
    if not world:
        return experiment
    if any(not hasattr(case, "shape") for case in experiment.cases):
        raise CommandError(f"{experiment.name} has no nodes that --noise, --speeds, --sizes or --fail could change")
    fewest = min(case.shape.nodes for case in experiment.cases)
    for failure in world.get("failures", ()):
        if failure.node >= fewest:
            raise CommandError(f"--fail {failure.node}@{failure.at_s:g}: nodes are 0 to {fewest - 1}")
    cases = tuple(
        dataclasses.replace(case, shape=dataclasses.replace(case.shape, **world)) for case in experiment.cases
    )
    return dataclasses.replace(experiment, cases=cases)


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(map(float, text.split(",")))
    except ValueError:
        numbers = ()
    if not numbers or not all(1 / _LARGEST <= number <= _LARGEST for number in numbers):  # also refuses NaN
        raise CommandError(f"--{name} {text}: must be numbers from {1 / _LARGEST:g} to {_LARGEST:g}, as 1,1,0.5")
    return numbers


def _failure(text: str) -> Any:
    from yaqd.sim.shape import NodeFailure

    found = _FAILURE.fullmatch(text)
    if found is None:
        raise CommandError(f"--fail {text}: must be NODE@SECONDS or NODE@SECONDS+SECONDS, as 3@60+120")
    down = float(found["down"]) if found["down"] else math.inf
    return NodeFailure(int(found["node"]), float(found["at"]), down)
