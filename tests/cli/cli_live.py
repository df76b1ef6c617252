"""The command as another process has it: what it printed, and how it ended."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORDCOUNT = str(ROOT / "examples/wordcount.py")
Done = subprocess.CompletedProcess[str]
Yaq = Callable[..., Done]


def yaq(*words: object, conf: Path | None = None, **extra: object) -> Done:
    environment = {key: value for key, value in os.environ.items() if key != "HADOOP_CONF_DIR"}
    if conf is not None:
        environment["HADOOP_CONF_DIR"] = str(conf)
    command = [sys.executable, "-m", "yaqd.cli", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, **extra)  # type: ignore[call-overload]


def assert_one_line(done: Done, code: int, *parts: str) -> None:
    assert done.returncode == code, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    for part in parts:
        assert part in done.stderr
