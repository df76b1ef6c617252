"""What a job asks of the ResourceManager beside containers: priority, tags, lifetime, and who else may see and end it.

Keys and values are MapReduce's where it has them (YARNRunner, TypeConverter); the lifetime is ours.
"""

from typing import Final

from yaqd.config import Configuration
from yaqd.proto import yarn_common_pb2 as pb

TAGS_KEY: Final = "mapreduce.job.tags"
PRIORITY_KEY: Final = "mapreduce.job.priority"
LIFETIME_KEY: Final = "yaq.job.lifetime-secs"
VIEW_KEY: Final = "mapreduce.job.acl-view-job"
MODIFY_KEY: Final = "mapreduce.job.acl-modify-job"
#: the protocol has 32 bits
PRIORITY_MAX: Final = (1 << 31) - 1
#: JobPriority's names
_PRIORITIES: Final = {"VERY_HIGH": 5, "HIGH": 4, "NORMAL": 3, "LOW": 2, "VERY_LOW": 1, "DEFAULT": 0}


def set_terms(context: pb.ApplicationSubmissionContext, conf: Configuration) -> None:
    """Raises ConfigError."""
    context.applicationTags.extend(conf.get_list(TAGS_KEY))
    priority = asked_priority(conf)
    if priority is not None:
        context.priority.priority = priority
    lifetime_ms = conf.get_duration_ms(LIFETIME_KEY, 0, minimum=0)
    if lifetime_ms:
        context.application_timeouts.add(
            application_timeout_type=pb.APP_TIMEOUT_LIFETIME, timeout=max(1, lifetime_ms // 1000)
        )
    for kind, key in ((pb.APPACCESS_VIEW_APP, VIEW_KEY), (pb.APPACCESS_MODIFY_APP, MODIFY_KEY)):
        context.am_container_spec.application_ACLs.add(accessType=kind, acl=conf.get(key) or " ")


def asked_priority(conf: Configuration) -> int | None:
    """Reads the job's priority; None: the queue's default. Raises ConfigError."""
    text = (conf.get(PRIORITY_KEY) or "").strip()
    return _priority(conf, text) if text else None


def _priority(conf: Configuration, text: str) -> int:
    named = _PRIORITIES.get(text.upper())
    if named is not None:
        return named
    remedy = f"write a number or one of {', '.join(_PRIORITIES)}"
    try:
        number = int(text)
    except ValueError:
        raise conf.error(PRIORITY_KEY, "is no priority", remedy) from None
    if not -PRIORITY_MAX <= number <= PRIORITY_MAX:
        raise conf.error(PRIORITY_KEY, f"is beyond {PRIORITY_MAX}", remedy)
    return number
