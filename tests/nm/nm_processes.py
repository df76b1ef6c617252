"""What has become of processes that are nobody's children here."""

import psutil


def is_over(process: psutil.Process) -> bool:
    """Whether or not whoever has it after its parent's end has asked for its status."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
