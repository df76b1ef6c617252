"""Which application is meant: by its whole id, a job's, or the end of one that no other ends with."""

import re
from typing import TYPE_CHECKING, Final

from yaqd.cli.exits import CommandError
from yaqd.config import Configuration

if TYPE_CHECKING:
    from yaqd.model import ApplicationId

_END: Final = re.compile(r"_?(\d+_)?\d+")
_SHOWN: Final = 5


def known_application(conf: Configuration, text: str) -> "ApplicationId":
    """Return the id. The end of one stands for the only id with it that the ResourceManager knows.

    Raises CommandError.
    """
    from yaqd.cli.client import rm_client

    if not _END.fullmatch(text):
        return parse_application_id(text)
    with rm_client(conf) as rm:
        found = sorted((r.id for r in rm.applications(states=()) if str(r.id).endswith(text)), reverse=True)
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandError(f"no application ends in {text}: `yaq app list --all` shows which there are")
    shown = ", ".join(map(str, found[:_SHOWN])) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    raise CommandError(f"{len(found)} applications end in {text}: {shown}; write more of the one that is meant")


def parse_application_id(text: str) -> "ApplicationId":
    """Parse the id; a job id (job_..._...) stands for its application. Raises CommandError."""
    from yaqd.model import ApplicationId

    name = "application_" + text[4:] if text.startswith("job_") else text
    try:
        return ApplicationId.parse(name)
    except ValueError:
        raise CommandError(f'"{text}" is no application id; it looks like application_1700000000000_0001') from None
