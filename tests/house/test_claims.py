"""Figures of README and docs have commands that exist, and a figure without one is found (scripts/claims.py)."""

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.house.house_sources import ROOT


def _claims(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run((sys.executable, ROOT / "scripts/claims.py", *words), capture_output=True, text=True)


@pytest.mark.slow
def test_every_figure_has_a_command_that_exists() -> None:
    done = _claims("--check")
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def _pages(folder: Path, texts: Iterable[str]) -> list[Path]:
    made = []
    for number, text in enumerate(texts):
        made.append(folder / f"page{number}.md")
        made[-1].write_text(text)
    return made


def test_a_figure_without_a_command_is_found(tmp_path: Path) -> None:
    """One way to say it a page."""
    claims = (
        "Ours is 1.3x as fast.",
        "It fills 97 % of the slots.",
        "It is 9.1 times fewer.",
        "It takes 20 ms.",
        "Its median is\n2.5 s.",
        "It is over in half a second.",
        "| ours | 99 % |",
        "| ours | 1.06 to 1.45 |",
        "```\nyarn-5s   60.6%\n```",
        "It is 1.3x as fast (`yaq sim run NAME`, `python -m benchmarks.launch --help`).",
    )
    texts = (f"# Page\n\n`yaq sim run yaq-c` is of another section.\n\n## Faster\n\n{claim}\n" for claim in claims)
    pages = _pages(tmp_path, texts)
    done = _claims("--check", *pages)
    assert done.returncode == 1
    found = [line.partition(" (")[0] for line in done.stdout.splitlines()]
    assert found == [f'{page}:7: "Faster" has figures' for page in pages]


def test_settings_and_limits_are_no_figures(tmp_path: Path) -> None:
    good, stale = _pages(
        tmp_path,
        (
            "# Page\n\nIt waits 60 s (`2.5 s`).\n\n<!-- not measured: 1.5 s, 5 % -->\n\nAfter 1.5 s it is 5 %.\n",
            "# Page\n\n<!-- not measured: 1.5 s -->\n\nAfter 3 s it is over.\n",
        ),
    )
    assert _claims("--check", good, stale).stdout == f'{stale}:1: "1.5 s" is said to be no figure and looks like none\n'


def test_a_command_that_does_not_exist_is_found(tmp_path: Path) -> None:
    problems = {
        "python -m benchmarks.absent": "No module named benchmarks.absent",
        "python -m benchmarks.launch --only absent": "invalid choice: 'absent'",
        "python -m pytest tests/absent.py": "there is no tests/absent.py",
        "yaq sim run absent": "there is no experiment 'absent'",
        "yaq sim compare --absent 3": "No such option '--absent'",
        "scripts/absent.sh": "there is no scripts/absent.sh",
    }
    pages = _pages(tmp_path, (f"# Page\n\nIt is 1.3x as fast (`{command}`).\n" for command in problems))
    done = _claims("--check", *pages)
    assert done.returncode == 1
    for page, line, (command, problem) in zip(pages, done.stdout.splitlines(), problems.items(), strict=True):
        assert line.startswith(f"{page}:3: `{command}`: ")
        assert problem in line


def test_readme_lists_its_claims_with_their_commands() -> None:
    said = _claims("--list", ROOT / "README.md").stdout
    assert "README.md: What is measured" in said
    assert "$ python -m benchmarks.launch" in said
    # that of a row which links to it
    assert "$ yaq sim compare --workload hive-ms" in said


def test_a_claim_stands_beside_todays_figure(tmp_path: Path) -> None:
    good, failing = _pages(
        tmp_path,
        (
            "# Page\n\nIt has 3 % (`python -m pytest tests/house/test_rooms.py --collect-only`).\n",
            "# Page\n\nIt is 1.3x as fast (`python -m pytest tests/absent.py`).\n",
        ),
    )
    done = _claims(good, failing)
    assert done.returncode == 1
    assert "3: claimed It has 3 %" in done.stdout
    assert "today   tests/house/test_rooms.py" in done.stdout
    assert "ended with 4: " in done.stdout
