"""A job that waits for room says why."""

from yaqd.cli.applications.following import line_printer
from yaqd.cli.applications.job_details import _vertex
from yaqd.cli.applications.wait_reason import WaitingReason

LIMIT = "[Sat Nov 21 16:19:39 +0000 2026] Application is added to the scheduler and is not yet activated. "


def test_a_reason_is_said_after_a_while_and_once() -> None:
    now = 0.0
    waiting = WaitingReason(lambda: now)
    assert waiting.news(LIMIT) is None
    now = 2.5
    assert waiting.news("") is None
    assert waiting.news(LIMIT) == "Application is added to the scheduler and is not yet activated."
    assert waiting.news(LIMIT.replace("39", "45")) is None
    assert waiting.news("AM container is launched") == "AM container is launched"


def test_lines_say_it_before_there_is_progress() -> None:
    from tez_adapter.client.follow import JobStatus
    from yaqd.model import ApplicationId, YarnApplicationState

    lines: list[str] = []
    show = line_printer(lines.append, patience_s=0.0)
    for _ in range(2):
        show(JobStatus(ApplicationId(1, 1), YarnApplicationState.ACCEPTED, 0.0, waits_for="no room"))
    assert lines == ["waiting: no room"]


def test_whoever_waits_is_told_why_nothing_runs_and_again_each_minute() -> None:
    from tez_adapter.client.follow import JobStatus, VertexStatus
    from yaqd.model import ApplicationId, YarnApplicationState

    now, asked = 0.0, 0

    def explain() -> str:
        nonlocal asked
        asked += 1
        return f"3 containers of priority 20: no node has room for it, looked {asked}s ago"

    waiting = WaitingReason(lambda: now, explain=explain)

    def said(*, running: int = 0, done: int = 0) -> str | None:
        vertices = (VertexStatus("map", 4, 4 - done - running, running, done, 0, 0, done / 4),)
        return waiting.of(JobStatus(ApplicationId(1, 1), YarnApplicationState.RUNNING, 0.0, vertices))

    assert said() is None
    now = 4.0
    assert said(running=1) is None and said(done=1) is None
    now = 8.5
    assert said(done=1) is None and asked == 0, "a task ended, and the next one may come"
    now = 9.0
    assert said(done=1) == "3 containers of priority 20: no node has room for it, looked 1s ago"
    now = 20.0
    assert said(done=1) is None and asked == 2, "the same, but for its numbers"
    now = 70.0
    assert said(done=1) == "3 containers of priority 20: no node has room for it, looked 3s ago"
    assert said(done=1) is None and asked == 3
    assert said(done=2) is None, "something else waits now"
    now = 75.5
    assert said(done=2) is None and asked == 4, "which is asked for at once, and is the same"
    now = 200.0
    assert said(done=2, running=1) is None and asked == 4


def test_with_json_nothing_but_trouble_is_said() -> None:
    from tez_adapter.client.follow import JobStatus, VertexStatus
    from yaqd.model import ApplicationId, YarnApplicationState

    lines: list[str] = []
    show = line_printer(lines.append, patience_s=0.0, explain=lambda: "no node has room for it", progress=False)
    vertices = (VertexStatus("map", 4, 4, 0, 0, 0, 0, 0.0),)
    show(JobStatus(ApplicationId(1, 1), YarnApplicationState.RUNNING, 0.0, vertices, notices=("x",), notices_total=1))
    assert lines == ["waiting: no node has room for it"]


def test_what_was_taken_from_a_queue_has_no_part_in_how_long_tasks_run() -> None:
    shed = {"state": "KILLED", "started_ms": 1000, "began_ms": None, "finished_ms": 1200}
    ran = {"state": "SUCCEEDED", "started_ms": 1000, "began_ms": 2000, "finished_ms": 5000}
    elsewhere = {"state": "SUCCEEDED", "started_ms": 1000, "began_ms": None, "finished_ms": 4000}
    told = _vertex("command", 2, [shed, shed, shed, ran, elsewhere])
    assert (told["attempts"], told["median_ms"], told["longest_ms"], told["all_ms"]) == (5, 3000, 3000, 6000)


def test_a_job_may_say_itself_how_far_it_is() -> None:
    from tez_adapter.client.follow import JobStatus, VertexStatus
    from yaqd.model import ApplicationId, YarnApplicationState

    lines: list[str] = []
    said = iter(("", "best 0.3", "best 0.3", "best 0.5"))
    show = line_printer(lines.append, stands=lambda: next(said))
    status = JobStatus(
        ApplicationId(1, 1), YarnApplicationState.RUNNING, 0.0, (VertexStatus("slot", 4, 0, 4, 0, 0, 0, 0.0),)
    )
    for _ in range(4):
        show(status)
    assert lines == ["best 0.3", "best 0.5"]
