"""The ResourceManager as a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = (
    "import sys; from rm.foreground import main; from tests.rm.rm_harness import configuration; "
    "sys.exit(main(configuration({})))"
)


def start(**overrides: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    program = PROGRAM.replace("{}", repr({k.replace("__", "."): v for k, v in overrides.items()}))
    return subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
