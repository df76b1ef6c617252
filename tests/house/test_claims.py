"""Figures of README and docs have commands that exist, and a figure without one is found (scripts/claims.py)."""

import importlib
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

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
        "It starts 40,000 tasks a second.",
        "It starts 40k a second.",
        "It starts forty containers per minute.",
        "It does 7.6 jobs/min.",
        "It is twice as fast.",
        "It reads half as much.",
        "It runs three times as many.",
        "It is five times cheaper.",
        "It takes ten times the memory.",
        "It is 1.5 times stock's.",
        "It is twice stock YARN's.",
        "It saves 30 percent.",
        "Median: 250 ms.",
        # These name commands that show no figures.
        "It is 1.3x as fast (`scripts/setup.sh`).",
        "It is 1.3x as fast (`scripts/compiled.sh scripts/setup.sh`).",
    )
    texts = (f"# Page\n\n`yaq sim run yaq-c` is of another section.\n\n## Faster\n\n{claim}\n" for claim in claims)
    pages = _pages(tmp_path, texts)
    done = _claims("--check", *pages)
    assert done.returncode == 1
    found = [line.partition(" (")[0] for line in done.stdout.splitlines()]
    assert found == [f'{page}:7: "Faster" has figures' for page in pages]


def test_a_figure_in_a_heading_is_found(tmp_path: Path) -> None:
    (page,) = _pages(tmp_path, ("# Page\n\n`yaq sim run yaq-c` is of another section.\n\n## Ours is 9.9x as fast\n",))
    assert _claims("--check", page).stdout.startswith(f'{page}:5: "Ours is 9.9x as fast" has figures (9.9x)')


def test_a_row_of_readme_needs_a_command_that_shows_figures(tools: Any) -> None:
    claims, pages = tools
    row = pages.Claim(3, "| 1.3x | `scripts/setup.sh` |", ("1.3x",), True)
    section = pages.Section(ROOT / "README.md", "Page", 1, [row], {"yaq sim run yaq-c": 3, "scripts/setup.sh": 3})
    assert [fault.partition(": ")[0] for fault in claims.faults([section])] == ["README.md:3"]


def test_settings_and_limits_are_no_figures(tmp_path: Path) -> None:
    good, stale = _pages(
        tmp_path,
        (
            "# Page\n\nIt waits 60 s (`2.5 s`). It looks every 3 s, two times after an hour and 40 beside a second.\n"
            "\n<!-- not measured: 1.5 s, 5 % -->\n\nAfter 1.5 s it is 5 %.\n",
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
        "python -m pytest tests/house/test_claims.py::test_absent": "test_claims.py::test_absent",
        "python -m pytest tests/house/test_claims.py -k absent": "pytest finds no test there",
        "python -m pytest tests/house/test_claims.py --absent": "unrecognized arguments: --absent",
        "scripts/absent.sh": "there is no scripts/absent.sh",
        "scripts/compiled.sh python -m benchmarks.absent --absent": "No module named benchmarks.absent",
        "scripts/compiled.sh python -m benchmarks.launch --absent": "unrecognized arguments: --absent",
        "scripts/compiled.sh yaq sim run absent": "there is no experiment 'absent'",
    }
    pages = _pages(tmp_path, (f"# Page\n\nIt is 1.3x (`{command}`, `yaq sim run yaq-c`).\n" for command in problems))
    done = _claims("--check", *pages)
    assert done.returncode == 1
    for page, line, (command, problem) in zip(pages, done.stdout.splitlines(), problems.items(), strict=True):
        assert line.startswith(f"{page}:3: `{command}`: ")
        assert problem in line


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script's two modules; as a script it finds the second beside it."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("claims"), importlib.import_module("claims_pages")


@pytest.fixture
def ran(tools: Any, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The words of each command that was to run. None does."""
    words: list[list[str]] = []

    def note(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        words.append(list(command))
        for folder in _given(command, "--keep") + _given(command, "--out"):
            Path(folder).mkdir(parents=True, exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", note)
    return words


def _given(words: Sequence[str], option: str) -> list[str]:
    """What counts of an option that is said several times: the last."""
    return [words[at + 1] for at, word in enumerate(words) if word == option][-1:]


def test_no_command_sees_what_an_earlier_call_kept(tools: Any, ran: list[list[str]], tmp_path: Path) -> None:
    """Both sides of a row and what compares them share a folder, and each study has its own. None is left."""
    row = "python -m benchmarks.yaq_live --only hive-fair-median"
    sides = [f"{row} --keep runs --side ours", f"{row} --side theirs --keep runs", f"{row} --keep=runs"]
    studies = ["yaq sim study --out /tmp/study", "yaq sim study --only main --out /tmp/study"]
    first, second = _pages(
        tmp_path,
        (
            "# Page\n\nIt is 1.3x:\n\n```\n" + "\n".join((*sides[:2], *studies)) + "\n```\n",
            f"# Page\n\nIt is 1.3x (`{sides[2]}`).\n",
        ),
    )
    calls = []
    for _ in range(2):
        ran.clear()
        assert tools[0].main([str(first), str(second)]) == 0
        assert len(ran) == 5
        calls.append([folder for words in ran for folder in _given(words, "--keep") + _given(words, "--out")])
    for ours, theirs, one, other, both in calls:
        assert ours == theirs == both
        assert len({ours, one, other}) == 3
    assert not set(calls[0]) & set(calls[1])
    for folder in (*calls[0], *calls[1]):
        assert Path(folder).is_absolute()
        assert not Path(folder).is_relative_to(ROOT)
        assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("arguments", "options"), [((), ["--runs", "3", "--runs", "1", "--scale", "0.05"]), (("--full",), ["--runs", "3"])]
)
def test_what_runs_compiled_is_as_small_as_it_is_alone(
    tools: Any, ran: list[list[str]], tmp_path: Path, arguments: tuple[str, ...], options: list[str]
) -> None:
    command = "python -m benchmarks.scheduler --runs 3"
    (page,) = _pages(tmp_path, (f"# Page\n\nIt is 1.3x as fast (`scripts/compiled.sh {command}`).\n",))
    assert tools[0].main([*arguments, str(page)]) == 0
    compiled = str(ROOT / "scripts/compiled.sh")
    assert ran == [[compiled], [compiled, "python", "-m", "benchmarks.scheduler", *options]]


def test_options_that_make_a_command_small_are_its_own(tools: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    claims, pages = tools
    monkeypatch.setattr(claims, "_SCALED", {"python -m benchmarks.launch": "--absent"})
    section = pages.Section(ROOT / "README.md", "Page", 1, [], {"scripts/compiled.sh python -m benchmarks.launch": 3})
    (fault,) = claims.faults([section])
    assert "unrecognized arguments: --absent" in fault


def test_a_script_without_figures_is_run_by_somebody_else(
    tools: Any, ran: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"faults": "scripts/nightly.sh", "test": "CI (.ci/run)", "docs": "hand"}
    text = "\n".join(f"`scripts/{name}.sh`" for name in names)
    (page,) = _pages(tmp_path, (f"# Page\n\nIt is 1.3x as fast.\n{text}\n",))
    assert tools[0].main([str(page)]) == 0
    said = capsys.readouterr().out
    for name, by in names.items():
        assert f"$ scripts/{name}.sh  shows no figures, and is run by {by}\n" in said
    assert not ran


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
