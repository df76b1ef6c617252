"""`yaq explain` of jobs whose outputs their nodes merge by themselves: real ones, and nodes that say anything."""

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.ours import OurCluster
from benchmarks.shuffle_client import fetch_all, shuffle_target, write_outputs
from benchmarks.unmanaged_master import await_value
from tests.cli.cli_web import AnsweringServer
from yaqd.cli.applications import explain_nodes as module
from yaqd.config import Configuration
from yaqd.model import ApplicationId

MAPS, REDUCES, FILES = 20, 5, 10


def maps_served(cluster: OurCluster) -> int:
    """Out of merged files, by all nodes."""
    conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(cluster.conf_dir)})
    host, port = conf.get_address("yarn.resourcemanager.webapp.address")
    nodes = get(f"{host}:{port}/ws/v1/cluster/nodes")["nodes"]["node"]
    infos = [get(f"{node['nodeHTTPAddress']}/ws/v1/node/info")["nodeInfo"] for node in nodes]
    return sum(info["shuffle"]["mergedMaps"] for info in infos)


def get(address: str) -> Any:
    with urllib.request.urlopen(f"http://{address}", timeout=10) as answer:
        return json.load(answer)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("policy", "merged", "said"),
    [
        ("files", MAPS, f"{FILES} files, as configured (yaq.riffle.shuffle.policy)\n"),
        ("auto", 0, "no merging, chosen automatically: "),
        ("off", 0, "no merging, as configured (yaq.riffle.shuffle.policy)\n"),
    ],
)
def test_what_a_node_does_by_itself_is_told_while_the_job_runs_and_after_it(
    tmp_path: Path, policy: str, merged: int, said: str
) -> None:
    site = {
        "yaq.riffle.enabled": "true",
        "yaq.riffle.shuffle.policy": policy,
        "yaq.riffle.shuffle.files": str(FILES),
    }
    with OurCluster(tmp_path / "c", nodes=2, site=site) as cluster:
        side: Any = SimpleNamespace(clients=cluster, directory=cluster.directory)
        with shuffle_target(side) as target:
            application = target.job_id.replace("job", "application")

            def when(condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
                def explained() -> dict[str, Any] | None:
                    answer: dict[str, Any] = json.loads(cluster.yaq("explain", application, "--json").stdout)
                    found = answer.get("nodeShuffle")
                    return found if found is not None and condition(found) else None

                return await_value("that its node says so", explained)

            outputs = write_outputs(target, 0, MAPS, REDUCES, 1000)
            when(lambda found: (found["outputs"], found["mergedOutputs"]) == (MAPS, merged))
            await_value("merged maps", lambda: True if maps_served(cluster) >= merged else None)
            fetch_all(target, outputs, maps_per_request=MAPS, rounds=1)
            reads = REDUCES * (merged // FILES if merged else MAPS)
            during = when(lambda found: found["reads"] >= reads)
        over = when(lambda found: found["nodes"][0]["isOver"])
        text = cluster.yaq("explain", application).stdout
    [node] = over["nodes"]  # the other one has no outputs
    assert node["automatic"] == (policy == "auto")
    assert over["silent"] == []
    for found in (during, over):
        assert (found["segments"], found["reads"]) == (MAPS * REDUCES, reads)
        assert found["mergedFiles"] == merged // FILES
        assert found["mergedSegments"] == merged * REDUCES
        assert (found["mergeRequests"] > 0) == (merged > 0)
    assert said in text
    if merged:
        assert f"{MAPS * REDUCES} parts of map outputs took {reads} reads instead of {MAPS * REDUCES};" in text
    else:
        assert f"{MAPS * REDUCES} parts of map outputs took {reads} reads, none of merged files" in text
    if policy == "auto":
        assert "of each node's disk predicted" in node["reason"]


APP = ApplicationId(1, 1)
WHOLE = {"hasMerger": True, "segments": 3, "policy": "no merging"}


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        (json.dumps({"shuffle": WHOLE}).encode(), 200, {"segments": 3, "reads": 0, "policy": "no merging"}),
        (b'{"shuffle": {"segments": NaN}}', 200, None),
        (b'{"shuffle": {"segments": -1}}', 200, None),
        (b'{"shuffle": {"segments": true}}', 200, None),
        (b'{"shuffle": {"reason": "\\u001b[2J"}}', 200, None),
        (b'{"shuffle": {"reason": 7}}', 200, None),
        (b'{"shuffle": 7}', 200, None),
        (b"[]", 200, None),
        (b"[" * 30_000, 200, None),
        (b"nothing of it here", 404, {}),
        (b"not yours", 403, {}),
        (b"", 500, None),
    ],
)
def test_a_node_may_say_anything(body: bytes, status: int, expected: dict[str, Any] | None) -> None:
    with AnsweringServer(lambda path: (status, body)) as server:
        answer = module._ask(server.address, APP)
    if not expected:
        assert answer == expected
    else:
        assert answer is not None
        assert {name: answer[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("facts", "is_shown"),
    [
        ({"hasMerger": False}, True),
        ({"hasMerger": True}, True),
        ({"hasMerger": False, "plansMerges": True}, False),
        ({"hasMerger": True, "plansMerges": True}, False),
    ],
)
def test_a_job_of_ours_is_not_told_of_what_nodes_do_by_themselves(facts: dict[str, bool], is_shown: bool) -> None:
    def answer(path: str) -> tuple[int, bytes]:
        if "cluster" in path:
            return 200, json.dumps({"nodes": {"node": [{"id": "n:1", "nodeHTTPAddress": server.address}]}}).encode()
        return 200, json.dumps({"shuffle": facts}).encode()

    with AnsweringServer(answer) as server:
        overrides = {"yarn.resourcemanager.webapp.address": server.address}
        conf = Configuration.load(None, overrides=overrides, environ={})
        assert (module.of_nodes(conf, APP) is not None) == is_shown


@pytest.mark.parametrize("address", ["127.0.0.1:1", "no port", "nowhere.invalid:8042", ""])
def test_a_node_that_is_not_there_says_nothing(address: str) -> None:
    assert module._ask(address, APP) is None


def node_that_says(**facts: object) -> dict[str, Any]:
    return {"node": "n:1", **module._checked({"hasMerger": True, **facts})}


def test_where_nothing_is_merged_nothing_else_is_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """What such a node has and has not merged is nobody's doing but the policy's."""
    counts = {"outputs": 4, "leftAlone": 1, "readBefore": 2, "waiting": 3, "mergesFailed": 4}
    none = node_that_says(policy="no merging", automatic=True, reason="too few", **counts)
    some = node_that_says(policy="10 files", **counts)
    assert module._why(none) == "no merging, chosen automatically: too few"
    assert module._why(some).startswith("10 files, as configured (yaq.riffle.shuffle.policy); 1 left alone: ")
    assert module._why(some).endswith("; 3 wait for more to be merged with; 4 merges failed: the node's log says why")
    wide = node_that_says(policy="", outputs=9, leftAlone=9, withoutIndex=8)
    said = module._why(wide).split("; ")
    assert said[0].startswith("nothing has appeared that could be merged") and said[1].startswith("1 left alone: their")
    assert said[2:] == ["8 have so many parts that a merged file's index has no room (yaq.riffle.shuffle.index-memory)"]
    sums = {name: none[name] + some[name] for name in module._NUMBERS}
    module.show_nodes({"nodes": [none, some], "silent": [], **sums})
    text = capsys.readouterr().out
    assert "(1) no merging, chosen automatically: too few\n" in text and "(2) 10 files" in text
