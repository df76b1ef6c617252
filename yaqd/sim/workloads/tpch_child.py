"""Reads the pickled query graphs in a process that is thrown away: `python -I tpch_child.py FOLDER`.

It knows numpy arrays, dictionaries, lists and numbers, and no other class: a pickle that names one is refused. It
imports nothing of this project. Standard output gets one `.npz` without pickles, flat arrays by name.
"""

import io
import pickle
import resource
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np

SIZES: Final = ("2g", "5g", "10g", "20g", "50g", "80g", "100g")
QUERIES: Final = 22
POINTS: Final = (5, 10, 20, 40, 50, 60, 80, 100)
#: bytes of one file, stages of one graph, tasks of one stage
_BYTES_MAX: Final = 1 << 24
_STAGES_MAX: Final = 1_000
_TASKS_MAX: Final = 1_000_000
_MEMORY_MAX: Final = 2 << 30
_CPU_S: Final = 120
_KNOWN: Final = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class Refused(ValueError):
    """A file that is not what it should be."""


class _NumpyReader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Return a class of numpy. Raises Refused for any other."""
        if (module, name) not in _KNOWN:
            raise Refused(f"its pickle names {module[:80]}.{name[:80]}, and only numpy arrays are read")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def load_npy(path: Path) -> Any:
    """Return what a `.npy` file holds; the one object where it holds one. Raises Refused, OSError."""
    if path.stat().st_size > _BYTES_MAX:
        raise Refused(f"more than is read ({_BYTES_MAX} bytes)")
    data = io.BytesIO(path.read_bytes())
    try:
        version = np.lib.format.read_magic(data)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        _, _, dtype = read(data)
        if not dtype.hasobject:
            data.seek(0)
            return np.lib.format.read_array(data, allow_pickle=False)
        found = _NumpyReader(data, encoding="latin1").load()
    except Refused:
        raise
    except Exception as error:
        raise Refused(f"no array can be read: {repr(error)[:200]}") from None
    return found.item() if isinstance(found, np.ndarray) and found.shape == () else found


def _edges(found: Any) -> np.ndarray:
    matrix = np.asarray(found, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not 1 <= len(matrix) <= _STAGES_MAX:
        raise Refused("no square adjacency matrix of 1 to 1,000 stages")
    return np.argwhere(matrix == 1).astype(np.int64)


def _clean_first(first: dict[int, list[float]], fresh: dict[int, list[float]]) -> dict[int, list[float]]:
    """Return first waves without the durations of fresh executors; an empty one is the one before it."""
    clean: dict[int, list[float]] = {}
    before: list[float] = []
    for point in sorted(first):
        spare = list(fresh.get(point, ()))
        own = []
        for took in first[point]:
            if took in spare:
                spare.remove(took)
            else:
                own.append(took)
        before = clean[point] = own or before
    return clean


def _numbers(found: Any) -> dict[int, list[float]]:
    if not isinstance(found, dict):
        raise Refused("waves are no dictionary")
    waves = {int(point): [float(took) for took in durations] for point, durations in found.items()}
    for durations in waves.values():
        if any(not 0.0 <= took < 1e9 for took in durations):
            raise Refused("a duration is negative, endless or no number")
    return waves


def _stage(found: Any) -> tuple[int, float, list[list[float]]]:
    """Return tasks, mean duration in ms, and 8 x 3 lists: fresh, first and rest at each executor count; -1 warm-up.

    A fresh list that is empty is the first wave, headed by -1: the warm-up is added where durations are drawn.
    """
    waves = {name: _numbers(found[name]) for name in ("fresh_durations", "first_wave", "rest_wave")}
    fresh, recorded, rest = waves["fresh_durations"], waves["first_wave"], waves["rest_wave"]
    if not recorded:
        raise Refused("a stage has no wave")
    head = next(iter(recorded))
    tasks = len(recorded[head]) + len(rest.get(head, ()))
    if not 1 <= tasks <= _TASKS_MAX:
        raise Refused(f"a stage of {tasks} tasks")
    first = _clean_first(recorded, fresh)
    everything = [took for table in (first, rest, fresh) for durations in table.values() for took in durations]
    if not everything:
        raise Refused("a stage has no duration")
    lists: list[list[float]] = []
    for point in POINTS:
        key = point if point in first else max(first)
        own_fresh, own_first, own_rest = fresh.get(key, []), first[key], rest.get(key, [])
        first_wave = own_first or own_fresh or own_rest or everything
        lists += [own_fresh or [-1.0, *first_wave], first_wave, own_rest or first_wave]
    return tasks, float(np.mean(everything)), lists


def collect(folder: Path) -> dict[str, np.ndarray]:
    """Return the arrays of all graphs that are there. Raises Refused with the file's name."""
    graphs: list[tuple[int, int, int, int]] = []
    edges: list[tuple[int, int, int]] = []
    stages: list[tuple[int, float]] = []
    lengths: list[int] = []
    values: list[float] = []
    for size in SIZES:
        for query in range(1, QUERIES + 1):
            path = folder / size / f"task_duration_{query}.npy"
            if not path.is_file():
                continue
            matrix = folder / size / f"adj_mat_{query}.npy"
            try:
                found, own_edges = load_npy(path), _edges(load_npy(matrix))
                base = len(stages)
                for number in range(len(found)):
                    tasks, mean_ms, lists = _stage(found[number])
                    stages.append((tasks, mean_ms))
                    lengths += [len(one) for one in lists]
                    values += [took for one in lists for took in one]
                if own_edges.size and own_edges.max() >= len(found):
                    raise Refused("its edges name stages that it has no durations of")
            except (Refused, OSError, LookupError, TypeError, AttributeError, ValueError) as error:
                raise Refused(f"{path}: {str(error)[:300]}") from None
            edges += [(len(graphs), int(a), int(b)) for a, b in own_edges]
            graphs.append((int(size[:-1]), query, base, len(stages) - base))
    return {
        "graphs": np.array(graphs, dtype=np.int64).reshape(-1, 4),
        "edges": np.array(edges, dtype=np.int64).reshape(-1, 3),
        "stages": np.array(stages, dtype=np.float64).reshape(-1, 2),
        "lengths": np.array(lengths, dtype=np.int64),
        "values": np.array(values, dtype=np.float64),
    }


def main() -> int:
    """Write the arrays to standard output; a refusal goes to standard error, with status 1."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_MAX, _MEMORY_MAX))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    try:
        arrays = collect(Path(sys.argv[1]))
    except (Refused, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    np.savez(sys.stdout.buffer, **arrays)  # type: ignore[arg-type]
    return 0


if __name__ == "__main__":
    sys.exit(main())
