"""The curve of a training job: what its program reported, in bounded memory.

Every report of a short job is kept. Of a long one every second goes whenever there are too many, so that what is left
spans the whole job evenly.
"""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

POINTS_MAX: Final = 4000


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

    def add(self, point: Point) -> bool:
        """Return whether it is news: iterations that were reported before are not."""
        if self.last is not None and point.iteration <= self.last.iteration:
            return False
        self.last = point
        if point.loss is not None and math.isfinite(point.loss):
            if math.isnan(self.first_loss):
                self.first_loss = point.loss
            if not point.loss >= self.least_loss:
                self.least_loss = point.loss
            self.loss, self.odd = point.loss, None
        elif point.loss is not None and self.odd is None:
            self.odd = point
        if self._seen % self._stride == 0:
            self.points.append(point)
        self._seen += 1
        if len(self.points) > POINTS_MAX:
            del self.points[1::2]
            self._stride *= 2
            self.version += 1
        return True

    def normalized(self) -> float | None:
        """Return 1 at the first loss, 0 at the least so far; None without losses."""
        if self.loss is None:
            return None
        # halves, as the difference of two numbers may be none
        span = self.first_loss / 2 - self.least_loss / 2
        return min(1.0, (self.loss / 2 - self.least_loss / 2) / span) if span > 0 else 1.0

    def losses(self) -> list[tuple[int, float]]:
        """Return iterations with their losses, as far as they are kept and numbers."""
        kept = [*self.points, *([self.last] if self.last is not None and self.last is not self.points[-1] else [])]
        return [(p.iteration, p.loss) for p in kept if p.loss is not None and math.isfinite(p.loss)]

    def copy(self) -> "Curve":
        """Return the curve as it is now, for another thread."""
        other = Curve()
        other.__dict__.update(self.__dict__, points=list(self.points))
        return other

    def lines(self) -> Iterator[str]:
        """JSON, a line for each point, the latest report last."""
        for point in self.points:
            yield json.dumps(point.as_json())
        if self.last is not None and (not self.points or self.points[-1] is not self.last):
            yield json.dumps(self.last.as_json())

    def dump(self) -> bytes:
        return "".join(f"{line}\n" for line in self.lines()).encode("ascii")

    @classmethod
    def parse(cls, data: bytes) -> "Curve":
        """Raises ValueError."""
        try:
            return cls.of(Point.of_json(json.loads(line)) for line in data.splitlines())
        except (TypeError, KeyError) as error:
            raise ValueError(f"no curve: {error!r}") from None

    @classmethod
    def of(cls, points: Iterable[Point]) -> "Curve":
        curve = cls()
        for point in points:
            curve.add(point)
        return curve
