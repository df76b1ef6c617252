"""How right estimates were: means over an application's containers that ended well, as `yaq explain` lists them; and of
those that waited in vain, whose node gave them back."""

from collections.abc import Sequence
from typing import Any, Final

#: what waits for less has started at once: its node was doing something else for a moment, s
_NOTICED_S: Final = 0.1


def accuracy_of(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how far off estimates and waits were, in the mean over those that had one."""
    ended = [one for one in records if not one.get("gaveBack")]
    back = [one for one in records if one.get("gaveBack")]
    expected = [one["expectedWaitS"] for one in back if one["expectedWaitS"] is not None]
    ran = [(one["estimateS"], one["ranS"]) for one in ended if one["estimateS"] is not None]
    waited = [
        # until the program started, which is what was expected
        (one["expectedWaitS"], one["waitedS"], one["waitedS"] + (one["heldS"] or 0.0))
        for one in ended
        if one["expectedWaitS"] is not None
    ]
    room = [(one["roomSaidAgoS"], one["waitedS"]) for one in ended if one["roomSaidAgoS"] is not None]
    taken = [one["waitedS"] for one in ended if one.get("givenRoom") and one["waitedS"] >= _NOTICED_S]
    held = [one["heldS"] for one in ended if one["heldS"]]
    return {
        "tasks": len(ended),
        "withEstimate": len(ran),
        "meanEstimateS": _mean([estimate for estimate, _ in ran]),
        "meanRanS": _mean([seconds for _, seconds in ran]),
        "meanErrorS": _mean([abs(estimate - seconds) for estimate, seconds in ran]),
        "withWait": len(waited),
        "meanExpectedWaitS": _mean([wait for wait, _, _ in waited]),
        "meanWaitedS": _mean([seconds for _, seconds, _ in waited]),
        "meanWaitErrorS": _mean([abs(wait - started_s) for wait, _, started_s in waited]),
        "afterRoom": len(room),
        "meanRoomSaidAgoS": _mean([ago for ago, _ in room]),
        "meanWaitedAfterRoomS": _mean([seconds for _, seconds in room]),
        "roomTaken": len(taken),
        "meanWaitedRoomTakenS": _mean(taken),
        "held": len(held),
        "meanHeldS": _mean(held),
        "gaveBack": len(back),
        "gaveBackExpected": len(expected),
        "meanExpectedWaitGaveBackS": _mean(expected),
        "meanWaitedGaveBackS": _mean([one["waitedS"] for one in back]),
    }


def _mean(numbers: list[float]) -> float | None:
    return round(sum(numbers) / len(numbers), 3) if numbers else None
