"""Programs that join an exploration, one of each style. Their curves follow from their values."""

#: rises to 1 - |rate - 0.3|, with a checkpoint
SCRIPT = """
from yaqd.ml import last_checkpoint, report, trial
rate = trial.params["rate"]
saved = last_checkpoint()
done = int(saved) if saved else 0
print("begins at", done, "epoch", trial.epoch)
for epoch in range(done + 1, 31):
    accuracy = (1 - abs(rate - 0.3)) * (1 - 0.8 ** epoch)
    if report(iteration=epoch, accuracy=accuracy, memory=rate, checkpoint=lambda: str(epoch).encode()).stop:
        break
"""

#: as a document of Optuna has it
OBJECTIVE = """
class TrialPruned(Exception):
    pass

def objective(trial):
    rate = trial.suggest_float("rate", 0.0, 1.0)
    layers = trial.suggest_int("layers", 1, 4)
    act = trial.suggest_categorical("act", ["relu", "tanh"])
    accuracy = 0.0
    for step in range(30):
        accuracy = (1 - abs(rate - 0.3) - 0.05 * abs(layers - 2) - 0.05 * (act == "relu")) * (1 - 0.8 ** (step + 1))
        trial.report(accuracy, step)
        if trial.should_prune():
            raise TrialPruned()
    return accuracy
"""

#: as a document of Ray Tune has it, but for the import
TRAIN = """
from yaqd.ml import report

def train(config):
    for epoch in range(1, 31):
        if report(iteration=epoch, accuracy=(1 - abs(config["rate"] - 0.3)) * (1 - 0.8 ** epoch)).stop:
            return
"""

COMMAND = """
import sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
for epoch in range(1, 31):
    accuracy = (1 - abs(float(options["--rate"]) - 0.3)) * (1 - 0.8 ** epoch)
    print(f"epoch {epoch}: accuracy={accuracy:.6f}", flush=True)
"""

SPACE = """
rate = { type = "float", low = 0.0, high = 1.0 }
layers = { type = "int", low = 1, high = 4 }
act = ["relu", "tanh"]
"""
