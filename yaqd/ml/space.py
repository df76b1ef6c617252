"""The space of hyperparameters that an exploration draws from: a TOML file with an entry for each.

    rate = { type = "float", low = 1e-4, high = 1.0, log = true }
    layers = { type = "int", low = 1, high = 4 }
    width = { type = "int", low = 32, high = 256, step = 32 }
    activation = { type = "choice", values = ["relu", "tanh"] }
    batch = 32                                                    # the same in all trials

Values are texts, numbers and truth values. An error names the file, the line and what to write.
"""

import itertools
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yaqd.mapreduce.errors import JobError

#: a hyperparameter's value
Value = float | int | str | bool
Params = dict[str, Value]

#: hyperparameters of a space, values of a choice, configurations of a grid
NAMES_MAX: Final = 200
CHOICES_MAX: Final = 1_000
GRID_MAX: Final = 1_000_000

_TYPES: Final = ("float", "int", "choice")
_KEYS: Final[Mapping[str, frozenset[str]]] = {
    "float": frozenset(("type", "low", "high", "log")),
    "int": frozenset(("type", "low", "high", "log", "step")),
    "choice": frozenset(("type", "values")),
}
#: what numpy draws whole numbers from
_WHOLE_MAX: Final = 1 << 62
_AT_LINE: Final = re.compile(r"at line (\d+)")


class SpaceError(JobError):
    """A space that nothing can be drawn from, or values that are not of it."""


@dataclass(frozen=True, slots=True)
class FloatRange:
    """Real numbers from `low` to `high`, evenly or evenly in their logarithm."""

    low: float
    high: float
    log: bool = False

    def at(self, part: float) -> float:
        """Return the number at a part of the range, 0 to 1."""
        if self.log:
            found = math.exp(math.log(self.low) + part * (math.log(self.high) - math.log(self.low)))
        else:
            found = self.low + part * (self.high - self.low)
        return min(max(found, self.low), self.high)

    def place(self, value: Any) -> float | None:
        """Return the part of the range at which a value stands; None: it is not in it."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return None
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)

    def points(self, many: int) -> list[Value]:
        """Return numbers spread over the range, both ends among them."""
        return [self.at(i / (many - 1)) for i in range(many)] if many > 1 else [self.at(0.5)]

    def __str__(self) -> str:
        return f"a number from {self.low:g} to {self.high:g}"


@dataclass(frozen=True, slots=True)
class IntRange:
    """Whole numbers from `low` to `high`, both of it, every `step`-th."""

    low: int
    high: int
    log: bool = False
    step: int = 1

    @property
    def many(self) -> int:
        return (self.high - self.low) // self.step + 1

    def at(self, part: float) -> int:
        """Return the number at a part of the range, 0 to 1; each has an equal part, or one by its logarithm."""
        if self.log:
            low, high = math.log(self.low - 0.5), math.log(self.high + 0.5)
            found = round(math.exp(low + part * (high - low)))
        else:
            found = self.low + self.step * math.floor(part * self.many)
        return min(max(found, self.low), self.low + self.step * (self.many - 1))

    def place(self, value: Any) -> float | None:
        """Return the part of the range in whose middle a value stands; None: it is not in it."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return None
        if value != int(value) or (int(value) - self.low) % self.step:
            return None
        if self.log:
            low, high = math.log(self.low - 0.5), math.log(self.high + 0.5)
            return (math.log(value) - low) / (high - low)
        return ((int(value) - self.low) // self.step + 0.5) / self.many

    def points(self, many: int) -> list[Value]:
        """Return numbers spread over the range, at most `many` different ones, both ends among them."""
        if many >= self.many and not self.log:
            return [self.low + self.step * i for i in range(self.many)]
        if many == 1:
            return [self.at(0.5)]
        found = [self.at(i / (many - 1)) for i in range(many)]
        return list(dict.fromkeys(found))

    def __str__(self) -> str:
        every = f", every {self.step}" if self.step > 1 else ""
        return f"a whole number from {self.low} to {self.high}{every}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of some values."""

    values: tuple[Value, ...]

    def at(self, part: float) -> Value:
        """Return the value at a part of the list, 0 to 1."""
        return self.values[min(int(part * len(self.values)), len(self.values) - 1)]

    def index(self, value: Any) -> int | None:
        """Return where a value stands in the list; None: it does not. 1 and true are two values."""
        for at, known in enumerate(self.values):
            if known == value and isinstance(known, bool) == isinstance(value, bool):
                return at
        return None

    def points(self, many: int) -> list[Value]:
        """Return all values."""
        return list(self.values)

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, self.values))}"


@dataclass(frozen=True, slots=True)
class Constant:
    """The same value in all trials."""

    value: Value

    def __str__(self) -> str:
        return repr(self.value)


Dimension = FloatRange | IntRange | OneOf | Constant


@dataclass(frozen=True, slots=True)
class Space:
    """Hyperparameters by name, in the file's order."""

    dimensions: Mapping[str, Dimension]

    @classmethod
    def parse(cls, text: str, where: str = "space.toml") -> "Space":
        """Return the space that a TOML text describes. SpaceError names `where` and the line."""
        lines = text.splitlines()
        try:
            found = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            at = _AT_LINE.search(str(error))
            raise SpaceError(f"{where}:{at[1] if at else max(1, len(lines))}: no TOML: {error}") from None
        if not found:
            raise SpaceError(f"{where}:1: no hyperparameter: write one a line, as in {_EXAMPLE}")
        if len(found) > NAMES_MAX:
            raise SpaceError(f"{where}: {len(found)} hyperparameters: {NAMES_MAX} at most")
        dimensions = {}
        for name, entry in found.items():
            try:
                dimensions[name] = _dimension(name, entry)
            except _EntryError as error:
                raise SpaceError(f"{where}:{_line(lines, name, error.key)}: {name}: {error}") from None
        if all(isinstance(each, Constant) for each in dimensions.values()):
            raise SpaceError(f"{where}:1: every hyperparameter has one value, so all trials would be the same")
        return cls(dimensions)

    def draw(self, rng: np.random.Generator) -> Params:
        """Return values drawn from the whole space."""
        return {
            name: each.value if isinstance(each, Constant) else each.at(float(rng.random()))
            for name, each in self.dimensions.items()
        }

    def grid(self, points: int) -> Iterator[Params]:
        """Yield every combination of `points` values of each range and all values of each choice, the last name
        fastest."""
        names = list(self.dimensions)
        axes = self._axes(points)
        for values in itertools.product(*axes):
            yield dict(zip(names, values, strict=True))

    def grid_at(self, points: int, number: int) -> Params | None:
        """Return the combination of this number, from 0; None: there are fewer."""
        axes = self._axes(points)
        if not 0 <= number < math.prod(map(len, axes)):
            return None
        found = []
        for axis in reversed(axes):
            number, at = divmod(number, len(axis))
            found.append(axis[at])
        return dict(zip(self.dimensions, reversed(found), strict=True))

    def grid_size(self, points: int) -> int:
        """Return how many combinations a grid has."""
        return math.prod(map(len, self._axes(points)))

    def encode(self, params: Mapping[str, Any]) -> list[float]:
        """Return values as numbers from 0 to 1 for a model over them: a range's place, a choice's values one by one.

        SpaceError: a value is not of the space.
        """
        self.check(params)
        found: list[float] = []
        for name, each in self.dimensions.items():
            if isinstance(each, OneOf):
                at = each.index(params[name])
                found += [float(i == at) for i in range(len(each.values))]
            elif not isinstance(each, Constant):
                found.append(each.place(params[name]) or 0.0)
        return found

    def encode_all(self, many: Sequence[Mapping[str, Any]]) -> NDArray[np.float64]:
        """Return the values of many trials, (trials, numbers)."""
        return np.array([self.encode(params) for params in many], dtype=np.float64)

    def check(self, params: Mapping[str, Any]) -> None:
        """Raise SpaceError where a value is missing, unknown or not of the space."""
        missing = [name for name in self.dimensions if name not in params]
        unknown = [name for name in params if name not in self.dimensions]
        if missing or unknown:
            known = ", ".join(self.dimensions)
            raise SpaceError(f"{'no' if missing else 'unknown'} {(missing or unknown)[0]}: the space has {known}")
        for name, each in self.dimensions.items():
            value = params[name]
            if isinstance(each, Constant):
                is_known = value == each.value
            else:
                is_known = (each.index(value) if isinstance(each, OneOf) else each.place(value)) is not None
            if not is_known:
                raise SpaceError(f"{name} = {value!r}: the space has {each}")

    def _axes(self, points: int) -> list[list[Value]]:
        return [
            [each.value] if isinstance(each, Constant) else each.points(points) for each in self.dimensions.values()
        ]


_EXAMPLE: Final = 'rate = { type = "float", low = 0.001, high = 1.0, log = true }'


class _EntryError(ValueError):
    """What is wrong with an entry. `key`: of its table; "": the entry as a whole."""

    def __init__(self, said: str, key: str = "") -> None:
        super().__init__(said)
        self.key = key


def _dimension(name: str, entry: Any) -> Dimension:
    """Return what an entry describes. Raises _EntryError."""
    if not name or "=" in name or not name.isprintable() or name != name.strip():
        raise _EntryError("no name for a hyperparameter: use letters, digits, '-' and '_'")
    if isinstance(entry, list):
        return _choice({"type": "choice", "values": entry})
    if not isinstance(entry, dict):
        return Constant(_value(entry))
    kind = entry.get("type")
    if kind not in _TYPES:
        told = "it has no type" if kind is None else f"unknown type {kind!r}"
        raise _EntryError(f"{told}: use one of {', '.join(_TYPES)}, as in {_EXAMPLE}", "type")
    unknown = sorted(entry.keys() - _KEYS[kind])
    if unknown:
        raise _EntryError(
            f"unknown {unknown[0]!r} of the type {kind}: it has {', '.join(sorted(_KEYS[kind]))}", unknown[0]
        )
    return _choice(entry) if kind == "choice" else _range(kind, entry)


def _choice(entry: Mapping[str, Any]) -> OneOf:
    values = entry.get("values")
    if not isinstance(values, list) or not values:
        raise _EntryError('no values: write them as values = ["relu", "tanh"]')
    if len(values) > CHOICES_MAX:
        raise _EntryError(f"{len(values)} values: {CHOICES_MAX} at most")
    found = tuple(map(_value, values))
    for at, value in enumerate(found):
        if OneOf(found[:at]).index(value) is not None:
            raise _EntryError(f"the value {value!r} twice")
    return OneOf(found)


def _range(kind: str, entry: Mapping[str, Any]) -> Dimension:
    low, high = _bound(kind, entry, "low"), _bound(kind, entry, "high")
    log, step = entry.get("log", False), entry.get("step", 1)
    if not isinstance(log, bool):
        raise _EntryError(f"log = {log!r}: use true or false", "log")
    if low > high:
        raise _EntryError(f"low = {low:g} is above high = {high:g}: exchange them", "low")
    if low == high:
        raise _EntryError(f"low and high are both {low:g}: write the value alone, as in name = {low:g}")
    if not math.isfinite(high - low):
        raise _EntryError(f"from {low:g} to {high:g}: the range is too wide for a number")
    if log and low <= 0:
        raise _EntryError(f"low = {low:g} with log = true: a logarithm needs more than 0", "low")
    if kind == "float":
        return FloatRange(float(low), float(high), log)
    if isinstance(step, bool) or not isinstance(step, int) or not 1 <= step <= high - low:
        raise _EntryError(f"step = {step!r}: use a whole number from 1 to {int(high - low)}", "step")
    if log and step > 1:
        raise _EntryError("step and log = true: use one of them", "step")
    return IntRange(int(low), int(high), log, step)


def _bound(kind: str, entry: Mapping[str, Any], name: str) -> float | int:
    bound = entry.get(name)
    if bound is None:
        raise _EntryError(f"it has no {name}")
    wanted = int if kind == "int" else int | float
    if isinstance(bound, bool) or not isinstance(bound, wanted) or not math.isfinite(bound):
        raise _EntryError(f"{name} = {bound!r}: use a {'whole' if kind == 'int' else 'finite'} number", name)
    if abs(bound) > _WHOLE_MAX and kind == "int":
        raise _EntryError(f"{name} = {bound}: use a number of at most 62 bits", name)
    found: float | int = bound
    return found


def _value(value: Any) -> Value:
    if isinstance(value, float) and not math.isfinite(value):
        raise _EntryError(f"the value {value!r}: use a finite number")
    if not isinstance(value, bool | int | float | str):
        raise _EntryError(f"the value {value!r}: use a text, a number, true or false")
    return value


def _line(lines: Sequence[str], name: str, key: str) -> int:
    """Return the line of a key of an entry, where that is a table of several lines; else that where the entry begins.

    1 where it is written in a way that is not found.
    """
    quoted, own = (rf"(?:{text}|\"{text}\"|'{text}')" for text in (re.escape(name), re.escape(key or name)))
    header, entry = re.compile(rf"\s*\[\s*{quoted}\s*[\].]"), re.compile(rf"\s*{quoted}\s*[=.]")
    in_table, dotted = re.compile(rf"\s*{own}\s*="), re.compile(rf"\s*{quoted}\s*[.]\s*{own}\s*=")
    first, is_top, is_own = 0, True, False
    for at, line in enumerate(lines, 1):
        if line.lstrip().startswith("["):
            is_top, is_own = False, header.match(line) is not None
        if is_own or (is_top and entry.match(line)):
            first = first or at
            if key and (in_table if is_own else dotted).match(line):
                return at
    return first or 1
