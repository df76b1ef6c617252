"""`yaq sim run --curves`: training jobs along other losses than those of the nine."""

from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.exits import CommandError
from yaqd.cli.options import FiniteFloat

if TYPE_CHECKING:
    from yaqd.sim.experiments import Experiment

#: `yaqd.sim.workloads.curves.LEAST_FALL`, which is not imported for a help page
LEAST_FALL = 0.05


def curve_options(command: Any) -> Any:
    """Add the options; `with_curves` reads them from the command's arguments."""
    for option in (
        click.option("--least-fall", type=FiniteFloat(0, 1), metavar="X",
                     help="Of taskset and AdaptDL, leave out curves that fall by less than this part of the best's "
                     f"[default: {LEAST_FALL:g}]."),
        click.option("--curves", multiple=True, metavar="NAME|PATH",
                     help="Losses of the jobs in slaq- experiments: nine, held-out, a file of `yaq ml record`, or "
                     "taskset's and AdaptDL's files or folders; may be repeated [default: nine]."),
    ):  # fmt: skip
        command = option(command)
    return command


def with_curves(chosen: "list[Experiment]", options: dict[str, Any]) -> "list[Experiment]":
    """Return the experiments with the curves that were named. Raises CommandError."""
    from yaqd.sim.experiments.slaq import on_curves
    from yaqd.sim.workloads import WorkloadError
    from yaqd.sim.workloads.curves import read_curve_set

    least = options["least_fall"]
    if not options["curves"]:
        if least is not None:
            raise CommandError("--least-fall: there are no --curves that it could leave out")
        return chosen
    try:
        curves = read_curve_set(options["curves"], LEAST_FALL if least is None else least)
        return [on_curves(experiment, curves) for experiment in chosen]
    except (WorkloadError, ValueError) as error:
        raise CommandError(f"--curves {error}") from None
