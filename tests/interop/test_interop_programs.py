"""Unmodified Hadoop programs on our ResourceManager and NodeManagers, their results checked."""

import re
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.jobs import __file__ as jobs_file
from benchmarks.stock.clients import ClientRun

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]
CLIENT = "MapReduce"

JOBS = Path(jobs_file).parent
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


def _lines(interop: InteropCluster, folder: str) -> list[str]:
    return interop.clients.fs("-cat", f"{folder}/part-*").checked().stdout.splitlines()


def _application(run: ClientRun) -> str:
    found = re.search(r"application_\d+_\d+", run.stdout + run.stderr)
    assert found is not None, run.stderr
    return found[0]


def test_pi(interop: InteropCluster) -> None:
    run = interop.clients.example("pi", "4", "1000").checked()
    assert "Estimated value of Pi is 3.14" in run.stdout


def test_word_count_with_several_maps_reduces_and_a_combiner(interop: InteropCluster, texts: str) -> None:
    run = interop.clients.example("wordcount", "-D", "mapreduce.job.reduces=2", texts, "/out/wordcount").checked()
    assert sorted(_lines(interop, "/out/wordcount")) == _counted_words()
    assert "Launched map tasks=3" in run.stderr
    assert "Combine output records" in run.stderr


def test_terasort_is_in_total_order(interop: InteropCluster) -> None:
    interop.clients.example("teragen", "20000", "/out/teragen").checked()
    interop.clients.example("terasort", "-D", "mapreduce.job.reduces=2", "/out/teragen", "/out/terasort").checked()
    interop.clients.example("teravalidate", "/out/terasort", "/out/teravalidate").checked()
    (verdict,) = _lines(interop, "/out/teravalidate")
    assert verdict.startswith("checksum")  # one line more for each misplaced key


def test_streaming_gives_what_ours_gives(interop: InteropCluster, texts: str) -> None:
    files = f"{JOBS / 'wc_map.py'},{JOBS / 'wc_sum.py'}"
    scripts = ("-mapper", "python3 wc_map.py", "-combiner", "python3 wc_sum.py", "-reducer", "python3 wc_sum.py")
    interop.clients.streaming("-files", files, "-input", texts, "-output", "/out/streaming", *scripts).checked()
    interop.ours.yaq("mr", "streaming", "-files", files, "-input", texts, "-output", "/out/ours", *scripts)

    assert _lines(interop, "/out/streaming") == _counted_words()
    assert _lines(interop, "/out/ours") == _counted_words()


def test_job_that_fails_says_why(interop: InteropCluster, texts: str) -> None:
    run = interop.clients.streaming(
        *("-D", "mapreduce.map.maxattempts=1", "-D", "mapreduce.job.reduces=0"),
        *("-input", texts, "-output", "/out/failing", "-mapper", "false"),
    )
    assert run.exit_code != 0
    assert "failed with state FAILED" in run.stderr
    status = interop.clients.yarn("application", "-status", _application(run)).checked().stdout
    assert re.search(r"Final-State : FAILED", status)


def test_distributed_shell_runs_its_command_in_every_container(interop: InteropCluster) -> None:
    run = interop.clients.distributed_shell(
        *("-shell_command", "touch /tmp/$CONTAINER_ID", "-num_containers", "3"),
        *("-container_memory", "128", "-master_memory", "256"),
    ).checked()
    number = _application(run).removeprefix("application_")
    made = sorted(Path("/tmp").glob(f"container_*{number}_01_*"))
    for path in made:
        path.unlink()
    assert len(made) == 3


def test_distributed_shell_reports_a_failing_command(interop: InteropCluster) -> None:
    run = interop.clients.distributed_shell("-shell_command", "exit 3", "-num_containers", "1")
    assert run.exit_code != 0
    report = interop.clients.yarn("application", "-status", _application(run)).checked().stdout
    assert "Final-State : FAILED" in report


def test_our_word_count_on_hdfs_beside_theirs(interop: InteropCluster, texts: str) -> None:
    interop.ours.yaq(
        "mr", "submit", str(JOBS / "wordcount.py"), "--input", texts, "--output", "/out/our-job", "--reduces", "2"
    )
    assert sorted(_lines(interop, "/out/our-job")) == _counted_words()
    listing = interop.clients.fs("-ls", "/out/our-job").checked().stdout
    assert re.findall(r"our-job/(\S+)", listing) == ["_SUCCESS", "part-r-00000", "part-r-00001"]


def test_history_server_shows_counters_of_a_finished_job(interop: InteropCluster, texts: str) -> None:
    run = interop.clients.example("wordcount", texts, "/out/counted").checked()
    job = _application(run).replace("application", "job")
    counter = "org.apache.hadoop.mapreduce.TaskCounter"
    shown = interop.clients.mapred_job("-counter", job, counter, "MAP_INPUT_RECORDS").checked().stdout
    assert int(shown.split()[-1]) == sum(text.count("\n") for text in TEXTS.values())
    assert "SUCCEEDED" in interop.clients.mapred_job("-status", job).checked().stdout
