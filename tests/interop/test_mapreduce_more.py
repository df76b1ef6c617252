"""The rarer ways of stock MapReduce and distributed shell on our daemons: codecs, uber mode, kills, shipped scripts."""

import re
import threading
from collections.abc import Iterator

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.clients import ClientRun
from tests.interop.interop_master import await_value

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(900)]
CLIENT = "MapReduce"

COUNTS = ["a\t300", "b\t300", "word0\t100", "word1\t100", "word2\t100"]


@pytest.fixture(scope="module")
def texts(interop: InteropCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("more-texts")
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"a b word{number}\n" * 100)
    interop.clients.fs("-put", str(folder), "/more-texts").checked()
    return "/more-texts"


def _lines(interop: InteropCluster, folder: str) -> list[str]:
    return sorted(interop.clients.fs("-cat", f"{folder}/part-*").checked().stdout.splitlines())


@pytest.mark.parametrize(
    "codec",
    [
        "SnappyCodec",
        *(pytest.param(one, marks=pytest.mark.full) for one in ("DefaultCodec", "GzipCodec", "BZip2Codec", "Lz4Codec")),
    ],
)
@pytest.mark.full
def test_map_output_compressed_by(codec: str, interop: InteropCluster, texts: str) -> None:
    name = f"mapreduce.map.output.compress.codec=org.apache.hadoop.io.compress.{codec}"
    options = ("-D", "mapreduce.map.output.compress=true", "-D", name)
    interop.clients.example("wordcount", *options, texts, f"/out/{codec}").checked()
    assert _lines(interop, f"/out/{codec}") == COUNTS


@pytest.mark.full
def test_uber_mode(interop: InteropCluster, texts: str) -> None:
    options = ("-D", "mapreduce.job.ubertask.enable=true", "-D", "yarn.app.mapreduce.am.resource.mb=2048")
    run = interop.clients.example("wordcount", *options, texts, "/out/uber").checked()
    assert "TOTAL_LAUNCHED_UBERTASKS=4" in run.stderr
    assert _lines(interop, "/out/uber") == COUNTS


class SleepingJob:
    """A streaming job of three sleeping maps, submitted by a thread."""

    def __init__(self, interop: InteropCluster, texts: str) -> None:
        self.clients = interop.clients
        self._run: ClientRun | None = None
        self._submit = ("-D", "mapreduce.job.reduces=0", "-input", texts, "-output", "/out/sleeping")
        self._thread = threading.Thread(target=self._client)
        self._thread.start()
        self.application = await_value("the job's application", self._running)
        self.job = self.application.replace("application", "job")

    def attempts(self) -> list[str]:
        shown = self.clients.mapred_job("-list-attempt-ids", self.job, "MAP", "running").checked().stdout
        return re.findall(r"attempt_\S+", shown)

    def ended(self) -> ClientRun:
        self._thread.join(60)
        assert self._run is not None
        return self._run

    def _client(self) -> None:
        self._run = self.clients.streaming(*self._submit, "-mapper", "sleep 300")

    def _running(self) -> str | None:
        listing = self.clients.yarn("application", "-list").checked().stdout
        found = re.search(r"(application_\d+_\d+)\s+streamjob.*RUNNING", listing)
        return found[1] if found else None


@pytest.fixture
def sleeping(interop: InteropCluster, texts: str) -> Iterator[SleepingJob]:
    job = SleepingJob(interop, texts)
    yield job
    interop.clients.yarn("application", "-kill", job.application)
    job.ended()


@pytest.mark.full
def test_killed_attempt_is_retried_and_killed_job_says_so(sleeping: SleepingJob) -> None:
    clients = sleeping.clients
    first = await_value("running maps", lambda: sleeping.attempts() or None)[0]
    clients.mapred_job("-kill-task", first).checked()
    second = first[:-1] + "1"
    await_value("the retry", lambda: second if second in sleeping.attempts() else None)
    assert sleeping.job in clients.mapred_job("-list").checked().stdout
    status = clients.mapred_job("-status", sleeping.job).checked().stdout
    # As the client words it, from the ResourceManager's report and the job's own master's.
    for line in ("Job state: RUNNING", "Number of maps: 3", "Number of reduces: 0", "Killed map tasks=1"):
        assert line in status, status

    clients.mapred_job("-kill", sleeping.job).checked()

    assert "failed with state KILLED" in sleeping.ended().stderr
    assert "Final-State : KILLED" in clients.yarn("application", "-status", sleeping.application).checked().stdout
