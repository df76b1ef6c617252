"""`yaq ml explore --local`: an exploration on this machine."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import click

from tez_adapter.exploration.generators.generator import Generator
from tez_adapter.exploration.local.driver import LocalExploration
from tez_adapter.exploration.local.records import LocalTrial
from tez_adapter.exploration.terms import make_policy
from tez_adapter.exploration.view import ExplorationView
from yaqd.cli.exits import FAILED, CommandError
from yaqd.cli.ml.explore.asked import Asked
from yaqd.cli.ml.explore.export import write_lines
from yaqd.cli.ml.explore.table import params_text, print_rows, rows, summary
from yaqd.cli.output import duration, print_fields, print_json
from yaqd.policies.explore.guide import ForestGuide

#: rows of the table at the end
_SHOWN = 15


def explore_here(
    given: Asked,
    name: str,
    *,
    py_files: Sequence[str],
    environment: Mapping[str, str],
    logs: Path | None,
    exported: Path | None,
    as_json: bool,
    is_quiet: bool,
) -> int:
    """Run an exploration to its end and show its trials; return the exit code: 1 where the target was not reached."""
    _prepare(py_files, environment)
    if logs is not None:
        logs.mkdir(parents=True, exist_ok=True)
    note = _note
    generator = given.generator(note)
    with tempfile.TemporaryDirectory(prefix="yaq-explore-") if logs is None else nullcontext(str(logs)) as folder:
        exploration = LocalExploration(
            given.terms,
            given.joined,
            generator,
            make_policy(given.terms),
            Path(folder),
            guide=_guide(given, generator),
            name=name,
            heard=_silent if is_quiet or as_json else partial(_progress, given),
            note=note,
        )
        view = exploration.run()
    if exported is not None:
        write_lines(view, exported)
    _tell(view, as_json=as_json, is_quiet=is_quiet)
    is_looking = given.terms.target is not None or given.terms.solved
    return FAILED if (is_looking and view.winner is None) or view.best is None else 0


def _prepare(py_files: Sequence[str], environment: Mapping[str, str]) -> None:
    """Set what the trials' processes take over from this one."""
    for path in py_files:
        if not Path(path).exists():
            raise CommandError(f"--py-files {path}: no such file")
    paths = [str(Path(path).resolve()) for path in py_files]
    if paths:
        os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ.update(environment)


def _guide(given: Asked, generator: Generator) -> ForestGuide | None:
    terms, space = given.terms, given.space
    if not terms.guided or space is None:
        return None
    many = terms.trials if generator.size is None else min(terms.trials, generator.size)
    proposed = [params for number in range(many) if (params := generator.propose(number)) is not None]
    return ForestGuide(space.encode_all(proposed), terms.seed)


def _progress(given: Asked, trial: LocalTrial) -> None:
    """Write a line of a report."""
    if trial.process is None:
        return  # it has ended
    epochs = len(trial.values)
    value = f"{given.terms.metric} {trial.values[-1]:.6g}" if trial.values else "nothing reported"
    new = f"  {params_text(trial.params or {})}" if epochs == 1 else ""
    click.echo(f"trial {trial.number}  epoch {epochs}  {value}{new}", err=True)


def _silent(trial: LocalTrial) -> None:
    """Say nothing."""


def _tell(view: ExplorationView, *, as_json: bool, is_quiet: bool) -> None:
    if as_json:
        print_json({**summary(view), "notices": list(view.notices)})
        return
    if is_quiet:
        return
    print_rows(view, rows(view), _SHOWN)
    best = view.best
    fields: list[tuple[str, Any]] = [("ended", view.ending), ("took", duration(1000 * view.now_s))]
    if best is not None:
        fields += [
            ("best", f"{view.metric_name} {best.best(view.metric):.6g} of trial {best.number}"),
            ("values", params_text(best.params)),
        ]
    click.echo()
    print_fields(fields)


def _note(line: str) -> None:
    click.echo(f"yaq: {line}", err=True)
