"""Training jobs on a stock cluster: a stock ResourceManager, stock nodes, and checkpoints on a real HDFS."""

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
import pytest

from benchmarks.ours import run_yaq
from benchmarks.stock import conf
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.daemons import StockHdfs, StockYarn, current_user
from tests.interop.interop_master import await_value
from tests.interop.interop_mixed import StockNode, answers, keys_told, our_daemon
from tests.tez_training.training_jobs import BY_RUN, DESCENT, finish
from tez_adapter.client.follow import SubmittedJob
from tez_adapter.client.training_view import TrainingWatch
from yaqd.config import Configuration
from yaqd.model import ApplicationId
from yaqd.storage import PathNotFound, get_filesystem

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
CLIENT = "training"

_ITERATIONS = 24
_LOAD = DESCENT[DESCENT.index("        rng =") : DESCENT.index("    def initial")]
_STORED_LOAD = """        (path,) = partition.data
        with partition.open(path) as file:
            table = np.load(file)
        return partition.index, table[:, :-1], table[:, -1]

"""
#: gradient descent whose partitions are files on HDFS, and the same with a loop of its own
STORED = {"descent": DESCENT.replace(_LOAD, _STORED_LOAD), "by_run": BY_RUN.replace(_LOAD, _STORED_LOAD)}
#: counts until it is stopped, from where it was
COUNTING = """
import time
from yaqd.ml import last_checkpoint, report
saved = last_checkpoint()
at = int(saved) if saved else 0
while True:
    at += 1
    said = report(at, 100.0 / at, lambda: str(at).encode())
    assert said.cores == 2.0, said
    if said.stop or at == 100_000:
        break
    time.sleep(0.01)
"""
#: what stands beside checkpoints when a class has been trained
_LEFT = {"curve.jsonl", "files", "job.json", "model", "result.json"}


@dataclass(frozen=True, slots=True)
class TrainingSide:
    """A cluster as a user sees it, with his jobs' folder on HDFS."""

    conf_dir: Path
    training: str

    @property
    def conf(self) -> Configuration:
        return Configuration.load(self.conf_dir, environ={})

    def yaq(self, *words: str) -> str:
        return run_yaq(self.conf_dir, *words).stdout

    def submit(self, *words: str) -> str:
        return str(json.loads(self.yaq("ml", *words, "--no-wait", "--json"))["application_id"])

    def iteration(self, application: str) -> int | None:
        """The last one; None: there is none yet."""
        with closing(self.job(application)) as job, closing(TrainingWatch(self.conf, job.report())) as watch:
            return watch.look().iteration or None

    def job(self, application: str) -> SubmittedJob:
        return SubmittedJob(self.conf, ApplicationId.parse(application))

    def await_end(self, application: str) -> None:
        assert finish(self.job(application)).succeeded

    def folder(self, application: str) -> str:
        return f"{self.training}/{application.replace('application', 'job')}"

    def left(self, application: str) -> list[str]:
        """Names in the job's folder on HDFS."""
        files = get_filesystem(self.training, self.conf)
        try:
            entries = files.list(self.folder(application))
        except PathNotFound:
            return []
        return [entry.path.rpartition("/")[2] for entry in entries]

    def checkpoints(self, application: str) -> list[int]:
        names = [name for name in self.left(application) if name.startswith("checkpoint-")]
        return [int(name.rpartition("-")[2]) for name in names]


@pytest.fixture(scope="module")
def side(stock_yarn: StockYarn, hdfs: StockHdfs, tmp_path_factory: pytest.TempPathFactory) -> TrainingSide:
    folder = tmp_path_factory.mktemp("training") / "conf"
    shutil.copytree(stock_yarn.conf_dir, folder)
    staging = f"{hdfs.uri}/tmp/training-staging"
    conf.write_site(folder / "mapred-site.xml", {"yarn.app.mapreduce.am.staging-dir": staging})
    return TrainingSide(folder, f"{staging}/{current_user()}/.training")


@pytest.fixture(scope="module")
def data(side: TrainingSide) -> str:
    """A folder of eight tables on HDFS."""
    files = get_filesystem(side.training, side.conf)
    folder = side.training.partition("/tmp/")[0] + "/tmp/training-data"
    rng = np.random.default_rng(11)
    for number in range(8):
        rows = rng.normal(size=(200, 20))
        table, dumped = np.column_stack([rows, rows @ np.arange(20.0) + rng.normal(size=200)]), io.BytesIO()
        np.save(dumped, table)
        writer = files.create(f"{folder}/part-{number}.npy")
        writer.write(dumped.getvalue())
        writer.close()
    return folder


def managers(application: str) -> list[psutil.Process]:
    """Processes of the first attempt's job manager."""
    container = f"container_{application.removeprefix('application_')}_01_000001"
    return [p for p in psutil.process_iter(["cwd"]) if (p.info["cwd"] or "").endswith(container)]


@pytest.mark.parametrize("name", ["descent", pytest.param("by_run", marks=pytest.mark.full)])
def test_a_class_has_the_model_of_a_local_run_although_its_manager_is_killed(
    side: TrainingSide, data: str, tmp_path: Path, name: str
) -> None:
    (tmp_path / "stored.py").write_text(STORED[name])
    words = (str(tmp_path / "stored.py"), "--data", data, "--iterations", str(_ITERATIONS))
    local = json.loads(side.yaq("ml", "local", *words, "--json"))["sha256"]
    slow = ("-D", f"marks={tmp_path}", "-D", "pause=0.2", "-D", "yaq.ml.checkpoint.interval=0")
    application = side.submit("submit", *words, "--max-cores", "2", *slow)
    await_value("a checkpoint", lambda: side.checkpoints(application) or None, 60)
    # as one that was being written when its writer was killed
    unfinished = get_filesystem(data, side.conf).create(f"{side.folder(application)}/checkpoint-{99:012d}")
    unfinished.write(b"half of it")
    assert any(name.startswith(".checkpoint-") for name in side.left(application))
    for process in managers(application):
        process.kill()
    await_value("the second attempt", lambda: True if _attempt(side, application) == 2 else None, 60)
    await_value("an iteration of it", lambda: side.iteration(application), 60)
    explained = side.yaq("explain", application)
    assert "\nIt has 2 cores, all of its --max-cores: nobody divides cores among training jobs here" in explained
    assert "no node throttles them\n  loss " in explained
    side.await_end(application)
    assert json.loads(side.yaq("ml", "model", application, "--json"))["sha256"] == local
    combined = [int(line) for line in (tmp_path / "combined").read_text().split()]
    # its own loop runs again from the begin, and nothing is computed anew
    assert combined.count(0) == (2 if name == "by_run" else 1) and combined[-1] == _ITERATIONS - 1
    left = side.left(application)
    assert set(left) >= _LEFT and 1 <= len(side.checkpoints(application)) <= 2
    assert len(left) == len(_LEFT) + len(side.checkpoints(application)), left
    unfinished.abort()


def _attempt(side: TrainingSide, application: str) -> int:
    with closing(side.job(application)) as job:
        attempt = job.report().attempt
    return attempt.attempt if attempt is not None else 0


def test_a_program_is_watched_stopped_and_goes_on(side: TrainingSide, tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(COUNTING)
    application = side.submit("submit", str(tmp_path / "counting.py"), "--max-cores", "2")
    await_value("an iteration", lambda: side.iteration(application), 60)
    listed = run_yaq(side.conf_dir, "ml", "list")
    assert "counting" in listed.stdout and "a stock one: it predicts no losses and divides no cores" in listed.stderr
    assert "2 cores" in side.yaq("ml", "watch", application)
    side.yaq("ml", "plot", application, "--output", str(tmp_path / "job.png"))
    assert (tmp_path / "job.png").stat().st_size > 1000
    assert "ends with its next report" in side.yaq("ml", "stop", application)
    side.await_end(application)
    explained = run_yaq(side.conf_dir, "explain", application)
    assert "\nIt had 2 cores, all of its --max-cores: nobody divides cores" in explained.stdout
    assert "it does not say why containers wait" in explained.stderr
    last = max(side.checkpoints(application))
    again = side.submit("resume", application)
    await_value("an iteration", lambda: (side.iteration(again) or 0) > last or None, 60)
    side.yaq("ml", "stop", again)
    side.await_end(again)
    (watched,) = json.loads(side.yaq("ml", "watch", again, "--json"))
    iterations = [point["iteration"] for point in watched["curve"]]
    assert iterations == sorted(set(iterations)) and {1, last, last + 1} <= set(iterations)
    assert min(side.checkpoints(again)) >= last and not any(name.startswith(".") for name in side.left(again))


@pytest.fixture(scope="module")
def mixed(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TrainingSide]:
    """Our ResourceManager over a stock node."""
    directory = tmp_path_factory.mktemp("mixed-training")
    stock = StockNode(hadoop, directory, nodes=1, history=False)
    stock.write()
    read = Configuration.load(stock.conf_dir, environ={})
    yarn = {key: read.get(key) for key in keys_told()} | {"yaq.rm.state-store.path": "memory"}
    conf.write_conf(directory / "conf-rm", {"yarn": yarn, "capacity": conf.capacity_site()})
    with our_daemon("rm", directory / "conf-rm", hadoop.java_home):
        await_value("our ResourceManager", lambda: answers(stock.conf_dir) or None, 60)
        with stock:
            yield TrainingSide(stock.conf_dir, "")


def test_our_resource_manager_says_where_nobody_is_held(mixed: TrainingSide, tmp_path: Path) -> None:
    (tmp_path / "counting.py").write_text(COUNTING.replace("    assert", "    #"))
    application = mixed.submit("submit", str(tmp_path / "counting.py"), "--max-cores", "1.5")
    ordered = "1.5 cores by the policy "
    explained = await_value(
        "an order", lambda: said if ordered in (said := mixed.yaq("explain", application)) else None, 60
    )
    assert "it may use more: 127.0.0.2:" in explained
    assert "throttles nobody (a stock NodeManager, or yaq.nm.throttle is off)" in explained
    mixed.yaq("ml", "stop", application)
    mixed.await_end(application)
