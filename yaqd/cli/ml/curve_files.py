"""Curves as they grow: a JSON line for each report, and TensorBoard's event files."""

import json
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from yaqd.cli.exits import CommandError

if TYPE_CHECKING:
    from yaqd.cli.ml.here import Point

Write = Callable[["Point"], None]


def to_line(point: "Point") -> dict[str, Any]:
    """Return a report as its JSON line has it. JSON has no NaN and no infinity: such a number is null."""
    return {
        "iteration": point.iteration,
        "loss": finite(point.loss),
        "time_s": round(point.time_s, 6),
        **({"metrics": {name: finite(value) for name, value in point.metrics.items()}} if point.metrics else {}),
    }


def finite(number: float | None) -> float | None:
    """Return the number; None: it is none that JSON has."""
    return number if number is not None and math.isfinite(number) else None


@contextmanager
def writers(curve: Path | None, tensorboard: Path | None) -> Iterator[Write]:
    """Hand out a function that writes a report to what was asked for. CommandError: TensorBoard's library is missing.
    OSError: a file cannot be written."""
    with ExitStack() as stack:
        writes: list[Write] = []
        if curve is not None:
            writes.append(_json_lines(stack, curve))
        if tensorboard is not None:
            writes.append(_tensorboard(stack, tensorboard))

        def write(point: "Point") -> None:
            for each in writes:
                each(point)

        yield write


def read_lines(path: Path) -> list[tuple[int, float]]:
    """Return iterations and losses of a file of JSON lines; reports without a loss are left out. CommandError: it is
    no such file."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CommandError(f"{path}: no curve: it is not UTF-8") from None
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            point = json.loads(line)
            iteration, loss = int(point["iteration"]), point.get("loss")
            if loss is not None and math.isfinite(float(loss)):
                found.append((iteration, float(loss)))
        except (ValueError, TypeError, LookupError, AttributeError):
            raise CommandError(f"{path}: line {number} is no report: yaq ml local --curve writes such files") from None
    return found


def _json_lines(stack: ExitStack, path: Path) -> Write:
    file = stack.enter_context(path.open("w", buffering=1))

    def write(point: "Point") -> None:
        file.write(json.dumps(to_line(point)) + "\n")

    return write


def _tensorboard(stack: ExitStack, folder: Path) -> Write:
    try:
        from tensorboardX import SummaryWriter
    except ImportError:
        raise CommandError("--tensorboard needs tensorboardX: pip install 'yaqd[ml]' (--curve needs nothing)") from None
    writer = SummaryWriter(str(folder))
    stack.callback(writer.close)

    def write(point: "Point") -> None:
        numbers = {"loss": point.loss, **point.metrics}
        for name, value in numbers.items():
            if finite(value) is not None:
                writer.add_scalar(name, value, point.iteration)

    return write
