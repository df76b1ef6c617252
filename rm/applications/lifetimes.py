"""How long an application may take: what it asks for, what its queue allows, and the times as Hadoop writes them.

A lifetime counts from the submission, in seconds; its end is an epoch time in ms. In a queue, 0 or less means: none.
"""

import re
from datetime import datetime
from typing import Final

from rm.scheduler.queues.spec import QueueSpec
from yaqd.ipc.errors import YarnError
from yaqd.proto import yarn_common_pb2 as common

#: yyyy-MM-dd'T'HH:mm:ss.SSSZ
_ISO8601: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}\Z", re.ASCII)
_LIFETIME: Final = common.APP_TIMEOUT_LIFETIME
_FORMAT: Final = "%Y-%m-%dT%H:%M:%S.%f%z"
#: more than this is as good as for ever, and still a date
_LIFETIME_S_MAX: Final = 100 * 365 * 86_400


def check_lifetime(context: common.ApplicationSubmissionContext) -> None:
    """Raises YarnError for a submission with a lifetime that is not above 0."""
    for entry in context.application_timeouts:
        if entry.timeout <= 0:
            raise YarnError(f"Invalid application timeout, value={entry.timeout} for type=LIFETIME")


def asked_lifetime_s(context: common.ApplicationSubmissionContext) -> int:
    """Returns the lifetime in a submission, s; 0 without one."""
    asked = (e.timeout for e in context.application_timeouts if e.application_timeout_type == _LIFETIME)
    return min(max(0, next(asked, 0)), _LIFETIME_S_MAX)


def given_lifetime_s(spec: QueueSpec | None, asked_s: int) -> int:
    """Returns the lifetime that the queue gives, s; 0: no end."""
    if spec is None:
        return asked_s
    if asked_s <= 0:
        return max(0, spec.default_lifetime_s)
    return min(asked_s, spec.maximum_lifetime_s) if spec.maximum_lifetime_s > 0 else asked_s


def longest_end(spec: QueueSpec, submitted_ms: int, expires_ms: int) -> int:
    """Returns an end that somebody asks for later, epoch ms, no further away than the queue allows."""
    if spec.maximum_lifetime_s <= 0:
        return expires_ms
    return min(expires_ms, submitted_ms + spec.maximum_lifetime_s * 1000)


def format_iso8601(epoch_ms: int) -> str:
    """Writes a time in this machine's time zone, as Hadoop's `Times.formatISO8601`."""
    moment = datetime.fromtimestamp(epoch_ms // 1000).astimezone()
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{epoch_ms % 1000:03d}{moment:%z}"


def parse_iso8601(text: str) -> int:
    """Parses a time to epoch ms. Raises YarnError with Hadoop's text."""
    try:
        if not _ISO8601.match(text):
            raise ValueError(text)
        return round(datetime.strptime(text, _FORMAT).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise YarnError(
            "Expire time is not in ISO8601 format. ISO8601 supported format is yyyy-MM-dd'T'HH:mm:ss.SSSZ. "
            f"Configured timeout value is {text[:80]}"
        ) from None
