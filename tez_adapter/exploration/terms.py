"""From what an exploration was submitted with to the objects that decide in it; live and local ones make the same."""

import math
from typing import Final

from tez_adapter.jobspec import Exploration
from yaqd.policies.explore.facts import ExplorePolicy, Terms
from yaqd.policies.explore.foresight import Predicted
from yaqd.policies.explore.metric import Metric, Solved
from yaqd.policies.explore.policies import made, parsed
from yaqd.policies.explore.promise import reach_of

#: policies that ask the predictor
PREDICTING: Final = ("index", "pop", "earlyterm")


def metric_of(terms: Exploration) -> Metric:
    """Return the metric with its direction and bounds. Raises ValueError."""
    return Metric(terms.mode, terms.lower, terms.upper)


def policy_terms(terms: Exploration) -> Terms:
    """Return what the policy is told; the metric is turned so that it rises. Raises ValueError."""
    metric = metric_of(terms)
    target = terms.target
    if target is None and terms.solved:
        target = Solved.parse(terms.solved).bound
    return Terms(
        None if target is None else metric.risen(target),
        terms.epochs,
        terms.slots,
        terms.max_time_s if terms.max_time_s > 0 else math.inf,
        None if terms.kill is None else metric.risen(terms.kill),
        terms.boundary,
    )


def make_policy(terms: Exploration) -> ExplorePolicy:
    """Return the policy with its predictor. Raises UnknownPolicy, ValueError."""
    return made(terms.policy, policy_terms(terms), Predicted(reach_of(terms.level, terms.predictor)))


def refuse_contradictions(terms: Exploration) -> None:
    """Raises ValueError, with a line for the user, for terms that contradict each other."""
    metric = metric_of(terms)
    if terms.solved and terms.target is not None:
        raise ValueError("--solved and --target: leave one of them out; --solved has a number of its own")
    low = -math.inf if terms.lower is None else terms.lower
    high = math.inf if terms.upper is None else terms.upper
    for option, number in (("--target", terms.target), ("--kill", terms.kill)):
        if number is not None and not low <= number <= high:
            raise ValueError(f"{option} {number:g} is not between --lower and --upper")
    if terms.target is not None and terms.kill is not None and not metric.is_better(terms.target, terms.kill):
        raise ValueError(f"--kill {terms.kill:g} is no worse than --target {terms.target:g}: every trial would be poor")
    _check_scale(terms)


def takes_unit(terms: Exploration) -> bool:
    """Return whether the policy takes metrics to lie in 0 to 1, as nobody said otherwise."""
    policy = parsed(terms.policy)[0]
    is_known = (terms.lower is not None and terms.upper is not None) or (policy in PREDICTING and bool(terms.level))
    return not is_known and policy in (*PREDICTING, "bandit")


def _check_scale(terms: Exploration) -> None:
    """Raises ValueError for a metric that its policy knows no scale of: one that predicts does not, nor does bandit."""
    if not takes_unit(terms):
        return
    policy = parsed(terms.policy)[0]
    solved = Solved.parse(terms.solved).bound if terms.solved else None
    known = {"--target": terms.target, "--kill": terms.kill, "--solved": solved}
    odd = [f"{name} {number:g}" for name, number in known.items() if number is not None and not 0 <= number <= 1]
    if terms.mode == "min":
        odd.append("--mode min")
    if odd:
        does = "predicts" if policy in PREDICTING else "compares"
        raise ValueError(
            f"{odd[0]}: policy {policy} {does} metrics from 0 to 1 that rise: say with --lower and --upper between "
            f"which numbers {terms.metric} lies (what is worse counts as the bound)"
        )
