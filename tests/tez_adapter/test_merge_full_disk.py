"""A job whose node has no room for merged files: the originals are read, and nothing is left of what did not fit."""

import hashlib
import random
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.nm.nm_small_disk import leave_free, small_disk
from tests.tez_adapter.tez_merged import MERGED, attempts, end, mergers, shuffle_of, shuffles, until
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.submit import submit_mapreduce
from yaqd.config import Configuration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

MB = 1 << 20
MAPS = 8
#: a megabyte of each map; a reduce waits for a file once it has read everything
LARGE = """
import hashlib, os, pathlib, random, time
from yaqd.mapreduce import Job
HERE = pathlib.Path({here!r})
class Large(Job):
    def map(self, key, value):
        yield value, random.Random(value).randbytes(1 << 19).hex()
    def reduce(self, key, values):
        (HERE / f"reduces-{{os.getpid()}}").touch()
        while not (HERE / "go").exists():
            time.sleep(0.02)
        yield key, hashlib.sha256("".join(values).encode()).hexdigest()
"""
#: one merged file takes four megabytes
FREE = 3 * MB
SETTINGS = {
    "yaq.riffle.enabled": "true",
    "yarn.nodemanager.resource.memory-mb": "1536",
    "yarn.nodemanager.resource.cpu-vcores": "4",
}
SMALL = MERGED | {
    "yaq.input.combine-small-files": "false",
    "mapreduce.map.memory.mb": "256",
    "mapreduce.reduce.memory.mb": "256",
    "yarn.app.mapreduce.am.resource.mb": "512",
    "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
}
PERCENT_KEY = "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"


@pytest.mark.parametrize(
    ("percent", "reason"),
    [("100", "No space left on device; free space there"), ("90", "its disk would be fuller than 90%")],
    ids=["full", "as-shipped"],
)
def test_what_does_not_fit_is_not_merged_and_the_job_ends_as_ever(
    running: Callable[..., AbstractContextManager[Configuration]],
    write: Callable[[str, str], str],
    tmp_path: Path,
    percent: str,
    reason: str,
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    for number in range(MAPS):
        (source / f"{number:02d}.txt").write_text(f"w{number}\n")
    with small_disk(tmp_path / "disk", 64 * MB) as disk:
        defines = SETTINGS | {"yarn.nodemanager.local-dirs": str(disk), PERCENT_KEY: percent}
        words = (word for key, value in defines.items() for word in ("-D", f"{key}={value}"))
        with running(tmp_path / "c", 1, *words) as conf:
            own = conf.with_overrides(SMALL)
            until(lambda: all(shuffle["merger"] for shuffle in shuffles(own)))
            (merger,) = mergers(tmp_path / "c")
            merger.suspend()
            job = submit(own, write, source, tmp_path / "full")
            try:
                until(lambda: any(vertex.done == MAPS for vertex in job.status().vertices), 60.0)
                filler = leave_free(disk, FREE)
            finally:
                merger.resume()
            app_dir = ended(job, tmp_path / "full", disk)
            assert Counter(attempts(own, job, "map")) == Counter((task, "SUCCEEDED") for task in range(MAPS))
            assert shuffle_of(own, job)["merges"] == {"failed": MAPS // 4}
            said = [log.read_text() for log in (tmp_path / "c/nodes").glob(f"*/logs/{job.application_id}/*/*")]
            assert sum(text.count(reason) for text in said) == MAPS // 4, said
            until(lambda: not app_dir.exists())  # also of a disk that is full
            filler.unlink()
            job = submit(own, write, source, tmp_path / "free")
            ended(job, tmp_path / "free", disk)
            assert shuffle_of(own, job)["merges"] == {"done": MAPS // 4}
            assert mergers(tmp_path / "c") == [merger]


def submit(conf: Configuration, write: Callable[[str, str], str], source: Path, output: Path) -> SubmittedJob:
    here = output.with_name(f"{output.name}-here")
    here.mkdir()
    script = write(f"{output.name}.py", LARGE.format(here=str(here)))
    return submit_mapreduce(conf, script, inputs=[str(source)], output=str(output), reduces=2)


def ended(job: SubmittedJob, output: Path, disk: Path) -> Path:
    """The job's folder, in which nothing half-written was when the merges were over, after a right end."""
    here = output.with_name(f"{output.name}-here")
    until(lambda: any(here.glob("reduces-*")), 60.0)
    (app_dir,) = disk.glob(f"nm-1/usercache/*/appcache/{job.application_id}")
    assert [path.name for path in app_dir.glob("riffle/.*")] == []
    (here / "go").touch()
    end(job)
    lines = "".join(part.read_text() for part in output.glob("part-*")).splitlines()
    assert sorted(lines) == sorted(f"w{number}\t{checksum(f'w{number}')}" for number in range(MAPS))
    return app_dir


def checksum(word: str) -> str:
    return hashlib.sha256(random.Random(word).randbytes(1 << 19).hex().encode()).hexdigest()
