"""Which rack a host stands in."""

from pathlib import Path

import pytest
from rm_harness import configuration

from rm.topology import Topology
from yaqd.config import ConfigError


async def test_table_then_program_then_default_rack(tmp_path: Path) -> None:
    table = tmp_path / "racks"
    table.write_text("# host rack\nh1 /r1\nh2\tr2\nbroken line here\n")
    script = tmp_path / "where.sh"
    script.write_text("#!/bin/sh\ncase $1 in h3) echo /r3;; h4) exit 1;; *) echo /a /b;; esac\n")
    script.chmod(0o755)
    conf = configuration({"net.topology.table.file.name": str(table), "net.topology.script.file.name": str(script)})
    topology = Topology.read(conf)
    for host in ("h1", "h2", "h3", "h4", "h5"):
        await topology.resolve(host)
    racks = [topology.rack_of(host) for host in ("h1", "h2", "h3", "h4", "h5")]
    assert racks == ["/r1", "/r2", "/r3", "/default-rack", "/default-rack"]


async def test_program_that_is_not_there_leaves_the_default_rack() -> None:
    topology = Topology({}, "/does/not/exist")
    await topology.resolve("h")
    assert topology.rack_of("h") == "/default-rack"


def test_missing_table_names_key_and_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"net\.topology\.table\.file\.name"):
        Topology.read(configuration({"net.topology.table.file.name": str(tmp_path / "none")}))
