"""The process of an adaptive generator: JSON lines in, JSON lines out. Optuna is imported only here.

Each request has all trials so far, and the study is made anew of them: nothing depends on what was asked before, so
the same trials, seed and number give the same proposal.
"""

import json
import sys
import warnings
from typing import Any

#: trials that are drawn at random before the sampler learns
STARTUP = 10


def propose(request: dict[str, Any]) -> dict[str, Any]:
    """Return the values that the sampler proposes after the request's trials."""
    import optuna

    warnings.simplefilter("ignore")
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    distributions = {
        entry["name"]: _distribution(optuna.distributions, entry)
        for entry in request["space"]
        if entry["kind"] != "constant"
    }
    # choices go by their place: Optuna takes 1 and true for the same
    places = {entry["name"]: entry["values"] for entry in request["space"] if entry["kind"] == "choice"}
    study = optuna.create_study(direction="maximize", sampler=_sampler(optuna, request))
    for params, value in request["trials"]:
        known = {name: _place(places[name], params[name]) if name in places else params[name] for name in distributions}
        state = optuna.trial.TrialState.RUNNING if value is None else optuna.trial.TrialState.COMPLETE
        study.add_trial(optuna.trial.create_trial(params=known, distributions=distributions, value=value, state=state))
    asked = study.ask(fixed_distributions=distributions).params
    return {name: places[name][value] if name in places else value for name, value in asked.items()}


def _sampler(optuna: Any, request: dict[str, Any]) -> Any:
    # a seed of its own for each number, as a sampler that is made anew begins its chance anew
    seed = (request["seed"] * 1_000_003 + request["number"]) % (1 << 32)
    if request["sampler"] == "gp":
        return optuna.samplers.GPSampler(seed=seed, n_startup_trials=STARTUP)
    return optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP, multivariate=True, constant_liar=True)


def _distribution(distributions: Any, entry: dict[str, Any]) -> Any:
    if entry["kind"] == "float":
        return distributions.FloatDistribution(entry["low"], entry["high"], log=entry["log"])
    if entry["kind"] == "int":
        return distributions.IntDistribution(entry["low"], entry["high"], log=entry["log"], step=entry["step"])
    return distributions.CategoricalDistribution(list(range(len(entry["values"]))))


def _place(values: list[Any], value: Any) -> int:
    return next(
        at for at, each in enumerate(values) if each == value and isinstance(each, bool) == isinstance(value, bool)
    )


def main() -> None:
    """Answer until the input ends."""
    answers = sys.stdout
    sys.stdout = sys.stderr  # what a library prints is no answer
    for line in sys.stdin:
        try:
            answer: dict[str, Any] = {"params": propose(json.loads(line))}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
