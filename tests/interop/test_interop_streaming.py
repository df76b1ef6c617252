"""Stock Hadoop Streaming on our daemons: the same scripts as ours, the same bytes."""

import re
from pathlib import Path

import pytest
from interop_checks import output_lines

from benchmarks.interop_cluster import InteropCluster
from benchmarks.jobs import __file__ as jobs_file

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]
CLIENT = "Hadoop Streaming"
JOBS = Path(jobs_file).parent
COUNTS = ["a\t600", "b\t600", "word0\t200", "word1\t200", "word2\t200"]


@pytest.fixture(scope="module")
def texts(interop: InteropCluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of texts on HDFS."""
    folder = tmp_path_factory.mktemp("streamed")
    for number in range(3):
        (folder / f"{number}.txt").write_text(f"a b word{number}\n" * 200)
    interop.clients.fs("-put", str(folder), "/streamed").checked()
    return "/streamed"


@pytest.mark.representative
def test_streaming_gives_what_ours_gives(interop: InteropCluster, texts: str, tmp_path: Path) -> None:
    files = f"{JOBS / 'wc_map.py'},{JOBS / 'wc_sum.py'}"
    scripts = ("-mapper", "python3 wc_map.py", "-combiner", "python3 wc_sum.py", "-reducer", "python3 wc_sum.py")
    # With one reduce: which of several gets a key is each side's own choice.
    arguments = ("-D", "mapreduce.job.reduces=1", "-files", files, "-input", texts, *scripts)
    interop.clients.streaming(*arguments, "-output", "/out/streaming").checked()
    interop.ours.yaq("mr", "streaming", *arguments, "-output", "/out/ours")

    interop.clients.fs("-get", "/out/streaming", "/out/ours", str(tmp_path)).checked()
    (theirs,), (ours,) = (
        [part.read_bytes() for part in (tmp_path / name).glob("part-*")] for name in ("streaming", "ours")
    )
    assert ours == theirs
    assert ours.decode().splitlines() == COUNTS


def test_our_word_count_on_hdfs_beside_theirs(interop: InteropCluster, texts: str) -> None:
    interop.ours.yaq(
        "mr", "submit", str(JOBS / "wordcount.py"), "--input", texts, "--output", "/out/our-job", "--reduces", "2"
    )
    assert sorted(output_lines(interop, "/out/our-job")) == COUNTS
    listing = interop.clients.fs("-ls", "/out/our-job").checked().stdout
    assert re.findall(r"our-job/(\S+)", listing) == ["_SUCCESS", "part-r-00000", "part-r-00001"]


def test_many_small_files(interop: InteropCluster, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    for number in range(100):
        (tmp_path / "small" / f"{number}.txt").write_text(f"all word{number}\n")
    interop.clients.fs("-put", str(tmp_path / "small"), "/small").checked()
    combined = ("-inputformat", "org.apache.hadoop.mapred.lib.CombineTextInputFormat")
    # Other formats than text alone hand their keys to the mapper too, unless told not to.
    split = ("-D", "mapreduce.input.fileinputformat.split.maxsize=1000", "-D", "stream.map.input.ignoreKey=true")
    counting = ("-mapper", "python3 wc_map.py", "-reducer", "python3 wc_sum.py", "-files")
    files = f"{JOBS / 'wc_map.py'},{JOBS / 'wc_sum.py'}"
    run = interop.clients.streaming(
        *(*split, *counting[-1:], files, *combined, *counting[:-1]), "-input", "/small", "-output", "/out/small"
    ).checked()
    assert "Total input files to process : 100" in run.stderr
    expected = [*(f"word{number}\t1" for number in range(100)), "all\t100"]
    assert sorted(output_lines(interop, "/out/small")) == sorted(expected)
