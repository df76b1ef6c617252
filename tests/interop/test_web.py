"""What unmodified programs and browsers open over HTTP: the proxy to a stock master's page, `yarn top`, log links."""

import http.client
import json
import re
import threading
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.clients import ClientRun, StockClients
from benchmarks.stock.daemons import StockYarn
from tests.interop.interop_compared import both
from tests.interop.interop_master import await_value
from tests.interop.interop_terminal import TOP, on_terminal
from yaqd.cli.compatibility.web import NOT_TOLD
from yaqd.config import Configuration

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
CLIENT = "web"


class WaitingJob:
    """A stock streaming job of one map that ends when it is told to; a thread runs the client."""

    def __init__(self, interop: InteropCluster, folder: Path) -> None:
        self._go = folder / "go"
        script = folder / "wait.sh"
        script.write_text(f"while [ ! -e {self._go} ]; do sleep 0.1; done\necho done\n")
        (folder / "input").write_text("one line\n")
        interop.clients.fs("-put", "-f", str(folder / "input"), "/web-input").checked()
        job = ("-D", "mapreduce.job.reduces=0", "-D", "mapreduce.job.maps=1", "-input", "/web-input")
        self._args = (*job, "-output", f"/out/{folder.name}", "-mapper", f"bash {script}")
        self._clients = interop.clients
        self._run: ClientRun | None = None
        self._thread = threading.Thread(target=self._client)
        self._thread.start()

    def _client(self) -> None:
        self._run = self._clients.streaming(*self._args)

    def end(self) -> ClientRun:
        self._go.touch()
        self._thread.join(60)
        assert self._run is not None
        return self._run


@pytest.fixture(scope="module")
def web(interop: InteropCluster) -> str:
    """The ResourceManager's web address, `http://host:port`."""
    conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(interop.ours.conf_dir)})
    return "http://{}:{}".format(*conf.get_address("yarn.resourcemanager.webapp.address"))


@pytest.fixture
def job(interop: InteropCluster, tmp_path: Path) -> Iterator[WaitingJob]:
    running = WaitingJob(interop, tmp_path)
    yield running
    running.end()


def _get(url: str) -> tuple[int, str, str]:
    """Status, final address and text, redirects followed as a browser would."""
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return answer.status, answer.url, answer.read().decode()
    except HTTPError as error:
        return error.code, error.url or "", error.read().decode()


def _json(url: str) -> dict[str, dict[str, object]]:
    status, _, text = _get(url)
    assert status == 200, text
    found: dict[str, dict[str, object]] = json.loads(text)
    return found


def _running_job(web: str) -> dict[str, object] | None:
    apps = _json(f"{web}/ws/v1/cluster/apps?states=RUNNING&applicationTypes=MAPREDUCE")["apps"].get("app", [])
    assert isinstance(apps, list)
    return next((app for app in apps if app["trackingUI"] == "ApplicationMaster"), None)


@pytest.mark.full
def test_stock_masters_page_through_the_proxy_while_it_runs_and_after(
    interop: InteropCluster, web: str, job: WaitingJob
) -> None:
    app = await_value("the job's master", lambda: _running_job(web))
    app_id, proxied = str(app["id"]), str(app["trackingUrl"])
    assert proxied == f"{web}/proxy/{app_id}/"

    status, url, text = _get(proxied)
    assert (status, url) == (200, f"{proxied}mapreduce")
    assert "MapReduce Application" in text and app_id in text
    # links of the page are the proxy's too
    assert f"/proxy/{app_id}/mapreduce/job/{app_id.replace('application', 'job')}" in text
    info = _json(f"{proxied}ws/v1/mapreduce/info?user.name=somebody")["info"]
    assert info["appId"] == app_id
    assert _get(f"{proxied}mapreduce/job/{app_id.replace('application', 'job')}")[0] == 200

    # the master itself sends everybody else to the proxy, and the proxy takes them in
    status_line = interop.clients.yarn("application", "-status", app_id).checked().stdout
    master = re.search(r"Tracking-URL : (\S+)", status_line)
    assert master is not None
    authority = urlsplit(master[1] if "://" in master[1] else f"http://{master[1]}").netloc
    assert authority
    stranger = http.client.HTTPConnection(authority, timeout=20, source_address=("127.0.0.3", 0))
    stranger.request("GET", "/mapreduce")
    location = stranger.getresponse().headers["Location"] or ""
    stranger.close()
    assert urlsplit(location).path == f"/proxy/redirect/{app_id}/mapreduce"
    assert _get(web + urlsplit(location).path)[0] == 200
    assert re.search(f"tracking: +{proxied}\n", interop.ours.yaq("app", "status", app_id).stdout)

    assert job.end().exit_code == 0
    status, url, text = _get(proxied)
    assert status == 200 and "/jobhistory/job/" in url and app_id.replace("application", "job") in text
    attempts = interop.clients.yarn("applicationattempt", "-list", app_id).checked().stdout
    assert proxied in attempts


@pytest.mark.full
def test_yarn_top_draws(interop: InteropCluster, web: str, job: WaitingJob) -> None:
    app_id = str(await_value("the job's master", lambda: _running_job(web))["id"])
    with on_terminal(interop.clients, "top", *TOP) as top:
        drawn = top.drawn(lambda text: app_id in text)
        assert re.search(r"YARN top - \d\d:\d\d:\d\d, up 0d, 0:\d+, [01] active users, queue\(s\): root", drawn)
        assert "NodeManager(s): 2 total, 2 active, 0 unhealthy, 0 decommissioning, 0 decommissioned, 0 lost" in drawn
        states = r"\d+ submitted, 0 pending, \d+ completed, \d+ killed, \d+ failed"
        assert re.search(f"Applications: 1 running, {states}", drawn)
        assert re.search(r"Containers: [12] allocated, \d pending, 0 reserved", drawn)
        assert "Could not fetch RM start time" not in drawn and "Exception" not in drawn
        top.type("q\n")
        assert top.rest()[0] == 0


@pytest.mark.full
def test_links_to_logs_lead_to_logs(interop: InteropCluster, web: str) -> None:
    run = interop.clients.distributed_shell(
        *("-shell_command", "echo", "-shell_args", "said", "-num_containers", "1", "-container_memory", "128")
    ).checked()
    found = re.search(r"application_\d+_\d+", run.stdout + run.stderr)
    assert found is not None
    status, _, page = _get(f"{web}/proxy/{found[0]}/")
    assert status == 200 and f"Application {found[0]}" in page
    link = re.search(r'href="(http://[^"]*/node/containerlogs/[^"]*)"', page)
    assert link is not None
    status, _, listing = _get(link[1])
    assert status == 200 and "AppMaster.stderr" in listing
    file = re.search(r'href="([^"]*AppMaster.stderr)[^"]*"', listing)
    if file is None:  # uploaded meanwhile, so the node sent us on to the history server
        assert "Log Type: AppMaster.stderr" in listing
        return
    status, _, text = _get(f"{link[1].partition('/node/')[0]}{file[1]}")
    assert status == 200 and "ApplicationMaster" in text


@pytest.mark.full
def test_stock_client_finds_the_masters_container_over_rest(interop: InteropCluster, web: str) -> None:
    run = interop.clients.distributed_shell(*("-shell_command", "true", "-num_containers", "1")).checked()
    found = re.search(r"application_\d+_\d+", run.stdout + run.stderr)
    assert found is not None
    shown = interop.clients.yarn("logs", "-applicationId", found[0], "-am", "1")
    # whatever the logs' own fate is, the look-up at the ResourceManager has worked
    assert "Unable to get AM container informations" not in shown.stdout + shown.stderr
    assert interop.clients.yarn("cluster", "--list-node-labels").checked().stdout.startswith("Node Labels:")


#: what ours says and the stock answer has no place for, and what stock's tells that ours does not
_OWN_FIELDS = re.compile(r"\.appAttempt\[\]\.diagnostics")
_NOT_TOLD = re.compile(rf"\.({'|'.join(name for names in NOT_TOLD.values() for name in names)})\b")
#: what is told of applications and users while they hold something, which ends at another moment on each side
_WHILE_HELD = re.compile(r"\.(resourceInfo|users\.user)\b")
#: Hadoop's writer names `entry` twice of a map with two, and JSON parsers keep the last
_TWICE = re.compile(r"SecondsMap\.entry")
_COMPARED = (
    *("info", "metrics", "nodes", "scheduler", "userinfo", "appstatistics", "appstatistics?states=FINISHED"),
    *("apps/{}", "apps/{}?deSelects=timeouts", "apps/{}/state", "apps/{}/queue", "apps/{}/priority"),
    *("apps/{}/timeouts", "apps/{}/timeouts/LIFETIME", "apps/{}/appattempts"),
    *("apps?deSelects=nothing", "apps?limit=0", "apps?states=AWAY", "apps?startedTimeBegin=-1", "nodes?states=LOST"),
    "queues/default/access?user=root&queue-acl-type=SUBMIT_APPLICATIONS&user.name=root",
)


def _finished(clients: StockClients) -> str:
    run = clients.distributed_shell(*("-shell_command", "true", "-num_containers", "1")).checked()
    found = re.search(r"application_\d+_\d+", run.stdout + run.stderr)
    assert found is not None
    return found[0]


def _address(conf_dir: Path) -> str:
    conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(conf_dir)})
    return "http://{}:{}".format(*conf.get_address("yarn.resourcemanager.webapp.address"))


def _kind(value: object) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _shape(value: object, at: str = "") -> dict[str, str]:
    """The type of every field, by its path."""
    below: Iterable[tuple[str, object]] = ()
    if isinstance(value, dict):
        below = ((f"{at}.{name}", entry) for name, entry in value.items())
    elif isinstance(value, list):
        below = ((f"{at}[]", entry) for entry in value)
    shape = {at: _kind(value)}
    for path, entry in below:
        shape |= _shape(entry, path)
    return shape


def test_rest_answers_have_the_stock_ones_names_and_types(interop: InteropCluster, stock_yarn: StockYarn) -> None:
    theirs = StockClients(interop.jars, stock_yarn.conf_dir)
    ids = both(lambda: _finished(interop.clients), lambda: _finished(theirs))
    addresses = _address(interop.ours.conf_dir), _address(stock_yarn.conf_dir)
    differences = {}
    for path in _COMPARED:
        answers = [_get(f"{web}/ws/v1/cluster/{path.format(app)}") for web, app in zip(addresses, ids, strict=True)]
        assert answers[0][0] == answers[1][0], path
        ours, stock = (_shape(json.loads(text)) for _, _, text in answers)
        differing = {at for at in ours.keys() | stock.keys() if ours.get(at) != stock.get(at)}
        untold = {at for at in differing if at not in ours and _NOT_TOLD.search(at)}
        own = {at for at in differing if at not in stock and _OWN_FIELDS.search(at)}
        differing -= untold | own | {at for at in differing if _TWICE.search(at) or _WHILE_HELD.search(at)}
        if differing:
            differences[path] = {at: (ours.get(at), stock.get(at)) for at in sorted(differing)}
    assert not differences, json.dumps(differences)
