"""A few kills at random moments: every acknowledged job ends right, and nothing is left over."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_jobs_end_right_whatever_is_killed() -> None:
    words = ("--kills", "10", "--seed", "4", "--at-once", "2", "--pause", "0.7", "--no-stock", "--json")
    run = subprocess.run([sys.executable, str(_HERE), *words], capture_output=True, text=True, timeout=280, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(run.stdout)
    assert sum(report["kills"].values()) == 10 and sum(report["jobs"].values()) >= 2
