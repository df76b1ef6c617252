"""Policies by name: what ships with the program, and what others bring along as entry points.

A package that declares an entry point in one of the groups `yaqd.order`, `yaqd.place`, `yaqd.bound`, `yaqd.job_order`,
`yaqd.estimate`, `yaqd.wait`, `yaqd.rebalance`, `yaqd.quality`, `yaqd.explore`, `yaqd.reach` or `yaqd.stages` makes its
policy known to every daemon under that entry point's name, and to the simulator. Entry points are read when a name is
not among the shipped ones, once a process. A shipped name cannot be taken over. What others brought along is guarded
(`guard.py`), so that its faults end no daemon.
"""

from asyncio import CancelledError
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Final, Generic, TypeVar

from yaqd.policies.guard import GIVES_WAY, Guarded

T = TypeVar("T")


class UnknownPolicy(ValueError):
    """A name that no policy of that kind has, or an entry point that does not load."""

    def __init__(self, kind: str, name: str, problem: str) -> None:
        super().__init__(f"{kind} policy {name[:120]!r}: {problem}")
        self.kind = kind
        self.name = name


#: (what is said when it fails, as loaded, the shipped one that answers then) -> the same, guarded; raises TypeError
#: where it is nothing of its kind
Guard = Callable[[str, Any, Any], Any]


def calls(answer: Callable[[Any], Any]) -> Guard:
    """Call policies that are functions: `answer` gives what one returned in the form that callers rely
    on."""

    def guard(what: str, policy: Any, instead: Any) -> Guarded:
        if not callable(policy):
            raise TypeError("it cannot be called")
        return Guarded(what, policy, instead, answer)

    return guard


#: for functions that return a number
NUMBERS: Final = calls(float)


class PolicyTable(Generic[T]):
    """Policies of one kind by name."""

    def __init__(self, kind: str, shipped: Mapping[str, T], *, instead: str, guard: Guard = NUMBERS) -> None:
        """`kind` names the entry point group: yaqd.<kind>, with underscores, since build tools refuse hyphens there.
        `instead` is the shipped one that answers in the place of a foreign one that fails."""
        self.kind = kind
        self._instead = instead
        self._guard = guard
        self._group = f"yaqd.{kind.replace('-', '_')}"
        self._shipped = dict(shipped)
        self._foreign: dict[str, T] = {}

    def __getitem__(self, name: str) -> T:
        """Raises UnknownPolicy."""
        found = self._shipped.get(name)
        if found is None:
            found = self._foreign.get(name)
        return found if found is not None else self._load(name)

    def check(self, name: str) -> str:
        """Return the name itself; raise UnknownPolicy where no policy has it."""
        self[name]
        return name

    def names(self) -> list[str]:
        """Return every name that may be asked for, the shipped ones first; entry points are listed without being
        loaded."""
        others = {entry.name for entry in entry_points(group=self._group)} - self._shipped.keys()
        return [*self._shipped, *sorted(others)]

    def _load(self, name: str) -> T:
        entry = next(iter(entry_points(group=self._group, name=name)), None)
        if entry is None:
            raise UnknownPolicy(self.kind, name, f"there is none; known: {', '.join(self.names())}")
        try:
            what = f"{self.kind} policy {name[:120]!r} ({entry.value}){GIVES_WAY}{self._instead} until a restart"
            loaded: T = self._guard(what, entry.load(), self._shipped[self._instead])
        except (KeyboardInterrupt, CancelledError):
            raise
        except BaseException as err:  # foreign code, which may raise SystemExit too
            raise UnknownPolicy(self.kind, name, f"{entry.value} does not load: {err!r}") from err
        self._foreign[name] = loaded
        return loaded
