"""What is believed of how long tasks run: known beforehand, learnt from those that ended, or both by a live policy.

Of a live policy (`yaq.queue.estimates`) a stage's mean, off by its error, is what earlier runs of the job say; what it
has seen are the stage's tasks that ended. The live ResourceManager tells the scheduler of an estimate that has moved by
a tenth, and so does this.
"""

import math
from typing import Final

from yaqd.policies.queueing import limits
from yaqd.policies.queueing.estimates import ESTIMATES as POLICIES
from yaqd.policies.queueing.estimates import MEMORY, EstimatePolicy, is_news
from yaqd.policies.queueing.means import RecentMean
from yaqd.sim.jobs import StageRun
from yaqd.sim.shape import ESTIMATES


class Estimates:
    def __init__(self, name: str) -> None:
        """`name`: one of `yaqd.sim.shape.ESTIMATES`, or of the live policies' (UnknownPolicy otherwise)."""
        self._learns: Final = name == "learned"
        self._knows: Final = name not in ("learned", "none")
        self._policy: Final[EstimatePolicy | None] = None if name in ESTIMATES else POLICIES[name]

    def begin(self, stage: StageRun) -> None:
        """Set what is believed of a stage before any of its tasks has run."""
        if not self._knows:
            return
        known = stage.spec.estimate_s
        tasks = stage.spec.tasks
        mean = known if known is not None else sum(task.duration_s for task in tasks) / len(tasks)
        stage.before = mean * stage.error
        stage.estimate = stage.told = stage.before if self._policy is None else self._by(self._policy, stage)

    def ended(self, stage: StageRun, ran_s: float) -> None:
        """Learn from a task of the stage that did its work, which is counted already."""
        if self._learns:
            before = stage.estimate or 0.0
            stage.estimate = before + (ran_s - before) / stage.done
        elif self._policy is not None:
            if stage.seen is None:
                stage.seen = RecentMean(MEMORY)
            stage.seen.add(ran_s)
            stage.estimate = self._by(self._policy, stage)

    def is_news(self, stage: StageRun) -> bool:
        """Return whether the stage's estimate is news, and take it for told if so.

        Asked when a task of it has ended.
        """
        if self._learns:
            return stage.done & (stage.done - 1) == 0  # after 1, 2, 4, ... tasks
        now = stage.estimate
        if self._policy is None or now is None or not is_news(stage.told, now):
            return False
        stage.told = now
        return True

    @staticmethod
    def _by(policy: EstimatePolicy, stage: StageRun) -> float | None:
        found = limits.duration(policy(stage.seen, stage.before))
        return found if found < math.inf else None
