"""Recorded schedulers decide again as they did: what a change must not change, it has not."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from rm.scheduler import recording
from rm.scheduler.decisions import Allocate
from rm.scheduler.events import Asked, NodeJoined, WantedElsewhere
from rm.scheduler.limits import SchedulerLimits
from rm.scheduler.queues.spec import PREFIX, parse_capacity_scheduler
from rm.scheduler.recording import BadRecord, from_plain, replay, to_plain
from rm.scheduler.view.calculators import AllocationBounds
from tests.rm.replay.rm_replay_streams import STREAMS, path_of, record
from yaqd.cli.simulation.commands import sim
from yaqd.model import ApplicationAttemptId, ApplicationId, ExecutionType, NodeId, Resource
from yaqd.policies.asks.placement import Both, ConstraintScope, Placement, Single, Target
from yaqd.policies.asks.rows import AskRow

ATTEMPT = ApplicationAttemptId(ApplicationId(1, 2), 3)


def lines_of(name: str) -> list[str]:
    with gzip.open(path_of(name), "rt", encoding="ascii") as file:
        return file.read().splitlines()


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_decides_as_it_did(name: str) -> None:
    found = replay(lines_of(name))
    assert found.difference is None
    assert found.events > 1000 and found.decisions > 300


@pytest.mark.interpreted
@pytest.mark.slow
def test_a_stream_recorded_anew_is_the_one_that_is_there() -> None:
    assert record("preemption") == lines_of("preemption")


def test_another_decision_is_shown_with_its_event() -> None:
    lines = lines_of("hive")
    at = next(number for number, line in enumerate(lines) if '"Allocate"' in line)
    now, event, decided = json.loads(lines[at])
    decided[0]["Allocate"][2]["Resource"][0] += 1
    lines[at] = json.dumps([now, event, decided])
    difference = replay(lines).difference
    assert difference is not None and difference.line == at + 1 and difference.now == now
    assert difference.recorded is not None and difference.decided is not None
    was, became = difference.recorded[0], difference.decided[0]
    assert isinstance(was, Allocate) and isinstance(became, Allocate)
    assert was.resource.memory_mb == became.resource.memory_mb + 1


names = st.text(min_size=1, max_size=5)
sizes = st.builds(Resource, st.integers(0, 2**40), st.integers(0, 2**20), st.dictionaries(names, st.integers(1, 9)))
rows = st.builds(
    AskRow,
    st.integers(-5, 5),
    st.integers(-1, 5),
    names,
    sizes,
    st.integers(0, 9),
    st.booleans(),
    st.sampled_from(ExecutionType),
    st.none() | st.just(Placement(("a",), Both((Single(ConstraintScope.RACK, 0, None, (Target("all", ("b",)),)),)))),
)
told = (
    st.builds(Asked, st.just(ATTEMPT), st.lists(rows, max_size=3).map(tuple))
    | st.builds(NodeJoined, st.builds(NodeId, names, st.integers(0, 65535)), names, sizes)
    | st.builds(WantedElsewhere, st.just(ATTEMPT.application_id), st.just(((1, 2),)), st.frozensets(sizes, max_size=3))
)


@given(told)
def test_events_are_the_same_after_they_were_written(event: Any) -> None:
    assert from_plain(json.loads(json.dumps(to_plain(event)))) == event


def test_what_is_no_value_of_the_scheduler_is_not_written() -> None:
    with pytest.raises(TypeError, match="cannot hold a pathlib"):
        to_plain((Path("x"),))


HEADER = recording.header(
    parse_capacity_scheduler({PREFIX + "root.queues": "default", PREFIX + "root.default.capacity": "100"}),
    SchedulerLimits(AllocationBounds(Resource(1024, 1), Resource(8192, 8))),
)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "line 1 is not the beginning"),
        (["<html>"], "line 1 is not the beginning"),
        ([HEADER.replace(",1,", ",2,", 1)], "of version 2: this yaqd reads version 1"),
        ([f'["{recording.FORMAT}",1,null,null]'], "line 1 has no queues"),
        ([HEADER, "nonsense"], "line 2: Expecting value"),
        ([HEADER, "[" * 100_000], "line 2: "),
        ([HEADER, '[0,{"Popen":["sh"]},[]]'], "line 2: no class of the scheduler is called 'Popen'"),
        ([HEADER, '[0,{"NodeLeft":[1,2,3]},[]]'], "line 2: no NodeLeft can be made of this"),
        ([HEADER, '[0,{"Resource":[1,1,{"{}":[]}]},[]]'], "line 2 is no time, event and decisions"),
        ([HEADER, "[1]"], "line 2 is no time, event and decisions"),
        ([HEADER, '[NaN,{"MastersDue":[]},[]]'], "line 2 is no time, event and decisions"),
    ],
)
def test_what_is_no_record_is_named_by_its_line(lines: list[str], said: str) -> None:
    with pytest.raises(BadRecord) as raised:
        replay(lines)
    assert said in str(raised.value)


# ---- the command


def run(*words: str) -> Result:
    return CliRunner().invoke(sim, ["replay-decisions", *words])


def test_the_command_says_that_all_is_the_same() -> None:
    result = run(str(path_of("unaware-central")))
    assert result.exit_code == 0 and result.output.splitlines()[1] == "every decision is the same"


def test_the_command_shows_the_first_difference(tmp_path: Path) -> None:
    lines = lines_of("hive")
    at = next(number for number, line in enumerate(lines) if '"Reserve"' in line)
    now, event, _ = json.loads(lines[at])
    lines[at] = json.dumps([now, event, []])
    changed = tmp_path / "changed.jsonl"
    changed.write_text("\n".join(lines) + "\n")
    result = run(str(changed))
    assert f"line {at + 1}, at {now:.3f} s: " in result.output and "    nothing" in result.output
    assert "Reserve(" in result.output and f"line {at + 1} leads to other decisions" in str(result.exception)
    assert json.loads(run(str(changed), "--json").output)["difference"]["line"] == at + 1


@pytest.mark.parametrize("is_packed", [True, False])
def test_a_record_that_was_cut_off_is_played_as_far_as_it_goes(is_packed: bool, tmp_path: Path) -> None:
    packed = path_of("hive").read_bytes()
    cut = tmp_path / "cut"
    cut.write_bytes(packed[:30_000] if is_packed else gzip.decompress(packed)[:30_000])
    result = run(str(cut))
    assert result.exit_code == 0 and "the record ends in the middle of a line" in result.output
