"""`yaq riffle` on files and against nodes that answer, do not, or talk nonsense."""

import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from riffle_merger.format.packed import index_of
from tests.cli.cli_web import AnsweringServer
from tests.riffle_merger.map_outputs import sealed, write_output
from yaqd.cli.app import yaq
from yaqd.cli.mergers import commands as module
from yaqd.cli.output import snake_keys


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(yaq, ["riffle", *arguments])
    return result.exit_code, result.output


def test_files_are_merged_shown_and_checked(tmp_path: Path) -> None:
    for name in ("attempt_b", "attempt_a"):
        write_output(tmp_path, name, [name.encode() * 20, None, b"x" * 500])
    code, text = run("merge", str(tmp_path), "--json")
    assert code == 0
    facts = json.loads(text)
    merged = Path(facts["file"])
    assert (merged, facts["maps"], facts["partitions"]) == (tmp_path / "riffle/by-hand.out", 2, 3)

    code, text = run("inspect", str(merged), "--verify")
    assert code == 0 and "every segment is whole" in text and "attempt_a ... attempt_b" in text
    code, text = run("inspect", f"{merged}.index", "--partition", "2", "--json")
    assert [row["map"] for row in json.loads(text)["rows"]] == ["attempt_a", "attempt_b"]
    assert run("inspect", str(merged), "--partition", "3")[0] == 2
    see_checksums(merged, [[b"attempt_a" * 20, b"attempt_b" * 20], [None, None], [b"x" * 500] * 2])

    code, text = run("merge", str(tmp_path), "attempt_b", "--name", "one")
    assert code == 0 and "1 writes" not in text
    assert "maps:       1: attempt_b\n" in run("inspect", str(tmp_path / "riffle/one.out"))[1]
    assert run("merge", str(tmp_path), "attempt_c")[0] == 2
    assert run("merge", str(tmp_path), "--name", "../x")[0] == 2
    code, text = run("merge", str(tmp_path))
    assert code == 2 and f"{merged} or its index is there already" in text and "--name" in text
    code, text = run("inspect", str(tmp_path / "riffle"))
    assert code == 2 and f"{tmp_path}/riffle is a folder" in text

    data = bytearray(merged.read_bytes())
    data[5] ^= 1
    merged.write_bytes(data)
    code, text = run("inspect", str(merged), "--verify")
    assert code == 1 and "attempt_a" in text and "1 of 3 partitions are damaged" in text
    merged.write_bytes(data[:-1])
    assert run("inspect", str(merged))[0] == 1


def see_checksums(merged: Path, rows: list[list[bytes | None]]) -> None:
    """Of each partition: over those at its segments' ends, 0 of a segment of no bytes."""
    expected = [zlib.crc32(b"".join((sealed(body) or bytes(4))[-4:] for body in row)) for row in rows]
    assert [row["checksum"] for row in json.loads(run("inspect", str(merged), "--json")[1])["rows"]] == expected
    table = [line.split() for line in run("inspect", str(merged))[1].splitlines()][-len(rows) - 1 :]
    assert [line[-1] for line in table] == ["checksum", *map(str, expected)]


def test_what_a_merge_is_asked_for_wrongly_is_named(tmp_path: Path) -> None:
    write_output(tmp_path, "attempt_a", [b"x"])
    for memory in ("0", "1048577", "99999999"):
        code, text = run("merge", str(tmp_path), "--memory", memory)
        assert code == 2 and "1<=x<=1048576" in text and "--memory" in text and "--name" not in text
    for name in ("", "a/b", ".hidden", "x" * 300):
        code, text = run("merge", str(tmp_path), "--name", name)
        assert code == 2 and f'--name "{name}": ' in text and "--memory" not in text
    assert not (tmp_path / "riffle").exists()


def test_outputs_without_an_index_are_left_out_and_named(tmp_path: Path) -> None:
    for name in ("attempt_a", "attempt_b", "attempt_c"):
        write_output(tmp_path, name, [b"x"])
    for name in ("attempt_b", "attempt_c"):
        (tmp_path / "output" / name / "file.out.index").unlink()
    result = CliRunner().invoke(yaq, ["riffle", "merge", str(tmp_path), "--json"])
    facts = json.loads(result.stdout)
    assert (result.exit_code, facts["maps"], facts["left_out"]) == (0, 1, ["attempt_b", "attempt_c"])
    assert result.stderr == "yaq: 2 without an index left out: attempt_b, attempt_c\n"


def put(folder: Path, name: str, segments: list[list[bytes]]) -> Path:
    """A file as on HDFS: by partition, the segments of two maps."""
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{name}_a", f"{name}_b"]
    data = b"".join(b"".join(row) for row in segments)
    checksums = [[int.from_bytes(segment[-4:], "big") for segment in row] for row in segments]
    (folder / name).write_bytes(
        data + index_of(names, ([len(segment) for segment in row] for row in segments), checksums)
    )
    return folder / name


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_files_of_a_job_on_a_shared_file_system_are_shown_and_checked(tmp_path: Path) -> None:
    staging = tmp_path / "job_1_0001"
    segments = [[sealed(b"a" * 100), sealed(None)], [sealed(b"x" * 3_000_000), sealed(b"")], [sealed(None)] * 2]
    file = put(staging / "shuffle" / "2", "am2-000001.1-1", segments)
    put(staging / "shuffle" / "2", "attempt_1", segments)
    (staging / "shuffle" / "2" / ".half").write_bytes(b"not yet")
    (staging / "job.xml").write_text("nothing of it")

    code, text = run("inspect", f"file://{file}", "--verify")
    assert code == 0 and "every segment is whole" in text and f"{file.name}_a ... {file.name}_b" in text
    code, text = run("inspect", f"file://{file}", "--partition", "1", "--json")
    rows = json.loads(text)["rows"]
    assert [(row["offset"], row["length"]) for row in rows] == [(104, 3_000_004), (3_000_108, 4)]
    assert run("inspect", f"file://{file}", "--partition", "3")[0] == 2
    for folder in (staging, staging / "shuffle", staging / "shuffle" / "2"):
        code, text = run("inspect", f"file://{folder}", "--verify", "--json")
        assert code == 0 and [len(found["maps"]) for found in json.loads(text)] == [2, 2]
    assert run("inspect", f"file://{staging}", "--partition", "1")[0] == 2
    assert run("inspect", f"file://{tmp_path}/none")[0] == 2

    flip(file, 2_000_000)
    code, text = run("inspect", f"file://{file}", "--verify")
    assert code == 1 and f"partition 1: {file.name}_a" in text and "1 of 3 partitions are damaged" in text
    assert run("inspect", f"file://{file}")[0] == 0  # its index is as it was
    flip(file, file.stat().st_size - 5)
    assert run("inspect", f"file://{file}")[0] == 1
    code, text = run("inspect", f"file://{staging}", "--verify")
    assert code == 1 and "1 of 2 files are damaged" in text and text.count("whole") == 1


#: of a merger that runs
RUNNING = (
    '{"merger": {"up": true, "enabled": true, "queued": 0, "running": 1, "mergedBytes": 4096, "merges": 3, "failed": 0,'
    ' "busyMs": 2000, "usedBytes": 1, "budgetBytes": 2, "restarts": 0}}'
)


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        (b'{"merger": {"enabled": true, "up": false, "restarts": 3}}', 200, {"up": False, "restarts": 3}),
        (b'{"merger": 7}', 200, {"error": "answers nonsense"}),
        (b'{"merger": {"up": true, "queued": 1}}', 200, {"error": "answers nonsense"}),
        (RUNNING.encode(), 200, {"up": True, "busyMs": 2000}),
        (RUNNING.replace("2000", "NaN").encode(), 200, {"error": "answers nonsense"}),
        (RUNNING.replace("2000", '"\\u001b[2J"').encode(), 200, {"error": "answers nonsense"}),
        (b"[" * 100_000, 200, None),
        (b"", 404, {"error": "answers 404"}),
    ],
)
def test_a_node_may_say_anything(body: bytes, status: int, expected: dict[str, object] | None) -> None:
    with AnsweringServer(lambda path: (status, body)) as server:
        found = module._of_node(server.address)
    if expected is None:
        assert "does not answer" in str(found["error"])
    else:
        assert expected.items() <= found.items()
    assert module._row({"node": "n", **found})[0] == "n"


def test_json_has_keys_as_other_commands_have_them() -> None:
    with AnsweringServer(lambda path: (200, RUNNING.encode())) as server:
        found = snake_keys([{"node": "n:1", **module._of_node(server.address)}])
    assert found[0].keys() >= {"node", "merged_bytes", "busy_ms", "budget_bytes", "restarts"}
    assert snake_keys({"jobs": [{"jobId": "aB"}], "isX": None}) == {"jobs": [{"job_id": "aB"}], "is_x": None}


def test_a_merger_that_is_starting_is_not_down() -> None:
    down: dict[str, Any] = {"node": "n", "enabled": True, "up": False, "starting": False}
    states = [module._row(down | more)[1] for more in ({}, {"starting": True}, {"enabled": False})]
    assert states == ["down", "starting", "off"]


def test_what_is_no_merged_file_and_no_folder_of_outputs_is_said(tmp_path: Path) -> None:
    (tmp_path / "plain.out").write_text("x")
    code, text = run("inspect", str(tmp_path / "plain.out"))
    assert code == 1 and f"there is no {tmp_path}/plain.out.index" in text
    code, text = run("merge", str(tmp_path))
    assert code == 2 and f"no map output in {tmp_path}/output" in text
