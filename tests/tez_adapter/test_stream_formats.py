"""Streaming programs that speak typed or raw bytes: what they read and write, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tez_adapter.client.follow import JobResult
from tez_adapter.client.staging import SubmitError
from tez_adapter.client.submit import submit_streaming
from tez_adapter.data import Columns
from tez_adapter.streaming.formats import StreamFormat, input_block, output_lines, pairs_block
from tez_adapter.streaming.settings import check_combiner, stream_settings
from yaqd.config import ConfigError, Configuration

Write = Callable[[str, str], str]
TEXT, RAW, TYPED = StreamFormat.TEXT, StreamFormat.RAW, StreamFormat.TYPED
COMPARATOR = "org.apache.hadoop.mapreduce.lib.partition.KeyFieldBasedComparator"


def conf(**settings: str) -> Configuration:
    return Configuration.load(environ={}, overrides=settings)


def test_a_mapper_reads_offsets_and_lines() -> None:
    lines, offsets = [b"a", b"\xff"], [0, 2]
    assert input_block(TEXT, lambda: offsets, lines, None) == b"a\n\xff\n"
    assert input_block(TEXT, lambda: offsets, lines, b":") == b"0:a\n2:\xff\n"
    typed = b"\4" + bytes(8) + b"\7\0\0\0\1a" + b"\4" + bytes(7) + b"\2\7\0\0\0\3\xef\xbf\xbd"
    assert input_block(TYPED, lambda: offsets, lines, None) == typed
    raw = b"\0\0\0\x08" + bytes(8) + b"\0\0\0\2\1a" + b"\0\0\0\x08" + bytes(7) + b"\2\0\0\0\2\1\xff"
    assert input_block(RAW, lambda: offsets, lines, None) == raw


@pytest.mark.parametrize(
    ("held", "read", "block"),
    [
        (TEXT, TYPED, b"\7\0\0\0\1k\7\0\0\0\0"),
        (TEXT, RAW, b"\0\0\0\2\1k\0\0\0\1\0"),
        (RAW, RAW, b"\0\0\0\1k\0\0\0\0"),
        (RAW, TYPED, b"\0\0\0\0\1k\0\0\0\0\0"),
        (RAW, TEXT, b"k\t\n"),
    ],
)
def test_a_reducer_reads_what_a_mapper_wrote_in_another_format(
    held: StreamFormat, read: StreamFormat, block: bytes
) -> None:
    assert bytes(pairs_block(held, read, Columns.from_lists([b"k"], [b""]), b"\t")) == block


def test_output_files_hold_text() -> None:
    pairs = Columns.from_lists([b"\7\0\0\0\2a\n"], [b"\2\1"])
    assert bytes(output_lines(TYPED, pairs, b"\t")) == b"a\n\ttrue\n"
    assert bytes(output_lines(RAW, pairs, b":")) == b"07 00 00 00 02 61 0a:02 01\n"
    assert bytes(output_lines(TYPED, Columns.empty(), b"\t")) == b""


def test_formats_are_named_in_any_case_and_others_are_refused() -> None:
    assert stream_settings(conf(**{"stream.map.output": "TypedBytes"})).map_output_format is TYPED
    with pytest.raises(ConfigError, match="set it to text or rawbytes or typedbytes"):
        stream_settings(conf(**{"stream.reduce.input": "keyonlytext"}))


def test_what_needs_text_is_refused_of_other_formats() -> None:
    settings = {"stream.map.output": "rawbytes", "mapreduce.job.output.key.comparator.class": COMPARATOR}
    with pytest.raises(ConfigError, match=r"orders keys of text, and stream\.map\.output is rawbytes"):
        stream_settings(conf(**settings))
    mixed = conf(**{"stream.map.output": "typedbytes"})
    with pytest.raises(ConfigError, match="leave out -combiner"):
        check_combiner(stream_settings(mixed), mixed)


def _run(
    cluster: Configuration,
    write: Write,
    output: Path,
    mapper: str,
    *,
    overwrite: bool = False,
    text: str = "one\ntwo\n",
) -> JobResult:
    overrides = dict.fromkeys(
        ("stream.map.input", "stream.map.output", "stream.reduce.input", "stream.reduce.output"), "typedbytes"
    )
    job = submit_streaming(
        cluster.with_overrides({**overrides, "mapreduce.map.maxattempts": "1"}, source="test"),
        inputs=[write("in.txt", text)],
        output=str(output),
        mapper=mapper,
        reducer="cat",
        reduces=1,
        overwrite=overwrite,
    )
    try:
        return job.wait(timeout_s=90)
    finally:
        job.close()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_typed_bytes_go_through_a_job_and_replace_its_results_when_asked(
    cluster: Configuration, write: Write, tmp_path: Path
) -> None:
    result = _run(cluster, write, tmp_path / "out", "cat")
    assert result.state == "SUCCEEDED", result.diagnostics
    assert (tmp_path / "out" / "part-00000").read_text() == "0\tone\n4\ttwo\n"
    with pytest.raises(SubmitError, match="exists already"):
        _run(cluster, write, tmp_path / "out", "cat")
    result = _run(cluster, write, tmp_path / "out", "cat", overwrite=True, text="three\n")
    assert result.state == "SUCCEEDED", result.diagnostics
    assert (tmp_path / "out" / "part-00000").read_text() == "0\tthree\n"


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_program_that_claims_two_gigabytes_fails_its_task(
    cluster: Configuration, write: Write, tmp_path: Path
) -> None:
    claim = "import os, sys; os.write(1, bytes([7, 127, 255, 255, 255])); sys.stdin.buffer.read()"
    result = _run(cluster, write, tmp_path / "out", f'python3 -c "{claim}"')
    assert result.state == "FAILED"
    assert "the mapper does not write what stream.map.output says" in result.diagnostics
    assert "more than 268435456 are not taken" in result.diagnostics
