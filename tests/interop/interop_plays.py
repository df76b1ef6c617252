"""Scripts and random plays for two managers at once: each step goes to both, and what comes of it must be the same."""

import random
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from tests.interop.interop_two_managers import Driven, Given, Row

#: host -> rack, as the table file has it
RACKS: Final = {f"127.0.1.{number}": f"/rack{(number - 1) // 3 + 1}" for number in range(1, 7)}
HOSTS: Final = tuple(RACKS)
_QUEUES: Final = ("root.a", "root.b.one", "root.b.two", "root.c")
_USERS: Final = ("alice", "bob", "carol")
_LARGE: Final = 10240
_SIZES: Final = ((1024, 1), (1024, 2), (2048, 1), (3072, 2), (5000, 1))


class Both:
    """The two managers as one: each step goes to both, and must give the same."""

    def __init__(self, stock: Driven, ours: Driven) -> None:
        self._stock, self._ours = stock, ours
        self._steps: list[str] = []

    def _same(self, what: str, step: Callable[[Driven], list[Given]]) -> list[Given]:
        self._steps.append(what)
        there, here = step(self._stock), step(self._ours)
        if there != here:
            story = "\n".join(self._steps)
            pytest.fail(f"{story}\n\nstock gave {_told(there)}\nours gave  {_told(here)}", pytrace=False)
        return here

    def node(self, host: str, memory_mb: int, vcores: int) -> list[Given]:
        return self._same(f"node {host} {memory_mb} {vcores}", lambda one: one.node(host, memory_mb, vcores))

    def beat(self, host: str, ends: Mapping[str, tuple[int, ...]] = {}) -> list[Given]:
        return self._same(f"beat {host} {dict(ends)}", lambda one: one.beat(host, ends))

    def leave(self, host: str) -> list[Given]:
        return self._same(f"leave {host}", lambda one: one.leave(host))

    def app(self, name: str, queue: str, user: str = "alice", priority: int = 0) -> list[Given]:
        return self._same(f"app {name} {queue} {user} {priority}", lambda one: one.app(name, queue, user, priority))

    def ask(self, name: str, *rows: Row) -> list[Given]:
        return self._same(f"ask {name} {rows}", lambda one: one.ask(name, *rows))

    def release(self, name: str, *places: int) -> list[Given]:
        return self._same(f"release {name} {places}", lambda one: one.release(name, *places))

    def avoid(self, name: str, *hosts: str) -> list[Given]:
        return self._same(f"avoid {name} {hosts}", lambda one: one.avoid(name, *hosts))

    def end(self, name: str) -> list[Given]:
        return self._same(f"end {name}", lambda one: one.end(name))

    def held_by(self, name: str, host: str | None = None) -> int:
        """Count the application's containers, or those on one host."""
        return self._ours.held_by(name, host)

    def clear(self) -> None:
        self._stock.clear()
        self._ours.clear()


def _told(given: list[Given]) -> str:
    return ", ".join(f"{one.application} {one.priority} {one.memory_mb} MB on {one.node}" for one in given) or "nothing"


class Play:
    """One random play: the same seed is the same play, on any machine."""

    def __init__(self, both: Both, seed: int) -> None:
        self._both, self._random = both, random.Random(seed)
        self._apps: list[str] = []
        self._nodes: list[str] = []
        self._made = 0

    def run(self, steps: int) -> int:
        """Play so many steps. Returns how many containers were given."""
        given = 0
        hosts = self._random.sample(HOSTS, self._random.randint(2, 4))
        # It stays: masters may ask for no more than the largest node has, and may run where queues have whole cores.
        self._join(hosts[0], _LARGE, 16)
        for host in hosts[1:]:
            self._join(host)
        for _ in range(2):
            self._submit()
        moves: Mapping[Callable[[], int], int] = {
            self._beat: 60,
            self._ask: 22,
            self._submit: 5,
            self._release: 4,
            self._end: 3,
            self._avoid: 1,
            self._leave: 2,
            self._come: 3,
        }
        for _ in range(steps):
            [move] = self._random.choices(list(moves), list(moves.values()))
            given += move()
        return given

    def _join(self, host: str, memory_mb: int | None = None, vcores: int | None = None) -> int:
        self._nodes.append(host)
        memory_mb = memory_mb or self._random.choice((2048, 4096, 6000, _LARGE))
        return len(self._both.node(host, memory_mb, vcores or self._random.choice((2, 4, 8))))

    def _come(self) -> int:
        away = [host for host in HOSTS if host not in self._nodes]
        return self._join(self._random.choice(away)) if away else 0

    def _leave(self) -> int:
        if len(self._nodes) < 3:
            return 0
        host = self._nodes.pop(self._random.randrange(1, len(self._nodes)))
        return len(self._both.leave(host))

    def _submit(self) -> int:
        if len(self._apps) == 6:
            return 0
        self._made += 1
        name = f"app{self._made}"
        queue, user = self._random.choice(_QUEUES), self._random.choice(_USERS)
        self._both.app(name, queue, user, self._random.choice((0, 0, 0, 3)))
        self._apps.append(name)
        return self._ask_of(name)

    def _end(self) -> int:
        if len(self._apps) < 3:
            return 0
        self._both.end(self._apps.pop(self._random.randrange(len(self._apps))))
        return 0

    def _ask(self) -> int:
        return self._ask_of(self._random.choice(self._apps)) if self._apps else 0

    def _ask_of(self, name: str) -> int:
        draw, priority = self._random, self._random.choice((1, 1, 2, 5))
        # one size for each priority, as masters keep it
        memory_mb, vcores = _SIZES[(priority + int(name.removeprefix("app"))) % len(_SIZES)]
        count, rows = draw.randint(0, 5), []
        relax = draw.random() < 0.8
        if draw.random() < 0.5:
            hosts = draw.sample(HOSTS, draw.randint(1, 3))
            racks = {RACKS[host] for host in hosts}
            rows = [Row(count, place, priority, memory_mb, vcores) for place in hosts]
            rows += [Row(count, rack, priority, memory_mb, vcores, relax) for rack in sorted(racks)]
            count = count * draw.choice((1, 1, len(hosts)))
        rows.append(Row(count, "*", priority, memory_mb, vcores, relax or len(rows) == 0))
        return len(self._both.ask(name, *rows))

    def _release(self) -> int:
        held = [name for name in self._apps if self._both.held_by(name)]
        if not held:
            return 0
        name = self._random.choice(held)
        return len(self._both.release(name, self._random.randrange(self._both.held_by(name))))

    def _avoid(self) -> int:
        if not self._apps:
            return 0
        return len(self._both.avoid(self._random.choice(self._apps), self._random.choice(HOSTS)))

    def _beat(self) -> int:
        host = self._random.choice(self._nodes)
        ends: dict[str, tuple[int, ...]] = {}
        for name in self._apps:
            count = self._both.held_by(name, host)
            over = tuple(place for place in range(count) if self._random.random() < 0.15)
            if over:
                ends[name] = over
        return len(self._both.beat(host, ends))
