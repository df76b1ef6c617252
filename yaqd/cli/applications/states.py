"""Which applications `yaq app list --state` means, and what it says when there are none.

An application that ends by its own word is FINISHED, also where that word is that it failed or was killed: our job
manager, asked to end, cleans up and reports KILLED. Who asks for the killed ones means these too.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import ApplicationReport
    from yaqd.model import YarnApplicationState

#: YarnApplicationState's, and SUCCEEDED, which is a final status only
CHOICES = ("NEW", "NEW_SAVING", "SUBMITTED", "ACCEPTED", "RUNNING", "FINISHED", "SUCCEEDED", "FAILED", "KILLED")
_ALSO_FINAL = ("SUCCEEDED", "FAILED", "KILLED")


def states_to_ask_for(wanted: Iterable[str]) -> "list[YarnApplicationState]":
    """List the states in which an application can be that `matches` one of the wanted."""
    from yaqd.model import YarnApplicationState

    names = set(wanted)
    if names.intersection(_ALSO_FINAL):
        names.add("FINISHED")
    return [state for state in YarnApplicationState if state.name in names]


def matches(report: "ApplicationReport", wanted: Iterable[str]) -> bool:
    """Return whether its state is one of the wanted, or it has ended and its final status is."""
    names = set(wanted)
    return report.state.name in names or (report.state.is_final and report.final_status.name in names)


def none_found(filters: Mapping[str, Iterable[str]], *, show_all: bool) -> str:
    """Write the line for an empty list. `filters` by option name; those without values do not count."""
    given = " ".join(f"--{name} {value}" for name, values in filters.items() for value in values)
    only_open = not show_all and not any(filters.get("state", ()))
    which = "no application that waits or runs" if only_open else "no application"
    if given:
        return f"{which} matches {given}" + " (--all: ended)" * only_open
    return "no applications" if show_all else "no applications wait or run (--all: ended)"
