"""Stock Hadoop Streaming on our daemons: the same scripts as ours, the same bytes."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from benchmarks.interop_cluster import InteropCluster
from benchmarks.jobs import __file__ as jobs_file
from tests.interop.interop_checks import output_lines

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


def _both(interop: InteropCluster, folder: Path, name: str, *arguments: str) -> dict[str, bytes]:
    """The output files of one run with stock Hadoop Streaming, which ours are the same as."""
    with ThreadPoolExecutor(1) as pool:
        stock = pool.submit(interop.clients.streaming, *arguments, "-output", f"/out/{name}-stock")
        interop.ours.yaq("mr", "streaming", *arguments, "-output", f"/out/{name}-ours")
        stock.result().checked()
    interop.clients.fs("-get", f"/out/{name}-stock", f"/out/{name}-ours", str(folder)).checked()
    theirs, ours = (
        {file.name: file.read_bytes() for file in (folder / f"{name}-{side}").iterdir()} for side in ("stock", "ours")
    )
    assert ours == theirs
    return theirs


@pytest.mark.representative
def test_streaming_gives_what_ours_gives(interop: InteropCluster, texts: str, tmp_path: Path) -> None:
    files = f"{JOBS / 'wc_map.py'},{JOBS / 'wc_sum.py'}"
    scripts = ("-mapper", "python3 wc_map.py", "-combiner", "python3 wc_sum.py", "-reducer", "python3 wc_sum.py")
    arguments = ("-D", "mapreduce.job.reduces=3", "-files", files, "-input", texts, *scripts)
    found = _both(interop, tmp_path, "streaming", *arguments)
    parts = [f"part-{number:05d}" for number in range(3)]
    assert sorted(found) == ["_SUCCESS", *parts]
    assert sum(bool(found[part]) for part in parts) > 1
    assert sorted(line for part in parts for line in found[part].decode().splitlines()) == COUNTS


@pytest.mark.full
def test_keys_of_any_bytes_go_where_stock_streaming_sends_them(interop: InteropCluster, tmp_path: Path) -> None:
    keys = ["", "ä", "日本語", "a long key of more than twenty-four bytes", "x" * 300, *(f"k{n}" for n in range(50))]
    (tmp_path / "keys.txt").write_text("".join(f"{key}\t{number}\n" for number, key in enumerate(keys)))
    with (tmp_path / "keys.txt").open("ab") as file:
        file.write(b"\xff\xfe\x80 no text\t0\nno tab\n")
    interop.clients.fs("-put", str(tmp_path / "keys.txt"), "/keys.txt").checked()
    generic = ("-D", "mapreduce.job.reduces=4", "-D", "mapreduce.job.maps=1")
    found = _both(interop, tmp_path, "keys", *generic, "-input", "/keys.txt", "-mapper", "cat", "-reducer", "cat")
    assert sum(data.count(b"\n") for data in found.values()) == len(keys) + 2
    assert all(found[f"part-{number:05d}"] for number in range(4))


@pytest.mark.full
def test_map_only_streaming_names_its_files_alike(interop: InteropCluster, texts: str, tmp_path: Path) -> None:
    one = ("-D", "mapreduce.job.reduces=0", "-D", "mapreduce.job.maps=1")
    found = _both(interop, tmp_path, "maps", *one, "-input", f"{texts}/1.txt", "-mapper", "cat")
    assert found == {"_SUCCESS": b"", "part-00000": b"a b word1\t\n" * 200}


@pytest.mark.full
def test_each_file_has_its_run_and_keys_are_parted_and_ordered_by_fields(
    interop: InteropCluster, tmp_path: Path
) -> None:
    """A header is left out of each file; words of the command, separators and options are as users write them."""
    (tmp_path / "tables").mkdir()
    for number, name in enumerate("abc"):
        rows = [f"{name}::{(row * 37 + number) % 83 - 40}::{row}.5::x" for row in range(40 - 10 * number)]
        (tmp_path / "tables" / f"{name}.txt").write_text("\r\n".join(["header", *rows]))
    (tmp_path / "tables" / "empty.txt").touch()
    interop.clients.fs("-put", str(tmp_path / "tables"), "/tables").checked()
    mapper = tmp_path / "rows.py"
    mapper.write_text(
        "import os, sys\nlines = sys.stdin.read().splitlines()\n"
        "at_start = os.environ['map_input_start'] == os.environ['mapreduce_map_input_start'] == '0'\n"
        "for line in lines[1:] if at_start else lines: sys.stdout.write(f'{line}::{sys.argv[1:]}\\r\\n')\n"
    )
    comparator = "org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedComparator"
    settings = {
        "mapred.reduce.tasks": "2",
        "stream.map.output.field.separator": "::",
        "stream.num.map.output.key.fields": "3",
        "stream.reduce.output.field.separator": "5::",
        "map.output.key.field.separator": ":",
        "mapred.text.key.partitioner.options": "-k1,1",
        "mapred.output.key.comparator.class": comparator,
        "mapred.text.key.comparator.options": "-k3,3nr -k5.1,5.2",
    }
    generic = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
    scripts = ("-mapper", "python3 rows.py -F\\t 'a b' \"c'd\"", "-reducer", "cat")
    partitioner = ("-partitioner", "org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner")
    found = _both(
        interop, tmp_path, "fields", *generic, "-files", str(mapper), "-input", "/tables", *scripts, *partitioner
    )
    assert sum(data.count(b"\n") for data in found.values()) == 90


def test_our_word_count_on_hdfs_beside_theirs(interop: InteropCluster, texts: str) -> None:
    interop.ours.yaq(
        "mr", "submit", str(JOBS / "wordcount.py"), "--input", texts, "--output", "/out/our-job", "--reduces", "2"
    )
    assert sorted(output_lines(interop, "/out/our-job")) == COUNTS
    listing = interop.clients.fs("-ls", "/out/our-job").checked().stdout
    assert re.findall(r"our-job/(\S+)", listing) == ["_SUCCESS", "part-r-00000", "part-r-00001"]


@pytest.mark.full
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
