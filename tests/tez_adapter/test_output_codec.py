"""The codec of map outputs by our words and Hadoop's classes, and the refusal of all others before anything starts."""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from riffle_merger.format.codec import codec_by_name
from tez_adapter.client.local import run_local
from tez_adapter.client.submit import submit_mapreduce, submit_streaming
from tez_adapter.output_codec import CODEC_KEY, CODECS, COMPRESS_KEY, shuffle_codec
from yaqd.cli.exits import BAD_INPUT, explain
from yaqd.config import ConfigError, Configuration
from yaqd.mapreduce import Job

HADOOPS = "org.apache.hadoop.io.compress."
UNKNOWN = ["gzip", "zstandard", "lz4.", f"{HADOOPS}XzCodec", f"{HADOOPS}lz4", "com.hadoop.compression.lzo.LzoCodec"]


def conf(codec: str, **more: str) -> Configuration:
    return Configuration.load(environ={}, overrides={CODEC_KEY: codec, **more})


class WordCount(Job):
    def map(self, key: int, value: str) -> Iterator[tuple[str, int]]:
        for word in value.split():
            yield word, 1

    def reduce(self, key: str, values: Iterable[int]) -> Iterator[tuple[str, int]]:
        yield key, sum(values)


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        *((word, word) for word in CODECS),
        ("ZSTD", "zstd"),
        (" snappy ", "snappy"),
        ("", "lz4"),
        (f"{HADOOPS}ZStandardCodec", "zstd"),
        (f"{HADOOPS}Lz4Codec", "lz4"),
        (f"{HADOOPS}SnappyCodec", "snappy"),
        *((f"{HADOOPS}{short}", "lz4") for short in ("DefaultCodec", "DeflateCodec", "GzipCodec", "BZip2Codec")),
    ],
)
def test_each_name_has_its_codec(name: str, codec: str) -> None:
    assert shuffle_codec(conf(name)) == codec
    assert codec_by_name(codec).name == codec
    assert shuffle_codec(conf(name, **{COMPRESS_KEY: "false"})) == "none"


@pytest.mark.parametrize("name", UNKNOWN)
def test_any_other_is_refused_when_it_is_submitted(tmp_path: Path, name: str) -> None:
    """Nothing answers at the ResourceManager's address: a submission that got so far would fail otherwise."""
    source, script, out = tmp_path / "in.txt", tmp_path / "job.py", str(tmp_path / "out")
    source.write_text("a b\n")
    script.write_text("from yaqd.mapreduce import Job\nclass Same(Job):\n    pass\n")
    refused = []
    for submit in (
        lambda: submit_mapreduce(conf(name), str(script), inputs=[str(source)], output=out, reduces=1),
        lambda: submit_streaming(conf(name), mapper="cat", inputs=[str(source)], output=out, reduces=1),
        lambda: run_local(WordCount, [str(source)], out, conf(name)),
    ):
        with pytest.raises(ConfigError) as caught:
            submit()
        refused.append(explain(caught.value))
    message = f'{CODEC_KEY} = "{name}": is no codec of map outputs; write lz4, snappy, zstd or none'
    assert all(found and message in found[0] and found[1] == BAD_INPUT for found in refused), refused
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__") == ["in.txt", "job.py"]


def test_a_job_that_moves_no_map_output_needs_no_codec(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a b\n")
    for more, reduces in (({COMPRESS_KEY: "false"}, 1), ({}, 0)):
        run_local(WordCount, [str(tmp_path / "in.txt")], str(tmp_path / f"out{reduces}"), conf("lzo", **more), reduces)
        assert (tmp_path / f"out{reduces}" / "_SUCCESS").exists()


@pytest.mark.slow
@pytest.mark.parametrize("codec", CODECS)
def test_a_job_counts_alike_whatever_its_codec(tmp_path: Path, codec: str) -> None:
    words = random.Random(5).choices([f"word{i}" for i in range(50)], k=20_000)
    (tmp_path / "in.txt").write_text("\n".join(words))
    run_local(WordCount, [str(tmp_path / "in.txt")], str(tmp_path / "out"), conf(codec), 2)
    lines = [line.split("\t") for p in (tmp_path / "out").glob("part-*") for line in p.read_text().splitlines()]
    assert {word: int(count) for word, count in lines} == Counter(words)
