"""A start of a local cluster that its daemons refuse: the next one is as if it had not been."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from yaqd.cli.app import yaq
from yaqd.cli.exits import BAD_INPUT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

BAD = ("-D", "yaq.queue.bound=-5")
QUEUES = "yarn.scheduler.capacity.root.default.maximum-capacity"


def cluster(verb: str, directory: Path, *words: str) -> Result:
    return CliRunner().invoke(yaq, ["cluster", verb, "--dir", str(directory), *words])


def refused(directory: Path, *words: str) -> None:
    result = cluster("start", directory, *words)
    assert result.exit_code == BAD_INPUT and "-5" in result.output, result.output
    assert result.output.endswith("the settings of this start are not kept\n")


def configured(directory: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (*(directory / "conf").iterdir(), directory / "cluster.json")}


def test_what_was_refused_is_not_kept(tmp_path: Path) -> None:
    directory = tmp_path / "c"
    refused(directory, *BAD, "-D", f"{QUEUES}=50")
    assert cluster("status", directory).exit_code == 3, "it is a cluster's folder all the same"
    kept = configured(directory)
    assert not any(b">-5<" in text or b">50<" in text or b'"-5"' in text or b'"50"' in text for text in kept.values())
    try:
        started = cluster("start", directory, "-D", "yaq.queue.bound=7")
        assert started.exit_code == 0, started.output
    finally:
        cluster("stop", directory)
    queues = directory / "conf/capacity-scheduler.xml"
    queues.write_text(queues.read_text().replace("</configuration>", "<!-- mine -->\n</configuration>"))
    before = configured(directory)
    refused(directory, *BAD, "-D", f"{QUEUES}=50", "--nodes", "2")
    assert configured(directory) == before and b"<!-- mine -->" in before[queues.name]
    assert json.loads(before["cluster.json"])["defines"] == {"yaq.queue.bound": "7"}
    try:
        started = cluster("start", directory)
        assert started.exit_code == 0 and "1 node," in started.output, started.output
    finally:
        assert cluster("stop", directory).exit_code == 0
