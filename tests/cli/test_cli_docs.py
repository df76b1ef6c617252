"""The command line reference is what the commands say of themselves."""

from pathlib import Path

from yaqd.cli.reference import reference_markdown

ROOT = Path(__file__).resolve().parents[2]


def words(text: str) -> list[str]:
    """Without layout, which differs between releases of click."""
    return text.split()


def test_the_command_line_reference_is_current() -> None:
    assert words((ROOT / "docs/cli.md").read_text()) == words(reference_markdown()), "run scripts/docs.sh"


def test_the_reference_has_every_command_once() -> None:
    headings = [line for line in reference_markdown().splitlines() if line.startswith("#")]
    assert len(headings) == len(set(headings)) > 25
