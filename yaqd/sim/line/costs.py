"""What a ResourceManager's calls take: a file that `python -m benchmarks.rm_bound --costs` has written."""

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from yaqd.model.values import value
from yaqd.sim.shape import CallCosts

#: ours without queues at nodes, ours with them
SIDES: Final = ("off", "queues")
_NAMES: Final = ("beat_s", "call_s", "container_s", "queued_s")
#: which files of an earlier release do not have: their heartbeats cost the same everywhere
_LATER: Final = "heeded_s"
#: the longest that a call may take, s
_MOST_S: Final = 10.0


class CostsError(Exception):
    """The file is not one; the text says what is wrong."""


@value()
class MeasuredCosts:
    """Costs of both sides, with where they come from."""

    sides: Mapping[str, CallCosts]
    #: how, where and when they were measured
    source: str


def shipped() -> MeasuredCosts:
    """Return those that come with the code, which were measured on one machine."""
    return _parsed(files("yaqd.sim.line").joinpath("costs.json").read_text(), "costs.json")


def read(path: Path) -> MeasuredCosts:
    """Read a file. Raises CostsError, OSError."""
    return _parsed(path.read_text(), str(path))


def _parsed(text: str, name: str) -> MeasuredCosts:
    try:
        said = json.loads(text)
        sides = {side: _costs(said["sides"][side]) for side in SIDES}
        return MeasuredCosts(sides, str(said.get("source", name)))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CostsError(
            f"{name}: no costs ({type(error).__name__}: {error}); such a file is made by "
            "python -m benchmarks.rm_bound --costs FILE"
        ) from None


def _costs(said: Mapping[str, Any]) -> CallCosts:
    """Return one side's. Raises ValueError, KeyError, TypeError."""
    found = {name: float(said[name]) for name in _NAMES} | {_LATER: float(said.get(_LATER, 0.0))}
    for name, seconds in found.items():
        if not (math.isfinite(seconds) and 0.0 <= seconds <= _MOST_S):
            raise ValueError(f"{name} is {seconds}; it must be 0 to {_MOST_S:g} s")
    for name in ("beat_s", "container_s"):
        if found[name] == 0.0:
            raise ValueError(f"{name} is 0; it takes some time")
    return CallCosts(found["beat_s"], found["call_s"], found["container_s"], found["queued_s"], found["heeded_s"])
