"""Random lives of a cluster: after every event the view is what a recount gives, and no promise is broken."""

from hypothesis import HealthCheck, settings

from tests.examples import examples
from tests.rm.rm_random_life import SchedulerLife

SchedulerLife.TestCase.settings = settings(
    max_examples=examples(80), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestSchedulerLife = SchedulerLife.TestCase
