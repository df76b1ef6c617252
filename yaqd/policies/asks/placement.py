"""Where containers may stand beside others: constraints on allocation tags, as Hadoop's PlacementConstraintsUtil reads
them.

A container carries tags; a constraint counts containers with certain tags on the node, or in its rack, and says between
which bounds the count must be for a place to be taken. It is looked at when a place is chosen and never again.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from yaqd.model import ApplicationId, ContainerId, NodeId

#: whose containers a target counts: "self", "not-self", "all", "app-id/ID", "app-tag/TAG"
SELF, NOT_SELF, ALL = "self", "not-self", "all"
APP_ID, APP_TAG = "app-id/", "app-tag/"


class TaggedNode(Protocol):
    """A node, as far as constraints look at it."""

    id: NodeId
    rack: str


class ConstraintScope(Enum):
    NODE = "node"
    RACK = "rack"


@dataclass(frozen=True, slots=True)
class Target:
    """Containers that are counted."""

    namespace: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Single:
    """For each target: some tag is there at least `minimum` times, and some tag at most `maximum` times.

    With one tag, the usual case: affinity is 1 and no maximum, anti-affinity 0 and 0, anything else a cardinality.
    """

    scope: ConstraintScope
    minimum: int
    #: None: any number
    maximum: int | None
    targets: tuple[Target, ...]


@dataclass(frozen=True, slots=True)
class Both:
    children: "tuple[Constraint, ...]"


@dataclass(frozen=True, slots=True)
class Either:
    """Without children: what can never be satisfied."""

    children: "tuple[Constraint, ...]"


Constraint = Single | Both | Either


@dataclass(frozen=True, slots=True)
class Placement:
    """What a scheduling request says beyond size and number."""

    #: in order, none twice
    tags: tuple[str, ...]
    constraint: Constraint | None


@dataclass(frozen=True, slots=True)
class AskingApplication:
    """Who asks; `tags` are those of the application's submission."""

    id: ApplicationId
    tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Tagged:
    node_id: NodeId
    rack: str
    application: AskingApplication
    tags: tuple[str, ...]


class TagStore:
    """How many containers with each tag each application has on each node and in each rack."""

    def __init__(self) -> None:
        self._containers: dict[ContainerId, _Tagged] = {}
        self._counts: dict[tuple[str, NodeId | str], dict[AskingApplication, int]] = {}

    def add(
        self, container_id: ContainerId, node: TaggedNode, application: AskingApplication, tags: tuple[str, ...]
    ) -> None:
        self._containers[container_id] = tagged = _Tagged(node.id, node.rack, application, tags)
        self._count(tagged, 1)

    def remove(self, container_id: ContainerId) -> None:
        tagged = self._containers.pop(container_id, None)
        if tagged is not None:
            self._count(tagged, -1)

    def _count(self, tagged: _Tagged, sign: int) -> None:
        for tag in tagged.tags:
            for place in (tagged.node_id, tagged.rack):
                counts = self._counts.setdefault((tag, place), {})
                left = counts.get(tagged.application, 0) + sign
                if left:
                    counts[tagged.application] = left
                else:
                    del counts[tagged.application]
                if not counts:
                    del self._counts[(tag, place)]

    def number(self, tag: str, place: NodeId | str, asking: AskingApplication, namespace: str) -> int:
        """Count containers with the tag on a node or in a rack, of the applications that the namespace means."""
        counts = self._counts.get((tag, place))
        if counts is None:
            return 0
        if namespace == SELF:
            return counts.get(asking, 0)
        return sum(n for application, n in counts.items() if _is_meant(application, asking, namespace))

    def validate(self) -> None:
        """Assert that the counts are what a recount gives."""
        recount: dict[tuple[str, NodeId | str], dict[AskingApplication, int]] = {}
        for tagged in self._containers.values():
            for tag in tagged.tags:
                for place in (tagged.node_id, tagged.rack):
                    counts = recount.setdefault((tag, place), {})
                    counts[tagged.application] = counts.get(tagged.application, 0) + 1
        assert recount == self._counts, (recount, self._counts)


def _is_meant(application: AskingApplication, asking: AskingApplication, namespace: str) -> bool:
    if namespace == NOT_SELF:
        return application.id != asking.id
    if namespace.startswith(APP_ID):
        return str(application.id) == namespace.removeprefix(APP_ID)
    if namespace.startswith(APP_TAG):
        return namespace.removeprefix(APP_TAG) in application.tags
    return namespace == ALL


def satisfies(constraint: Constraint | None, node: TaggedNode, asking: AskingApplication, tags: TagStore) -> bool:
    """Tell whether a container may be put on this node, as things are now."""
    match constraint:
        case None:
            return True
        case Both(children):
            return all(satisfies(child, node, asking, tags) for child in children)
        case Either(children):
            return any(satisfies(child, node, asking, tags) for child in children)
        case Single(scope, minimum, maximum, targets):
            place: NodeId | str = node.id if scope is ConstraintScope.NODE else node.rack
            for target in targets:
                numbers = [tags.number(tag, place, asking, target.namespace) for tag in target.tags]
                if minimum > 0 and max(numbers, default=0) < minimum:
                    return False
                if maximum is not None and min(numbers, default=0) > maximum:
                    return False
            return True
