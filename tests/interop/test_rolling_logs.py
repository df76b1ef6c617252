"""Logs of an application that runs for long, uploaded while it runs: read by the stock JobHistoryServer then, and by
the stock `yarn logs` after its end (before, that one goes to the nodes alone, and follows no redirection of theirs).

The interval has a lower bound in both worlds (an hour, in `….roll-monitoring-interval-seconds.min`), which this cluster
lowers as Hadoop's own tests do.
"""

import json
import re
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import StockHdfs
from tez_adapter.client.rm_client import RmClient
from yaqd.config import Configuration
from yaqd.model import ApplicationId, Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as pb
from yaqd.storage import get_filesystem
from yaqd.storage.paths import hadoop_user, name_of
from yaqd.storage.tfile import RemoteLogs

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]
CLIENT = "rolling log aggregation"
ROLL = "yarn.nodemanager.log-aggregation.roll-monitoring-interval-seconds"
#: a master that registers with nobody: it writes its logs, waits to be told, writes more and ends
SCRIPT = """cd <LOG_DIR>
echo first > app.log.1; echo now > app.log; echo t > app.log.tmp; echo s > secret.key; echo begun
until test -e {go}; do sleep 0.1; done
echo second > app.log.2; echo over"""
PATTERNS = pb.LogAggregationContext(
    include_pattern=".*",
    exclude_pattern=".*[.]key",
    rolled_logs_include_pattern="app[.]log[.].*",
    rolled_logs_exclude_pattern=".*[.]tmp",
)
LOG = re.compile(r"LogAggregationType: (\w+)\n=+\nLogType:(\S+)\n[^\n]+\nLogLength:(\d+)\nLogContents:\n")


@pytest.fixture(scope="module")
def cluster(hadoop: HadoopJars, hdfs: StockHdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteropCluster]:
    """One node that uploads every second what may be uploaded, and the server that shows what a node has no more."""
    settings = {ROLL: 1, f"{ROLL}.min": 0}
    with InteropCluster(hadoop, tmp_path_factory.mktemp("rolling"), hdfs, nodes=1, site=settings) as running:
        yield running


def _submit(rm: RmClient, script: str) -> ApplicationId:
    application_id, _ = rm.new_application()
    context = pb.ApplicationSubmissionContext(
        application_id=convert.application_id_pb(application_id),
        application_name="long",
        queue="default",
        am_container_spec=pb.ContainerLaunchContext(command=[f"{{ {script}\n}} 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"]),
        maxAppAttempts=1,
        resource=convert.resource_pb(Resource(128, 1)),
        log_aggregation_context=PATTERNS,
    )
    rm.submit(context)
    return application_id


def _await(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.05)


def test_rolled_logs_are_read_while_it_runs_and_all_of_them_afterwards(cluster: InteropCluster, tmp_path: Path) -> None:
    conf = Configuration.load(cluster.ours.conf_dir, environ={})
    remote, clients = RemoteLogs.read(conf), cluster.clients
    filesystem = get_filesystem(remote.root, conf)
    with RmClient(conf) as rm:
        application = _submit(rm, SCRIPT.format(go=tmp_path / "go"))

        def uploads() -> list[str]:
            return [name_of(status.path) for status in remote.find(filesystem, hadoop_user(), application)]

        _await(lambda: bool(uploads()))
        # a file of each upload: the node's name and the time
        assert all(re.fullmatch(r"127\.0\.0\.1_\d+_\d{13}", name) for name in uploads())
        container = str(application).replace("application", "container") + "_01_000001"
        web = f"http://{rm.nodes()[0].http_address}"
        node = f"{web}/ws/v1/node/containers/{container}/logs"
        _await(lambda: "app.log.1" not in _listed(node, "LOCAL"))
        assert _listed(node, "AGGREGATED") == ["app.log.1"]
        assert {"app.log", "app.log.tmp", "secret.key", "stdout"} <= set(_listed(node, "LOCAL"))
        # the node sends browsers on to the JobHistoryServer
        text, address = _get(f"{web}/node/containerlogs/{container}/{hadoop_user()}/app.log.1/?start=0")
        assert address.startswith(cluster.history_web) and "<pre>first\n</pre>" in text
        (tmp_path / "go").touch()
        _await(lambda: rm.report(application).state.is_final)
        _await(lambda: rm.report(application).log_aggregation == pb.LOG_SUCCEEDED)
        assert len(uploads()) >= 2
    shown = _logs(clients, application)
    assert {name: text for name, (_, text) in shown.items() if name.startswith(("app", "std", "secret"))} == {
        "app.log.1": "first\n",
        "app.log.2": "second\n",
        "app.log": "now\n",
        "app.log.tmp": "t\n",
        "stdout": "begun\nover\n",
        "stderr": "",
    }
    assert {kind for kind, _ in shown.values()} == {"AGGREGATED"}


def _get(url: str) -> tuple[str, str]:
    """The text and the address that it came from in the end."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode(), answer.url


def _listed(node: str, kind: str) -> list[str]:
    """The names that the node lists, of the files that it has or of those that it has uploaded."""
    listings = json.loads(_get(node)[0])["containerLogsInfo"]
    return [
        f["fileName"]
        for listing in listings
        if listing["logAggregationType"] == kind
        for f in listing["containerLogInfo"]
    ]


def _logs(clients: StockClients, application: ApplicationId) -> dict[str, tuple[str, str]]:
    """What `yarn logs` prints: file name -> where it had it from, and the text. No file comes twice."""
    printed = clients.yarn("logs", "-applicationId", str(application)).checked().stdout
    headings = list(LOG.finditer(printed))
    found = {h[2]: (h[1], printed[h.end() : h.end() + int(h[3])]) for h in headings}
    assert len(found) == len(headings), printed
    return found
