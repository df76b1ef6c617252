"""Unmodified Spark on our daemons, its driver in the cluster and outside: Python word counts with a shuffle."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import HadoopJars, StockUnavailable
from benchmarks.stock.clients import StockClients
from benchmarks.stock.spark import fetch_spark
from tests.interop.interop_checks import application_of, final_state, output_lines

pytestmark = [pytest.mark.interop, pytest.mark.full, pytest.mark.timeout(900)]
CLIENT = "Spark"

TEXT = "to be or not to be\nthat is the question\nwhether 'tis nobler in the mind to suffer\n" * 300
PROGRAM = """
import sys
from operator import add
from pyspark.sql import SparkSession

context = SparkSession.builder.getOrCreate().sparkContext
words = context.textFile(sys.argv[1], 4).flatMap(str.split)
counts = words.map(lambda word: (word, 1)).reduceByKey(add, 3)
counts.map("{0[0]}\\t{0[1]}".format).saveAsTextFile(sys.argv[2])
context.stop()
"""


@pytest.fixture(scope="module")
def spark() -> Path:
    try:
        return fetch_spark()
    except StockUnavailable as missing:
        pytest.fail(str(missing))


@pytest.mark.parametrize("mode", ["cluster", "client"])
def test_word_count(interop: InteropCluster, hadoop: HadoopJars, spark: Path, tmp_path: Path, mode: str) -> None:
    folder = f"/spark-{mode}"
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "count.py").write_text(PROGRAM)
    interop.clients.fs("-mkdir", folder).checked()
    interop.clients.fs("-put", str(tmp_path / "text.txt"), f"{folder}/text").checked()
    home = spark / "pyspark"
    settings = {
        "spark.yarn.jars": f"local:{home}/jars/*",
        "spark.pyspark.python": sys.executable,
        "spark.driver.memory": "512m",
        "spark.yarn.am.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.executor.instances": 2,
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1" if mode == "client" else None,
    }
    options = [word for key, value in settings.items() if value for word in ("--conf", f"{key}={value}")]
    submit = ["bash", str(home / "bin/spark-submit"), "--master", "yarn", "--deploy-mode", mode, *options]
    clients = StockClients(hadoop, interop.ours.conf_dir, environment={"SPARK_HOME": str(home)}, timeout_s=600)
    arguments = [str(tmp_path / "count.py"), f"{folder}/text", f"{folder}/counted"]
    run = clients.execute([*submit, *arguments], f"spark-submit, {mode} mode").checked()
    counted = {
        word: int(count) for word, count in (line.split("\t") for line in output_lines(interop, f"{folder}/counted"))
    }
    assert counted == Counter(TEXT.split())
    assert final_state(interop, application_of(run)) == "SUCCEEDED"
