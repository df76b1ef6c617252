"""A look along a line of those who wait, for one who takes a node, where many of them cannot.

Who insists on other places, or has the node blacklisted, refuses it each time: a look that gave up after a number of
refusals would meet the same ones first at each heartbeat, and nobody behind them would ever be served. So a look is
long for those who are cheap to refuse, and where it ends before the line does, the node's next look at that line goes
on from there (a `Sweep`): after a number of heartbeats everybody has been looked at. When something was given, the
first in order is looked at again at the next heartbeat, so that turns stay what they are. The same goes for the asks of
one attempt.

Who waits for a better place passes an offer up, and takes one after some heartbeats: a look ends after a number of
them, and the next one begins with them again.
"""

from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

from rm.scheduler.asks import Ask, AskKey, following
from rm.scheduler.nodes import NodeView
from rm.scheduler.placement import Placement
from rm.scheduler.records import AttemptView, Line, OrderKey, QueueView
from yaqd.model import ApplicationAttemptId, Resource

#: what a look at one attempt's asks may cost, and one along a line of at least `_ATTEMPTS_LEAST`; a refusal that is
#: seen at a glance costs 1
_COST_MAX: Final = 2048
#: what other refusals cost, and those that take longer to find out
CHEAP: Final = 4
DEAR: Final = 64
#: attempts of a line that are looked at, unless their asks are very many
_ATTEMPTS_LEAST: Final = 32
_LINE_COST_MAX: Final = 8 * _COST_MAX
#: applications of one line, and asks of one attempt, that may pass an offer up before the look ends
_PASSES_MAX: Final = 32
#: attempts whose asks a node looks at in parts
_ATTEMPTS_MAX: Final = 10_000

#: path of the leaf queue, size, and whose
LineName = tuple[str, Line]
_AsksName = tuple[ApplicationAttemptId, Resource]
_T = TypeVar("_T")


class Look:
    """What a look along a line, or at one attempt's asks, has met so far."""

    __slots__ = ("attempts", "cost", "passes", "refused")

    def __init__(self) -> None:
        self.attempts = 0
        self.cost = 0
        self.passes = 0
        #: what the attempt's asks may stand beside, where that keeps them from the node
        self.refused: frozenset[Placement] = frozenset()

    @property
    def is_over(self) -> bool:
        """Of a line."""
        cost = self.cost
        return cost >= _COST_MAX and (self.attempts >= _ATTEMPTS_LEAST or cost >= _LINE_COST_MAX)

    def add(self, within: "Look") -> None:
        """One attempt refused."""
        self.attempts += 1
        self.cost += within.cost + CHEAP
        self.passes += within.passes > 0


class Sweep:
    """Where a node's looks ended; there only while one has ended early."""

    __slots__ = ("_asks", "_given", "_lines", "_over")

    def __init__(self) -> None:
        self._lines: dict[LineName, OrderKey] = {}
        self._asks: dict[_AsksName, AskKey] = {}
        #: lines that have been looked at for long enough at this heartbeat
        self._over: set[LineName] = set()
        #: from where something was given at this heartbeat
        self._given: set[tuple[LineName, ApplicationAttemptId]] = set()

    def begin(self) -> bool:
        """Another heartbeat. False: nothing is left to go on with."""
        self._over.clear()
        for name, attempt_id in self._given:
            self._lines.pop(name, None)
            self._asks.pop((attempt_id, name[1][0]), None)
        self._given.clear()
        return bool(self._lines or self._asks)

    def given(self, attempt: AttemptView, shape: Resource) -> None:
        """The attempt has got something: the next heartbeat begins with the first in order."""
        leaf = attempt.app.leaf
        whose = attempt.app.user if leaf.limits_users else ""
        self._given.add(((leaf.path, (shape, whose)), attempt.id))

    def is_over(self, name: LineName) -> bool:
        return name in self._over

    def keys(self, name: LineName, line: list[OrderKey]) -> Iterable[OrderKey]:
        last = self._lines.get(name)
        return line if last is None else following(line, last)

    def line_ended(self, name: LineName, last: OrderKey) -> None:
        self._lines[name] = last
        self._over.add(name)

    def line_has_no_more(self, name: LineName) -> None:
        if self._lines.pop(name, None) is not None:
            self._over.add(name)

    def last_ask(self, name: _AsksName) -> AskKey | None:
        return self._asks.get(name)

    def asks_ended(self, name: _AsksName, last: AskKey) -> None:
        self._asks[name] = last
        if len(self._asks) > _ATTEMPTS_MAX:
            del self._asks[next(iter(self._asks))]

    def asks_have_no_more(self, name: _AsksName) -> None:
        self._asks.pop(name, None)


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
        if look.passes >= _PASSES_MAX:
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
            if within.passes >= _PASSES_MAX:
                break
        if within.cost >= _COST_MAX:
            looking.sweep = sweep = sweep or Sweep()
            sweep.asks_ended(name, ask.key)
            break
    else:
        if sweep is not None:
            sweep.asks_have_no_more(name)
    look.add(within)
    return None
