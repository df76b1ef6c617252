"""Tasks, jobs and clocks for the policies' tests, friendly and hostile ones."""

from math import inf, nan

from hypothesis import settings
from hypothesis import strategies as st

from tests.examples import examples
from yaqd.model import ApplicationAttemptId, ApplicationId, ContainerId, Resource
from yaqd.policies.queueing.facts import JobFacts, QueuedTask, RunningTask, TaskFacts

SLOT = Resource(1024, 1)

#: for properties of whole queues, which take long to draw
few = settings(max_examples=examples(40))


def job_id(number: int) -> ApplicationId:
    return ApplicationId(1, number)


def container(number: int, job: int = 1) -> ContainerId:
    return ContainerId(ApplicationAttemptId(job_id(job), 1), number)


def facts(
    job: int = 1,
    *,
    estimate: float | None = None,
    user: str = "ann",
    queue: str = "root.a",
    arrival: float = 0.0,
    priority: int = 0,
) -> TaskFacts:
    return TaskFacts(job_id(job), user, queue, arrival, estimate, priority)


def queued(number: int, about: TaskFacts, *, since: float = 0.0, size: Resource = SLOT) -> QueuedTask:
    return QueuedTask(container(number), size, about, since)


def running(number: int, about: TaskFacts, *, since: float = 0.0, size: Resource = SLOT) -> RunningTask:
    return RunningTask(container(number), size, about, since)


#: what a careful peer says, and what a careless or hostile one does
sane_s = st.floats(0, 1000)
hostile_s = st.one_of(sane_s, st.sampled_from([nan, inf, -inf, -1.0, -0.0, 1e300, 5e-324]), st.floats())
sizes = st.builds(Resource, st.integers(1, 4).map(lambda part: part * 512), st.integers(1, 3))


def task_facts(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[TaskFacts]:
    return st.builds(
        TaskFacts,
        job=st.integers(1, 5).map(job_id),
        user=st.sampled_from(["ann", "bob", "eve"]),
        queue=st.sampled_from(["root.a", "root.b"]),
        job_arrival=seconds,
        estimate=st.none() | seconds,
        priority=st.integers(0, 2),
    )


def queues(seconds: st.SearchStrategy[float], *, most: int = 12) -> st.SearchStrategy[list[QueuedTask]]:
    """Tasks in line, each with its own container."""
    task = st.tuples(sizes, task_facts(seconds), seconds)
    return st.lists(task, max_size=most).map(
        lambda tasks: [QueuedTask(container(n), size, about, since) for n, (size, about, since) in enumerate(tasks)]
    )


def job_facts(seconds: st.SearchStrategy[float]) -> st.SearchStrategy[dict[ApplicationId, JobFacts]]:
    about = st.builds(
        JobFacts,
        remaining_work=st.none() | seconds,
        remaining_tasks=st.none() | st.integers(-5, 1000),
        critical_path=st.none() | seconds,
    )
    return st.dictionaries(st.integers(1, 5).map(job_id), about)
