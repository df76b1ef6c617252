"""What a system of `yaq sim compare` can be told: for `yaq sim parameters`, and for the table in docs/simulator.md.

`python -m yaqd.cli.simulation.parameters FILE` writes the table into the file, between its two marks.
"""

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rm.scheduler.limits import Rules
from rm.scheduler.queues.spec import LEAF_ORDERINGS
from yaqd.cli.simulation.systems import PARAMETERS, parse_system
from yaqd.policies.queueing.bounds import BOUNDS
from yaqd.policies.queueing.estimates import ESTIMATES as LIVE_ESTIMATES
from yaqd.policies.queueing.job_order import JOB_ORDERS
from yaqd.policies.queueing.order import ORDERS, Scope
from yaqd.policies.queueing.place_scores import PLACES
from yaqd.policies.queueing.rebalance import REBALANCES
from yaqd.policies.queueing.wait import WAITS
from yaqd.sim.shape import ESTIMATES

_BEGINS: Final = "<!-- parameters: written by scripts/docs.sh -->\n"
_ENDS: Final = "<!-- end of parameters -->\n"


def _one_of(names: object) -> str:
    return ", ".join(map(str, names)) if isinstance(names, tuple | list) else str(names)


#: in the order in which they are listed
MEANINGS: Final[dict[str, str]] = {
    "out_of_turn": "a node reports at once when a container ends, and not with its next heartbeat; on with "
    "rules=stock, as Hadoop's nodes do; changes nothing for mercury and sparrow",
    "at_asks": "the ResourceManager decides when it is asked too, and not at nodes' heartbeats alone; of opportunistic "
    "containers it decides whenever managers poll (yaq.rm.scheduler.at-asks)",
    "rules": f"by which rules guaranteed containers are given at heartbeats ({_one_of(tuple(Rules))}): ours, by which "
    "all that is free is given away, or those of Hadoop's CapacityScheduler, step by step (yaq.rm.scheduler.rules)",
    "off_switch_max": "with rules=stock: containers that one heartbeat gives to asks that prefer no place, or other "
    "places (yarn.scheduler.capacity.per-node-heartbeat.maximum-offswitch-assignments)",
    "async_s": "with rules=stock: so often all nodes are offered one container each, and none at heartbeats, s; "
    "Hadoop's is 0.005 where schedule-asynchronously is on; 0: at heartbeats",
    "jobs_at_once": "jobs that may run at a time, the others wait in the order of their arrival; 0: any number. "
    "With `--burst` it is what sets the load",
    "estimates": f"how tasks' durations are known ({_one_of((*ESTIMATES, *LIVE_ESTIMATES.names()))}): each task's own, "
    "its stage's mean, the mean of those that have ended, not at all; or a cluster's policy, to which the stage's mean "
    "is what earlier runs say (yaq.queue.estimates). They change nothing in mercury and sparrow, nor with "
    "job_order=fifo in yarn",
    "estimate_error": "each stage's estimate is so many times too high or too low, by the toss of a coin",
    "default_estimate_s": "what a task is taken to run of which nobody knows anything, s; none: for ever, so that "
    "nothing waits behind it (yaq.queue.default-estimate)",
    "bound": "containers that may wait at a node, 1 and more; none: any number, and for yarn-opportunistic "
    "Hadoop's own limit (yaq.queue.bound)",
    "bound_target": "nodes find their bound by themselves, from what they observe, so that slots are busy for so much "
    "of the time, 0 to 1; 0, and where bound or bound_wait_s is said: not (yaq.queue.target-utilization)",
    "bound_policy": f"by which formula they find it ({_one_of(tuple(BOUNDS.names()))}): the shortest queue for so "
    "much of the time, the shortest for so many of the intervals between refills, its closed form that is larger, and "
    "two for tasks of one duration (yaq.queue.bound-policy)",
    "bound_least": "a bound that finds itself is no less than this, and 0 where queues gain nothing; 1 is "
    "yaq.queue.enabled=true, and 0 is auto",
    "bound_wait_s": "nothing is sent to a node where it would wait longer than this, s; 0: no such bound",
    "max_wait_s": "a container that has waited so long at nodes goes back and is placed again, s; 0: never "
    "(yaq.queue.max-wait)",
    "aware": "masters say that their containers may wait, as ours do and stock ones do not",
    "max_wait_unaware_s": "with aware=off a container goes only where it is expected to wait less than this, after so "
    "long goes before all others there, and after three times as long back, s; 0: only where it starts at once "
    "(yaq.queue.max-wait-unaware)",
    "wait_estimate": f"how nodes estimate how long one more would wait ({_one_of(tuple(WAITS.names()))}): with the "
    "size of each task, or as if any fitted in the place of any other (yaq.nm.queue.wait-estimate)",
    "place": f"at which of the nodes one waits ({_one_of(tuple(PLACES.names()))}); with length yaq-d knows nothing "
    "else of them (yaq.queue.placement)",
    "interference": "how much tasks of one stage avoid each other's nodes; 0: not at all (yaq.queue.interference)",
    "free_min": "nothing waits while a larger part of the cluster than this is free, 0 to 1: Rf_min "
    "(yaq.queue.free-share)",
    "order": f"in which order containers start at a node ({_one_of(tuple(ORDERS.names()))}); +pack behind it: one that "
    "fits passes one that does not (yaq.queue.order)",
    "order_scope": f"among whose containers the order chooses ({_one_of(tuple(Scope))}): all that wait there, those of "
    "the capacity queue whose turn it is, of the user whose turn it is (yaq.queue.scope)",
    "starve_s": "what has waited so long goes before all others, s; with aware=off also after how long without a "
    "container a node is kept in yaq-d (yaq.queue.starve-ms)",
    "starve_ratio": "and so does what has waited so many times its own duration; inf: only starve_s counts "
    "(yaq.queue.starve-ratio)",
    "job_order": f"of jobs at the ResourceManager ({_one_of((*LEAF_ORDERINGS, *JOB_ORDERS.names()))}): a leaf queue's "
    "ordering policy; of guaranteed containers alone",
    "job_starve_s": "a job that later ones have passed for so long goes first, s (yaq.rm.scheduler.job-starve-ms)",
    "job_starve_ratio": "and so does one that was passed for so many times the work that is left of it; inf: "
    "only job_starve_s counts. Orders of jobs alone, not fifo and fair (yaq.rm.scheduler.job-starve-ratio)",
    "rebalance": "queues are told to be no longer than most are, as Hadoop does: the mean and a standard deviation, "
    "within rebalance_least and rebalance_most; what is beyond goes back and is placed again",
    "rebalance_least": "a queue of so many is never too long "
    "(yarn.resourcemanager.nm-container-queuing.min-queue-length)",
    "rebalance_most": "a longer queue always is (yarn.resourcemanager.nm-container-queuing.max-queue-length)",
    "rebalance_gain_s": "besides, the last of a queue go where they start so much sooner, s; 0: by length alone "
    "(yaq.distributed.rebalance.min-gain-ms, -1 there)",
    "rebalance_policy": f"by which rule they go then ({_one_of(tuple(REBALANCES.names()))}) "
    "(yaq.distributed.rebalance.policy)",
    "tasks_at_once": "containers of one job that may run and wait at a time, its manager keeps the others; 0: any "
    "number",
    "published": "nodes whose load managers are told, the least loaded ones; Hadoop's own are 10. sparrow asks among "
    "these",
    "booked": "the ResourceManager books what managers place, as the live one does: what is published has it at once, "
    "and what would wait for too long by then stays with its manager. Always where some masters are not aware",
    "probes": "nodes asked for each task, 2.5 for five asked for two; 0: none, tasks go anywhere",
    "late_binding": "a node that was asked gets its task when it has a slot for it, and not before; off: the least "
    "loaded of those asked gets it at once, plain batch sampling",
    "opportunistic_share": "part of each stage's tasks that is asked for as opportunistic containers, 0 to 1",
}


def systems_of(parameter: str) -> list[str]:
    return [name for name, parameters in PARAMETERS.items() if parameter in parameters]


def unsaid(parameter: str) -> str:
    """Return what the parameter is where nothing is said.

    Systems that have something else than the first one stand behind it.
    """
    by_value: dict[str, list[str]] = {}
    for name in systems_of(parameter):
        by_value.setdefault(_shown(getattr(parse_system(name), parameter)), []).append(name)
    if len(by_value) == 1:
        return next(iter(by_value))
    return ", ".join(f"{value} ({' '.join(names)})" for value, names in by_value.items())


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) and value < math.inf else str(value)


def rows(system: str | None = None) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, systems that have it, what it is when unsaid, what it does; of one system or of all."""
    for parameter, meaning in MEANINGS.items():
        names = systems_of(parameter)
        if system is None:
            yield parameter, "all" if len(names) == len(PARAMETERS) else " ".join(names), unsaid(parameter), meaning
        elif system in names:
            yield parameter, system, _shown(getattr(parse_system(system), parameter)), meaning


def markdown() -> str:
    lines = ["| parameter | systems | unsaid | what it says |", "| --- | --- | --- | --- |"]
    lines += [f"| `{name}` | {systems} | {value} | {meaning} |" for name, systems, value, meaning in rows()]
    return "\n".join(lines) + "\n"


def with_table(page: str) -> str:
    """Return the page with the table as it should be between its marks."""
    before, _, rest = page.partition(_BEGINS)
    _, _, after = rest.partition(_ENDS)
    return f"{before}{_BEGINS}{markdown()}{_ENDS}{after}"


if __name__ == "__main__":
    page_file = Path(sys.argv[1])
    page_file.write_text(with_table(page_file.read_text()))
