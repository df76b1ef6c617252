"""The first of a line, or of an attempt's asks, for whom there is something on a node (`rm.scheduler.assign.sweep`)."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from rm.scheduler.asks.table import Ask
from rm.scheduler.assign.sweep import CHEAP, COST_MAX, PASSES_MAX, LineName, Look, Sweep
from rm.scheduler.view.node import NodeView
from rm.scheduler.view.records import AttemptView, OrderKey, QueueView
from yaqd.model import Resource

_T = TypeVar("_T")


class Looking(Protocol):
    """A node, or its queue."""

    sweep: Sweep | None


def begin(looking: Looking) -> None:
    """Of a heartbeat."""
    if looking.sweep is not None and not looking.sweep.begin():
        looking.sweep = None


def first_attempt(
    looking: Looking,
    name: LineName,
    line: list[OrderKey],
    before: OrderKey | None,
    find: Callable[[OrderKey, Look], _T | None],
) -> tuple[OrderKey, _T] | None:
    """What is found for the first in the line for whom there is something, if he comes before `before`."""
    look, sweep = Look(), looking.sweep
    if sweep is not None and sweep.is_over(name):
        return None
    for key in line if sweep is None else sweep.keys(name, line):
        if before is not None and key > before:
            return None
        found = find(key, look)
        if found is not None:
            return key, found
        if look.passes >= PASSES_MAX:
            return None  # they are offered the next one, too
        if look.is_over:
            looking.sweep = looking.sweep or Sweep()
            looking.sweep.line_ended(name, key)
            return None
    if looking.sweep is not None:
        looking.sweep.line_has_no_more(name)
    return None


def attempts_first(
    looking: Looking,
    node: NodeView,
    leaf: QueueView,
    shape: Resource,
    offer: Callable[[AttemptView, Ask, Look], _T],
    key: OrderKey,
    look: Look,
) -> _T | None:
    """What is found on the node for the attempt that is filed there: for its first ask of this shape for which there is
    something."""
    attempt = leaf.attempts[key[-1]]
    if attempt.blacklist and not attempt.accepts(node):
        look.attempts += 1
        look.cost += CHEAP
        return None
    return _first_ask(looking, node.id.host, attempt, shape, look, offer)


def _first_ask(
    looking: Looking,
    host: str,
    attempt: AttemptView,
    shape: Resource,
    look: Look,
    offer: Callable[[AttemptView, Ask, Look], _T],
) -> _T | None:
    """What is found on the host for the attempt's first ask for which there is something; `look`: the one along its
    line."""
    name, sweep, within = (attempt.id, shape), looking.sweep, Look()
    for ask in attempt.asks.of_shape(shape, sweep.last_ask(name) if sweep is not None else None):
        if ask.strict and host not in ask.counts and ask.is_pinned():
            within.cost += 1
        else:
            found = offer(attempt, ask, within)
            if found is not None:
                return found
            if within.passes >= PASSES_MAX:
                break
        if within.cost >= COST_MAX:
            looking.sweep = sweep = sweep or Sweep()
            sweep.asks_ended(name, ask.key)
            break
    else:
        if sweep is not None:
            sweep.asks_have_no_more(name)
    look.add(within)
    return None
