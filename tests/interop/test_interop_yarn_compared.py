"""The stock `yarn` command, word for word: what it prints of our ResourceManager and of a stock one alike in state."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import pytest
from interop_checks import application_of

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import ClientRun, StockClients
from benchmarks.stock.daemons import StockYarn

Made = TypeVar("Made")
pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
CLIENT = "yarn command beside a stock ResourceManager"
_SHELL = ("-appname", "compared", "-shell_command", "true", "-num_containers", "1", "-application_tags", "compared")
_SIZES = ("-container_memory", "128", "-master_memory", "256")
#: What differs from run to run or from machine to machine, in the order in which it is taken out.
_VARYING = (
    (r"(application|appattempt|container|job)_\d+(_\d+)*", r"\1_ID"),
    (r"(http://)?(127\.0\.0\.\d|localhost|vm|[\w.-]+/127\.0\.0\.\d)(:\d+)?", "ADDRESS"),
    (r"\w{3} \w{3} \d\d \d\d:\d\d:\d\d [+\-]?\w+ \d{4}", "TIME"),
    (r"\w{3} \d\d-\w{3}-\d{4} \d\d:\d\d:\d\d[\w ]*|\d\d-\w{3}-\d{4} \d\d:\d\d:\d\d", "TIME"),
    (r"\b1[67]\d{11}\b|\d{4}-\d\d-\d\dT[\d:.]+[+\-]\d{4}", "TIME"),
    (r"\d+ MB-seconds, \d+ vcore-seconds", "HELD"),
    (r"(Resource Utilization by \w+ :).*", r"\1 USED"),
    (r"Last-Health-Update : .*", "Last-Health-Update : TIME"),
    (r"[ \t]+", " "),
)
COMMANDS = (
    "application -list -appStates FINISHED -appTags compared",
    "application -list -appStates ALL -appTypes YARN -appTags compared",
    "application -list -appStates KILLED,FAILED -appTags compared",
    "application -status APPLICATION",
    "application -status application_1_0001",
    "application -kill APPLICATION",
    "application -kill application_1_0001",
    "application -movetoqueue APPLICATION -queue default",
    "application -appId APPLICATION -updatePriority 5",
    "application -appId APPLICATION -updateLifetime 100",
    "applicationattempt -list APPLICATION",
    "applicationattempt -status ATTEMPT",
    "applicationattempt -status appattempt_1_0001_000001",
    "node -list",
    "node -list -all",
    "node -list -states LOST,UNHEALTHY",
    "node -list -showDetails",
    "node -status nowhere:1",
    "queue -status default",
    "queue -status root",
    "queue -status nothing",
    "queue -list all",
    "cluster --list-node-labels",
    "cluster --list-node-attributes",
    "rmadmin -refreshQueues",
    "rmadmin -refreshNodes",
    "rmadmin -refreshAdminAcls",
    "rmadmin -refreshServiceAcl",
    "rmadmin -refreshSuperUserGroupsConfiguration",
    "rmadmin -refreshUserToGroupsMappings",
    "rmadmin -getGroups root",
    "rmadmin -addToClusterNodeLabels x",
    "rmadmin -checkHealth rm1",
)


@dataclass(frozen=True, slots=True)
class Side:
    """A cluster with one finished application on it."""

    clients: StockClients
    application: str

    def run(self, command: str) -> tuple[int, str]:
        """Exit code and normalized output of one `yarn` command line."""
        attempt = self.application.replace("application", "appattempt") + "_000001"
        words = command.replace("APPLICATION", self.application).replace("ATTEMPT", attempt).split()
        run = self.clients.yarn(words[0], *words[1:])
        return run.exit_code, normalized(run)


@pytest.fixture(scope="module")
def sides(hadoop: HadoopJars, interop: InteropCluster, stock_yarn: StockYarn) -> tuple[Side, Side]:
    """Ours and the stock one, each after the same distributed shell."""

    def make(clients: StockClients) -> Side:
        return Side(clients, application_of(clients.distributed_shell(*_SHELL, *_SIZES).checked()))

    stock = StockClients(hadoop, stock_yarn.conf_dir)
    return _both(lambda: make(interop.clients), lambda: make(stock))


def _both(ours: Callable[[], Made], stock: Callable[[], Made]) -> tuple[Made, Made]:
    """At the same time: a command line is mostly the start of its virtual machine."""
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.submit(ours), pool.submit(stock)
        return first.result(), second.result()


def normalized(run: ClientRun) -> str:
    """Output and errors without log lines, stack traces and whatever names one cluster; lines in one order."""
    errors = [
        line for line in run.stderr.splitlines() if not re.match(r"\d{4}-\d\d-\d\d |\s+at |\t\.\.\. |Caused by: ", line)
    ]
    text = "\n".join([*run.stdout.splitlines(), *errors])
    for pattern, word in _VARYING:
        text = re.sub(pattern, word, text)
    return "\n".join(sorted(line.strip() for line in text.splitlines() if line.strip()))


@pytest.mark.parametrize("command", COMMANDS)
def test_prints_the_same(command: str, sides: tuple[Side, Side]) -> None:
    ours, stock = sides
    printed, expected = _both(lambda: ours.run(command), lambda: stock.run(command))
    assert printed == expected
