"""What there is under `yaq ml`."""

from yaqd.cli.lazy import Lazy, LazyGroup

_COMMANDS = {
    "local": Lazy("yaqd.cli.ml.local", "local", "Train a model on this machine, without a cluster."),
    "submit": Lazy("yaqd.cli.ml.submit", "submit", "Train a model on the cluster."),
    "list": Lazy("yaqd.cli.ml.watching", "list_jobs", "List training jobs and explorations, and how far they are."),
    "watch": Lazy("yaqd.cli.ml.watching", "watch", "Watch the losses of training jobs fall."),
    "stop": Lazy("yaqd.cli.ml.submit", "stop", "End a job after its iteration, with a checkpoint."),
    "resume": Lazy("yaqd.cli.ml.submit", "resume", "Go on with a job that has ended, from its last checkpoint."),
    "model": Lazy("yaqd.cli.ml.model", "model", "Fetch what a class was trained to."),
    "plot": Lazy("yaqd.cli.ml.plot", "plot", "Draw losses as PNG or SVG."),
    "explore": Lazy("yaqd.cli.ml.explore.command", "explore", "Find good hyperparameters: many trials, few slots."),
    "trials": Lazy("yaqd.cli.ml.explore.trials", "trials", "List an exploration's trials: curves, chances, reasons."),
    "export": Lazy("yaqd.cli.ml.explore.trials", "export", "Write trials as JSON lines, for TensorBoard or Optuna."),
    "record": Lazy("yaqd.cli.ml.recording", "record", "Record curves for the simulator."),
}

_HELP = """Train models: any program that reports its loss, or a class whose data lies in partitions.

\b
  from yaqd.ml import report
  for i in range(1, 101):
      loss = train_once()
      if report(iteration=i, loss=loss).stop:
          break

On a cluster, cores go to the jobs whose loss will fall most. `yaq ml explore` looks for good hyperparameters.
"""

ml = LazyGroup("ml", lazy=_COMMANDS, help=_HELP)
