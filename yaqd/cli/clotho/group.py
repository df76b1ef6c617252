"""What there is under `yaq clotho`."""

from yaqd.cli.lazy import Lazy, LazyGroup

_COMMANDS = {
    "train": Lazy("yaqd.cli.clotho.train", "train", "Train the policy in the compiled simulator."),
    "eval": Lazy("yaqd.cli.clotho.evaluate", "evaluate", "Hold weights against heuristics on the same arrivals."),
    "draw": Lazy("yaqd.cli.clotho.draw", "draw", "Draw who has how many executors, over time."),
    "inspect": Lazy("yaqd.cli.clotho.inspect", "inspect", "Verify weights; say how they were made."),
}

_HELP = """Which stage of which job gets the next container, learnt by simulation.

\b
  yaq clotho train --graphs drawn --output stages.npz --minutes 60
  yaq clotho eval --graphs drawn stages.npz
  yaq clotho draw --graphs drawn stages.npz --out jobs.png
  yaq clotho inspect stages.npz
"""

clotho = LazyGroup("clotho", lazy=_COMMANDS, help=_HELP)
