#!/usr/bin/env python3
"""Holds every figure of README and docs to the command that shows it.

    scripts/claims.sh                    runs the commands scaled down: each claim with today's figure
    scripts/claims.sh --full             the same at full size, which takes many hours
    scripts/claims.sh --list             claims and their commands; nothing runs
    scripts/claims.sh --check            exit code 1 where a section has figures and names no command that exists
    scripts/claims.sh README.md          these pages alone, of any of the four

A figure is a ratio (1.3x, twice as many), a share (97 %), a rate (300 a second), or a time or size that has a fraction
or stands behind a word of measuring. Its command stands in the same section: a line in a block of code, or a piece in
backticks. It is a benchmark, a simulation or a test, and may be run by scripts/compiled.sh. Each row of README's tables
has its own, or a link to the section that has it. A claim that names rows in backticks is shown with these alone.

What looks like a figure and is a setting, a definition or somebody else's result stands in a comment of its section:
<!-- not measured: 2.5 s, 5 % -->. Generated pages have no claims.
"""

import argparse
import contextlib
import io
import os
import runpy
import shlex
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from unittest import mock

import click
from claims_pages import COMPILED, ROOT, Section, pages, row_commands, sections, shows_figures

#: seconds that a command may take when scaled down
_PATIENCE_S = 300.0
_LINES_SHOWN = 60

#: what makes a command small; options that are said twice count as said last
_SCALED: Mapping[str, str] = {
    "python -m benchmarks.task_start": "--tasks 20",
    "python -m benchmarks.simulator": "--runs 1 --nodes 100",
    "python -m benchmarks.rpc": "--runs 1 --seconds 1",
    "python -m benchmarks.clotho.headroom": "--sequences 2 --trials 20",
    "python -m benchmarks.clotho": "--runs 1 --scale 0.1",
    # A window shorter than some heartbeats says nothing.
    "python -m benchmarks.yaq_live": "--runs 1 --scale 0.3",
    "python -m benchmarks.launch": "--runs 3",
    "python -m benchmarks.rm_bound": "--runs 1 --scale 0.3",
    "python -m benchmarks": "--runs 1 --scale 0.05",
    "yaq sim run hyperdrive": "--quick",
    # Smaller clusters would say something else.
    "yaq sim run": "--seeds 1",
    "yaq sim compare": "--seeds 1",
    "yaq sim study": "--quick",
    "yaq sim line": "--quick",
    "yaq sim shuffle": "--shapes 20",
    "yaq clotho eval": "--seeds 2",
}

#: who runs a script that shows no figures; a person runs the others
_RUN_BY: Mapping[str, str] = {
    "scripts/setup.sh": "the other scripts",
    "scripts/test.sh": "CI (.ci/run)",
    **{f"scripts/{name}.sh": "scripts/nightly.sh" for name in ("claims", "differential", "faults", "interop")},
}


# Checking -------------------------------------------------------------------------------------------------------------


def faults(found: Sequence[Section]) -> Iterator[str]:
    """Yield what is wrong, each with page and line."""
    checked: dict[str, str] = {}
    for section in found:
        for line, problem in _section_faults(section):
            yield f"{_shown(section.page)}:{line}: {problem}"
        for command, line in section.commands.items():
            if command not in checked:
                checked[command] = unknown(command) or unknown(scaled(command))
            if checked[command]:
                yield f"{_shown(section.page)}:{line}: `{command}`: {checked[command]}"


def _section_faults(section: Section) -> Iterator[tuple[int, str]]:
    if section.claims and not any(map(shows_figures, section.commands)) and not _row_by_row(section):
        figures = ", ".join(section.claims[0].figures)
        yield (
            section.claims[0].line,
            f'"{section.heading}" has figures ({figures}) and names no command that shows them',
        )
    if section.page == ROOT / "README.md":
        for claim in section.claims:
            if claim.is_row and not any(map(shows_figures, row_commands(claim, section))):
                yield claim.line, f"a row of README has figures ({', '.join(claim.figures)}) and no command of its own"
    for waived in section.waived:
        if waived not in section.justly_waived:
            yield section.line, f'"{waived}" is said to be no figure and looks like none'


def _row_by_row(section: Section) -> bool:
    return section.page == ROOT / "README.md" and all(claim.is_row for claim in section.claims)


def unknown(command: str) -> str:
    """Return what is wrong with a command's names and options, else nothing; it does not run."""
    if command.startswith(COMPILED):
        return unknown(command.removeprefix(COMPILED))
    words = shlex.split(command)
    if words[0] == "yaq":
        return _unknown_to_yaq(words[1:])
    if words[:2] == ["python", "-m"] and words[2] != "pytest":
        return _unknown_benchmark(words[2], words[3:])
    paths = [Path(word.partition("::")[0]) for word in words if word.startswith(("scripts/", "tests/"))]
    if absent := next((path for path in paths if not (ROOT / path).exists()), None):
        return f"there is no {absent}"
    # Whole files and folders need no look, which takes seconds.
    if words[:3] == ["python", "-m", "pytest"] and not all((ROOT / word).exists() for word in words[3:]):
        return _unknown_test(words[3:])
    return ""


def _unknown_test(words: Sequence[str]) -> str:
    """Let pytest find the tests; none of them runs."""
    looked = [sys.executable, "-m", "pytest", *words, "--collect-only", "-p", "no:cacheprovider"]
    done = subprocess.run(looked, cwd=ROOT, env=_environment(), capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if "error: " in line.lower() and "usage: " not in line]
    return (said or ["pytest finds no test there"])[0] if done.returncode else ""


def _unknown_to_yaq(words: list[str]) -> str:
    from yaqd.cli.app import yaq
    from yaqd.sim.experiments import EXPERIMENTS

    command: click.Command = yaq
    context = click.Context(yaq, info_name="yaq")
    while isinstance(command, click.Group) and words:
        inner = command.get_command(context, words[0])
        if inner is None:
            return f"there is no {words[0]!r}"
        command, words = inner, words[1:]
    try:
        values = command.make_context("yaq", list(words), parent=context).params
    except click.ClickException as error:
        return error.format_message()
    name = values.get("name") if command.name == "run" else None
    return f"there is no experiment {name!r}" if name is not None and name not in (*EXPERIMENTS, "all") else ""


def _unknown_benchmark(module: str, words: Sequence[str]) -> str:
    """Let the benchmark itself read its options, and end there; one with another parser ends with its help."""
    said, kept, parse = io.StringIO(), sys.argv, argparse.ArgumentParser.parse_args

    def read(parser: argparse.ArgumentParser, given: Sequence[str] | None = None) -> NoReturn:
        # With its help it would end before it says which options it does not know.
        parse(parser, [word for word in (sys.argv[1:] if given is None else given) if word != "--help"])
        sys.exit(0)

    sys.argv = [module, *words, "--help"]
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            mock.patch.object(argparse.ArgumentParser, "parse_args", read),
        ):
            # A part of a benchmark was imported by the whole before.
            warnings.simplefilter("ignore", RuntimeWarning)
            runpy.run_module(module, run_name="__main__")
    except ImportError as missing:
        return str(missing)
    except SystemExit as end:
        return said.getvalue().strip().splitlines()[-1] if end.code else ""
    finally:
        sys.argv = kept
    return "it takes no options, so it would have run"


# Running --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Today:
    """What a command printed. `problem`: why there is nothing, else empty."""

    words: str
    lines: tuple[str, ...] = ()
    problem: str = ""
    took_s: float = 0.0
    has_failed: bool = False


def scaled(command: str) -> str:
    """Return the command with the options that make it small."""
    for begin, options in _SCALED.items():
        if command.removeprefix(COMPILED).startswith(begin):
            return f"{command} {options}"
    return command


def run(command: str, folder: Path, *, is_full: bool) -> Today:
    """Run a command and return what it says; `folder`: of this call of the script, for what commands keep."""
    if not shows_figures(command):
        by = _RUN_BY.get(command.split()[0], "hand")
        return Today(command, problem=f"shows no figures, and is run by {by}")
    words = command if is_full else scaled(command)
    # A folder of an earlier call has what other code has measured.
    if "yaq sim study" in words:
        words += f" --out {tempfile.mkdtemp(dir=folder)}"
    if " --keep" in words:
        # One for all: each side of a row may have its own command, and what compares them another.
        words += f" --keep {folder / 'kept'}"
    real = [_here(word) for word in shlex.split(words)]
    if command.startswith(COMPILED):
        real[0] = str(ROOT / real[0])
        # Compiling takes minutes, which are not the command's. Where it fails, the command fails too.
        subprocess.run(real[:1], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    else:
        real[:1] = [sys.executable] if real[0] == "python" else [sys.executable, "-m", "yaqd.cli"]
    began = time.monotonic()
    patience_s = None if is_full else _PATIENCE_S
    try:
        done = subprocess.run(real, cwd=ROOT, env=_environment(), capture_output=True, text=True, timeout=patience_s)
    except subprocess.TimeoutExpired:
        return Today(words, problem=f"was not over within {_PATIENCE_S:g} s", took_s=_PATIENCE_S)
    took_s = time.monotonic() - began
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1]
        return Today(words, problem=f"ended with {done.returncode}: {last}", took_s=took_s, has_failed=True)
    return Today(words, tuple(line for line in done.stdout.splitlines() if line.strip()), took_s=took_s)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def _here(word: str) -> str:
    """Return a path of data that is not shipped, as `data/taskset`, as it is here; other words as they are."""
    if word.startswith("data/"):
        for folder in (ROOT, *ROOT.parents):
            if (folder / "shared" / word).exists():
                return str(folder / "shared" / word)
    return word


def show_today(section: Section, ran: dict[str, Today], folder: Path, *, is_full: bool) -> bool:
    """Run what the section names, and print its claims with what came of it; return whether a command failed."""
    own = {claim.line: row_commands(claim, section) for claim in section.claims if claim.is_row}
    wanted = list(dict.fromkeys((*section.commands, *(command for one in own.values() for command in one))))
    print(f"\n{_shown(section.page)}: {section.heading}")
    for command in wanted:
        if command not in ran:
            ran[command] = run(command, folder, is_full=is_full)
        today = ran[command]
        print(f"  $ {today.words}  {today.problem or f'({today.took_s:.0f} s)'}", flush=True)
    shown: set[str] = set()
    for claim in section.claims:
        print(f"  {claim.line}: claimed {_short(claim.text)}")
        lines = [line for command in own.get(claim.line) or wanted for line in ran[command].lines]
        mine = [line for line in lines if line.split()[0] in claim.rows]
        if not mine and own.get(claim.line):
            mine = lines[:_LINES_SHOWN]
        for line in mine:
            print(f"     today   {line.strip()}")
        shown.update(mine)
    rest = [line for command in wanted for line in ran[command].lines if line not in shown]
    for line in rest[:_LINES_SHOWN]:
        print(f"     today   {line}")
    return any(ran[command].has_failed for command in wanted)


def _short(text: str) -> str:
    return text if len(text) < 240 else f"{text[:237]}..."


def _shown(page: Path) -> str:
    return str(page.relative_to(ROOT) if page.is_relative_to(ROOT) else page)


def _list(found: Iterable[Section]) -> None:
    for section in found:
        print(f"\n{_shown(section.page)}: {section.heading}")
        for claim in section.claims:
            print(f"  {claim.line}: {', '.join(claim.figures)}: {_short(claim.text)}")
        linked = (command for claim in section.claims for command in row_commands(claim, section))
        for command in dict.fromkeys((*section.commands, *linked)):
            print(f"  $ {command}")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/claims.sh", description=(__doc__ or "").partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="print claims and their commands; nothing runs")
    what.add_argument("--check", action="store_true", help="exit code 1 where figures name no command that exists")
    what.add_argument("--full", action="store_true", help="run the commands at full size: many hours")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="default: README and docs")
    given = parser.parse_args(arguments)
    found = [section for page in given.pages or pages() for section in sections(page.resolve())]
    if given.check:
        problems = list(faults(found))
        print(*problems, sep="\n", end="\n" if problems else "")
        return int(bool(problems))
    claiming = [section for section in found if section.claims]
    if given.list:
        _list(claiming)
        return 0
    ran: dict[str, Today] = {}
    # What was ended for its time may still write there.
    with tempfile.TemporaryDirectory(prefix="yaqd-claims-", ignore_cleanup_errors=True) as folder:
        failed = [section for section in claiming if show_today(section, ran, Path(folder), is_full=given.full)]
    return int(bool(failed))


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main(sys.argv[1:]))
