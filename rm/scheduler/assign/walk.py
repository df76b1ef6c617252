"""The walk through a leaf queue: its lines, the attempts of a line in order, the asks of an attempt.

Whoever gives something away on a node walks the same way: free room, a place in the node's queue, a hold. A `Judge`
says what there is for whom. Long lines are walked in parts (`rm.scheduler.assign.sweep`).
"""

from itertools import chain
from typing import Final, Protocol, TypeVar

from rm.scheduler.assign.sweep import CHEAP, COST_MAX, PASSES_MAX, Look, Sweep
from rm.scheduler.view.node import NodeView
from rm.scheduler.view.records import AppView, AttemptView, Line, OrderKey, QueueView
from yaqd.model import Resource
from yaqd.policies.asks.table import Ask, AskKey

#: before all priorities: of the stage that its queue has chosen
_CHOSEN: Final = -(1 << 40)
_T = TypeVar("_T")
_Found = TypeVar("_Found", covariant=True)


class Looking(Protocol):
    """A node, or its queue."""

    sweep: Sweep | None


class Offers(Protocol[_Found]):
    """Says what there is on one node for an ask."""

    def offer(self, attempt: AttemptView, ask: Ask, look: Look) -> _Found | None:
        """Return what there is for the ask. None: nothing, at a cost that is added to the look's.

        `look.ends` set: nothing for anybody behind it in its line either.
        """
        ...


class Judge(Offers[_Found], Protocol[_Found]):
    """Says besides for whom that may be at all."""

    def takes_size(self, leaf: QueueView, shape: Resource) -> bool:
        """Tell whether there is something for containers of this size of the leaf queue."""
        ...

    def is_in_turn(self, leaf: QueueView, app: AppView) -> bool:
        """Tell whether the application's user may have one more. Asked only where users are limited."""
        ...


def begin(looking: Looking) -> None:
    """Begin a heartbeat. A sweep that has nothing left to go on with is dropped."""
    if looking.sweep is not None and not looking.sweep.begin():
        looking.sweep = None


def first_in_leaf(looking: Looking, node: NodeView, leaf: QueueView, judge: Judge[_T]) -> _T | None:
    """Return what there is for the first in the leaf queue for whom there is something."""
    best: tuple[tuple[OrderKey, AskKey], _T] | None = None
    #: what was found out of sizes and users
    sizes: dict[int, bool] = {}
    turns: dict[str, bool] = {}
    for name, line in leaf.lines.items():
        if best is not None and line[0] > best[0][0]:
            continue  # all of this line come after what was found
        shape, whose = name
        may = sizes.get(id(shape))
        if may is None:
            may = sizes[id(shape)] = judge.takes_size(leaf, shape)
        if may and whose:
            may = turns.get(whose)
            if may is None:
                may = turns[whose] = judge.is_in_turn(leaf, leaf.attempts[line[0][-1]].app)
        if not may:
            continue
        found = first_in_line(looking, node, leaf, name, line, judge, best[0][0] if best else None)
        if found is not None and (best is None or found[0] < best[0]):
            best = found
    return best[1] if best is not None else None


def first_in_line(
    looking: Looking,
    node: NodeView,
    leaf: QueueView,
    name: Line,
    line: list[OrderKey],
    offers: Offers[_T],
    before: OrderKey | None = None,
) -> tuple[tuple[OrderKey, AskKey], _T] | None:
    """Return the same of one line, with its place in the order, where that comes before `before`."""
    look, sweep, shape = Look(), looking.sweep, name[0]
    line_name = leaf.path, name
    if sweep is not None and sweep.is_over(line_name):
        return None
    for key in line if sweep is None else sweep.keys(line_name, line):
        if before is not None and key > before:
            return None
        attempt = leaf.attempts[key[-1]]
        if attempt.blacklist and not attempt.accepts(node):
            look.attempts += 1
            look.cost += CHEAP
        elif (found := _first_ask(looking, node.id.host, attempt, shape, look, offers)) is not None:
            return (key, found[0]), found[1]
        if look.ends or look.passes >= PASSES_MAX:
            return None  # who passed it is offered the next one, too
        if look.is_over:
            looking.sweep = looking.sweep or Sweep()
            looking.sweep.line_ended(line_name, key)
            return None
    if looking.sweep is not None:
        looking.sweep.line_has_no_more(line_name)
    return None


def _first_ask(
    looking: Looking,
    host: str,
    attempt: AttemptView,
    shape: Resource,
    look: Look,
    offers: Offers[_T],
) -> tuple[AskKey, _T] | None:
    """Return what there is on the host for the attempt's first ask for which there is something.

    `look`: the one along its line.
    """
    name, sweep, within = (attempt.id, shape), looking.sweep, Look()
    asks = attempt.asks.of_shape(shape, sweep.last_ask(name) if sweep is not None else None)
    first = attempt.asks.first_of(shape, attempt.stage) if attempt.stage is not None else None
    if first is not None:
        asks = chain((first,), filter(lambda ask: ask is not first, asks))
    for ask in asks:
        if ask.strict and host not in ask.counts and ask.is_pinned():
            within.cost += 1
        else:
            found = offers.offer(attempt, ask, within)
            if found is not None:
                return ((_CHOSEN, ask.key[1]) if ask is first else ask.key), found
            if within.ends or within.passes >= PASSES_MAX:
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
