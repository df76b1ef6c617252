"""What an experiment prints: its conditions, every system's figures, reported against measured, a plain verdict."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from yaqd.sim.experiments.model import Experiment, Row, Run
from yaqd.sim.experiments.outcome import Outcome, conditions, metrics_of, middle, outcomes, span

#: what the table of systems shows, with heading and digits
COLUMNS = (
    ("jct_median", "JCT median s", 1),
    ("jct_p95", "p95 s", 1),
    ("sub_median", "from submission s", 1),
    ("jobs_per_min", "jobs/min", 2),
    ("utilization", "slots used %", 1),
    ("delay_mean", "queued mean s", 2),
    ("delay_median", "median s", 2),
)


def lines(experiment: Experiment, runs: Sequence[Run], *, quick: bool) -> Iterator[str]:
    """Yield the report, line by line."""
    yield f"{experiment.name}: {experiment.title}"
    yield f"  after {experiment.source}"
    yield from (f"  {line}" for line in conditions(experiment, runs))
    if quick:
        yield "  QUICK: a small part of the experiment; the figures say only that it runs"
    yield ""
    columns = experiment.columns or COLUMNS
    yield from table(("system", *(heading for _, heading, _ in columns)), _system_rows(experiment, runs))
    found = list(outcomes(experiment, runs))
    if found:
        yield ""
        yield from table(("row", "reported", "measured", "seeds from..to", "verdict"), [_outcome_row(o) for o in found])
        for outcome in found:
            if not outcome.holds and outcome.row.reason:
                yield f"  {outcome.row.id}: {outcome.row.reason}"
    if experiment.notes:
        yield ""
        yield from (f"  {note}" for note in experiment.notes)


def _system_rows(experiment: Experiment, runs: Sequence[Run]) -> list[tuple[str, ...]]:
    rows = []
    for case in experiment.cases:
        mine = [run for run in runs if run.label == case.label]
        if mine:
            columns = experiment.columns or COLUMNS
            cells = (number(middle(metrics_of(mine, key)), digits) for key, _, digits in columns)
            rows.append((_labelled(case.label, mine), *cells))
    return rows


def _labelled(label: str, runs: Sequence[Run]) -> str:
    """A searched case says what was found best."""
    chosen = sorted({run.limit for run in runs if run.limit is not None})
    if not chosen:
        return label
    return f"{label} [{chosen[0]}]" if len(chosen) == 1 else f"{label} [{chosen[0]}..{chosen[-1]}]"


def _outcome_row(outcome: Outcome) -> tuple[str, ...]:
    row = outcome.row
    unit = row.unit if row.unit in ("x", "%") else f" {row.unit}"
    low, high = span(outcome.values)
    return (
        f"{row.id}  {row.what}",
        "-" if row.reported is None else f"{number(row.reported, row.digits)}{unit}",
        f"{number(outcome.measured, row.digits)}{unit}",
        f"{number(low, row.digits)}..{number(high, row.digits)}",
        outcome.verdict,
    )


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield aligned lines: the first and the last column to the left where they are words, numbers to the right."""
    if not rows:
        return
    widths = [max(len(line[at]) for line in (headings, *rows)) for at in range(len(headings))]
    words = [all(not row[at][:1].isdigit() for row in rows) for at in range(len(headings))]
    for line in (headings, *rows):
        cells = (
            cell.ljust(width) if at == 0 or is_word else cell.rjust(width)
            for at, (cell, width, is_word) in enumerate(zip(line, widths, words, strict=True))
        )
        yield "  " + "  ".join(cells).rstrip()


def number(value: float, digits: int) -> str:
    return "-" if value != value else f"{value:.{digits}f}"


def as_json(experiment: Experiment, runs: Sequence[Run], *, quick: bool) -> dict[str, Any]:
    """Return one JSON value with every run's figures, so that a plot can be drawn again from it."""
    return {
        "experiment": experiment.name,
        "title": experiment.title,
        "source": experiment.source,
        "quick": quick,
        "conditions": conditions(experiment, runs),
        "rows": [_json_row(outcome.row, outcome) for outcome in outcomes(experiment, runs)],
        "runs": [
            {
                "case": run.label,
                "seed": run.seed,
                "limit": run.limit,
                "metrics": dict(run.metrics),
                "jct_s": [round(x, 3) for x in run.jct],
            }
            for run in runs
        ],
        "notes": list(experiment.notes),
    }


def _finite(value: float) -> float | None:
    """JSON has no other."""
    return value if math.isfinite(value) else None


def _json_row(row: Row, outcome: Outcome) -> dict[str, Any]:
    return {
        "id": row.id,
        "what": row.what,
        "reported": row.reported,
        "measured": _finite(outcome.measured),
        "unit": row.unit,
        "by_seed": [_finite(x) for x in outcome.values],
        "holds": outcome.holds,
        "verdict": outcome.verdict,
        "reason": "" if outcome.holds else row.reason,
    }
