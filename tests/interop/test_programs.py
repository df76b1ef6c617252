"""Unmodified Hadoop programs on our ResourceManager and NodeManagers, their results checked."""

import re
import urllib.error
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.interop_cluster import InteropCluster
from tests.interop.interop_checks import application_of, final_state, history, output_lines
from tests.interop.interop_master import await_value

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
CLIENT = "MapReduce"

#: how long the slow one would take, s; nothing else here sleeps so long
SLOW_S = "3217"
TEXTS = {
    "one.txt": "to be or not to be\nthat is the question\n" * 500,
    "two.txt": "whether 'tis nobler in the mind to suffer\n" * 400,
    "three.txt": "the slings and arrows of outrageous fortune\n",
}


@pytest.fixture(scope="module")
def texts(interop: InteropCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of texts on HDFS."""
    folder = tmp_path_factory.mktemp("texts")
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    interop.clients.fs("-put", str(folder), "/texts").checked()
    return "/texts"


def _counted_words() -> list[str]:
    counts = Counter(word for text in TEXTS.values() for word in text.split())
    return sorted(f"{word}\t{count}" for word, count in counts.items())


@pytest.mark.representative
def test_pi(interop: InteropCluster) -> None:
    run = interop.clients.example("pi", "4", "1000").checked()
    assert "Estimated value of Pi is 3.14" in run.stdout


@pytest.mark.full
def test_word_count_with_several_maps_reduces_and_a_combiner(interop: InteropCluster, texts: str) -> None:
    # None is run a second time because it seems slow.
    options = ("-D", "mapreduce.job.reduces=2", "-D", "mapreduce.map.speculative=false")
    run = interop.clients.example("wordcount", *options, texts, "/out/wordcount").checked()
    assert sorted(output_lines(interop, "/out/wordcount")) == _counted_words()
    assert "Launched map tasks=3" in run.stderr, run.stderr
    assert "Combine output records" in run.stderr


@pytest.mark.full
def test_terasort_is_in_total_order(interop: InteropCluster) -> None:
    made = interop.clients.example("teragen", "-D", "mapreduce.job.maps=1", "20000", "/out/teragen").checked()
    interop.clients.example("terasort", "-D", "mapreduce.job.reduces=2", "/out/teragen", "/out/terasort").checked()
    interop.clients.example("teravalidate", "/out/terasort", "/out/teravalidate").checked()
    (verdict,) = output_lines(interop, "/out/teravalidate")
    written = re.search(r"CHECKSUM=(\d+)", made.stderr)
    assert written is not None, made.stderr
    # One line more for each misplaced key; the checksum, in hexadecimal there, is a sum over all records.
    assert verdict == f"checksum\t{int(written[1]):x}"


@pytest.mark.full
def test_job_that_fails_says_why(interop: InteropCluster, texts: str) -> None:
    run = interop.clients.streaming(
        *("-D", "mapreduce.map.maxattempts=1", "-D", "mapreduce.job.reduces=0"),
        *("-input", texts, "-output", "/out/failing", "-mapper", "false"),
    )
    assert run.exit_code != 0
    assert "failed with state FAILED" in run.stderr
    assert final_state(interop, application_of(run)) == "FAILED"


@pytest.mark.full
def test_history_server_shows_counters_of_a_finished_job(interop: InteropCluster, texts: str) -> None:
    run = interop.clients.example("wordcount", texts, "/out/counted").checked()
    job = application_of(run).replace("application", "job")
    lines = sum(text.count("\n") for text in TEXTS.values())
    shown = await_value("the job's history", lambda: _shown(interop, job))
    assert (shown["state"], shown["mapsCompleted"], shown["reducesCompleted"]) == ("SUCCEEDED", 3, 1)
    groups = history(interop, f"jobs/{job}/counters")["jobCounters"]["counterGroup"]
    counters = {row["name"]: row["totalCounterValue"] for group in groups for row in group["counter"]}
    assert (counters["MAP_INPUT_RECORDS"], counters["REDUCE_OUTPUT_RECORDS"]) == (lines, len(_counted_words()))
    tasks = history(interop, f"jobs/{job}/tasks")["tasks"]["task"]
    assert sorted((task["type"], task["state"]) for task in tasks) == [("MAP", "SUCCEEDED")] * 3 + [
        ("REDUCE", "SUCCEEDED")
    ]
    counter = "org.apache.hadoop.mapreduce.TaskCounter"
    printed = interop.clients.mapred_job("-counter", job, counter, "MAP_INPUT_RECORDS").checked().stdout
    assert int(printed.split()[-1]) == lines


def _shown(interop: InteropCluster, job: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = history(interop, f"jobs/{job}")["job"]
    except urllib.error.HTTPError:
        return None  # its files are on their way from the staging folder
    return found


def sleepers() -> list[psutil.Process]:
    found = psutil.process_iter(["cmdline"])
    return [process for process in found if process.info["cmdline"] == ["sleep", SLOW_S]]


@pytest.mark.full
def test_slow_map_is_run_a_second_time_and_the_first_to_end_wins(interop: InteropCluster, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        # More than the pipe to the mapper holds: a mapper that does not read keeps its task's progress low.
        (tmp_path / "in" / f"{number}.txt").write_text(f"text {number}\n" * 100_000)
    slow = tmp_path / "slow.sh"
    slow.write_text(f"case $mapreduce_task_attempt_id in *_m_000001_0) sleep {SLOW_S};; esac\nuniq\n")
    interop.clients.fs("-put", str(tmp_path / "in"), "/speculated").checked()
    options = ("-D", "mapreduce.job.reduces=0", "-D", "mapreduce.map.speculative=true", "-files", str(slow))
    run = interop.clients.streaming(
        *options, "-input", "/speculated", "-output", "/out/speculated", "-mapper", "bash slow.sh"
    ).checked()
    assert sorted(line.rstrip() for line in output_lines(interop, "/out/speculated")) == ["text 0", "text 1", "text 2"]
    assert int(re.findall(r"Launched map tasks=(\d+)", run.stderr)[0]) >= 4
    # Its master counts it as killed, too, unless the job has ended by then; so look whether it is gone as well.
    assert all(int(count) >= 1 for count in re.findall(r"Killed map tasks=(\d+)", run.stderr))
    await_value("the end of the slow one", lambda: None if sleepers() else True)
