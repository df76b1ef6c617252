"""The command line reference is what the commands say of themselves."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def reference() -> str:
    """Written by a process of its own, as scripts/docs.sh has it: click keeps the help option of a command that a test
    in this one has run by itself, without the `-h` that it has under `yaq`."""
    command = (sys.executable, "-P", "-m", "yaqd.cli.reference")
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def words(text: str) -> list[str]:
    """Without layout, which differs between releases of click."""
    return text.split()


def test_the_command_line_reference_is_current(reference: str) -> None:
    assert words((ROOT / "docs/cli.md").read_text()) == words(reference), "run scripts/docs.sh"


def test_the_reference_has_every_command_once(reference: str) -> None:
    headings = [line for line in reference.splitlines() if line.startswith("#")]
    assert len(headings) == len(set(headings)) > 25
