"""The part of `yaq explain` about a training job's cores."""

from typing import Any

import click

from yaqd.cli.output import duration, print_table

_HEADINGS = ("application", "name", "cores", "gain", "normalized", "to 90 %", "why")


def show_training(found: dict[str, Any]) -> None:
    """Print why the job has its cores, and what its neighbours would gain."""
    click.echo(f"\n{_cores(found['cores'])} by the policy {found['policy']}: {found['why']}")
    if found["workers"] is not None:
        click.echo(f"  {found['workers']} worker{'s' * (found['workers'] != 1)} in containers")
    unheld = found.get("unheldNodes", [])
    if unheld and found["cores"] is not None:
        click.echo(f"  {_unheld(unheld)}")
    if found["normalizedLoss"] is not None:
        click.echo(f"  loss {found['loss']:.6g}, {_ahead(found['normalizedLoss'], found['ninetyS'])}")
    if found["iterationCoreSeconds"] is not None:
        costs = f"{found['iterationCoreSeconds']:.3g} core-seconds and {found['iterationFixedS']:.3g} s beside them"
        click.echo(f"  an iteration costs {costs}, as nodes count")
    if found["beside"]:
        others = f"{found['others']} other job{'s' * (found['others'] != 1)}"
        click.echo(f"\nBeside {others} in {found['queue']}; predicted gain until the next division:")
        print_table(_HEADINGS, [_row(job) for job in (found, *found["beside"])], empty="")


def _unheld(nodes: list[str]) -> str:
    """Say where the job may use more than it was ordered."""
    which = f"{nodes[0]} throttles" if len(nodes) == 1 else f"{len(nodes)} of its nodes, {nodes[0]} for one, throttle"
    return f"it may use more: {which} nobody (a stock NodeManager, or yaq.nm.throttle is off)"


def _row(job: dict[str, Any]) -> tuple[str, ...]:
    normalized, ninety_s = job["normalizedLoss"], job["ninetyS"]
    return (
        job["id"],
        job["name"],
        _cores(job["cores"]),
        "-" if job["gain"] is None else f"{job['gain']:.4f}",
        "-" if normalized is None else f"{normalized:.3f}",
        "-" if ninety_s is None else _soon(ninety_s),
        job["reason"].lower().replace("_", " "),
    )


def _ahead(normalized: float, ninety_s: float | None) -> str:
    """Say how far a job has come; a loss that never fell has its whole fall ahead."""
    if normalized >= 1.0:
        return "which has not fallen so far"
    if ninety_s is not None and ninety_s > 0.0:
        return f"{normalized:.0%} of its fall ahead, nine tenths of it are done in {_soon(ninety_s)}"
    return f"{normalized:.0%} of its fall ahead"


def _soon(seconds: float) -> str:
    return "done" if seconds <= 0.0 else duration(1000 * seconds)


def _cores(cores: float | None) -> str:
    return "as many cores as it can use" if cores is None else f"{cores:g} core{'s' * (cores != 1)}"
