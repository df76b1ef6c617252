"""From what an exploration was submitted with to the objects that decide in it; live and local ones make the same."""

import math
from typing import Final

from tez_adapter.jobspec import Exploration
from yaqd.policies.explore.facts import ExplorePolicy, Terms
from yaqd.policies.explore.foresight import Predicted
from yaqd.policies.explore.metric import Metric, Solved
from yaqd.policies.explore.policies import EXPLORE
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
    return EXPLORE[terms.policy](policy_terms(terms), Predicted(reach_of(terms.level)))
