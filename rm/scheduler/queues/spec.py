"""Capacity queues as configured: the tree that `capacity-scheduler.xml` describes, checked once and frozen.

Keys and defaults are those of Hadoop's CapacityScheduler, prefix `yarn.scheduler.capacity.`. Capacities are percent of
the parent in the file and fractions of one here. Capacities as weights (`3w`) or absolute amounts (`[memory=...]`) are
refused with a line that says so.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from rm.scheduler.view.calculators import CALCULATORS, Calculator
from yaqd.policies.queueing.job_order import JOB_ORDERS
from yaqd.policies.registry import UnknownPolicy

PREFIX: Final = "yarn.scheduler.capacity."
_NAME = re.compile(r"[^\s.,:/\\]{1,255}\Z")
_DEFAULT_CALCULATOR: Final = "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator"
_DEFAULT_AM_SHARE: Final = 0.1
#: what holds where a file does not say, by key without the prefix, of those that the shipped one has otherwise
UNSAID: Final = {"resource-calculator": _DEFAULT_CALCULATOR, "maximum-am-resource-percent": str(_DEFAULT_AM_SHARE)}
_QUEUES_MAX: Final = 10_000
#: beside the orders of jobs (yaqd.policies.queueing.job_order)
LEAF_ORDERINGS: Final = ("fifo", "fair")
#: applications take turns by their stages (rm.scheduler.stages)
STAGES_ORDERING: Final = "clotho"
_APPLICATIONS_MAX: Final = 10_000


class QueueConfigError(ValueError):
    """A line of `capacity-scheduler.xml` that cannot be used."""

    def __init__(self, key: str, value: str | None, remedy: str) -> None:
        super().__init__(f"{key}={value!r}: {remedy}" if value is not None else f"{key}: {remedy}")
        self.key = key
        self.value = value
        self.remedy = remedy


class QueueState(IntEnum):
    STOPPED = 1
    RUNNING = 2
    #: stopped while it still has applications
    DRAINING = 3


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """One queue as configured."""

    name: str
    #: `root.a.b`
    path: str
    #: guaranteed fraction of the parent, and of the cluster
    capacity: float
    absolute_capacity: float
    #: largest fraction of the parent, and of the cluster
    maximum_capacity: float
    absolute_maximum: float
    state: QueueState
    #: how applications of a leaf queue take turns: "fifo", "fair", "clotho" or a name of JOB_ORDERS
    ordering: str
    #: largest fraction of a leaf queue that application masters may hold
    maximum_am_share: float
    #: largest number of unfinished applications of a leaf queue, and of one user in it
    maximum_applications: int
    maximum_user_applications: int
    #: fraction of a leaf queue that a user may hold however many others want some
    minimum_user_limit: float
    #: how many times the leaf queue's capacity one user may hold; negative: no limit
    user_limit_factor: float
    #: nothing is taken back from here for other queues
    preemption_disabled: bool
    #: users who may submit here, and administrate; `*` means everybody, `user,user group,group` as Hadoop writes it
    submit_acl: str
    administer_acl: str
    #: priority of applications that ask for none
    default_priority: int
    #: lifetime of applications that ask for none, and the longest, s; 0 or less: no end
    default_lifetime_s: int
    maximum_lifetime_s: int
    children: tuple["QueueSpec", ...]

    @property
    def orders_jobs(self) -> bool:
        """Do applications take turns by what is left of them?"""
        return not self.children and self.ordering not in LEAF_ORDERINGS

    @property
    def orders_stages(self) -> bool:
        """Is it decided stage by stage who is next?"""
        return not self.children and self.ordering == STAGES_ORDERING

    def walk(self) -> Iterator["QueueSpec"]:
        """Yield this queue and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class HeartbeatLimits:
    """How much one heartbeat of a node may give, where Hadoop's own rules are used."""

    is_multiple: bool = True
    #: containers; -1: no limit
    containers_max: int = 100
    #: of these on nodes that their asks do not prefer, or whose asks prefer none
    off_switch_max: int = 1

    def goes_on(self, given: int, off_switch: int) -> bool:
        """Tell whether another container may be given after so many."""
        if off_switch >= self.off_switch_max or not self.is_multiple:
            return False
        return self.containers_max == -1 or given < self.containers_max


@dataclass(frozen=True, slots=True)
class SchedulerSpec:
    """All that `capacity-scheduler.xml` says."""

    root: QueueSpec
    calculator: Calculator
    #: missed scheduling opportunities before a node-local ask takes a node of the rack
    node_locality_delay: int
    #: further ones before it takes any node; -1: none further
    rack_locality_additional_delay: int
    #: unfinished applications in all queues
    maximum_applications: int = 10_000
    #: the file names the calculator; else a refresh keeps the one that runs
    names_calculator: bool = True
    heartbeat: HeartbeatLimits = HeartbeatLimits()


class _Properties:
    """Typed reads of the mapping; errors name key and value."""

    def __init__(self, properties: Mapping[str, str], job_order: str) -> None:
        self._properties = properties
        self.job_order: Final = job_order

    def text(self, name: str, default: str) -> str:
        return self._properties.get(PREFIX + name, default).strip() or default

    def acl(self, name: str, default: str) -> str:
        """Return the list as written: a blank in front means that no user is named, only groups."""
        return self._properties.get(PREFIX + name) or default

    def integer(self, name: str, default: int) -> int:
        value = self.text(name, str(default))
        try:
            return int(value)
        except ValueError:
            raise QueueConfigError(PREFIX + name, value, "write a whole number") from None

    def boolean(self, name: str, default: bool) -> bool:
        value = self.text(name, str(default)).lower()
        if value not in ("true", "false"):
            raise QueueConfigError(PREFIX + name, value, "write true or false")
        return value == "true"

    def number(self, name: str, default: float) -> float:
        value = self.text(name, str(default))
        try:
            number = float(value)
        except ValueError:
            raise QueueConfigError(PREFIX + name, value, "write a number") from None
        if not math.isfinite(number):
            raise QueueConfigError(PREFIX + name, value, "write a number")
        return number

    def fraction(self, name: str, default: float) -> float:
        """Read a number between 0 and 1."""
        value = self.text(name, str(default))
        try:
            number = float(value)
        except ValueError:
            raise QueueConfigError(PREFIX + name, value, "write a number between 0 and 1") from None
        if not 0.0 <= number <= 1.0:
            raise QueueConfigError(PREFIX + name, value, "write a number between 0 and 1")
        return number

    def percent(self, name: str, default: float | None, *, of_parent: bool = True) -> float:
        """Read percent in the file as a fraction here. `-1` reads as 100, as Hadoop's undefined maximum does."""
        value = self._properties.get(PREFIX + name)
        if value is None or not value.strip():
            if default is None:
                raise QueueConfigError(PREFIX + name, None, "is missing: give the queue its percent of the parent")
            return default
        try:
            number = float(value)
        except ValueError:
            remedy = "write percent of the parent (weights `3w` and amounts `[memory=...]` are not supported)"
            raise QueueConfigError(
                PREFIX + name, value, remedy if of_parent else "write a number between 0 and 100"
            ) from None
        if number == -1.0:
            return 1.0
        if not 0.0 <= number <= 100.0:
            raise QueueConfigError(PREFIX + name, value, "write a number between 0 and 100")
        return number / 100.0

    def inherited(self, path: str, name: str, default: float) -> float:
        """Read `<path>.<name>`, else the scheduler-wide `<name>`, else the default."""
        return self.fraction(f"{path}.{name}", self.fraction(name, default))


def parse_capacity_scheduler(properties: Mapping[str, str], job_order: str = "fifo") -> SchedulerSpec:
    """Read the queue tree; raises `QueueConfigError` for the first thing that is wrong.

    `job_order`: of the leaf queues that name no ordering policy.
    """
    reader = _Properties(properties, job_order)
    calculator_name = reader.text("resource-calculator", _DEFAULT_CALCULATOR)
    calculator = CALCULATORS.get(calculator_name)
    if calculator is None:
        remedy = f"write one of {', '.join(CALCULATORS)}"
        raise QueueConfigError(PREFIX + "resource-calculator", calculator_name, remedy)
    budget = [_QUEUES_MAX]
    root = _parse_queue(reader, "root", "root", (1.0, 1.0), QueueState.RUNNING, budget)
    if not root.children:
        raise QueueConfigError(PREFIX + "root.queues", None, "is missing: name at least one queue")
    return SchedulerSpec(
        root,
        calculator(),
        reader.integer("node-locality-delay", 40),
        reader.integer("rack-locality-additional-delay", -1),
        _applications_everywhere(reader),
        bool(reader.text("resource-calculator", "")),
        _heartbeat_limits(reader),
    )


def _heartbeat_limits(reader: _Properties) -> HeartbeatLimits:
    usual = HeartbeatLimits()
    return HeartbeatLimits(
        reader.boolean("per-node-heartbeat.multiple-assignments-enabled", usual.is_multiple),
        reader.integer("per-node-heartbeat.maximum-container-assignments", usual.containers_max),
        reader.integer("per-node-heartbeat.maximum-offswitch-assignments", usual.off_switch_max),
    )


def _parse_queue(
    reader: _Properties,
    name: str,
    path: str,
    parent_absolute: tuple[float, float],
    parent_state: QueueState,
    budget: list[int],
) -> QueueSpec:
    """Read one queue and, by recursion, its children. `budget` bounds the number of queues."""
    budget[0] -= 1
    if budget[0] < 0:
        raise QueueConfigError(PREFIX + path, None, f"more than {_QUEUES_MAX} queues")
    is_root = path == "root"
    capacity = 1.0 if is_root else reader.percent(f"{path}.capacity", None)
    maximum = 1.0 if is_root else reader.percent(f"{path}.maximum-capacity", 1.0)
    if maximum < capacity:
        remedy = f"is below the queue's capacity of {capacity * 100:g}: raise one or lower the other"
        raise QueueConfigError(f"{PREFIX}{path}.maximum-capacity", f"{maximum * 100:g}", remedy)
    absolute = (parent_absolute[0] * capacity, parent_absolute[1] * maximum)
    state = _parse_state(reader, path, parent_state)
    ordering = reader.text(f"{path}.ordering-policy", reader.job_order).lower()
    names = [n.strip() for n in reader.text(f"{path}.queues", "").split(",") if n.strip()]
    if not names and ordering not in (*LEAF_ORDERINGS, STAGES_ORDERING):
        try:
            JOB_ORDERS[ordering]
        except UnknownPolicy:
            remedy = f"write fifo, fair, {STAGES_ORDERING}, {', '.join(JOB_ORDERS.names())}"
            raise QueueConfigError(f"{PREFIX}{path}.ordering-policy", ordering, remedy) from None
    for index, child in enumerate(names):
        if not _NAME.match(child) or child in names[:index]:
            raise QueueConfigError(f"{PREFIX}{path}.queues", child, "is no queue name, or stands there twice")
    children = tuple(_parse_queue(reader, n, f"{path}.{n}", absolute, state, budget) for n in names)
    total = sum(c.capacity for c in children)
    if children and abs(total - 1.0) > 1e-4:
        remedy = f"the capacities of its queues add up to {total * 100:g}, not to 100"
        raise QueueConfigError(f"{PREFIX}{path}.queues", ",".join(names), remedy)
    applications = _maximum_applications(reader, path, absolute[0])
    users_least = reader.percent("minimum-user-limit-percent", 1.0, of_parent=False)
    user_limit = reader.percent(f"{path}.minimum-user-limit-percent", users_least, of_parent=False)
    factor = reader.number(f"{path}.user-limit-factor", reader.number("user-limit-factor", 1.0))
    per_user = applications if factor == -1.0 else min(applications, int(applications * user_limit * factor))
    default_lifetime_s, maximum_lifetime_s = _lifetimes(reader, path)
    return QueueSpec(
        name=name,
        path=path,
        capacity=capacity,
        absolute_capacity=absolute[0],
        maximum_capacity=maximum,
        absolute_maximum=absolute[1],
        state=state,
        ordering=ordering,
        maximum_am_share=reader.inherited(path, "maximum-am-resource-percent", _DEFAULT_AM_SHARE),
        maximum_applications=applications,
        maximum_user_applications=per_user,
        minimum_user_limit=user_limit,
        user_limit_factor=factor,
        preemption_disabled=_is_preemption_disabled(reader, path),
        submit_acl=reader.acl(f"{path}.acl_submit_applications", "*" if is_root else " "),
        administer_acl=reader.acl(f"{path}.acl_administer_queue", "*" if is_root else " "),
        default_priority=reader.integer(f"{path}.default-application-priority", 0),
        default_lifetime_s=default_lifetime_s,
        maximum_lifetime_s=maximum_lifetime_s,
        children=children,
    )


def _is_preemption_disabled(reader: _Properties, path: str) -> bool:
    """Tell what the queue says, else what its parent does."""
    value = reader.text(f"{path}.disable_preemption", "").lower()
    if value not in ("", "true", "false"):
        raise QueueConfigError(f"{PREFIX}{path}.disable_preemption", value, "write true or false")
    parent = path.rpartition(".")[0]
    return value == "true" if value or not parent else _is_preemption_disabled(reader, parent)


def _maximum_applications(reader: _Properties, path: str, absolute_capacity: float) -> int:
    """Return the queue's own number, else the one for every queue, else its part of the cluster's.

    As in Hadoop a number below 0 says nothing.
    """
    everywhere = _applications_everywhere(reader)
    for_each = reader.integer("global-queue-max-application", -1)
    default = for_each if for_each >= 0 else max(1, int(everywhere * absolute_capacity))
    own = reader.integer(f"{path}.maximum-applications", -1)
    return own if own >= 0 else default


def _applications_everywhere(reader: _Properties) -> int:
    found = reader.integer("maximum-applications", _APPLICATIONS_MAX)
    return found if found >= 0 else _APPLICATIONS_MAX


def _lifetimes(reader: _Properties, path: str) -> tuple[int, int]:
    """Return default and longest lifetime, s: the queue's own, else those of the queue above it."""
    default = longest = -1
    names = path.split(".")
    for depth in range(1, len(names) + 1):
        above = ".".join(names[:depth])
        default = reader.integer(f"{above}.default-application-lifetime", default)
        longest = reader.integer(f"{above}.maximum-application-lifetime", longest)
    if longest <= 0:
        return default, -1
    if default > longest:
        remedy = f"is longer than the queue's maximum-application-lifetime of {longest}"
        raise QueueConfigError(f"{PREFIX}{path}.default-application-lifetime", str(default), remedy)
    return (default if default > 0 else longest), longest


def _parse_state(reader: _Properties, path: str, parent: QueueState) -> QueueState:
    value = reader.text(f"{path}.state", "RUNNING").upper()
    if value not in ("RUNNING", "STOPPED"):
        raise QueueConfigError(f"{PREFIX}{path}.state", value, "write RUNNING or STOPPED")
    return QueueState.STOPPED if parent is QueueState.STOPPED else QueueState[value]
