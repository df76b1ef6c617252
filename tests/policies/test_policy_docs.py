"""The page for policy authors: its example runs, and no shipped policy is missing."""

import re
from math import inf
from pathlib import Path

import pytest
from policy_facts import facts, queued

from yaqd.policies.queueing.bounds import BOUNDS
from yaqd.policies.queueing.order import ORDERS, Ordering
from yaqd.policies.queueing.place import Placer
from yaqd.policies.queueing.place_scores import PLACES, Load

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"


def test_every_shipped_policy_is_described() -> None:
    rows = set(re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text(), re.MULTILINE))
    assert rows == {*ORDERS.names(), *PLACES.names(), *BOUNDS.names()}


@pytest.mark.parametrize("name", ["poisson", "chernoff", "utilization", "fixed", "aligned"])
def test_the_numbers_of_the_bounds_are_right(name) -> None:
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
