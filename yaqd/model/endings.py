"""Diagnostics by which clients know what ended an attempt or a container: who writes them and who reads them meet here.

Hadoop's records have a text for it and no number, so the text is the field. Where it is too long its middle goes: what
happened stands at its beginning, and why at its end.
"""

from typing import Final

#: of what ran on a node that is gone (SchedulerUtils.LOST_CONTAINER); stock ResourceManagers write it too
LOST_NODE: Final = "Container released on a *lost* node"
#: of an attempt whose end the ResourceManager of that time has not seen; ours alone
ENDED_WITH_RM: Final = "it ended with the ResourceManager that knew of it"

_GAP: Final = " ... "


def without_middle(text: str, chars: int) -> str:
    """Cut the text to `chars` characters, more than the gap has: its beginning and its end stay."""
    if len(text) <= chars:
        return text
    kept = chars - len(_GAP)
    return text[: kept - kept // 2] + _GAP + text[len(text) - kept // 2 :]


def as_utf8(text: str) -> str:
    """Return the same text where UTF-8 can carry it; bytes of the input that were none are shown as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()
