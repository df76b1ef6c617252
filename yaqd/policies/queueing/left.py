"""What is left of a job whose master says so: its stages with what each still has to do, and which wait for which.

A scheduler sees asks, starts and ends, so it knows of no stage that its master has not asked for yet, and of no order
among them. A master that knows its whole plan tells it; how long tasks run that it has not seen itself is filled in by
whoever reads it. The critical path is that of the paper's future work (Yaq, section 3.3): the longest chain of tasks
still to run one after the other.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice
from math import inf
from typing import Any, Final, Protocol

from yaqd.model.printable import printable
from yaqd.model.values import value
from yaqd.policies.queueing import limits
from yaqd.policies.queueing.facts import JobFacts

#: stages of one job that are read, and how many that they wait for, of all of them together
STAGES_MAX: Final = 1_000
WAITS_MAX: Final = 4_000
_NAME_MAX: Final = 80
#: tasks of one stage
_TASKS_MAX: Final = 10_000_000


@value()
class StageLeft:
    """One stage that is not over."""

    #: its asks'; tells a job's stages apart
    priority: int
    #: that are not over, those that run counted
    tasks: int
    #: how long one runs, s; None: nobody has seen it
    task_s: float | None = None
    #: the sum of what is left of all of them, and what is left of the one that ends last, s; None as before
    work_s: float | None = None
    longest_s: float | None = None
    #: stages that must be over first, by priority
    after: tuple[int, ...] = ()
    #: tasks that run
    running: int = 0
    #: of the step, for people; "": it was not told
    name: str = ""


class StageTold(Protocol):
    """The message that says so (`StageLeft` of yarn_common.proto), by its fields; times in ms."""

    priority: int
    tasks: int
    task_ms: int
    work_ms: int
    longest_ms: int
    running: int
    name: str

    @property
    def after(self) -> Sequence[int]: ...

    def HasField(self, field_name: Any, /) -> bool: ...


def told(message: StageTold) -> StageLeft:
    """Return it as it came, to be `bounded`."""

    def seconds(name: str) -> float | None:
        return getattr(message, name) / 1000 if message.HasField(name) else None

    return StageLeft(
        message.priority,
        message.tasks,
        task_s=seconds("task_ms"),
        work_s=seconds("work_ms"),
        longest_s=seconds("longest_ms"),
        after=tuple(message.after[:STAGES_MAX]),
        running=message.running,
        name=message.name[:_NAME_MAX],
    )


def bounded(stages: Iterable[StageLeft]) -> tuple[StageLeft, ...]:
    """Return what can be of what a master says: the first of so many stages, each once, with numbers that are some."""
    found: dict[int, StageLeft] = {}
    waits = WAITS_MAX
    for stage in islice(stages, STAGES_MAX):
        after = tuple(dict.fromkeys(islice(stage.after, waits)))
        waits -= len(after)
        tasks = max(0, min(stage.tasks, _TASKS_MAX))
        found[stage.priority] = replace(
            stage,
            tasks=tasks,
            running=max(0, min(stage.running, tasks)),
            task_s=_known(stage.task_s),
            work_s=_known(stage.work_s),
            longest_s=_known(stage.longest_s),
            after=after,
            name=printable(stage.name),
        )
    return tuple(found.values())


def facts_of(stages: Iterable[StageLeft], estimate: Callable[[int], float | None]) -> JobFacts:
    """Return the facts. `estimate`: how long tasks of a priority run as far as the reader knows, s.

    A stage of which nobody knows counts with the mean of the others; where nobody knows anything only tasks are
    counted. Stages that wait for each other in a circle are taken to wait for nothing.
    """
    left = {stage.priority: stage for stage in stages if stage.tasks > 0}
    tasks = sum(stage.tasks for stage in left.values())
    known = {p: s for p, stage in left.items() if (s := _task_s(stage, estimate)) is not None}
    if left and not known:
        return JobFacts(None, tasks, None)
    mean = sum(known.values()) / len(known) if known else 0.0
    runs = {priority: known.get(priority, mean) for priority in left}
    work = sum(s.work_s if s.work_s is not None else s.tasks * runs[p] for p, s in left.items())
    lasts = {p: s.longest_s if s.longest_s is not None else runs[p] for p, s in left.items()}
    return JobFacts(min(work, limits.LONGEST_S), tasks, min(_longest_chain(left, lasts), limits.LONGEST_S))


def _longest_chain(left: dict[int, StageLeft], lasts: dict[int, float]) -> float:
    waits = {priority: [p for p in stage.after if p in left] for priority, stage in left.items()}
    followers: dict[int, list[int]] = {priority: [] for priority in left}
    for priority, before in waits.items():
        for one in before:
            followers[one].append(priority)
    missing = {priority: len(before) for priority, before in waits.items()}
    begins = dict.fromkeys(left, 0.0)
    ready = [priority for priority, count in missing.items() if not count]
    longest = max(lasts.values(), default=0.0)
    while ready:
        priority = ready.pop()
        ends = begins[priority] + lasts[priority]
        longest = max(longest, ends)
        for follower in followers[priority]:
            begins[follower] = max(begins[follower], ends)
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)
    return longest


def _task_s(stage: StageLeft, estimate: Callable[[int], float | None]) -> float | None:
    """The master's word goes first: it sees tasks, others see containers, which may run several."""
    return stage.task_s if stage.task_s is not None else _known(estimate(stage.priority))


def _known(seconds: float | None) -> float | None:
    return seconds if limits.duration(seconds) < inf else None
