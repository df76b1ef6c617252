"""The curve of a training job: what its program reported, in bounded memory.

Every report of a short job is kept. Of a long one every second goes whenever there are too many, so that what is left
spans the whole job evenly. Beside these stay the first loss, the steepest fall and the latest losses: a
ResourceManager that has to hear of the job anew knows it by them.
"""

import json
import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from yaqd.model.training import ITERATION_MAX, LOSS_MAX, WINDOW

POINTS_MAX: Final = 4000
_FIRST, _BEGIN, _LEAST, _STEEP, _FALLEN = "first", "begin", "least", "steep", "fallen"
#: that a line has whose point only stays for now; on the last line, how the curve is thinned
_PASSING, _STRIDE, _SEEN = "passing", "stride", "reports"


@dataclass(frozen=True, slots=True)
class Point:
    iteration: int
    #: None: the program has none
    loss: float | None
    #: epoch ms
    at_ms: int
    #: that the job had then
    cores: float
    metrics: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Numbers that JSON has none for are texts."""
        fields: dict[str, Any] = {"iteration": self.iteration, "at_ms": self.at_ms, "cores": self.cores}
        if self.loss is not None:
            fields["loss"] = _plain(self.loss)
        return fields | {"metrics": {name: _plain(value) for name, value in self.metrics.items()}}

    @classmethod
    def of_json(cls, fields: dict[str, Any]) -> "Point":
        """Raises ValueError, TypeError, KeyError."""
        loss = fields.get("loss")
        metrics = {str(name): float(value) for name, value in dict(fields.get("metrics", {})).items()}
        return cls(
            int(fields["iteration"]),
            None if loss is None else float(loss),
            int(fields["at_ms"]),
            float(fields["cores"]),
            metrics,
        )


def counts(iteration: int, loss: float | None) -> bool:
    """Return whether a ResourceManager takes this loss."""
    return loss is not None and abs(loss) <= LOSS_MAX and 0 <= iteration <= ITERATION_MAX


def _plain(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)


class Curve:
    def __init__(self) -> None:
        self.points: list[Point] = []
        #: of so many reports one is kept
        self._stride = 1
        self._seen = 0
        #: grows when points were thinned out
        self.version = 0
        self.first_loss = self.least_loss = math.nan
        self.last: Point | None = None
        #: the last loss that is a number
        self.loss: float | None = None
        #: where the newest losses are no numbers: the first of them
        self.odd: Point | None = None
        #: points that are never thinned out, by what they are
        self._marks: dict[str, Point] = {}
        #: the largest fall in one iteration
        self._fall = 0.0
        self._latest: deque[Point] = deque(maxlen=WINDOW)

    def add(self, point: Point) -> bool:
        """Return whether it is news: iterations that were reported before are not."""
        if not self._note(point):
            return False
        if self._seen % self._stride == 0:
            self.points.append(point)
        self._seen += 1
        if len(self.points) > POINTS_MAX:
            del self.points[1::2]
            self._stride *= 2
            self.version += 1
        return True

    def _note(self, point: Point) -> bool:
        """Note all of a point but its place among those that are kept."""
        if self.last is not None and point.iteration <= self.last.iteration:
            return False
        self.last = point
        if point.loss is not None and math.isfinite(point.loss):
            if math.isnan(self.first_loss):
                self.first_loss = point.loss
                self._marks[_FIRST] = point
            if not point.loss >= self.least_loss:
                self.least_loss = point.loss
                self._marks[_LEAST] = point
            self.loss, self.odd = point.loss, None
        elif point.loss is not None and self.odd is None:
            self.odd = point
        if point.loss is not None and counts(point.iteration, point.loss):
            self._note_fall(point, point.loss)
        return True

    def _note_fall(self, point: Point, loss: float) -> None:
        before = self._latest[-1] if self._latest else point
        fall = ((before.loss or 0.0) - loss) / max(point.iteration - before.iteration, 1)
        if fall > self._fall:
            self._fall = fall
            self._marks |= {_STEEP: before, _FALLEN: point}
        self._marks.setdefault(_BEGIN, point)
        self._latest.append(point)

    def normalized(self) -> float | None:
        """Return 1 at the first loss, 0 at the least so far; None without losses."""
        if self.loss is None:
            return None
        # halves, as the difference of two numbers may be none
        span = self.first_loss / 2 - self.least_loss / 2
        return min(1.0, (self.loss / 2 - self.least_loss / 2) / span) if span > 0 else 1.0

    def landmarks(self) -> list[tuple[int, float]]:
        """Return where the losses began, and both ends of their steepest fall, with their iterations."""
        marks = [self._marks[name] for name in (_BEGIN, _STEEP, _FALLEN) if name in self._marks]
        return sorted(set(_losses(marks)))

    def latest(self) -> list[tuple[int, float]]:
        """Return the latest losses with their iterations, none of them left out."""
        return _losses(self._latest)

    def with_last(self) -> list[Point]:
        """Return the points and the latest report, which may be none of them."""
        if self.last is None or (self.points and self.points[-1].iteration == self.last.iteration):
            return self.points
        return [*self.points, self.last]

    def copy(self) -> "Curve":
        """Return the curve as it is now, for another thread."""
        other = Curve()
        other.__dict__.update(
            self.__dict__, points=list(self.points), _marks=dict(self._marks), _latest=self._latest.copy()
        )
        return other

    def lines(self) -> Iterator[str]:
        """JSON, a line for each point, the latest report last."""
        kept = {point.iteration for point in self.points}
        others = (*self._marks.values(), *self._latest, self.odd, self.last)
        passing = {point.iteration: point for point in others if point is not None and point.iteration not in kept}
        for point in sorted((*self.points, *passing.values()), key=_iteration):
            fields = point.as_json()
            if point.iteration in passing:
                fields[_PASSING] = True
            if self.last is not None and point.iteration == self.last.iteration:
                fields |= {_STRIDE: self._stride, _SEEN: self._seen}
            yield json.dumps(fields)

    def dump(self) -> bytes:
        return "".join(f"{line}\n" for line in self.lines()).encode("ascii")

    @classmethod
    def parse(cls, data: bytes) -> "Curve":
        """Raises ValueError."""
        try:
            return cls._of_lines([json.loads(line) for line in data.splitlines()])
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"no curve: {error!r}") from None

    @classmethod
    def _of_lines(cls, lines: list[dict[str, Any]]) -> "Curve":
        """Lines that do not say how the curve is thinned are thinned as they are read."""
        if not lines or _STRIDE not in lines[-1]:
            return cls.of(map(Point.of_json, lines))
        curve = cls()
        for fields in lines:
            point = Point.of_json(fields)
            if curve._note(point) and not fields.get(_PASSING):
                curve.points.append(point)
        curve._stride = max(1, int(lines[-1][_STRIDE]))
        curve._seen = int(lines[-1][_SEEN])
        curve.version = curve._stride.bit_length() - 1
        return curve

    @classmethod
    def of(cls, points: Iterable[Point]) -> "Curve":
        curve = cls()
        for point in points:
            curve.add(point)
        return curve


def _iteration(point: Point) -> int:
    return point.iteration


def _losses(points: Iterable[Point]) -> list[tuple[int, float]]:
    return [(point.iteration, point.loss) for point in points if point.loss is not None]
