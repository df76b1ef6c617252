"""How long containers run, learnt from those that ended: for the scheduler, and through it for the nodes' queues.

A container that ended well tells of its application's priority and of the same stage of a recurring job. That stage's
estimate outlives the application and the ResourceManager. Where the node said how long it ran that counts, else the
time from its placement. While no queue is filled only stages are learnt: who switches queues on knows his recurring
jobs at once.
"""

from collections.abc import Iterable
from functools import partial
from typing import Final, NamedTuple

from rm.applications.records import Application, Attempt, RmContainer
from rm.cluster import Cluster
from rm.scheduler.events import Estimated, TaskTimes
from rm.store.state_store import StateStore, log_failed_write
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId
from yaqd.policies.queueing.estimates import ESTIMATES, Estimator, ask_key, is_news, stage_key
from yaqd.proto import yarn_common_pb2 as common

_on_failure: Final = partial(log_failed_write, "estimates of tasks will not outlive this ResourceManager")
#: priorities looked after in one application
_PRIORITIES_MAX: Final = 1000
_SAVE_INTERVAL_S: Final = 30.0
#: stages and asks remembered
_KEYS_MAX: Final = 20_000
#: containers of one attempt that ended since its master called last, of which is not learnt at once
_ENDED_MAX: Final = 10_000
#: SQLite's columns hold what was put in, whatever their types say
_STORED: Final = (
    "SELECT key, count, mean_s FROM task_estimate"
    " WHERE typeof(key) = 'text' AND typeof(count) = 'integer' AND typeof(mean_s) = 'real'"
)


class _Ran(NamedTuple):
    container: RmContainer
    queued_s: float
    run_s: float
    #: the scheduler is told
    is_used: bool


class Estimates:
    def __init__(self, cluster: Cluster, store: StateStore) -> None:
        self._cluster = cluster
        self._store = store
        #: by stages of recurring jobs, which are stored, and by asks of applications that run
        self._known = Estimator(most_keys=_KEYS_MAX)
        self._known.load(store.read(_STORED))
        #: what the scheduler was told, by application and priority
        self._told: dict[ApplicationId, dict[int, float]] = {}
        #: keys in the store, and those that have changed since
        self._stored: dict[str, None] = dict.fromkeys(key for key, _, _ in self._known.dump())
        self._unsaved: dict[str, None] = {}
        self._saved_at = cluster.clock.now()
        #: the stages of applications that run: a key is made of the application's whole name
        self._stages: dict[ApplicationId, dict[int, str]] = {}
        #: of masters that say which of their containers never had a task: containers that ended since they called last,
        #: and those of which they said so before their nodes told of their ends
        self._ended: dict[ApplicationAttemptId, dict[ContainerId, _Ran]] = {}
        self._without_task: dict[ApplicationAttemptId, set[ContainerId]] = {}

    def use(self, policy: str) -> None:
        """Make estimates by this policy from now on, a name in ESTIMATES."""
        self._known.policy = ESTIMATES[policy]

    def expect(self, app: Application, priorities: set[int]) -> None:
        """Hear that the application is about to ask with these priorities.

        What is known from earlier runs should be known first.
        """
        told = self._told.setdefault(app.id, {})
        for priority in sorted(priorities - told.keys()):
            self._tell(app, priority)

    def _stage(self, app: Application, priority: int) -> str:
        stages = self._stages.setdefault(app.id, {})
        key = stages.get(priority)
        if key is None:
            key = stage_key(app.name, app.user, priority)
            if len(stages) < _PRIORITIES_MAX:
                stages[priority] = key
        return key

    def ended(self, container: RmContainer, times: common.TaskTimes | None, *, is_used: bool) -> None:
        """Hear that a container of a running application, not its master's, ended well.

        `is_used`: the scheduler is told.
        """
        if times is not None:
            queued_s, run_s = times.queued_ms / 1000, times.run_ms / 1000
        else:
            queued_s, run_s = 0.0, self._cluster.clock.now() - container.created_at
        if run_s < 0 or queued_s < 0:
            return
        attempt = container.attempt
        ran = _Ran(container, queued_s, run_s, is_used)
        idle = self._without_task.get(attempt.id)  # None: its master tells nothing of that
        if idle is None or len(self._ended.get(attempt.id, ())) >= _ENDED_MAX:
            self._learn(ran)
        elif container.id in idle:
            idle.discard(container.id)
        else:
            self._ended.setdefault(attempt.id, {})[container.id] = ran

    def _learn(self, ran: "_Ran") -> None:
        container = ran.container
        app, priority = container.attempt.app, container.allocation.priority
        stage = self._stage(app, priority)
        self._known.observe(stage, ran.run_s)
        self._unsaved[stage] = None
        if ran.is_used:
            self._known.observe(ask_key(app.id, priority), ran.run_s)
            times = TaskTimes(app.id, priority, ran.queued_s, ran.run_s, container.node_id, container.id)
            self._cluster.schedule(times)
            self._tell(app, priority)

    def without_task(self, attempt: Attempt, containers: Iterable[ContainerId]) -> None:
        """Hear from a master that these containers never had a task.

        A master that tells what is left of its job says so in time. What its other containers teach is learnt when it
        calls next.
        """
        live = self._without_task.setdefault(attempt.id, set())
        ended = self._ended.get(attempt.id, {})
        for container_id in containers:
            if container_id in attempt.containers and len(live) < _ENDED_MAX:
                live.add(container_id)
            ended.pop(container_id, None)

    def called(self, attempt_id: ApplicationAttemptId) -> None:
        """Learn from the attempt's ended containers: its master has called, and so has said which had no task."""
        for ran in self._ended.pop(attempt_id, {}).values():
            self._learn(ran)

    def attempt_over(self, attempt_id: ApplicationAttemptId) -> None:
        """Hear that the attempt is over: its master calls no more."""
        self.called(attempt_id)
        self._without_task.pop(attempt_id, None)

    def _tell(self, app: Application, priority: int) -> None:
        told = self._told.setdefault(app.id, {})
        before = told.get(priority)
        estimate = self._known.estimate(ask_key(app.id, priority), self._stage(app, priority))
        if estimate is None or not is_news(before, estimate):
            return
        if before is None and len(told) >= _PRIORITIES_MAX:
            return
        told[priority] = estimate
        self._cluster.schedule(Estimated(app.id, priority, estimate))

    def forget(self, app_id: ApplicationId) -> None:
        """Forget an application that is over."""
        self._stages.pop(app_id, None)
        for priority in self._told.pop(app_id, {}):
            self._known.forget(ask_key(app_id, priority))

    # ---- the state store

    def save_due(self, now: float) -> None:
        if now - self._saved_at < _SAVE_INTERVAL_S:
            return
        self._saved_at = now
        application = self._cluster.scheduler.facts.application
        for app_id in [app_id for app_id in self._told.keys() | self._stages.keys() if application(app_id) is None]:
            self.forget(app_id)
        if self._unsaved:
            self.save()

    def save(self) -> None:
        """Write down what has changed; a failed write is logged."""
        rows = {key: (key, count, mean) for key, count, mean in self._known.dump()}
        written = []
        for key in self._unsaved:
            if key in rows:
                self._stored[key] = None
                written.append(self._store.write("INSERT OR REPLACE INTO task_estimate VALUES (?, ?, ?)", rows[key]))
        self._unsaved.clear()
        for key in [key for key in self._stored if key not in rows]:
            del self._stored[key]
            written.append(self._store.write("DELETE FROM task_estimate WHERE key = ?", (key,)))
        for done in written:
            done.add_done_callback(_on_failure)
