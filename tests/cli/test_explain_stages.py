"""The part of `yaq explain` about stages, in words."""

from typing import Any

import pytest

from yaqd.cli.applications.explain_stages import show_stages

_OTHER = "application_1_0002"


def _said(capsys: pytest.CaptureFixture[str], fair: dict[str, Any] | None = None, **more: Any) -> list[str]:
    """Return the lines about what an application has and should have."""
    stage = {
        "priority": 20, "name": "logs:Parse", "tasks": 3, "running": 2, "coming": 0, "taskS": 1.0, "open": True,
        "score": None,
    }  # fmt: skip
    found: dict[str, Any] = {
        "policy": "clotho", "fallbacks": {}, "decidedAgoS": 0.5, "containers": 2, "idle": 0, "limit": 3, "jobs": 2,
        "weightedFair": fair or {"limit": 4, "application": _OTHER, "priority": 10}, "stages": [stage], "choices": [],
    }  # fmt: skip
    show_stages(found | more)
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]


def test_limits_are_said_where_others_want_containers(capsys: pytest.CaptureFixture[str]) -> None:
    assert _said(capsys, idle=1) == [
        "  It has 2 containers, 1 of them idle; it should have 3 at most, as others want some.",
        f"  Weighted fair sharing would give it 4, and the next one to {_OTHER}, stage 10.",
    ]
    assert "how many it should have was not chosen so far" in _said(capsys, limit=None)[0]


@pytest.mark.parametrize("limit", [0, 3, None])
def test_a_job_alone_has_no_limit(capsys: pytest.CaptureFixture[str], limit: int | None) -> None:
    fair: dict[str, Any] = {"limit": 0, "application": None, "priority": None}
    alone = _said(capsys, fair, jobs=1, containers=1, limit=limit)
    assert alone == ["  It has 1 container; no other application there has work left, so it may have what it asks for."]
    fair = {"limit": 1, "application": "application_1_0001", "priority": 20}
    assert _said(capsys, fair, jobs=1, limit=limit)[1] == "  Weighted fair sharing would serve its stage 20 next."


def test_no_share_is_said_to_be_none_that_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    fair: dict[str, Any] = {"limit": 0, "application": _OTHER, "priority": 10}
    assert _said(capsys, fair)[1] == (
        "  Weighted fair sharing would give it no more, as all its tasks have containers, and the next one to "
        f"{_OTHER}, stage 10."
    )
    fair = {"limit": 0, "application": None, "priority": None}
    assert _said(capsys, fair)[1].endswith("as all its tasks have containers.")
