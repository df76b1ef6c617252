"""Random lives of a cluster whose nodes queue: what holds without queues still does, and no queue is over its bound."""

from hypothesis import HealthCheck, settings

from tests.examples import examples
from tests.rm.rm_random_queueing import QueueingLife

QueueingLife.TestCase.settings = settings(
    max_examples=examples(80), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestQueueingLife = QueueingLife.TestCase
