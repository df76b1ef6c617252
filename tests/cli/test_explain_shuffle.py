"""`yaq explain` of a job that is over where the ResourceManager knows nothing of explanations: a stock one."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rm.node_queues.accuracy import accuracy_of
from tests.cli.cli_web import AnsweringServer
from tez_adapter.history import write_history
from yaqd.cli.app import yaq
from yaqd.config import Configuration
from yaqd.model import ApplicationId

JOB = "application_1700000000000_0001"
SHUFFLE = {"policy": "3 files", "reads": 18, "files": 6, "merged_files": 6, "saved_reads": 36, "merge_requests": 24}


@pytest.fixture
def stock() -> Iterator[str]:
    with AnsweringServer(lambda path: (404, b"")) as server:
        yield server.address


def explain(folder: Path, address: str, *words: str) -> Result:
    settings = (f"yarn.resourcemanager.webapp.address={address}", f"yaq.job.history-dir=file://{folder}")
    return CliRunner().invoke(yaq, ["explain", *(w for s in settings for w in ("-D", s)), JOB, *words])


def leave_history(folder: Path, **shuffle: object) -> None:
    leave_lines(folder, {"type": "end", "state": "SUCCEEDED", "shuffle": {**SHUFFLE, **shuffle}})


def leave_lines(folder: Path, *lines: dict[str, object]) -> None:
    conf = Configuration.load(None, overrides={"yaq.job.history-dir": f"file://{folder}"}, environ={})
    write_history(conf, ApplicationId.parse(JOB), [{"type": "job", "job_id": JOB}, *lines])


@pytest.mark.parametrize(
    ("started", "trouble", "said"),
    [
        (1, "", ": the job started 1 in containers of its own\n"),
        (3, "3 of them ended", ": the job started 3 in containers of its own, then none: 3 of them ended\n"),
        (0, "no room", ", and the job started none: no room\n"),
        (0, "", None),
    ],
)
def test_what_merging_did_is_said_all_the_same(
    tmp_path: Path, stock: str, started: int, trouble: str, said: str | None
) -> None:
    leave_history(tmp_path, own_mergers=started, own_mergers_trouble=trouble)
    result = explain(tmp_path, stock)
    assert result.exit_code == 0
    assert "each reduce read 6 files instead of 18: 36 reads fewer in all" in result.stdout
    assert "this ResourceManager is a stock one" in result.stderr
    if said is None:
        assert "no node had a merger" not in result.stdout
    else:
        assert f"no node had a merger{said}" in result.stdout
    assert json.loads(explain(tmp_path, stock, "--json").stdout)["shuffle"]["own_mergers"] == started


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("3 files", "Map outputs: 3 files, as configured (so many map outputs to one merged file)\n"),
        ("no merging", "Map outputs: no merging, as configured\n"),
    ],
)
def test_what_a_number_of_files_means_is_said(tmp_path: Path, stock: str, policy: str, said: str) -> None:
    leave_history(tmp_path, policy=policy)
    assert said in explain(tmp_path, stock).stdout


def test_why_nothing_was_merged_is_said(tmp_path: Path, stock: str) -> None:
    leave_history(
        tmp_path, policy="blocks of 1024 bytes", merged_files=0, unmerged="nothing was merged: 3 of 3 outputs"
    )
    said = "Map outputs: blocks of 1024 bytes, as configured\n  nothing was merged: 3 of 3 outputs\n"
    assert said in explain(tmp_path, stock).stdout


def test_a_job_without_a_history_is_an_error_as_before(tmp_path: Path, stock: str) -> None:
    result = explain(tmp_path, stock)
    assert result.exit_code == 2
    assert "is it a ResourceManager of this project?" in result.stderr


def one_that_ended(number: int, ran_s: float) -> dict[str, object]:
    return {
        "container": f"container_1700000000000_0001_01_{number:06}",
        "estimateS": 3.0,
        "ranS": ran_s,
        "expectedWaitS": None,
        "waitedS": 0.0,
        "heldS": None,
        "roomSaidAgoS": None,
    }


@pytest.mark.slow
def test_containers_that_never_had_a_task_say_nothing_of_how_long_tasks_run(tmp_path: Path) -> None:
    ended = [one_that_ended(2, 3.0), one_that_ended(3, 3.2), one_that_ended(4, 0.009), one_that_ended(5, 0.086)]
    explanation = {
        **dict.fromkeys(("id", "name", "user", "queue", "state", "queueing"), "-"),
        **dict.fromkeys(("askedFor", "waitingCount", "keptForOthers"), 0),
        **{name: [] for name in ("attempts", "asks", "keptNodes", "waiting", "decisions")},
        "ended": ended,
        "accuracy": accuracy_of(ended),
    }
    with AnsweringServer(lambda _: (200, json.dumps({"explanation": explanation}).encode())) as server:
        text = explain(tmp_path, server.address).stdout
        assert "4 were expected to run 3.0s and ran 1.6s" in text and "never had a task" not in text, "nobody knows"
        used = [{"type": "attempt", "container": one["container"]} for one in ended[:2]]
        leave_lines(tmp_path, *used, {"type": "end", "state": "SUCCEEDED"})
        text = explain(tmp_path, server.address).stdout
        assert "Of the last 4 containers that ended\n  2 never had a task, as others did the work" in text
        assert "2 were expected to run 3.0s and ran 3.1s in the mean, 100ms off" in text
        seen = json.loads(explain(tmp_path, server.address, "--json").stdout)["accuracy"]
        assert (seen["tasks"], seen["withoutTask"], seen["meanRanS"]) == (2, 2, 3.1)
