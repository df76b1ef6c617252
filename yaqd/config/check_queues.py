"""Settings of `capacity-scheduler.xml` that silently do nothing: of a queue that is not there, or misspelt.

Hadoop reads each queue's keys by name and never looks at the others, so either mistake leaves the default in place.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from yaqd.config.catalogue import documented
from yaqd.config.values import parse_list
from yaqd.config.xmlfile import Property

_PREFIX: Final = "yarn.scheduler.capacity."
_SHIPPED_QUEUE: Final = "root.default."
#: Behind a queue's path these begin keys of Hadoop's with further parts; they are no queues.
_NESTED: Final = (
    "accessible-node-labels",
    "auto-create-child-queue",
    "auto-queue-creation-v2",
    "leaf-queue-template",
    "multi-node-sorting",
    "ordering-policy",
)
#: Short names, of which one wrong pair of letters is a fair part.
_ALIKE: Final = 0.8
_QUEUES_MAX: Final = 10_000


def queue_warnings(properties: Sequence[Property]) -> Iterator[tuple[Property, str]]:
    """Return each property that does nothing, with what is wrong with it. Nothing where the file names no queues at
    all."""
    values = {found.name: found.value or "" for found in properties}
    if f"{_PREFIX}root.queues" not in values:
        return
    paths = _paths(values)
    for found in properties:
        rest = found.name.removeprefix(_PREFIX)
        if rest != found.name and rest.startswith("root."):
            problem = _problem(rest, paths)
            if problem:
                yield found, problem


def _paths(values: Mapping[str, str]) -> dict[str, None]:
    """The paths of all queues that lists of children reach from the root."""
    paths: dict[str, None] = {}
    waiting = ["root"]
    while waiting and len(paths) < _QUEUES_MAX:
        path = waiting.pop()
        if path not in paths:
            paths[path] = None
            waiting.extend(f"{path}.{name}" for name in parse_list(values.get(f"{_PREFIX}{path}.queues", "")))
    return paths


def _problem(rest: str, paths: Mapping[str, None]) -> str | None:
    queue, _, name = rest.rpartition(".")
    if any(f".{nested}" in rest for nested in _NESTED):
        return None if name in _names() and queue in paths else _of_nested(rest, paths)
    nearest = [name] if name in _names() else difflib.get_close_matches(name, _names(), 1, _ALIKE)
    if not nearest:
        return None
    if queue not in paths:
        return _no_queue(queue, paths)
    return None if nearest[0] == name else f"unknown setting of a queue; did you mean {queue}.{nearest[0]}?"


def _of_nested(rest: str, paths: Mapping[str, None]) -> str | None:
    """Of `root.a.ordering-policy` and longer: only the queue can be judged."""
    begins = min(at for nested in _NESTED if (at := rest.find(f".{nested}")) >= 0)
    queue = rest[:begins]
    return None if queue in paths else _no_queue(queue, paths)


def _no_queue(queue: str, paths: Mapping[str, None]) -> str:
    nearest = difflib.get_close_matches(queue, list(paths), 1, _ALIKE)
    return f"there is no queue {queue}, so this does nothing" + (f"; did you mean {nearest[0]}?" if nearest else "")


@lru_cache(maxsize=1)
def _names() -> tuple[str, ...]:
    """What can be set for a queue."""
    names = set()
    for found in documented():
        rest = found.name.removeprefix(_PREFIX)
        for head in ("*.", _SHIPPED_QUEUE):
            if rest != found.name and rest.startswith(head):
                names.add(rest.removeprefix(head))
    return tuple(sorted(names))
