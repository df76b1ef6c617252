"""Exit codes, and the one place that turns an exception into one clear line on standard error.

Who is to blame decides the code: the caller's input 2, a cluster that does not answer 3, the job itself 1.
"""

import re
import sys
from typing import Final

FAILED: Final = 1
BAD_INPUT: Final = 2
UNREACHABLE: Final = 3
INTERRUPTED: Final = 130

#: Expected errors by module and class, most particular first. They are looked up only in modules that are imported
#: already: else the error cannot be theirs, and a command that needs no network pays for none.
_CODES: Final = (
    ("yaqd.cli.exits", "CommandError", None),
    ("yaqd.config.errors", "ConfigError", BAD_INPUT),
    ("yaqd.mapreduce.errors", "SampleError", FAILED),
    ("yaqd.mapreduce.errors", "JobError", BAD_INPUT),
    ("yaqd.storage.errors", "StorageUnavailable", UNREACHABLE),
    ("yaqd.storage.errors", "StorageError", BAD_INPUT),
    ("tez_adapter.client.staging", "SubmitError", BAD_INPUT),
    ("tez_adapter.client.rm_client", "RmUnavailable", UNREACHABLE),
    ("tez_adapter.history", "NoHistory", BAD_INPUT),
    ("yaqd.sim.workloads.drawn", "WorkloadError", BAD_INPUT),
    ("yaqd.ipc.errors", "RpcError", UNREACHABLE),
)
#: Remote exceptions that mean "you asked for something wrong": the refusals of YARN itself, and these.
_REFUSALS: Final = "org.apache.hadoop.yarn.exceptions."
_CALLERS_FAULT: Final = ("IllegalArgumentException", "AccessControlException", "AuthorizationException")
#: A Java exception that another one carries begins its text; nobody at a terminal needs its name.
_JAVA_CLASS: Final = re.compile(r"\A(?:(?:[a-z]\w*\.)+[A-Z][\w$]*: )+")


class CommandError(Exception):
    """A command's own failure: one line, and the code to exit with."""

    def __init__(self, message: str, exit_code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def explain(error: Exception) -> tuple[str, int] | None:
    """Return (message, exit code) for an expected error; None for a fault of ours, which deserves its traceback."""
    for module_name, class_name, code in _CODES:
        module = sys.modules.get(module_name)
        if module is not None and isinstance(error, getattr(module, class_name)):
            detail = getattr(error, "detail", "")  # a job script's own traceback
            message = f"{error}\n{detail}" if detail else str(error)
            return message, error.exit_code if isinstance(error, CommandError) else code or FAILED
    return _remote(error) or _system(error)


def _remote(error: Exception) -> tuple[str, int] | None:
    module = sys.modules.get("yaqd.ipc.errors")
    if module is None or not isinstance(error, module.RemoteException):
        return None
    short = error.class_name.rpartition(".")[2]
    is_callers = error.class_name.startswith(_REFUSALS) or short in _CALLERS_FAULT
    return _JAVA_CLASS.sub("", error.message) or short, BAD_INPUT if is_callers else FAILED


def _system(error: Exception) -> tuple[str, int] | None:
    if isinstance(error, TimeoutError):
        return str(error), FAILED
    if not isinstance(error, OSError):
        return None
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}", BAD_INPUT
