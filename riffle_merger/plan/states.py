"""The states of a merge, as a table: what a pair of state and event leads to; other pairs change nothing."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class MergeState(StrEnum):
    #: its merger has enough to do; it is sent later
    WAITING = "WAITING"
    SENT = "SENT"
    DONE = "DONE"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class MergeEvent(StrEnum):
    SEND = "SEND"
    SUCCEED = "SUCCEED"
    FAIL = "FAIL"
    CANCEL = "CANCEL"


MERGE_TABLE: Final[Mapping[tuple[MergeState, MergeEvent], MergeState]] = {
    (MergeState.WAITING, MergeEvent.SEND): MergeState.SENT,
    (MergeState.WAITING, MergeEvent.CANCEL): MergeState.CANCELLED,
    # its merger went away before it was sent
    (MergeState.WAITING, MergeEvent.FAIL): MergeState.FAILED,
    (MergeState.SENT, MergeEvent.SUCCEED): MergeState.DONE,
    (MergeState.SENT, MergeEvent.FAIL): MergeState.FAILED,
    (MergeState.SENT, MergeEvent.CANCEL): MergeState.CANCELLED,
}
