"""Configurations at random, from a grid, and from a file."""

import json
from typing import Any, Final

import numpy as np

from tez_adapter.exploration.generators.generator import GeneratorError
from yaqd.ml.space import GRID_MAX, Params, Space, SpaceError

#: configurations of a file
LINES_MAX: Final = 1_000_000
_LEAST_POINTS: Final = 2
#: more values of a range are no grid any more
_POINTS_MAX: Final = 10_000


class _Plain:
    """What generators have in common that learn nothing."""

    is_adaptive = False

    def told(self, number: int, params: Any, value: float, is_final: bool) -> None:
        """Take no notice."""

    def close(self) -> None:
        """Hold nothing."""


class RandomGenerator(_Plain):
    """Draws each trial from the whole space."""

    size: int | None = None

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._seed = space, seed

    def propose(self, number: int) -> Params | None:
        """Return what this seed draws for this number."""
        return self._space.draw(np.random.default_rng((self._seed, number)))


class GridGenerator(_Plain):
    """Takes the points of a grid in an order that the seed mixes, so that the first ones are spread over the space."""

    def __init__(self, space: Space, seed: int, trials: int) -> None:
        """`trials`: ranges get as many points as the grid stays no larger, but at least two. GeneratorError: too
        many."""
        points = grid_points(space, trials)
        self._space, self._points = space, points
        many = space.grid_size(points)
        if many > GRID_MAX:
            raise GeneratorError(f"a grid of {many:,} configurations: use --generator random, or a smaller space")
        self._order = np.random.default_rng(seed).permutation(many)

    @property
    def size(self) -> int | None:
        """How many points the grid has."""
        return len(self._order)

    def propose(self, number: int) -> Params | None:
        """Return a point of the grid."""
        return self._space.grid_at(self._points, int(self._order[number])) if number < len(self._order) else None


def grid_points(space: Space, trials: int) -> int:
    """Return the most points of each range with which a grid has no more than `trials` configurations, at least 2."""
    points, before = _LEAST_POINTS, 0
    while points < _POINTS_MAX:
        many = space.grid_size(points + 1)
        # choices alone do not grow
        if many > trials or (many == before and points > trials):
            break
        points, before = points + 1, many
    return points


class FileGenerator(_Plain):
    """Takes the configurations of a file, a JSON object a line, in its order."""

    def __init__(self, text: str, space: Space | None, where: str = "the file") -> None:
        """`space`: each line must be of it. GeneratorError names the line."""
        self._lines: list[Params] = []
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                self._lines.append(_configuration(line, space, f"{where}:{number}"))
        if not self._lines:
            raise GeneratorError(f'{where}: no configuration: write a JSON object a line, as in {{"rate": 0.1}}')
        if len(self._lines) > LINES_MAX:
            raise GeneratorError(f"{where}: {len(self._lines):,} configurations: {LINES_MAX:,} at most")
        names = self._lines[0].keys()
        for number, params in enumerate(self._lines, 1):
            if params.keys() != names:
                other = sorted(params.keys() ^ names)[0]
                raise GeneratorError(f"{where}: configuration {number} and the first differ in their names: {other}")

    @property
    def size(self) -> int | None:
        """How many configurations the file has."""
        return len(self._lines)

    def propose(self, number: int) -> Params | None:
        """Return the configuration of this number."""
        return dict(self._lines[number]) if number < len(self._lines) else None


def _configuration(line: str, space: Space | None, where: str) -> Params:
    try:
        found = json.loads(line)
    except ValueError as error:
        raise GeneratorError(f"{where}: no JSON: {error}") from None
    if not isinstance(found, dict) or not found:
        raise GeneratorError(f'{where}: no JSON object with values, as in {{"rate": 0.1}}')
    for name, value in found.items():
        if not isinstance(value, bool | int | float | str):
            raise GeneratorError(f"{where}: {name} = {value!r}: use a text, a number, true or false")
    if space is not None:
        try:
            space.check(found)
        except SpaceError as error:
            raise GeneratorError(f"{where}: {error}") from None
    return dict(found)
