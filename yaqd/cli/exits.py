"""Exit codes, and the one place that turns an exception into one clear line on standard error.

Who is to blame decides the code: the caller's input 2, a cluster that does not answer 3, the job itself 1.
"""

import sys
from typing import Final

FAILED: Final = 1
BAD_INPUT: Final = 2
UNREACHABLE: Final = 3
INTERRUPTED: Final = 130

#: Remote exceptions that mean "you asked for something wrong"; everything else remote is a failure.
_CALLERS_FAULT: Final = (
    "ApplicationNotFoundException",
    "ContainerNotFoundException",
    "InvalidResourceRequestException",
    "IllegalArgumentException",
    "AccessControlException",
    "AuthorizationException",
)


class CommandError(Exception):
    """A command's own failure: one line, and the code to exit with."""

    def __init__(self, message: str, exit_code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def explain(error: Exception) -> tuple[str, int] | None:
    """(one line, exit code) for an expected error; None for a fault of ours, which deserves its traceback."""
    from yaqd.config import ConfigError

    if isinstance(error, CommandError):
        return str(error), error.exit_code
    if isinstance(error, ConfigError):
        return str(error), BAD_INPUT
    return _job_error(error) or _rpc_error(error) or _os_error(error)


# The classes below are looked up only if their module was imported: else the error cannot be one of theirs, and a
# command that needs no network pays for none.


def _job_error(error: Exception) -> tuple[str, int] | None:
    module = sys.modules.get("yaqd.mapreduce.errors")
    if module is None or not isinstance(error, module.JobError):
        return None
    detail = getattr(error, "detail", "")
    return (f"{error}\n{detail}" if detail else str(error)), BAD_INPUT


def _rpc_error(error: Exception) -> tuple[str, int] | None:
    module = sys.modules.get("yaqd.ipc.errors")
    if module is None:
        return None
    if isinstance(error, module.RpcError):
        return f"{error}; is the cluster up, and does HADOOP_CONF_DIR name its configuration?", UNREACHABLE
    if isinstance(error, module.RemoteException):
        short = error.class_name.rpartition(".")[2]
        return error.message or short, BAD_INPUT if short in _CALLERS_FAULT else FAILED
    return None


def _os_error(error: Exception) -> tuple[str, int] | None:
    if not isinstance(error, OSError) or isinstance(error, TimeoutError):
        return None
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}", BAD_INPUT
