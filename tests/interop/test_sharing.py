"""Our jobs beside stock ones: in the same queues of one cluster, and on a stock cluster with its ShuffleHandler."""

import json
import statistics
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.jobs import __file__ as jobs_file
from benchmarks.ours import run_yaq
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.daemons import StockHdfs, StockYarn, current_user
from tests.interop.interop_checks import output_lines
from tests.interop.interop_master import await_value
from yaqd.config import Configuration
from yaqd.ipc import BlockingRpcClient
from yaqd.model import ApplicationAttemptId, ApplicationId
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as service
from yaqd.proto.protocols import ApplicationClientProtocol

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
CLIENT = "our jobs beside stock ones"
JOBS = Path(jobs_file).parent
_QUEUES = "yarn.scheduler.capacity.root"
#: tasks of ours, of two seconds, and containers of the stock job, of three: several times what runs at once
_OURS, _THEIRS = 60, 50


@pytest.fixture(scope="module")
def two_queues(
    hadoop: HadoopJars, hdfs: StockHdfs, quick_tasks: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InteropCluster]:
    """A cluster whose two queues are granted half each, and may have all of it while the other is idle."""
    halves: dict[str, object] = {f"{_QUEUES}.queues": "stock,ours"}
    for queue in ("stock", "ours"):
        halves |= {f"{_QUEUES}.{queue}.capacity": 50, f"{_QUEUES}.{queue}.maximum-capacity": 100}
        halves |= {f"{_QUEUES}.{queue}.user-limit-factor": 100}
    site = {**quick_tasks, **halves}
    with InteropCluster(hadoop, tmp_path_factory.mktemp("two-queues"), hdfs, site=site) as running:
        yield running


@pytest.mark.full
def test_two_jobs_at_once_get_half_of_the_cluster_each(two_queues: InteropCluster, tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(_OURS):
        (tmp_path / "many" / f"{number:03d}.txt").write_text(f"line {number}\n")
    slow = tmp_path / "slow.sh"
    slow.write_text("sleep 2\ncat\n")
    two_queues.clients.fs("-put", str(tmp_path / "many"), "/many").checked()

    def run_stock() -> None:
        shell = ("-shell_command", "sleep 3", "-num_containers", str(_THEIRS), "-queue", "stock")
        two_queues.clients.distributed_shell(*shell, "-container_memory", "512", "-master_memory", "512").checked()

    def run_ours() -> None:
        queue = ("-D", "mapreduce.job.queuename=ours", "-D", "mapreduce.job.reduces=0", "-files", str(slow))
        options = ("-D", "yaq.input.combine-small-files=false", "-D", "yaq.job.container.reuse-max-ms=2000", *queue)
        two_queues.ours.yaq(
            "mr", "streaming", *options, "-input", "/many", "-output", "/out/many", "-mapper", "bash slow.sh"
        )

    threads = [threading.Thread(target=run) for run in (run_ours, run_stock)]
    # the stock client needs longer, and what has been done before they meet shows nothing
    threads[1].start()
    await_value("the stock job", lambda: _is_submitted(two_queues) or not threads[1].is_alive() or None, 60)
    threads[0].start()
    shares = _shares_while(two_queues, threads)
    for thread in threads:
        thread.join()

    assert len(shares) >= 8, "the jobs hardly met"
    # Until the first containers have come back, whoever was there first has more.
    assert 0.35 <= statistics.median(shares[len(shares) // 2 :]) <= 0.65
    assert Counter(line.rstrip() for line in output_lines(two_queues, "/out/many")) == Counter(
        f"line {number}" for number in range(_OURS)
    )


def _is_submitted(cluster: InteropCluster) -> bool:
    return bool(json.loads(cluster.ours.yaq("app", "list", "--json").stdout))


def _shares_while(cluster: InteropCluster, threads: list[threading.Thread]) -> list[float]:
    """The stock queue's part of what is used, sampled while both jobs wait for more."""
    conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(cluster.ours.conf_dir)})
    shares = []
    with BlockingRpcClient(*conf.get_address("yarn.resourcemanager.address"), user=current_user()) as rm:

        def queue(name: str) -> common.QueueInfo:
            request = service.GetQueueInfoRequest(queueName=name)
            return rm.call(ApplicationClientProtocol.getQueueInfo, request).queueInfo

        while all(thread.is_alive() for thread in threads):
            stock, ours = queue("stock"), queue("ours")
            if stock.queueStatistics.pendingContainers and ours.queueStatistics.pendingContainers:
                used = [info.currentCapacity * info.capacity for info in (stock, ours)]  # of what each is granted
                shares.append(used[0] / sum(used))
            threads[0].join(0.25)
    return shares


@pytest.mark.representative
def test_our_job_on_a_stock_cluster_fetches_from_the_stock_shuffle(stock_yarn: StockYarn, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.txt").write_text(f"a b word{number}\n" * 100)
    args = ("--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"), "--reduces", "2")
    # by default Hadoop counts memory alone, and then every container has one core
    cores = ("-D", "mapreduce.map.cpu.vcores=2", "-D", "mapreduce.reduce.cpu.vcores=2")
    run_yaq(stock_yarn.conf_dir, "mr", "submit", str(JOBS / "wordcount.py"), *args, *cores)
    lines = [line for part in sorted((tmp_path / "out").glob("part-*")) for line in part.read_text().splitlines()]
    assert sorted(lines) == ["a\t300", "b\t300", "word0\t100", "word1\t100", "word2\t100"]
    assert await_value("the marker", lambda: (tmp_path / "out" / "_SUCCESS").exists() or None)


def test_attempts_of_our_job_on_a_stock_cluster_are_told(stock_yarn: StockYarn, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    waits = f"until [ -e {flag} ]; do sleep 0.2; done"
    command = ("run", "--conf", str(stock_yarn.conf_dir), "--vcores", "2", "--", "sh", "-c", waits)
    waiting = subprocess.Popen([sys.executable, "-m", "yaqd.cli", *command], stderr=subprocess.PIPE, text=True)
    assert waiting.stderr is not None
    application = waiting.stderr.readline().split()[0]

    def attempts(state: str) -> list[dict[str, Any]] | None:
        said = json.loads(run_yaq(stock_yarn.conf_dir, "app", "status", application, "--json").stdout)["attempts"]
        return said if said and said[-1]["state"] == state else None

    [first] = await_value("its job manager", lambda: attempts("RUNNING"), 60)
    assert first["node"] is not None
    conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(stock_yarn.conf_dir)})
    with BlockingRpcClient(*conf.get_address("yarn.resourcemanager.address"), user=current_user()) as rm:
        request = service.FailApplicationAttemptRequest()
        app_id = ApplicationId.parse(application)
        request.application_attempt_id.CopyFrom(convert.attempt_id_pb(ApplicationAttemptId(app_id, 1)))
        rm.call(ApplicationClientProtocol.failApplicationAttempt, request)
    line = next(line for line in waiting.stderr if line.startswith("attempt 1 failed"))
    assert "; attempt 2 " in line
    await_value("the second one", lambda: ((found := attempts("RUNNING")) is not None and len(found) == 2) or None, 60)
    flag.touch()
    _, said = waiting.communicate(timeout=60)
    assert waiting.returncode == 0, said
    await_value("the end of the second one", lambda: attempts("FINISHED"), 60)
    text = run_yaq(stock_yarn.conf_dir, "app", "status", application).stdout
    assert [row.split()[:2] for row in text.splitlines() if row[:7].strip() in ("1", "2")] == [
        ["1", "FAILED"],
        ["2", "FINISHED"],
    ]
