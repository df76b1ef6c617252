"""Checkpoints of training: one file, replaced whole, from which a run goes on to the same bits."""

import io
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from yaqd.config.stage_weights import read_regular
from yaqd.policies.clotho.shapes import SIZE
from yaqd.policies.clotho.weights import WeightsError, check_told, plain_arrays
from yaqd.sim.stages.training.evolution import SearchTerms
from yaqd.sim.stages.training.gradient import GradientTerms
from yaqd.sim.stages.training.settings import TrainingTerms
from yaqd.sim.stages.training.state import TrainingState

_NAMES: Final[Mapping[type[TrainingTerms], str]] = {SearchTerms: "evolution", GradientTerms: "gradient"}
_ARRAYS: Final = ("weights", "first", "second", "best")
_BYTES_MAX: Final = 1 << 22
_GENERATIONS_MAX: Final = 1 << 40


class CheckpointError(ValueError):
    """A file that is no checkpoint, or one of another run."""


def write_checkpoint(
    path: Path, terms: TrainingTerms, state: TrainingState, best: Any, told: Mapping[str, Any]
) -> None:
    """Replace the checkpoint. `told`: curve and what it began with."""
    text = json.dumps(
        {
            "trainer": _NAMES[type(terms)],
            "terms": asdict(terms),
            "generation": state.generation,
            "told": dict(told),
        }
    )
    data = io.BytesIO()
    np.savez(data, told=np.array(text), weights=state.weights, first=state.first, second=state.second, best=best)
    write_whole(path, data.getvalue())


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file. What was there stays whole until the new one is."""
    beside = path.with_name(f"{path.name}.new")
    with beside.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    beside.replace(path)


def read_checkpoint(path: Path, terms: TrainingTerms) -> tuple[TrainingState, Any, dict[str, Any]]:
    """Return where the run stood, the best weights so far, and what was told. Raises CheckpointError."""
    try:
        arrays, text = _parts_of(path)
        generation, told, made = text["generation"], dict(text["told"]), dict(text["terms"])
        check_told(told)
        # checkpoints of before there were two trainers do not name theirs
        trainer = str(text.get("trainer", "evolution"))
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror or error}") from None
    except WeightsError as error:
        raise CheckpointError(f"{path}: no checkpoint: {error}") from None
    except Exception as error:  # what is absent, or of another type, raises what it likes
        raise CheckpointError(f"{path}: no checkpoint: {repr(error)[:200]}") from None
    if type(generation) is not int or not 0 <= generation <= _GENERATIONS_MAX:
        raise CheckpointError(f"{path}: no checkpoint: its generation is {repr(generation)[:40]}")
    tells_both = {"start", "curve"} <= told.keys()
    if not tells_both or not all({"generation", "seconds"} <= row.keys() for row in told["curve"]):
        raise CheckpointError(f"{path}: no checkpoint: it does not tell its beginning and its curve")
    _refuse_other_terms(path, trainer, made, terms)
    return TrainingState(generation, arrays["weights"], arrays["first"], arrays["second"]), arrays["best"], told


def _parts_of(path: Path) -> tuple[dict[str, Any], Any]:
    """Return the arrays, and what the file says beside. Raises CheckpointError, or what a broken archive likes."""
    data = read_regular(path, _BYTES_MAX + 1)
    if len(data) > _BYTES_MAX:
        raise CheckpointError(f"{path}: more than is read ({_BYTES_MAX} bytes)")
    found = plain_arrays(data, _BYTES_MAX)
    arrays = {name: found[name] for name in _ARRAYS}
    for array in arrays.values():
        if array.dtype != np.float64 or array.shape != (SIZE,) or not np.isfinite(array).all():
            raise CheckpointError(f"{path}: its arrays are not those of this network")
    return arrays, json.loads(str(found["told"]))


def _refuse_other_terms(path: Path, trainer: str, made: Mapping[str, Any], terms: TrainingTerms) -> None:
    if trainer != _NAMES[type(terms)]:
        raise CheckpointError(f"{path} is of a run with --trainer {trainer[:40]}; --resume wants the same")
    wanted = asdict(terms)
    if made.keys() != wanted.keys():
        raise CheckpointError(f"{path} is of a run of another version: begin anew, with --start and its weights")
    odd = sorted(name for name, value in wanted.items() if made[name] != value)
    if odd:
        raise CheckpointError(f"{path} is of a run with other options: {', '.join(odd)}; --resume wants the same")
