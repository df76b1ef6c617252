"""Checkpoints of training: one file, replaced whole, from which a run goes on to the same bits."""

import io
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from yaqd.policies.clotho.shapes import SIZE
from yaqd.sim.stages.training.evolution import SearchTerms
from yaqd.sim.stages.training.gradient import GradientTerms
from yaqd.sim.stages.training.settings import TrainingTerms
from yaqd.sim.stages.training.state import TrainingState

_NAMES: Final[Mapping[type[TrainingTerms], str]] = {SearchTerms: "evolution", GradientTerms: "gradient"}
_ARRAYS: Final = ("weights", "first", "second", "best")
_BYTES_MAX: Final = 1 << 22


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
        if path.stat().st_size > _BYTES_MAX:
            raise CheckpointError(f"{path}: more than is read ({_BYTES_MAX} bytes)")
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in _ARRAYS}
            text = json.loads(str(found["told"]))
        generation, told, made = int(text["generation"]), dict(text["told"]), dict(text["terms"])
        # checkpoints of before there were two trainers do not name theirs
        trainer = str(text.get("trainer", "evolution"))
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror or error}") from None
    except Exception as error:  # a broken archive raises what it likes
        raise CheckpointError(f"{path}: no checkpoint: {repr(error)[:200]}") from None
    if any(array.shape != (SIZE,) or not np.isfinite(array).all() for array in arrays.values()):
        raise CheckpointError(f"{path}: its arrays are not those of this network")
    if trainer != _NAMES[type(terms)]:
        raise CheckpointError(f"{path} is of a run with --trainer {trainer[:40]}; --resume wants the same")
    if made != asdict(terms):
        if made.keys() != asdict(terms).keys():
            raise CheckpointError(f"{path} is of a run of another version: begin anew, with --start and its weights")
        odd = sorted(name for name, value in asdict(terms).items() if made.get(name) != value)
        raise CheckpointError(f"{path} is of a run with other options: {', '.join(odd)}; --resume wants the same")
    return TrainingState(generation, arrays["weights"], arrays["first"], arrays["second"]), arrays["best"], told
