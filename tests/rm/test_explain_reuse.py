"""`yaq explain` of a job whose containers run several tasks: what its nodes expect is a bound, and said to be."""

import json

import pytest

from tests.rm.rm_commands import command, report_queue
from tests.rm.rm_harness import ManualClock, ask, cluster
from tests.rm.rm_queueing import ON, given, left, queueing_node
from yaqd.cli.applications.wait_reason import reason_in


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task_ms", "is_at_most", "starts"),
    [
        (2000, True, [2.5, 5.0, 5.0]),  # 9 s of work for three that run, and one task, and no more
        (9000, False, [2.5, 5.0, 7.5]),  # as containers run: one task each
    ],
)
async def test_what_waits_for_containers_that_run_several_tasks_starts_by_then_or_is_not_needed(
    task_ms: int, is_at_most: bool, starts: list[float]
) -> None:
    async with cluster(ON, clock=ManualClock()) as rm:
        node = await queueing_node(rm)
        app_id, master = await rm.running(node)
        plan = left((1, 9, task_ms, ()))
        plan.stages[0].work_ms = 9000
        containers = given(await master.allocate(ask(9), left=plan))
        for container_id in containers:
            node.run(container_id)
        await report_queue(node, containers[3:])
        found = json.loads(await command(rm, "explain", str(app_id), "--json"))
        most = "at most " if is_at_most else ""
        said = reason_in({**found, "asks": []})
        assert said is not None and said.startswith(f"3 containers wait at nodes, the first should start in {most}2.")
        assert [one["isAtMost"] for one in found["waiting"]] == [is_at_most] * 3
        assert [one["expectedStartInS"] for one in found["waiting"]] == pytest.approx(starts, abs=0.3)
        [wanted] = found["asks"]
        assert (wanted["estimateS"], wanted["taskS"], wanted["isAtMost"]) == (10.0, task_ms / 1000, is_at_most)
        text = await command(rm, "explain", str(app_id))
        for said in (" at most 5.0s ", "runs 10.0s, a task 2.0s)", "\nat most: containers run several tasks here"):
            assert (said in text) == is_at_most, said

        other = await rm.submit()
        [wanted] = json.loads(await command(rm, "explain", str(other), "--json"))["asks"]
        assert (wanted["taskS"], wanted["isAtMost"]) == (None, False), "its master says nothing"
