"""What is said of explorations that wait, are ending or are something else, without a cluster."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from tests.tez_exploration.exploration_manager import TERMS, World
from tez_adapter.client.exploration import ExplorationWatch
from tez_adapter.client.rm_client import ApplicationReport
from tez_adapter.exploration.beginnings import check_terms
from yaqd.cli.exits import CommandError
from yaqd.cli.ml.explore.listing import print_explorations
from yaqd.cli.ml.submit import _stopped
from yaqd.config import Configuration
from yaqd.model import ApplicationId, YarnApplicationState
from yaqd.policies.explore.facts import Why
from yaqd.policies.explore.wording import worded
from yaqd.proto import job_exploration_pb2 as pb


def report(state: YarnApplicationState) -> ApplicationReport:
    made = MagicMock(spec=ApplicationReport)
    made.id, made.user, made.name, made.state = ApplicationId(1, 1), "me", "digits", state
    return made


async def test_one_that_is_just_ending_is_read_from_what_it_wrote(tmp_path: Path) -> None:
    world = World(tmp_path)
    await world.run_to_rung(world.container(0), 0.3)
    await world.service.end()
    settings = {"yarn.app.mapreduce.am.staging-dir": f"file://{tmp_path}", "yarn.resourcemanager.hostname": "127.0.0.1"}
    conf = Configuration.load(None, overrides=settings)
    watch = ExplorationWatch(conf, report(YarnApplicationState.RUNNING))
    watch._job = MagicMock()
    watch._job.ask.return_value = None
    view = watch.look(watch.report)
    assert view is not None and view.best is not None and view.best.values == (0.3,)
    assert not view.is_over


def test_nothing_is_known_of_one_that_waits(capsys: pytest.CaptureFixture[str]) -> None:
    known = {"application_id": "application_1_0001", "name": "digits", "state": "ACCEPTED", "took_s": None}
    print_explorations([known, known | {"target": None}, known | {"target": 0.5}])
    rows = capsys.readouterr().out.splitlines()[1:]
    assert [row.split()[6] for row in rows] == ["-", "rises", "0.5"]


def test_a_stop_tells_what_begins_anew_and_refuses_other_jobs() -> None:
    job = MagicMock()
    job.report().type = "EXPLORATION"
    for begins_anew, said in ((False, "have made checkpoints"), (True, "begin anew with yaq ml resume")):
        job.ask.return_value = pb.StopExplorationResponse(begins_anew=begins_anew)
        is_told, will = _stopped(job)
        assert is_told and will.endswith(said)
    job.report().type = "MAPREDUCE"
    with pytest.raises(CommandError, match="is no training job or exploration"):
        _stopped(job)


@pytest.mark.parametrize(
    ("value", "said"),
    ((0.1, "360/h"), (1e-4, "0.36/h"), (1e-6, "1 in 278 h"), (1.4e-16, "next to nothing"), (math.inf, "-")),
)
def test_rates_are_for_people(value: float, said: str) -> None:
    assert worded(Why.WORTH_MOST, value, 0.0).startswith(f"its slot is worth most here: {said}, ")


@pytest.mark.parametrize(
    ("changes", "said"),
    (
        ({"target": 5.0}, "--target 5: policy index predicts metrics from 0 to 1"),
        ({"target": 0.2, "kill": 0.3}, "--kill 0.3 is no worse than --target 0.2"),
        ({"solved": "last >= 0.5", "target": 0.2}, "--solved and --target"),
        ({"style": "command", "arguments": ("a.sh", "{levl}")}, "{levl} in the command: the space has level, speed"),
    ),
)
def test_what_explore_refuses_is_refused_wherever_terms_come_from(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as refused:
        check_terms(replace(TERMS, policy="index", **changes))
    assert said in str(refused.value)
