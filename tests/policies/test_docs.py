"""The page for policy authors: its example runs, and no shipped policy is missing."""

import re
from math import inf
from pathlib import Path

import pytest

from tests.policies.policy_facts import SLOT, facts, queued, running
from yaqd.model import NodeId, Resource
from yaqd.policies.clotho.policies import STAGES
from yaqd.policies.explore.policies import EXPLORE
from yaqd.policies.quality.policies import QUALITY
from yaqd.policies.queueing.bounds import BOUNDS
from yaqd.policies.queueing.estimates import ESTIMATES, Estimator
from yaqd.policies.queueing.order import ORDERS, Ordering
from yaqd.policies.queueing.place import Placer
from yaqd.policies.queueing.place_scores import PLACES, Load
from yaqd.policies.queueing.rebalance import REBALANCES, NodeQueueLoad
from yaqd.policies.queueing.wait import WAITS

PAGE = Path(__file__).parents[2] / "docs" / "policies-reference.md"


def test_every_shipped_policy_is_described() -> None:
    rows = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(), re.MULTILINE))
    tables = (ORDERS, PLACES, BOUNDS, WAITS, ESTIMATES, REBALANCES)
    others = {*QUALITY.names(), *EXPLORE.names(), *STAGES.names()}
    assert rows == {name for table in tables for name in table.names()} | others


@pytest.mark.parametrize("name", ["poisson", "chernoff", "utilization", "fixed", "aligned"])
def test_the_numbers_of_the_bounds_are_right(name: str) -> None:
    (row,) = re.findall(rf"^\| `{name}` \|.*\| ([0-9, ]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert [int(number) for number in row.split(",")] == [BOUNDS[name](10, mean_s, 3, 0.05) for mean_s in (5, 10, 30)]


def test_the_example_is_a_package_of_policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = PAGE.read_text()
    (code,) = re.findall(r"```python\n(# our_policies.py\n.*?)```", page, re.DOTALL)
    (project,) = re.findall(r"```toml\n# pyproject.toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "our_policies.py").write_text(code)
    info = tmp_path / "our_policies-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: our-policies\nVersion: 1\n")
    # the same words as an installed package has them
    entry_points = re.sub(r'\[project\.entry-points\."(.*?)"\]', r"[\1]", project).replace('"', "")
    (info / "entry_points.txt").write_text(entry_points)
    monkeypatch.syspath_prepend(tmp_path)

    line = [queued(n, facts(n), since=float(n)) for n in range(3)]
    assert Ordering("lifo", inf, inf).pick(line, {}, 5) is line[2]
    assert BOUNDS["twice"](10, 10, 3, 0.05) == 12
    placer: Placer[str] = Placer("per-core")
    for name, waiting, wait_s in (("slow", 4, 3.0), ("quick", 8, 0.5)):
        placer.put(name, name, Load(waiting, wait_s, 4))
    assert placer.candidates(lambda node: True, 1) == ["quick"]
    estimator = Estimator(policy=ESTIMATES["cautious"])
    estimator.observe("run", 2.0)
    estimator.observe("before", 5.0)
    assert estimator.estimate("run", "before") == 5.0
    held = [running(7, facts(7, estimate=4.0)), running(8, facts(8, estimate=6.0))]
    known = [queued(9, facts(9, estimate=10.0))]
    assert WAITS["by-work"](SLOT * 2, Resource(), held, known, SLOT, 0.0) == 10.0
    master = running(1, facts(1, estimate=None))
    assert WAITS["by-work"](SLOT * 3, Resource(), [master, *held], known, SLOT, 0.0) == 10.0
    assert WAITS["by-work"](SLOT, Resource(), [master], [], SLOT, 0.0) == inf
    loads = [NodeQueueLoad(NodeId(h, 1), w, q, 2, 4.0, 9) for h, w, q in (("a", 40.0, 9), ("b", 0.0, 0))]
    assert [move.tasks for move in REBALANCES["one-at-a-time"](loads, 1.0)] == [1]
