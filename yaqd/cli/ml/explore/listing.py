"""Explorations in `yaq ml list`."""

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from yaqd.cli.ml.explore.table import summary
from yaqd.cli.output import duration, print_table, shortened
from yaqd.config import Configuration

if TYPE_CHECKING:
    from tez_adapter.client.rm_client import ApplicationReport

_HEADINGS: Final = ("exploration", "name", "state", "begun", "epochs", "best", "target", "policy", "time")


def summaries(conf: Configuration, reports: "Sequence[ApplicationReport]") -> list[dict[str, Any]]:
    """Return what is known of explorations, as `--json` has it."""
    from tez_adapter.client.exploration import ExplorationWatch

    found = []
    for report in reports:
        watch = ExplorationWatch(conf, report)
        try:
            view = watch.look(report)
        finally:
            watch.close()
        known = {} if view is None else summary(view)
        state = report.final_status.name if report.state.is_final else report.state.name
        end_ms = report.finish_ms or time.time() * 1000
        took_s = (end_ms - report.start_ms) / 1000 if report.start_ms else None
        found.append({"application_id": str(report.id), **known, "name": report.name, "state": state, "took_s": took_s})
    return found


def print_explorations(found: Sequence[dict[str, Any]]) -> None:
    """Print a table of explorations."""
    print_table(_HEADINGS, [_cells(known) for known in found], empty="no explorations: yaq ml explore starts one")


def _cells(known: dict[str, Any]) -> tuple[object, ...]:
    best, target = known.get("best"), known.get("target", math.nan)
    return (
        known["application_id"],
        shortened(known["name"], 24),
        "REACHED" if known.get("winner") is not None else known["state"],
        str(known.get("started", "-")),
        str(known.get("epochs", "-")),
        "-" if best is None else f"{known['metric']} {best:.5g}",
        "rises" if target is None else "-" if math.isnan(target) else f"{target:g}",
        known.get("policy", "-"),
        "-" if known["took_s"] is None else duration(1000 * known["took_s"]),
    )
