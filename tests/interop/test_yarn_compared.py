"""The stock `yarn` command, word for word: what it prints of our ResourceManager and of a stock one alike in state."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import HadoopJars
from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import StockYarn
from tests.interop.interop_checks import application_of
from tests.interop.interop_compared import Side, both, compare
from tests.interop.interop_ended import bad_ends

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
CLIENT = "yarn command beside a stock ResourceManager"
_SHELL = ("-appname", "compared", "-shell_command", "true", "-num_containers", "1", "-application_tags", "compared")
_SIZES = ("-container_memory", "128", "-master_memory", "256")
_NODES_WORDS = r"^(Container id|Exit code|Last 4096 bytes|Failing this attempt|.*Container exited with)"
COMMANDS = (
    "application -list -appStates FINISHED -appTags compared",
    "application -status APPLICATION",
    "application -status application_1_0001",
    "application -kill APPLICATION",
    "application -appId APPLICATION -updatePriority 5",
    "applicationattempt -list APPLICATION",
    "applicationattempt -status ATTEMPT",
    "node -list -showDetails",
    "node -status nowhere:1",
    "queue -status default",
    "queue -list all",
    "rmadmin -refreshQueues",
)
#: others of their kinds
MORE = (
    "application -list -appStates ALL -appTypes YARN -appTags compared",
    "application -movetoqueue APPLICATION -queue default",
    "application -appId APPLICATION -updateLifetime 100",
    "applicationattempt -status appattempt_1_0001_000001",
    "node -list",
    "queue -status nothing",
    "cluster --list-node-labels",
    "rmadmin -getGroups root",
    "rmadmin -checkHealth rm1",
    "application -status KILLED",
    "application -kill application_1_0001",
    "application -list -appStates KILLED,FAILED -appTags compared",
    "application -movetoqueue KILLED -queue nowhere",
    "applicationattempt -status KILLED_ATTEMPT",
    "node -list -all",
    "node -list -states LOST,UNHEALTHY",
    "queue -status root",
    "cluster --list-node-attributes",
    "rmadmin -refreshNodes",
    "rmadmin -refreshAdminAcls",
    "rmadmin -refreshServiceAcl",
    "rmadmin -refreshSuperUserGroupsConfiguration",
    "rmadmin -refreshUserToGroupsMappings",
)


@pytest.fixture(scope="module")
def sides(hadoop: HadoopJars, interop: InteropCluster, stock_yarn: StockYarn) -> tuple[Side, Side]:
    """Ours and the stock one, each after the same distributed shell, and two applications that ended badly."""

    def make(clients: StockClients) -> Side:
        with ThreadPoolExecutor(1) as pool:
            ending = pool.submit(bad_ends, clients, "compared")
            application = application_of(clients.distributed_shell(*_SHELL, *_SIZES).checked())
            ended = ending.result()
        attempt = f"{application.replace('application', 'appattempt')}_000001"
        return Side(clients, {"APPLICATION": application, "ATTEMPT": attempt, **ended})

    stock = StockClients(hadoop, stock_yarn.conf_dir)
    return both(lambda: make(interop.clients), lambda: make(stock))


@pytest.mark.parametrize("command", [*COMMANDS, *(pytest.param(more, marks=pytest.mark.full) for more in MORE)])
def test_prints_the_same(command: str, sides: tuple[Side, Side]) -> None:
    compare(sides, command)


@pytest.mark.parametrize("command", ["application -status FAILED", "applicationattempt -status FAILED_ATTEMPT"])
def test_what_is_said_of_a_failure(command: str, sides: tuple[Side, Side]) -> None:
    """All but the node's own words about how the master's container ended."""
    (ours, printed), (stock, expected) = both(lambda: sides[0].run(command), lambda: sides[1].run(command))
    said = [line for line in printed.splitlines() if not re.search(_NODES_WORDS, line)]
    assert (ours, said) == (stock, [line for line in expected.splitlines() if not re.search(_NODES_WORDS, line)])
    assert any(line.startswith("For more detailed output, check the application tracking page: ") for line in said)
