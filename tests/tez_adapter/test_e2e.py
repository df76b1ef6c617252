"""Jobs on a real ResourceManager and real NodeManagers, from submission to output and history."""

import random
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.tez_adapter.tez_jobs import WORDCOUNT, Write, finish, job_script, parts, run, staging_is_empty, text
from tez_adapter.client.staging import SubmitError
from tez_adapter.client.submit import Attachments, submit_command, submit_mapreduce, submit_streaming
from tez_adapter.history import read_history
from yaqd.config import ConfigError, Configuration
from yaqd.mapreduce.errors import JobError
from yaqd.storage import StorageError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]


def test_word_count_counts_words(cluster: Configuration, write: Write, tmp_path: Path) -> None:
    content = text(4000)
    source = write("in.txt", content)
    conf = cluster.with_overrides({"mapreduce.input.fileinputformat.split.maxsize": "50000"})
    job = submit_mapreduce(conf, write("wc.py", WORDCOUNT), inputs=[source], output=str(tmp_path / "out"), reduces=3)
    result = finish(job)
    assert result.state == "SUCCEEDED", result.diagnostics
    outputs = parts(tmp_path / "out")
    assert len(outputs) == 3
    pairs = [line.split("\t") for part in outputs for line in part.splitlines()]
    assert {word: int(count) for word, count in pairs} == Counter(content.split())
    for part in outputs:
        keys = [line.split("\t")[0] for line in part.splitlines()]
        assert keys == sorted(keys)
    counters = result.counters["org.apache.hadoop.mapreduce.TaskCounter"]
    assert counters["MAP_INPUT_RECORDS"] == 4000
    assert counters["MAP_OUTPUT_RECORDS"] == 32000
    history = read_history(conf, job.application_id)
    maps = [a for a in history.attempts if a["vertex"] == "map"]
    assert len(maps) > 3 and all(a["state"] == "SUCCEEDED" for a in maps)
    assert staging_is_empty(cluster)


def test_a_job_without_reduces_writes_its_maps_output(cluster: Configuration, write: Write, tmp_path: Path) -> None:
    script = job_script(write, "yield None, value.upper()", "reduces = 0")
    result = run(cluster, script, write("in.txt", "a b\nc\n"), tmp_path / "out")
    assert result.state == "SUCCEEDED", result.diagnostics
    assert parts(tmp_path / "out") == ["A B\nC\n"]


def test_a_job_may_do_without_some_of_its_maps(cluster: Configuration, write: Write, tmp_path: Path) -> None:
    for name in ("a", "b", "bad", "c"):
        write(f"{name}.txt", f"{name}\n")
    settings = {
        "mapreduce.map.failures.maxpercent": "25",
        "mapreduce.map.maxattempts": "1",
        "yaq.input.combine-small-files": "false",
    }
    script = job_script(write, "assert value != 'bad'; yield value, 1")
    result = run(cluster.with_overrides(settings), script, str(tmp_path / "*.txt"), tmp_path / "out")
    assert result.state == "SUCCEEDED", result.diagnostics
    assert result.diagnostics.startswith("1 of 4 map tasks failed and were left out")
    assert parts(tmp_path / "out") == ["a\t1\nb\t1\nc\t1\n"]


def test_total_order_over_all_parts(cluster: Configuration, write: Write, tmp_path: Path) -> None:
    rng = random.Random(3)
    words = ["".join(rng.choices("abcdefgh", k=6)) for _ in range(5000)]
    script = job_script(write, "yield value, None", "partitioner = 'range'")
    result = run(cluster, script, write("in.txt", "\n".join(words)), tmp_path / "out", reduces=4)
    assert result.state == "SUCCEEDED", result.diagnostics
    outputs = parts(tmp_path / "out")
    assert "".join(outputs).split() == sorted(words)
    assert all(len(part.split()) > 500 for part in outputs)


def test_streaming_agrees_with_the_pipe(cluster: Configuration, write: Write, tmp_path: Path) -> None:
    content = text(2000)
    mapper = write(
        "map.py",
        "#!/usr/bin/env python3\nimport sys\nprint('reporter:counter:mine,lines,1', file=sys.stderr)\n"
        "for line in sys.stdin:\n    for w in line.split(): print(w + '\\t1')\n",
    )
    reducer = write(
        "red.py",
        "import sys, itertools\npairs = (line.rstrip('\\n').split('\\t') for line in sys.stdin)\n"
        "for k, g in itertools.groupby(pairs, lambda p: p[0]): print(f'{k}\\t{sum(int(v) for _, v in g)}')\n",
    )
    job = submit_streaming(
        cluster,
        inputs=[write("in.txt", content)],
        output=str(tmp_path / "out"),
        mapper="map.py",
        combiner="python3 red.py",
        reducer="python3 red.py",
        reduces=2,
        attachments=Attachments(files=[mapper, reducer]),
    )
    result = finish(job)
    assert result.state == "SUCCEEDED", result.diagnostics
    pairs = [line.split("\t") for part in parts(tmp_path / "out") for line in part.splitlines()]
    assert {word: int(count) for word, count in pairs} == Counter(content.split())
    assert result.counters["mine"]["lines"] == 2  # one a map, and a job hopes for two (mapreduce.job.maps)


def test_a_script_is_told_its_input_file_as_hadoop_writes_it(
    cluster: Configuration, write: Write, tmp_path: Path
) -> None:
    source = write("in.txt", "a\n")
    mapper = "printenv mapreduce_map_input_file map_input_file"
    where: dict[str, Any] = {"inputs": [source], "output": str(tmp_path / "out")}
    conf = cluster.with_overrides({"mapreduce.job.maps": "1"}, source="test")
    result = finish(submit_streaming(conf, mapper=mapper, reduces=0, **where))
    assert result.state == "SUCCEEDED", result.diagnostics
    assert parts(tmp_path / "out") == [f"file:{source}\t\n" * 2]


@pytest.mark.parametrize("reduces", [0, 1])
def test_files_in_a_scripts_work_folder_are_output_if_its_attempt_succeeds(
    cluster: Configuration, write: Write, tmp_path: Path, reduces: int
) -> None:
    script = write(
        "side.sh",
        "#!/bin/sh\nfolder=${mapred_work_output_dir#file:}/of\nmkdir -p $folder\n"
        "echo more > $folder/$mapreduce_task_id-$mapreduce_task_attempt_id\ncat\n"
        "case $mapreduce_task_attempt_id in *_0) exit 1; esac\n",
    )
    job = submit_streaming(
        cluster.with_overrides({"mapreduce.job.maps": "1"}, source="test"),
        inputs=[write("in.txt", "a\n")],
        output=str(tmp_path / "out"),
        mapper="side.sh",
        reducer="side.sh",
        reduces=reduces,
        attachments=Attachments(files=[script]),
    )
    result = finish(job)
    assert result.state == "SUCCEEDED", result.diagnostics
    name = job.job_id.removeprefix("job_")
    kinds = ("m", "r")[: 1 + reduces]
    sides = [f"of/task_{name}_{kind}_000000-attempt_{name}_{kind}_000000_1" for kind in kinds]
    found = [str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert sorted(found) == ["_SUCCESS", *sides, "part-00000"]


@pytest.mark.parametrize(
    ("body", "expected", "attempts"),
    [
        ("raise ValueError('boom ' + value)", "ValueError: boom a", 4),
        ("os._exit(7)", "exit status 7", 4),
        ("sys.exit(3)", "called exit(3)", 4),
        ("yield object(), 1", "cannot serialize", 1),
        ("print('garbage')", "must yield pairs", 4),
    ],
)
def test_what_a_mapper_did_wrong_is_said(
    cluster: Configuration, write: Write, tmp_path: Path, body: str, expected: str, attempts: int
) -> None:
    script = job_script(write, body)
    job = submit_mapreduce(cluster, script, inputs=[write("in.txt", "a\n")], output=str(tmp_path / "out"))
    result = finish(job)
    assert (result.state, result.exit_code) == ("FAILED", 1)
    assert expected in result.diagnostics
    assert result.diagnostics.count(expected) == 1
    assert len(read_history(cluster, job.application_id).attempts) == attempts
    assert not (tmp_path / "out").exists()
    assert staging_is_empty(cluster)


def test_garbage_on_stdout_is_harmless(cluster: Configuration, write: Write, tmp_path: Path) -> None:
    script = job_script(write, "os.write(1, b'\\x00\\xff hrpc' * 1000); yield None, value", "reduces = 0")
    result = run(cluster, script, write("in.txt", "a\nb\n"), tmp_path / "out")
    assert result.state == "SUCCEEDED", result.diagnostics


def test_a_mapper_that_hangs_is_ended(cluster: Configuration, write: Write, tmp_path: Path) -> None:
    script = job_script(write, "time.sleep(1000)")
    conf = cluster.with_overrides({"mapreduce.task.timeout": "1500", "mapreduce.map.maxattempts": "2"})
    result = run(conf, script, write("in.txt", "a\n"), tmp_path / "out")
    assert result.state == "FAILED"
    assert "no progress for 1.5 s (mapreduce.task.timeout)" in result.diagnostics


def test_commands_run_in_containers_and_their_status_counts(cluster: Configuration) -> None:
    assert finish(submit_command(cluster, ["true"], tasks=3)).exit_code == 0
    result = finish(submit_command(cluster, ["sh", "-c", "exit 5"]))
    assert (result.state, result.exit_code) == ("FAILED", 5)


def test_commands_run_on_the_named_nodes_or_are_refused(cluster: Configuration) -> None:
    assert finish(submit_command(cluster, ["true"], tasks=3, nodes=["127.0.0.1"])).exit_code == 0
    with pytest.raises(SubmitError, match=r"no node runs on 127\.0\.0\.9: `yaq node list`"):
        submit_command(cluster, ["true"], nodes=["127.0.0.1", "127.0.0.9"])


def test_submissions_that_cannot_work_are_refused_in_one_line(
    cluster: Configuration, write: Write, tmp_path: Path
) -> None:
    script, source = write("wc.py", WORDCOUNT), write("in.txt", "a\n")
    out = str(tmp_path / "out")

    def refused(*kinds: type[Exception], **changes: object) -> str:
        request: dict[str, object] = {"script": script, "inputs": [source], "output": out, **changes}
        with pytest.raises(kinds) as caught:
            submit_mapreduce(cluster, **request)  # type: ignore[arg-type]
        message = str(caught.value)
        assert "\n" not in message
        return message

    assert "reduces-max" in refused(SubmitError, reduces=100_000)
    with pytest.raises(ConfigError, match=r"yaq\.riffle\.policy"):  # whether anything is merged or not
        submit_mapreduce(cluster.with_overrides({"yaq.riffle.policy": "fils"}), script, inputs=[source], output=out)
    assert "exists already" in refused(SubmitError, StorageError, output=str(tmp_path))
    assert f"{source} is a file" in refused(SubmitError, output=f"{source}/out")
    assert "does not exist" in refused(StorageError, inputs=[str(tmp_path / "missing")])
    assert "no job class" in refused(JobError, script=write("none.py", "x = 1\n"))
    assert "does not import" in refused(JobError, script=write("broken.py", "import nothing_of_that_name\n"))
    assert "no file" in refused(SubmitError, attachments=Attachments(files=["/nowhere/x"]))
    assert staging_is_empty(cluster)


HUGE = {"mapreduce.reduce.memory.mb": "500000"}


def test_tasks_larger_than_any_container_are_refused_at_the_submission(
    cluster: Configuration, write: Write, tmp_path: Path
) -> None:
    script, source = write("wc.py", WORDCOUNT), write("in.txt", "a\n")
    with pytest.raises(SubmitError, match=r"500000 MB of each reduce task \(mapreduce.reduce.memory.mb\)"):
        submit_mapreduce(cluster.with_overrides(HUGE), script, inputs=[source], output=str(tmp_path / "out"), reduces=1)
    with pytest.raises(SubmitError, match=r"yaq.job.command.memory-mb"):
        submit_command(cluster, ["true"], memory_mb=500_000)
    assert staging_is_empty(cluster)


def test_tasks_too_large_by_the_time_they_are_asked_for_fail_the_job_in_one_line(
    cluster: Configuration, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as if the nodes that had room went between the submission and the registration
    monkeypatch.setattr("tez_adapter.client.submission.too_large", lambda *_: None)
    script, source = write("wc.py", WORDCOUNT), write("in.txt", "a\n")
    result = run(cluster.with_overrides(HUGE), script, source, tmp_path / "out", reduces=1)
    assert result.state == "FAILED"
    assert "mapreduce.reduce.memory.mb" in result.diagnostics and "\n" not in result.diagnostics.strip()


def test_files_modules_and_archives_reach_the_tasks(cluster: Configuration, write: Write, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        archive.writestr("shouting.py", "def shout(text): return text.upper()\n")
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        archive.writestr("inner.txt", "inside")
    body = (
        "import shouting\n"
        "        inner = next(open(os.path.join(r, f)).read() for r, d, fs in os.walk('data', followlinks=True) "
        "for f in fs if f == 'inner.txt')\n"
        "        yield None, shouting.shout(value) + open('stop words.txt').read() + inner"
    )
    result = run(
        cluster,
        job_script(write, body, "reduces = 0"),
        write("in.txt", "a\n"),
        tmp_path / "out",
        attachments=Attachments(
            files=[write("plain.txt", "-words-") + "#stop words.txt"],
            py_files=[str(tmp_path / "lib.zip")],
            archives=[str(tmp_path / "data.zip") + "#data"],
        ),
    )
    assert result.state == "SUCCEEDED", result.diagnostics
    assert parts(tmp_path / "out") == ["A-words-inside\n"]


def test_no_input_records_make_empty_parts(cluster: Configuration, write: Write, tmp_path: Path) -> None:
    result = run(cluster, write("wc.py", WORDCOUNT), write("in.txt", ""), tmp_path / "out", reduces=2)
    assert result.state == "SUCCEEDED", result.diagnostics
    assert parts(tmp_path / "out") == ["", ""]
