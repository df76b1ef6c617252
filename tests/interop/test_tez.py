"""Unmodified Tez programs on our daemons, their answers against plain Python's, with merged map outputs and without."""

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.stock.artifacts import HadoopJars, StockUnavailable, fetch_tez
from benchmarks.stock.clients import StockClients
from benchmarks.stock.daemons import StockHdfs
from tests.interop.interop_tez import JVM, tez_clients

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]
CLIENT = "Tez"

TEXTS = {
    "one.txt": "to be or not to be\nthat is the question\n" * 50,
    "two.txt": "whether 'tis nobler in the mind to suffer\n" * 40,
    "three.txt": "the slings and arrows of outrageous fortune\n",
}
WORDS = Counter(word for text in TEXTS.values() for word in text.split())
#: their first letters decide on the partition; most of the left ones are there twice
LEFT = [f"{'ab'[number % 2]}{number % 40}" for number in range(76)]
RIGHT = [f"{'ab'[number % 2]}{number}" for number in range(30, 90)]
SOME = LEFT[:36:5]
#: what each kind of cluster sets; "shipped" is the one that other tests use
SITES: dict[str, dict[str, object]] = {
    "shipped": {},
    "merged": {
        "yaq.riffle.enabled": "true",
        "yaq.riffle.shuffle.policy": "files",
        "yaq.riffle.shuffle.files": 2,
        "yaq.riffle.shuffle.block-size-max": "1g",
        "yaq.riffle.shuffle.quiet-ms": "100ms",
    },
    "apart": {"yaq.riffle.enabled": "false"},
}
_EXAMPLES = "org.apache.tez.examples."
_JVM_KEYS = ("yarn.app.mapreduce.am.command-opts", "mapreduce.map.java.opts", "mapreduce.reduce.java.opts")
_TESTS = "org.apache.tez.mapreduce.examples."


@dataclass(frozen=True)
class Tez:
    """Tez on one cluster; each kind of cluster writes to a folder of its own."""

    clients: StockClients
    hdfs: StockClients
    folder: str

    def run(self, program: str, *args: str) -> None:
        self.clients.run(program, args).checked()

    def lines(self, output: str) -> list[str]:
        """Of all part files, in the order of the parts."""
        return self.hdfs.fs("-cat", f"{self.folder}/{output}/part*").checked().stdout.splitlines()

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"


@pytest.fixture(scope="module")
def tez_jars(hadoop: HadoopJars) -> Path:
    try:
        return fetch_tez()
    except StockUnavailable as missing:
        pytest.fail(str(missing))


@pytest.fixture(
    scope="module", params=["shipped", *(pytest.param(k, marks=pytest.mark.full) for k in ("merged", "apart"))]
)
def tez(
    request: pytest.FixtureRequest,
    hadoop: HadoopJars,
    tez_jars: Path,
    hdfs: StockHdfs,
    quick_tasks: dict[str, object],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Tez]:
    """Texts in `/tez/texts`, and two files of keys."""
    folder = tmp_path_factory.mktemp("tez")
    inputs = folder / "inputs"
    (inputs / "texts").mkdir(parents=True)
    for name, text in TEXTS.items():
        (inputs / "texts" / name).write_text(text)
    for name, keys in (("left", LEFT), ("right", RIGHT), ("some", SOME)):
        (inputs / name).write_text("".join(f"{key}\n" for key in keys))
    with ExitStack() as stack:
        if request.param == "shipped":
            cluster: InteropCluster = request.getfixturevalue("interop")
        else:
            site = {**quick_tasks, **SITES[request.param]}
            cluster = stack.enter_context(InteropCluster(hadoop, folder / "cluster", hdfs, site=site))
        cluster.clients.fs("-put", str(inputs), f"/tez-{request.param}").checked()
        yield Tez(tez_clients(cluster, tez_jars, folder), cluster.clients, f"/tez-{request.param}")


@pytest.mark.representative
def test_ordered_word_count(tez: Tez) -> None:
    tez.run(_EXAMPLES + "OrderedWordCount", tez.path("texts"), tez.path("counted"), "2")
    found = [line.split("\t") for line in tez.lines("counted")]
    counts = [int(count) for _, count in found]
    assert counts == sorted(counts)
    assert {word: int(count) for word, count in found} == WORDS


@pytest.mark.full
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("HashJoinExample", [key for key in LEFT if key in RIGHT]),
        ("SortMergeJoinExample", set(LEFT) & set(RIGHT)),
    ],
)
def test_join(tez: Tez, program: str, expected: Collection[str]) -> None:
    tez.run(_EXAMPLES + program, tez.path("left"), tez.path("right"), "2", tez.path(program))
    assert sorted(tez.lines(program)) == sorted(expected)


@pytest.mark.full
def test_cartesian_product_filtered_by_a_third_input(tez: Tez) -> None:
    inputs = [tez.path(name) for name in ("left", "right", "some")]
    tez.run(_EXAMPLES + "CartesianProduct", "-partitioned", *inputs, tez.path("product"))
    expected = [f"{left}\t{right}" for left in LEFT if left in SOME for right in RIGHT]
    assert sorted(tez.lines("product")) == sorted(expected)


@pytest.mark.full
def test_union_of_two_vertices_in_a_session(tez: Tez) -> None:
    tez.run(_TESTS + "UnionExample", tez.path("texts"), tez.path("union"))
    assert tez.lines("union") == [f"Union\t{len(WORDS)}"]
    ones = Counter(line.removesuffix("\t1") for line in tez.lines("union-parts"))
    assert ones == {word: 2 * count for word, count in WORDS.items()}


@pytest.mark.full
def test_maps_reduces_and_reduces_that_sleep(tez: Tez) -> None:
    counts = ("-m", "2", "-ir", "2", "-irs", "1", "-r", "1")
    tez.run(_TESTS + "MRRSleepJob", *counts, "-mt", "100", "-irt", "100", "-rt", "100")


@pytest.mark.full
def test_mapreduce_on_tez(tez: Tez) -> None:
    # Tez does not add what Java 17 needs
    options = [f"-D{key}={JVM}" for key in _JVM_KEYS]
    options += ["-Dmapreduce.framework.name=yarn-tez", "-Dmapreduce.job.reduces=2"]
    tez.clients.example("wordcount", *options, tez.path("texts"), tez.path("mapreduce")).checked()
    assert sorted(tez.lines("mapreduce")) == sorted(f"{word}\t{count}" for word, count in WORDS.items())
