"""`yaq sim compare` and `replay`: what the command line says, as an experiment."""

import dataclasses
import math
from pathlib import Path
from typing import Any, Final

from yaqd.cli.exits import CommandError
from yaqd.sim.experiments import Case, Experiment, Measure, Plot, Row
from yaqd.sim.experiments.ground import OURS_D, PREPARE_S, SHIPPED, START_GAP_S
from yaqd.sim.shape import NETWORK_S, SYSTEMS, ClusterShape, System
from yaqd.sim.workload import ClusterSeen, Workload
from yaqd.sim.workloads import Drawn, read_workload

_ALL: Final = ("jobs_at_once", "out_of_turn", "at_asks", "estimates", "estimate_error")
_RULES: Final = ("rules", "off_switch_max", "async_s")
_CENTRAL: Final = ("job_order", "job_starve_s", "job_starve_ratio")
_FILLED: Final = (
    "bound_target",
    "bound_policy",
    "bound_least",
    "bound_wait_s",
    "default_estimate_s",
    "max_wait_s",
    "free_min",
)
_UNAWARE: Final = ("aware", "max_wait_unaware_s")
_PLACED: Final = ("wait_estimate", "place", "interference", "order", "starve_s", "starve_ratio", "order_scope")
_EVENED: Final = ("rebalance", "rebalance_least", "rebalance_most", "rebalance_gain_s", "rebalance_policy")
#: it has no such keys for what yaq-c is of
_NOT_EVENED: Final = (
    ". Nor does a cluster even out what yaq-c has: yarn.resourcemanager.nm-container-queuing.* and "
    "yaq.distributed.rebalance.* are for opportunistic containers, which are yaq-d's and yarn-opportunistic's. "
    "Guaranteed ones that have waited for max_wait_s are placed again"
)
#: what each takes; each is explained in `sim_parameters`. Nothing is taken that no value of would change anything, but
#: for the first ones, which are said of all systems alike
PARAMETERS: Final = {
    "yarn": (*_ALL, *_CENTRAL, *_RULES),
    "yarn-opportunistic": (*_ALL, *_CENTRAL, *_RULES, "bound", "opportunistic_share"),
    "yaq-c": (*_ALL, *_CENTRAL, "bound", *_UNAWARE, *_FILLED, *_PLACED),
    "yaq-d": (*_ALL, "bound", *_UNAWARE, *_PLACED, *_EVENED, "tasks_at_once", "published", "booked"),
    "mercury": (*_ALL, "bound", "tasks_at_once", "published"),
    "sparrow": (*_ALL, "probes", "published", "late_binding"),
}
#: as a cluster has it that configures nothing: nodes report ends at once, asks are decided when they come, and what
#: managers place is booked. The paper's experiments have none of that, for any system
LIVE: Final = dataclasses.replace(SHIPPED, out_of_turn=True, at_asks=True)
LIVE_D: Final = dataclasses.replace(OURS_D, out_of_turn=True, booked=True)
_BASES: Final = {"yaq-c": LIVE, "yaq-d": LIVE_D}
#: a policy's name that changes nothing while another parameter is 0, and what makes that 0 when it is not said itself
_NEEDS: Final = {
    "bound_policy": ("bound_target", "; it is where bound or bound_wait_s is said"),
    "rebalance_policy": ("rebalance_gain_s", ""),
}
#: parameters that may be `none`, with what else they are
_OR_NONE: Final[dict[str, int | float]] = {"bound": 0, "default_estimate_s": 0.0}

#: part of a container's start that begins when its slot is free; the rest is made while it queues
_GAP_PART: Final = START_GAP_S / (START_GAP_S + PREPARE_S)

#: the cluster where nobody says how large it is: the paper's
ASSUMED: Final = ClusterSeen(nodes=80, slots=4)


def sized(said: dict[str, Any], seen: ClusterSeen | None) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Complete a cluster's options with the recorded one's size where nobody said it; say so in the second part."""
    unsaid = [name for name in ("nodes", "slots") if said[name] is None]
    size = seen or ASSUMED
    numbers = {name: getattr(size, name) for name in unsaid}
    if not unsaid:
        return said, ()
    options = " and ".join(f"--{name} {number}" for name, number in numbers.items())
    if seen is None:
        return said | numbers, (f"{options} assumed: the history does not say where its tasks ran",)
    why = {"nodes": "so many nodes ran tasks", "slots": "so many tasks at most ran at a time on one node"}
    found = " and ".join(why[name] for name in unsaid)
    return said | numbers, (f"{options} from the history: {found}; the cluster may have been larger",)


def comparison(
    name: str,
    drawn: Drawn,
    *,
    nodes: int | None,
    slots: int | None,
    heartbeat: float,
    polling: float,
    start: float,
    systems: tuple[str, ...],
    network: float = NETWORK_S,
) -> Experiment:
    """Make an experiment of the systems, whose rows hold every one to the first. Raises CommandError.

    A size that is None is that of `ASSUMED`.
    """
    shape = ClusterShape(
        nodes=nodes if nodes is not None else ASSUMED.nodes,
        slots=slots if slots is not None else ASSUMED.slots,
        heartbeat_s=heartbeat,
        am_poll_s=polling,
        network_s=network,
        start_gap_s=start * _GAP_PART,
        prepare_s=start * (1 - _GAP_PART),
    )
    if len(set(systems)) != len(systems):
        raise CommandError("--system: the same one twice")
    cases = tuple(Case(text, drawn, shape, parse_system(text)) for text in systems)
    rows = tuple(
        Row(f"{what} {text}", f"against {systems[0]}", Measure(metric, text, systems[0]), sense="shown")
        for text in systems[1:]
        for metric, what in (("sub_median", "median"), ("sub_p95", "p95"))
    )
    plots = (Plot("cdf", "jct", f"{drawn.name}: job completion times"),)
    return Experiment(name, f"{drawn.name} on {', '.join(systems)}", "the command line", cases, rows, plots)


def parse_system(text: str) -> System:
    """Parse `yaq-c,order=lrtf,bound=8` as a system; the rest is as a live cluster has it. Raises CommandError."""
    name, *settings = text.split(",")
    if name not in SYSTEMS:
        raise CommandError(f"--system {text}: there is no system {name!r}; there are {', '.join(SYSTEMS)}")
    changed: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals and key in PARAMETERS[name]:
            raise CommandError(f"--system {text}: {key} needs a value: {key}=...")
        if key in changed:
            raise CommandError(f"--system {text}: {key} twice")
        if not equals or key not in PARAMETERS[name]:
            why = _NOT_EVENED if name == "yaq-c" and key in _EVENED else ""
            raise CommandError(
                f"--system {text}: {setting!r} is none of {name}'s parameters: {', '.join(PARAMETERS[name])}{why}"
            )
        changed[key] = _value(text, key, value)
    base = _BASES.get(name, System(name))
    if "bound" in changed or "bound_wait_s" in changed:
        changed.setdefault("bound_target", 0.0)
    if changed.get("rules") == "stock":
        changed.setdefault("out_of_turn", True)  # as nodes under yaq.compat=stock, and Hadoop's own
    try:
        system = dataclasses.replace(base, **changed)
    except ValueError as error:
        raise CommandError(f"--system {text}: {error}") from None
    if not system.rebalance:
        for key in (one for one in changed if one in _EVENED and one != "rebalance"):
            raise CommandError(f"--system {text}: {key} changes nothing with rebalance=off")
    for key, (needed, why) in _NEEDS.items():
        if getattr(system, key) != getattr(base, key) and not getattr(system, needed):
            raise CommandError(f"--system {text}: {key} changes nothing while {needed} is 0{why}")
    return system


def _value(text: str, key: str, value: str) -> object:
    """As the field's own default has it; some are a number or `none`."""
    if key in _OR_NONE and value.lower() == "none":
        return None
    default = _OR_NONE[key] if key in _OR_NONE else getattr(System(), key)
    try:
        if isinstance(default, bool):
            return {"true": True, "on": True, "false": False, "off": False}[value.lower()]
        if isinstance(default, int):
            number: int | float = int(value)
        elif isinstance(default, float):
            number = float(value)
        else:
            return value
    except (KeyError, ValueError):
        kind = _kind(default) + (" or none" if key in _OR_NONE else "")
        raise CommandError(f"--system {text}: {key} is {value!r}, not {kind}") from None
    if math.isnan(number) or number < 0:
        raise CommandError(f"--system {text}: {key} is {value}; it must not be negative")
    if key in _OR_NONE and math.isinf(number):
        raise CommandError(f"--system {text}: {key} is {value}; without an end it is none")
    return number


def _kind(default: object) -> str:
    return {bool: "true or false", int: "a whole number", float: "a number"}[type(default)]


def recorded(path: Path, jobs: int) -> Workload:
    """Read a trace's first jobs. Raises CommandError, WorkloadError."""
    if not path.exists():
        raise CommandError(f"--workload {path}: neither a workload that `yaq sim list` names nor a file")
    return read_workload(path, jobs=jobs)
