"""The part of `yaq explain` about an application whose queue decides by stages."""

from typing import Any

import click

from yaqd.cli.output import duration, print_table

_HEADINGS = ("stage", "name", "tasks left", "running", "coming", "a task takes", "open", "score")


def show_stages(found: dict[str, Any]) -> None:
    """Print what the queue weighed when it decided last, and what weighted fair sharing would have done."""
    jobs, ago_s = found["jobs"], found["decidedAgoS"]
    among = f"{jobs} application{'s' * (jobs != 1)}"
    when = "has not decided yet" if ago_s is None else f"decided {duration(1000 * ago_s)} ago"
    click.echo(f"\nIts queue decides by stages, by the policy {found['policy']}, among {among}. It {when}.")
    has = found["containers"]
    idle = f", {found['idle']} of them idle" if found["idle"] else ""
    click.echo(f"  It has {has} container{'s' * (has != 1)}{idle}; {_limit(found)}.")
    if said := _fair(found):
        click.echo(f"  Weighted fair sharing would {said}.")
    for reason, count in found["fallbacks"].items():
        if count:
            click.echo(f"  Weighted fair sharing decided {count} time{'s' * (count != 1)}, as {reason}.")
    print_table(_HEADINGS, [_row(stage) for stage in found["stages"]], empty="")
    for choice in found["choices"]:
        whose = "free ones" if choice["source"] is None else f"those of {choice['source']}"
        to = f"{choice['application']}, stage {choice['priority']}"
        click.echo(f"  chosen: {choice['containers']} of {whose} for {to}")


def _limit(found: dict[str, Any]) -> str:
    if found["jobs"] == 1:
        return "no other application there has work left, so it may have what it asks for"
    if found["limit"] is None:
        return "how many it should have was not chosen so far"
    return f"it should have {found['limit']} at most, as others want some"


def _fair(found: dict[str, Any]) -> str:
    """Return what weighted fair sharing would do; "": nothing."""
    fair = found["weightedFair"]
    serves = fair["application"] is not None
    if found["jobs"] == 1:
        return f"serve its stage {fair['priority']} next" if serves else ""
    gives = f"give it {fair['limit']}" if fair["limit"] else "give it no more, as all its tasks have containers"
    return f"{gives}, and the next one to {fair['application']}, stage {fair['priority']}" if serves else gives


def _row(stage: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(stage["priority"]),
        stage["name"] or "-",
        str(stage["tasks"]),
        str(stage["running"]),
        str(stage["coming"]),
        "not known" if stage["taskS"] is None else duration(1000 * stage["taskS"]),
        "yes" if stage["open"] else "no",
        "-" if stage["score"] is None else f"{stage['score']:.3f}",
    )
