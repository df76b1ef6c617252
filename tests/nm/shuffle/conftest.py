"""A shuffle service with one job and few connections."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.limits import ShuffleLimits
from tests.nm.nm_shuffle_served import APPLICATION, USER, Served, job_token


@pytest.fixture
def jobs() -> ShuffleJobs:
    jobs = ShuffleJobs()
    jobs.add(APPLICATION, USER, job_token())
    return jobs


@pytest.fixture
def served(tmp_path: Path, jobs: ShuffleJobs) -> Iterator[Served]:
    limits = ShuffleLimits(connections_max=3, keep_alive=False, keep_alive_timeout_s=0.4)
    served = Served(tmp_path, jobs, limits, 4096)
    yield served
    served.service.stop()
