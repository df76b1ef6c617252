"""Our own jobs while mergers hang, reducers die in the middle of merged files, or a node dies in the middle of a merge:
the right bytes, and no map again that has a copy left."""

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from riffle_merger.format.merged import MergedIndex
from tests.nm.nm_processes import is_over
from tests.tez_adapter.tez_merged import (
    HELD,
    MERGED,
    SPLIT,
    WORDS,
    attempts,
    counts,
    end,
    expected,
    mergers,
    run,
    shuffle_of,
    shuffles,
    until,
)
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.rm_client import RmClient
from tez_adapter.client.submit import submit_mapreduce
from yaqd.config import Configuration
from yaqd.model import NodeId

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

#: much for a merger, little for everybody else
BULKY = """
import os, random
from yaqd.mapreduce import Job
class Bulky(Job):
    def map(self, key, value):
        for number in range(24):
            yield value, random.Random(number).randbytes(1 << 19).hex()
    def reduce(self, key, values):
        yield key, sum(map(len, values))
"""
SETTINGS = {
    "yaq.riffle.enabled": "true",
    "yaq.riffle.merger.stall-ms": "1s",
    "yarn.nodemanager.resource.memory-mb": "1536",
    "yarn.nodemanager.resource.cpu-vcores": "4",
}
SMALL = {
    "yaq.input.combine-small-files": "false",
    "yaq.job.task.silence-ms": "1500",
    "mapreduce.map.memory.mb": "256",
    "mapreduce.reduce.memory.mb": "256",
    "yarn.app.mapreduce.am.resource.mb": "512",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merge-faults") / "c"


@pytest.fixture(scope="module")
def conf(running: Callable[..., AbstractContextManager[Configuration]], folder: Path) -> Iterator[Configuration]:
    words = (word for key, value in SETTINGS.items() for word in ("-D", f"{key}={value}"))
    with running(folder, 3, *words) as conf:
        yield conf.with_overrides(SMALL | MERGED)


def test_mergers_that_hang_are_ended_and_the_originals_read(
    conf: Configuration, write: Callable[[str, str], str], tmp_path: Path, folder: Path
) -> None:
    stopped = until(lambda: found if len(found := mergers(folder)) == 3 else None)
    job = run(conf.with_overrides({"mapreduce.input.fileinputformat.split.maxsize": SPLIT}), write, tmp_path / "out")
    until(lambda: any(vertex.done for vertex in job.status().vertices))
    for merger in stopped:
        merger.suspend()
    end(job)
    assert counts(tmp_path / "out") == expected()
    assert Counter(attempts(conf, job, "map")) == Counter(
        (task, "SUCCEEDED") for task in range(shuffle_of(conf, job)["reads"])
    )
    psutil.wait_procs(stopped, timeout=20)
    assert not [merger for merger in stopped if merger.is_running()]
    until(lambda: all(shuffle["merger"] for shuffle in shuffles(conf)))


def merged_reads(conf: Configuration) -> int:
    return sum(shuffle["mergedReads"] for shuffle in shuffles(conf))


def held_in_mid_read(
    conf: Configuration, write: Callable[[str, str], str], source: Path, folder: Path
) -> tuple[SubmittedJob, Path, Path]:
    """A job one of whose maps is held while a reducer has read a merged file, where it is held, and its output.

    A reducer that has all merged files on its own node reads them there unasked; then the next job is tried.
    """
    others = len(list(source.iterdir())) - 1
    for number in range(8):
        here, output = folder / f"here-{number}", folder / f"out-{number}"
        here.mkdir()
        before = merged_reads(conf)
        script = write(f"held{number}.py", HELD.format(here=str(here)))
        job = submit_mapreduce(conf, script, inputs=[str(source)], output=str(output), reduces=2)
        until(lambda at=here: any(at.glob("holds-*")))  # type: ignore[misc]
        until(lambda of=job: any(vertex.done == others for vertex in of.status().vertices))  # type: ignore[misc]
        try:
            until(lambda was=before: merged_reads(conf) > was, 5.0)  # type: ignore[misc]
            return job, here, output
        except AssertionError:
            (here / "go").touch()
            end(job)
    raise AssertionError("no reducer of eight jobs asked another node for a merged file")


def spoil(folder: Path, job: SubmittedJob) -> set[int]:
    """Merged files are cut, changed in one bit and lose their index, and outputs go that are in none, or in the first
    alone; the tasks whose outputs are in no whole file any more, as far as the disks go."""
    app_dirs = [*(folder / "nodes").glob(f"*/local/usercache/*/appcache/{job.application_id}")]
    outputs = {path.name: path for app_dir in app_dirs for path in app_dir.glob("output/attempt_*")}
    indexes = sorted(index for app_dir in app_dirs for index in app_dir.glob("riffle/*.out.index"))
    maps = [MergedIndex.load(index).maps for index in indexes]
    lost = [maps[0][0], *sorted(outputs.keys() - {name for names in maps for name in names})[:1]]
    for name in lost:
        shutil.rmtree(outputs[name])
    files = [index.with_suffix("") for index in indexes]
    os.truncate(files[0], files[0].stat().st_size // 2)
    if len(files) > 1:
        data = bytearray(files[1].read_bytes())
        data[len(data) // 2] ^= 1
        files[1].write_bytes(data)
    for index in indexes[2:3]:
        index.unlink()
    return {int(name.split("_")[-2]) for name in lost}


@pytest.mark.parametrize("spoils", [False, True], ids=["whole", "spoilt"])
def test_reducers_killed_while_they_read_merged_files_begin_again_with_what_is_left_of_these(
    conf: Configuration, write: Callable[[str, str], str], tmp_path: Path, folder: Path, spoils: bool
) -> None:
    source = tmp_path / "in"
    source.mkdir()
    words = WORDS.splitlines(keepends=True)
    for number in range(17):  # merged by fours: one at least is not, as long as the last map runs
        (source / f"{number:02d}.txt").write_text("".join(words[number::17]))
    (source / "99.txt").write_text("held\n")
    until(lambda: all(shuffle["merger"] for shuffle in shuffles(conf)))
    job, here, output = held_in_mid_read(conf, write, source, tmp_path)
    holders = {path.name.removeprefix("holds-") for path in here.glob("holds-*")}
    killed = {path.name.removeprefix("process-") for path in here.glob("process-*")} - holders
    for pid in killed:
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)
    lost = spoil(folder, job) if spoils else set()
    (here / "go").touch()
    end(job)
    assert counts(output) == expected() | {"held": 1}
    assert len(attempts(conf, job, "reduce")) > 2
    maps = Counter(attempts(conf, job, "map"))
    assert spoils or maps == Counter((task, "SUCCEEDED") for task in range(18))
    assert max(maps.values()) == 1
    assert {task for task, state in maps if state == "SUCCEEDED"} == set(range(18))
    # what a node still has in memory of a merged file, or was merging just then, is a copy, too
    assert {task for task, state in maps if state != "SUCCEEDED"} <= lost
    assert shuffle_of(conf, job)["merged_outputs"] >= 4


def merged_so_far(folder: Path, job: SubmittedJob, maps: int) -> tuple[dict[Path, tuple[str, ...]], dict[str, Path]]:
    """Merged files with their maps, and outputs by name, once every four outputs of a node are merged."""
    files: dict[Path, tuple[str, ...]] = {}
    outputs: dict[str, Path] = {}
    is_whole = True
    for app_dir in (folder / "nodes").glob(f"*/local/usercache/*/appcache/{job.application_id}"):
        here = {path.parent.name: path.parent for path in app_dir.glob("output/attempt_*/file.out.index")}
        indexes = [*app_dir.glob("riffle/[!.]*.out.index")]
        files |= {index.with_suffix(""): MergedIndex.load(index).maps for index in indexes}
        outputs |= here
        is_whole = is_whole and len(indexes) == len(here) // 4
    return (files, outputs) if is_whole and len(outputs) == maps else ({}, {})


def test_maps_whose_last_copy_is_lost_run_again_once_and_no_others(
    conf: Configuration, write: Callable[[str, str], str], tmp_path: Path, folder: Path
) -> None:
    """It is lost while no reduce has read anything: one map is held."""
    source, here = tmp_path / "in", tmp_path / "here"
    source.mkdir()
    here.mkdir()
    words = WORDS.splitlines(keepends=True)
    for number in range(17):  # by fours on three nodes: two merged files at least, and one output that is in none
        (source / f"{number:02d}.txt").write_text("".join(words[number::17]))
    (source / "99.txt").write_text("held\n")
    until(lambda: all(shuffle["merger"] for shuffle in shuffles(conf)))
    last = conf.with_overrides({"mapreduce.job.reduce.slowstart.completedmaps": "1.0"})
    script = write("held.py", HELD.format(here=str(here)))
    job = submit_mapreduce(last, script, inputs=[str(source)], output=str(tmp_path / "out"), reduces=2)
    until(lambda: any(vertex.done == 17 for vertex in job.status().vertices))
    files, outputs = until(lambda: found if (found := merged_so_far(folder, job, 17))[1] else None)
    whole, cut = sorted(files)[:2]
    alone = next(name for name in sorted(outputs) if not any(name in maps for maps in files.values()))
    for name in (files[whole][0], files[cut][1], alone):
        shutil.rmtree(outputs[name])
    os.truncate(cut, cut.stat().st_size // 2)
    (here / "go").touch()
    end(job)
    assert counts(tmp_path / "out") == expected() | {"held": 1}
    again = [int(name.split("_")[-2]) for name in (files[cut][1], alone)]
    assert Counter(task for task, _ in attempts(last, job, "map")) == Counter([*range(18), *again])


@pytest.mark.parametrize("is_merger_killed", [True, False], ids=["with-its-merger", "alone"])
def test_a_node_killed_in_mid_merge_costs_its_own_maps_alone(
    conf: Configuration, write: Callable[[str, str], str], tmp_path: Path, folder: Path, is_merger_killed: bool
) -> None:
    """Last, since one node does not come back."""
    source = tmp_path / "in"
    source.mkdir()
    for number in range(12):
        (source / f"{number:02d}.txt").write_text(f"w{number}\n")
    last = {"mapreduce.job.reduce.slowstart.completedmaps": "1.0", "yaq.riffle.files": "2"}
    script = write("bulky.py", BULKY)
    own = conf.with_overrides(last)
    until(lambda: len(mergers(folder)) == 3)  # a node may have come back a moment ago
    job = submit_mapreduce(own, script, inputs=[str(source)], output=str(tmp_path / "out"), reduces=2)
    until(lambda: job.report().attempt)
    with RmClient(own) as rm:
        attempt = job.report().attempt
        assert attempt is not None
        master = until(lambda: next((c.node for c in rm.containers(attempt) if c.id.sequence == 1 and c.node), None))
    elsewhere = mergers_elsewhere(folder, master)
    victim, merger, half = until(lambda: stopped_in_mid_merge(elsewhere, job))
    victim.kill()
    if is_merger_killed:
        merger.kill()
    else:
        merger.resume()  # it sees that its node is gone
    end(job)
    assert counts(tmp_path / "out") == {f"w{number}": 24 << 20 for number in range(12)}
    done = Counter(task for task, state in attempts(own, job, "map") if state == "SUCCEEDED")
    assert set(done) == set(range(12)) and max(done.values()) <= 2
    until(lambda: is_over(merger))
    if is_merger_killed:
        assert_cleared_by_the_next_start(folder, half)


def assert_cleared_by_the_next_start(folder: Path, half: Path) -> None:
    """Of a node: a file that nobody was left to delete, and all else of its job."""
    app_dir = half.parent.parent
    assert half.exists() and any(app_dir.glob("output/attempt_*"))
    words = [sys.executable, "-m", "yaqd.cli", "cluster", "start", "--dir", str(folder)]
    subprocess.run(words, check=True, timeout=60, stdout=subprocess.DEVNULL)
    (local,) = (parent for parent in half.parents if parent.name == "local")
    assert not app_dir.exists()  # moved out of the way before the node was ready
    until(lambda: sorted(path.name for path in local.iterdir()) == ["filecache", "nmPrivate", "usercache"])


def mergers_elsewhere(folder: Path, master: NodeId) -> list[tuple[psutil.Process, psutil.Process, Path]]:
    """The nodes other than the job manager's, with their mergers and local folders."""
    found = []
    for file in (folder / "run").glob("nodemanager-*.pid"):
        node = psutil.Process(int(file.read_text().split()[0]))
        if not is_listening(node, master.port):
            (merger,) = (child for child in node.children(recursive=True) if is_merger(child))
            found.append((node, merger, folder / "nodes" / file.stem.replace("nodemanager", "nm") / "local"))
    return found


def is_merger(process: psutil.Process) -> bool:
    try:
        return "riffle_merger.service" in process.cmdline()
    except psutil.NoSuchProcess:
        return False  # a task that has just ended


def is_stopped(process: psutil.Process) -> bool:
    return process.status() == psutil.STATUS_STOPPED


def stopped_in_mid_merge(
    elsewhere: list[tuple[psutil.Process, psutil.Process, Path]], job: SubmittedJob
) -> tuple[psutil.Process, psutil.Process, Path] | None:
    """A node, its merger, stopped while it was writing this file, and the file. A merge takes some 50 ms."""
    pattern = f"usercache/*/appcache/{job.application_id}/riffle/.*.out"
    for node, merger, local in elsewhere:
        if not any(local.glob(pattern)):
            continue
        merger.suspend()
        until(partial(is_stopped, merger))
        for half in local.glob(pattern):
            return node, merger, half
        merger.resume()  # it had just ended
    return None


def is_listening(process: psutil.Process, port: int) -> bool:
    return any(c.status == "LISTEN" and c.laddr.port == port for c in process.net_connections("tcp"))
