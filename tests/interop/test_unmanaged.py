"""The stock launcher of unmanaged masters: it runs the distributed shell's master as a process of its own."""

from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import current_user
from benchmarks.stock.processes import CLIENT_JVM, java_command
from tests.interop.interop_checks import application_of, final_state

pytestmark = [pytest.mark.interop, pytest.mark.timeout(120)]
CLIENT = "unmanaged master"
_MASTER = "org.apache.hadoop.yarn.applications.distributedshell.ApplicationMaster"
_SIZES = ("--num_containers", "2", "--container_memory", "128", "--container_vcores", "1", "--priority", "0")


@pytest.mark.representative
def test_stock_master_runs_outside_of_the_cluster(interop: InteropCluster, tmp_path: Path) -> None:
    """Its containers run in the cluster; itself it takes none of it."""
    command = f"touch {tmp_path}/$CONTAINER_ID".encode()
    (tmp_path / "shellCommands").write_bytes(len(command).to_bytes(2, "big") + command)  # Java's writeUTF
    clients = StockClients(interop.jars, interop.clients.conf_dir, environment={"USER": current_user()})
    master = java_command(clients.jars, clients.conf_dir, CLIENT_JVM, _MASTER, _SIZES)
    run = clients.unmanaged_master(" ".join(master), cwd=tmp_path).checked()
    application = application_of(run)
    assert "Application has completed successfully." in run.stdout + run.stderr
    assert final_state(interop, application) == "SUCCEEDED"
    ran = sorted(file.name for file in tmp_path.glob("container_*"))
    assert ran == [f"container{application.removeprefix('application')}_01_00000{number}" for number in (1, 2)]
