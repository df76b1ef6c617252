"""What a run of the study says of itself in its store: command, code, machine and when."""

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def start_line(command: Sequence[str], digest: str) -> dict[str, Any]:
    """Return it as JSON has it. `command`: the words that started the process."""
    words = ("yaq", *command[1:])
    return {
        "command": " ".join(words),
        "digest": digest,
        "commit": _commit(),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "at": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
    }


def _commit() -> str:
    """Of the checkout that the code is in; empty where it is in none."""
    folder = Path(__file__).parent
    command = ("git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
