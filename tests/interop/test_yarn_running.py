"""The stock `yarn` command while an application runs: what it prints of our ResourceManager and of a stock one.

The two clusters are this module's own: what is counted and listed depends on everything that has run there.
"""

import re
from collections.abc import Iterator

import pytest

from benchmarks.stock.artifacts import HadoopJars
from tests.interop.interop_compared import Side, both, compare, compare_soon
from tests.interop.interop_pair import PairedCluster, paired
from tests.interop.interop_terminal import TOP, on_terminal
from yaqd.config.xmlfile import write_properties

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
CLIENT = "yarn command beside a stock ResourceManager, while an application runs"
Pair = tuple[PairedCluster, PairedCluster]
Sides = tuple[Side, Side]
#: each with what its answer must have: that both say the same must not be that both say nothing
COMMANDS = (
    ("application -list", "paired"),
    ("container -list ATTEMPT", "Total number of containers :2"),
    ("container -status CONTAINER", "Diagnostics : null"),
    ("node -list -all -showDetails", "Allocated Resources : <memory:384, vCores:2>"),
    ("queue -status default", "Current Capacity : 9.38%"),
    ("logs -applicationId FINISHED -logFiles stdout", "said"),
    ("logs -containerId CONTAINER -logFiles stdout", "LogAggregationType: LOCAL"),
)
#: others of their kinds
MORE = (
    ("application -status RUNNING", "State : RUNNING"),
    ("applicationattempt -list RUNNING", "RUNNING"),
    ("applicationattempt -status ATTEMPT", "State : RUNNING"),
    ("container -status MASTER", "State : RUNNING"),
    ("container -signal CONTAINER OUTPUT_THREAD_DUMP", "Signalling container"),
    ("node -status NODE", "Memory-Used : 384MB"),
    ("queue -list all", "root.default"),
    ("logs -applicationId FINISHED -containerId OVER -logFiles stdout", "said"),
    ("logs -applicationId FINISHED -show_application_log_info", "Application State: Completed."),
    ("logs -applicationId FINISHED -show_container_log_info", "stdout 5 TIME AGGREGATED"),
    ("logs -applicationId RUNNING -am 1 -logFiles AppMaster.stdout", "LogType:AppMaster.stdout"),
    ("logs -applicationId RUNNING -show_application_log_info", "Application State: Running."),
)
_DRAWING = re.compile(r"YARN top - .*?application_\d[^\n]*\n", re.DOTALL)
_DRAINING = "still decommissioning"


@pytest.fixture(scope="module")
def pair(hadoop: HadoopJars, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with paired(hadoop, tmp_path_factory.mktemp("pair")) as clusters:
        yield clusters


@pytest.fixture(scope="module")
def sides(pair: Pair) -> Sides:
    return both(pair[0].fill, pair[1].fill)


@pytest.mark.parametrize(
    ("command", "words"), [*COMMANDS, *(pytest.param(*more, marks=pytest.mark.full) for more in MORE)]
)
def test_prints_the_same(command: str, words: str, sides: Sides) -> None:
    assert words in compare(sides, command)


def _top(side: Side) -> list[str]:
    """One drawing, without what depends on how long things have run."""
    with on_terminal(side.clients, "top", *TOP) as top:
        drawn = _DRAWING.findall(top.drawn(lambda text: len(_DRAWING.findall(text)) > 1))[-1]
        top.type("q\n")
        assert top.rest()[0] == 0
    drawn = re.sub(r"\x1b\[[\d;]*[A-Za-z]|\d\d:\d\d:\d\d, up \S+ \S+,", "", drawn)
    *heading, row = drawn.split("\n")[:-1]
    name, *columns, _, _, progress, _ = row.split()
    assert name == side.names["RUNNING"]
    return [*(line.strip() for line in heading), *columns, progress]


def test_top_draws_the_same(sides: Sides) -> None:
    ours, stock = both(lambda: _top(sides[0]), lambda: _top(sides[1]))
    assert ours == stock
    assert "Queue(s) Applications: 1 running, 2 submitted, 0 pending, 1 completed, 0 killed, 0 failed" in ours


@pytest.mark.full
def test_size_of_a_node_by_command_and_by_file(pair: Pair, sides: Sides) -> None:
    compare(sides, "rmadmin -updateNodeResource NODE 2048 3")
    assert "Memory-Capacity : 2048MB" in compare(sides, "node -status NODE")
    for side in sides:
        key = f"yarn.resource.dynamic.{side.names['NODE']}"
        sizes = [("yarn.resource.dynamic.nodes", side.names["NODE"], ""), (f"{key}.memory", "4096", "")]
        write_properties(side.clients.conf_dir / "dynamic-resources.xml", sizes)
    compare(sides, "rmadmin -refreshNodesResources")
    status = compare(sides, "node -status NODE")
    assert "Memory-Capacity : 4096MB" in status and "CPU-Capacity : 8 vcores" in status


@pytest.mark.full
def test_drained_node_is_let_back_in(pair: Pair, sides: Sides) -> None:
    """The server counts the time; nobody waits for the node."""
    _exclude(pair, sides)
    compare(sides, "rmadmin -refreshNodes -g 60 -server")
    assert "DECOMMISSIONING" in compare_soon(sides, "node -list -all -showDetails")
    compare(sides, "node -status NODE")
    for cluster in pair:
        cluster.exclude.write_text("")
    compare(sides, "rmadmin -refreshNodes")
    assert "RUNNING" in compare(sides, "node -list -all")


@pytest.mark.full
def test_drained_node_goes_when_its_application_is_over(pair: Pair, sides: Sides) -> None:
    """The command waits; the last test of the module, as the clusters have no other node."""
    _exclude(pair, sides)
    words = ("-refreshNodes", "-g", "60", "-client")
    with (
        on_terminal(sides[0].clients, "rmadmin", *words) as ours,
        on_terminal(sides[1].clients, "rmadmin", *words) as stock,
    ):
        for terminal in (ours, stock):
            terminal.drawn(lambda text: _DRAINING in text)
        for cluster in pair:
            cluster.release()
        for code, printed in (ours.rest(), stock.rest()):
            said = [line for line in printed.splitlines() if _DRAINING not in line]
            assert (code, [re.sub(r"\d+", "N", line) for line in said if line.strip()]) == (
                0,
                ["Graceful decommissioning completed in N seconds."],
            )
    assert "DECOMMISSIONED" in compare(sides, "node -list -all")
    compare(sides, "node -status NODE")


def _exclude(pair: Pair, sides: Sides) -> None:
    for cluster, side in zip(pair, sides, strict=True):
        cluster.exclude.write_text(side.names["NODE"].partition(":")[0])
