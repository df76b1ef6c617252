"""What there is under `yaq ml`."""

from yaqd.cli.lazy import Lazy, LazyGroup

_COMMANDS = {
    "submit": Lazy("yaqd.cli.ml.submit", "submit", "Train a model on the cluster."),
    "list": Lazy("yaqd.cli.ml.watching", "list_jobs", "List training jobs: loss, cores, how far they are."),
    "watch": Lazy("yaqd.cli.ml.watching", "watch", "Watch the losses of training jobs fall."),
    "stop": Lazy("yaqd.cli.ml.submit", "stop", "End a job after its iteration, with a checkpoint."),
    "resume": Lazy("yaqd.cli.ml.submit", "resume", "Go on with a job that has ended, from its last checkpoint."),
}

ml = LazyGroup("ml", lazy=_COMMANDS, help="Train models: iterations, losses, cores by what they buy.")
