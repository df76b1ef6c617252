"""Sets of loss curves for simulated training: shipped ones, files of `yaq ml record`, and data that others published.

Two formats of others are read. Neither is shipped: a user names the file or the folder.

- Lists of configurations as in the taskset of "Deep Power Laws": JSON objects with `train: {loss: [...]}`.
- AdaptDL's `MODEL/validation-BATCH.csv`: a column `metric`, a row for each validation.

An iteration is a recorded step, so nothing is interpolated: a job of 51 losses has 50 iterations, each twice as long as
one of 100. Such losses rise too. Policies see them as they are, and the job's quality is that of its best model so far.
What is no finite number, too short, or falls by little is left out, and counted in the set's notes.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from yaqd.model.training import LOSS_MAX
from yaqd.model.values import value
from yaqd.policies.curves.mix import AUTOMATIC
from yaqd.sim.workloads.drawn import WorkloadError
from yaqd.sim.workloads.reading import Place, lines
from yaqd.sim.workloads.training import CURVES_MAX, LOSSES_MAX, LOSSES_MIN, LossCurve, nine, parse_curves

#: of one file
_BYTES_MAX: Final = 1 << 26
_FILES_MAX: Final = 1_000
#: names that are looked at in a folder and below
_NAMES_MAX: Final = 100_000
_COLUMNS_MAX: Final = 100
#: a curve that falls by a smaller part of what the best of its algorithm does has learnt nothing
LEAST_FALL: Final = 0.05
#: falls below this part of the losses are rounding
_ROUNDING: Final = 1e-9
_HELD_OUT: Final = "curves/held_out.json"
_METRIC: Final = "metric"


@value()
class CurveSet:
    """Curves that jobs are drawn from."""

    name: str
    curves: tuple[LossCurve, ...] = field(repr=False)
    #: what was left out, and why
    notes: tuple[str, ...] = ()


def held_out() -> tuple[LossCurve, ...]:
    """Return curves of the nine with other options and other data: nothing was ever chosen on them."""
    return parse_curves(files("yaqd.sim").joinpath(_HELD_OUT).read_text(), _HELD_OUT)


SHIPPED: Final = {"nine": nine, "held-out": held_out}


def read_curve_set(names: Iterable[str], least_fall: float = LEAST_FALL) -> CurveSet:
    """Return the curves of shipped sets, files and folders. Raises WorkloadError, which names the file.

    `least_fall`: of published curves, those that fall by a smaller part of the best one's fall are left out.
    """
    asked = list(dict.fromkeys(names))
    whole: list[LossCurve] = []
    loose: list[LossCurve] = []
    for name in asked:
        if name in SHIPPED:
            whole += SHIPPED[name]()
        else:
            tables: dict[Path, list[LossCurve]] = {}
            for path in _files(Path(name)):
                if path.suffix == ".csv":
                    tables.setdefault(path.parent, []).append(_adaptdl(path))
                else:
                    strict, more = _json(path)
                    whole += strict
                    loose += more
                _bounded(path, len(whole) + len(loose) + sum(map(len, tables.values())))
            loose += (curve for table in tables.values() for curve in _falling(table))
    taken, notes = _sifted(loose, least_fall)
    if not whole and not taken:
        raise WorkloadError(f"{', '.join(asked)}: no curve to take{': ' if notes else ''}{'; '.join(notes)}")
    return CurveSet(", ".join(asked), (*whole, *taken), notes)


def _files(path: Path) -> Iterator[Path]:
    """Yield a file, or of a folder what has a curve file's name in it and below, in order."""
    if not path.is_dir():
        yield path
        return
    seen, found = 0, []
    for folder, below, names in os.walk(path):
        below.sort()
        seen += len(names) + len(below)
        found += [Path(folder) / name for name in sorted(names) if _is_named(name)]
        if seen > _NAMES_MAX or len(found) > _FILES_MAX:
            raise WorkloadError(
                f"{path}: more than {_FILES_MAX} curve files, or {_NAMES_MAX} names; name a smaller one"
            )
    if not found:
        raise WorkloadError(f"{path}: no curve file in it (*.json, validation-*.csv)")
    yield from found


def _is_named(name: str) -> bool:
    return name.endswith(".json") or (name.startswith("validation-") and name.endswith(".csv"))


def _bounded(path: Path, curves: int) -> None:
    if curves > CURVES_MAX:
        raise WorkloadError(f"{path}: with it there are {curves} curves; {CURVES_MAX} at most")


def _text(path: Path) -> str:
    try:
        if not path.is_file():
            raise WorkloadError(f"{path}: {'not a file' if path.exists() else 'no such file or folder'}")
        if (length := path.stat().st_size) > _BYTES_MAX:
            raise WorkloadError(f"{path}: {length} bytes is more than is read ({_BYTES_MAX})")
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise WorkloadError(f"{path}: {error.strerror or error}") from None
    except ValueError:  # of what is no text, and of a name that no file can have
        raise WorkloadError(f"{path}: no text") from None


# ---------------------------------------------------------------------------------------------- JSON


def _json(path: Path) -> tuple[tuple[LossCurve, ...], list[LossCurve]]:
    """Return curves that were recorded for us, which must be sound, and curves of others, which are sifted."""
    text = _text(path)
    if text.lstrip()[:1] != "[":
        return parse_curves(text, str(path)), []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkloadError(f"{path}: not JSON: {str(error)[:80]}") from None
    _bounded(path, len(found))
    return (), [_taskset(one, path, number) for number, one in enumerate(found)]


def _taskset(one: Any, path: Path, number: int) -> LossCurve:
    try:
        losses = one["train"]["loss"]
    except (TypeError, LookupError):
        losses = None
    if not isinstance(losses, list) or len(losses) > LOSSES_MAX:
        raise WorkloadError(f"{path}: entry {number} has no list train.loss of at most {LOSSES_MAX} losses")
    return _loose(path.stem, f"#{number}", [_loss(loss, path, number) for loss in losses])


def _loss(found: Any, path: Path, number: int) -> float:
    """Return a number; NaN for null, which is how some write it."""
    if found is None:
        return math.nan
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise WorkloadError(f"{path}: entry {number} has the loss {str(found)[:40]!r}, which is no number")
    try:
        return float(found)
    except OverflowError:
        return math.inf


def _loose(algorithm: str, config: str, losses: list[float]) -> LossCurve:
    return LossCurve(algorithm, AUTOMATIC, config, tuple(losses), keeps_best=True)


# ---------------------------------------------------------------------------------------------- AdaptDL


def _adaptdl(path: Path) -> LossCurve:
    """Return the metric by row, as it is; the model is the folder's name."""
    place = Place(path)
    rows = lines(_text(path), place)
    heading = next(rows, "").split(",", _COLUMNS_MAX)
    if _METRIC not in heading:
        place.fail(f"no column {_METRIC!r}")
    at = heading.index(_METRIC)
    metrics: list[float] = []
    for row in rows:
        cells = row.split(",", _COLUMNS_MAX)
        if len(cells) != len(heading) or len(metrics) >= LOSSES_MAX:
            place.fail(f"{len(cells)} columns, the heading has {len(heading)}; {LOSSES_MAX} rows at most")
        try:
            metrics.append(float(cells[at]))
        except ValueError:
            place.fail(f"{_METRIC} is {cells[at][:40]!r}, not a number")
    return _loose(path.parent.name, path.stem, metrics)


def _falling(models: list[LossCurve]) -> Iterator[LossCurve]:
    """Yield one model's curves so that they fall.

    A metric that rises, as an accuracy, becomes its distance from the highest value of its file; that only turns it and
    moves it, so every change keeps its size. One that falls, as an error rate, stays. Which of the two it is most of
    the model's files say: a single run that got worse is not taken for the other kind.
    """
    whole = [curve for curve in models if len(curve.losses) > 1 and _is_finite(curve)]
    rising = sum(curve.losses[-1] > curve.losses[0] for curve in whole)
    falling = sum(curve.losses[-1] < curve.losses[0] for curve in whole)
    for curve in models:
        if rising > falling and curve in whole:
            top = max(curve.losses)
            yield _loose(curve.algorithm, curve.config, [top - metric for metric in curve.losses])
        else:
            yield curve


# ---------------------------------------------------------------------------------------------- what is taken


def _is_finite(curve: LossCurve) -> bool:
    return all(abs(loss) <= LOSS_MAX for loss in curve.losses)  # also refuses NaN


def _sifted(found: list[LossCurve], least_fall: float) -> tuple[list[LossCurve], tuple[str, ...]]:
    """Return the curves that can be trained along, and a note on the others."""
    why: Counter[str] = Counter()
    sound: list[LossCurve] = []
    best: dict[str, float] = {}
    for curve in found:
        if len(curve.losses) < LOSSES_MIN:
            why[f"with fewer than {LOSSES_MIN} losses"] += 1
        elif not _is_finite(curve):
            why["not finite"] += 1
        else:
            sound.append(curve)
            best[curve.algorithm] = max(curve.whole_fall, best.get(curve.algorithm, 0.0))
    taken = []
    for curve in sound:
        fall = curve.whole_fall
        if fall <= _ROUNDING * max(map(abs, curve.losses)) or fall <= 0.0:
            why["never lower than at first"] += 1
        elif fall < least_fall * best[curve.algorithm]:
            why[f"falling by less than {100 * least_fall:g} % of the most of their kind"] += 1
        else:
            taken.append(curve)
    said = ", ".join(f"{many:,} {reason}" for reason, many in why.items())
    return taken, (f"{len(taken):,} of {len(found):,} curves taken; left out: {said}",) if why else ()
