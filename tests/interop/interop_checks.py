"""What tests of stock programs look at: application ids in what a client printed, and output folders on HDFS."""

import json
import re
import urllib.request
from typing import Any

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.clients import ClientRun
from yaqd.config import Configuration


def application_of(run: ClientRun) -> str:
    """The application that a client submitted."""
    found = re.search(r"application_\d+_\d+", run.stdout + run.stderr)
    assert found is not None, run.stderr
    return found[0]


def output_lines(interop: InteropCluster, folder: str) -> list[str]:
    """The lines of all part files, in the order of the parts."""
    return interop.clients.fs("-cat", f"{folder}/part-*").checked().stdout.splitlines()


def final_state(interop: InteropCluster, application: str) -> str:
    """The final state as the stock command prints it."""
    printed = interop.clients.yarn("application", "-status", application).checked().stdout
    found = re.search(r"Final-State : (\w+)", printed)
    assert found is not None, printed
    return found[1]


def history(interop: InteropCluster, path: str) -> Any:
    """What the stock JobHistoryServer answers over REST for one path below `mapreduce/`."""
    conf = Configuration.load(environ={"HADOOP_CONF_DIR": str(interop.ours.conf_dir)})
    host, port = conf.get_address("mapreduce.jobhistory.webapp.address")
    with urllib.request.urlopen(f"http://{host}:{port}/ws/v1/history/mapreduce/{path}", timeout=10) as answer:
        return json.load(answer)
