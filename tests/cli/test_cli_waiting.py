"""A job that waits for room says why."""

from yaqd.cli.following import WaitingReason, line_printer

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
    from tez_adapter.follow import JobStatus
    from yaqd.model import ApplicationId, YarnApplicationState

    lines: list[str] = []
    show = line_printer(lines.append, patience_s=0.0)
    for _ in range(2):
        show(JobStatus(ApplicationId(1, 1), YarnApplicationState.ACCEPTED, 0.0, waits_for="no room"))
    assert lines == ["waiting: no room"]
