"""A look along a line of those who wait, for one who takes a node, where many of them cannot.

An ask that insists on other places refuses the node each time, and so does an attempt that has it blacklisted. A look
that gave up after a number of refusals would meet the same ones first at each heartbeat. Nobody behind them would ever
be served. So a look is long for those who are cheap to refuse. Where it ends before the line does, the node's next look
at that line goes on from there (a `Sweep`). After a number of heartbeats everybody has been looked at. When something
was given, the next heartbeat looks at the first in order again, so that turns stay what they are. The same goes for the
asks of one attempt.

Who waits for a better place passes an offer up, and takes one after some heartbeats. A look ends after a number of
them, and the next one begins with them again.
"""

from collections.abc import Iterable
from typing import Final

from rm.scheduler.view.records import AttemptView, Line, OrderKey
from yaqd.model import ApplicationAttemptId, Resource
from yaqd.policies.asks.placement import Placement
from yaqd.policies.asks.table import AskKey, following

#: what a look may cost at one attempt's asks, or along a line of at least `_ATTEMPTS_LEAST`. A refusal that is seen at
#: a glance costs 1
COST_MAX: Final = 2048
#: what other refusals cost, and those that take longer to find out
CHEAP: Final = 4
DEAR: Final = 64
#: attempts of a line that are looked at, unless their asks are very many
_ATTEMPTS_LEAST: Final = 32
_LINE_COST_MAX: Final = 8 * COST_MAX
#: applications of one line, and asks of one attempt, that may pass an offer up before the look ends
PASSES_MAX: Final = 32
#: attempts whose asks a node looks at in parts
_ATTEMPTS_MAX: Final = 10_000

#: path of the leaf queue, size, and whose
LineName = tuple[str, Line]
_AsksName = tuple[ApplicationAttemptId, Resource]


class Look:
    """What a look along a line, or at one attempt's asks, has met so far."""

    __slots__ = ("attempts", "cost", "ends", "passes", "refused")

    def __init__(self) -> None:
        self.attempts = 0
        self.cost = 0
        self.passes = 0
        #: nobody behind is looked at
        self.ends = False
        #: what the attempt's asks may stand beside, where that keeps them from the node
        self.refused: frozenset[Placement] = frozenset()

    @property
    def is_over(self) -> bool:
        """Of a line."""
        cost = self.cost
        return cost >= COST_MAX and (self.attempts >= _ATTEMPTS_LEAST or cost >= _LINE_COST_MAX)

    def add(self, within: "Look") -> None:
        """Count an attempt that took nothing, with what the look at its asks has met."""
        self.attempts += 1
        self.cost += within.cost + CHEAP
        self.passes += within.passes > 0
        self.ends = within.ends


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
        """Begin another heartbeat; return False when nothing is left to go on with."""
        self._over.clear()
        for name, attempt_id in self._given:
            self._lines.pop(name, None)
            self._asks.pop((attempt_id, name[1][0]), None)
        self._given.clear()
        return bool(self._lines or self._asks)

    def given(self, attempt: AttemptView, shape: Resource) -> None:
        """Note that the attempt has got something. The next heartbeat begins with the first in order."""
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
