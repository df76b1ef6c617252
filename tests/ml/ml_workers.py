"""What a worker process of a test does with its partitions."""

from typing import Any

from yaqd.mapreduce import parse_params
from yaqd.ml import IterativeJob, Partition
from yaqd.ml.driving import call_load, call_step
from yaqd.ml.loading import load_iterative
from yaqd.ml.threads import one_thread

_loaded: dict[tuple[str, int], tuple[IterativeJob, Any]] = {}


def step(script: str, options: dict[str, str], index: int, frame: bytes, iteration: int) -> bytes:
    """Load the partition at first, and keep it."""
    with one_thread():
        key = f"{script} {options}", index
        if key not in _loaded:
            job_class = load_iterative(script)
            job = job_class(parse_params(job_class, options))
            _loaded[key] = job, call_load(job, Partition.of(index, job.partitions))
        job, data = _loaded[key]
        return call_step(job, frame, index, data, iteration)
