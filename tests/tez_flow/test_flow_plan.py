"""What flows become before they run, and what of a script is refused."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tez_adapter.flow.names import output_name, wanted_by
from tez_adapter.flow.plan import EdgeKind, FlowPlan, counted, plan_flow
from tez_adapter.flow.program import load_flow
from yaqd.cli.jobs.dag import dag
from yaqd.mapreduce import Flow, Job, JobError


class Parse(Job):
    def map(self, key: object, value: object) -> list[tuple[object, object]]:
        return [(value, 1)]


class Count(Job):
    def reduce(self, key, values):  # type: ignore[no-untyped-def]
        yield key, sum(values)


class Merge(Job):
    def reduce(self, key, left, right):  # type: ignore[no-untyped-def, override]
        yield key, (list(left), list(right))


class Named(Job):
    pass


def planned(flow: Flow, *splits: int) -> FlowPlan:
    plan = counted(plan_flow(flow), splits)
    assert FlowPlan.of_json(json.loads(json.dumps(plan.as_json()))) == plan
    return plan


def test_what_follows_without_a_shuffle_is_one_stage() -> None:
    flow = Flow()
    flow.read("in").then(Parse).then(Parse).then(Count, reduces=3).then(Parse).then(Count).write("out")
    plan = planned(flow, 5)
    assert [(stage.name, stage.tasks) for stage in plan.stages] == [("in:Parse", 5), ("Count", 3), ("Count (2)", 1)]
    assert [edge.kind for stage in plan.stages for edge in stage.edges] == [EdgeKind.SHUFFLE] * 2


def test_a_step_that_is_called_as_a_numbered_stage_keeps_its_name_apart() -> None:
    numbered = type("Count (2)", (Count,), {})
    flow = Flow()
    flow.read("in").then(numbered).then(Count).then(Count).write("out")
    assert [stage.name for stage in planned(flow, 1).stages] == ["in:Count (2)", "Count (2)", "Count", "Count (3)"]


def test_one_output_is_read_by_many_and_made_once() -> None:
    flow = Flow()
    words = flow.read("in").then(Count, reduces=2)
    words.write("words")
    words.then(Count).write("again")
    plan = planned(flow, 4)
    assert [(stage.tasks, stage.channels, len(stage.first_parts)) for stage in plan.stages] == [
        (4, (2,), 0),
        (2, (1,), 1),
        (1, (), 1),
    ]


def test_names_and_parts_of_stages_differ() -> None:
    flow = Flow()
    left, right = flow.read("a").then(Parse), flow.read("b").then(Parse)
    flow.join(left, right).then(Merge, reduces=3).write("joined")
    flow.union(left, right).write("all")
    plan = planned(flow, 2, 5)
    joined = plan.stages[2]
    wanted = wanted_by(plan, joined, 1)
    found = [
        place
        for stage in (0, 1)
        for task in range(plan.stages[stage].tasks)
        for place in wanted.places(plan, "job_1_0001", stage, task, 0)
    ]
    assert sorted(number for number, _ in found) == list(range(7)) == list(range(wanted.outputs))
    assert len({name for _, name in found}) == 7
    # parts of one output that two stages write
    assert [stage.first_parts.get(1) for stage in plan.stages] == [0, 2, None]


def test_a_retry_has_another_name() -> None:
    flow = Flow()
    flow.read("in").then(Count).write("out")
    stage = planned(flow, 2).stages[0]
    assert len({output_name("job_1_0001", stage, 0, task, number) for task in (0, 1) for number in (0, 1)}) == 4


def test_a_step_that_waits_for_what_comes_after_it_gets_tasks_of_its_own() -> None:
    flow = Flow()
    words = flow.read("in").then(Parse)
    words.then(Named, sides={"total": words.then(Count)}).write("out")
    stages = planned(flow, 3).stages
    named = next(stage for stage in stages if stage.name == "Named")
    assert [edge.kind for edge in named.edges] == [EdgeKind.ONE_TO_ONE, EdgeKind.BROADCAST]
    assert named.tasks == 3


def unread() -> Flow:
    flow = Flow()
    flow.read("in").write("out")
    flow.read("other").then(Parse)
    return flow


def twice() -> Flow:
    flow = Flow()
    words = flow.read("in")
    words.write("out")
    words.then(Parse).write("out")
    return flow


def circle() -> Flow:
    flow = Flow()
    words = flow.read("in").then(Parse)
    words.then(Count, sides={"total": words.then(Count)}).write("out")
    return flow


def doubled(times: int = 40, apart: bool = False) -> Flow:
    """Return a flow of streams that part and meet again, over and over."""
    flow = Flow()
    stream = flow.read("in")
    for _ in range(times):
        stream = flow.union(stream.then(Parse), stream.then(Parse))
        stream = stream.then(Job, apart=True) if apart else stream
    stream.write("out")
    return flow


def test_streams_that_part_and_meet_many_times_are_planned_where_they_meet_in_tasks() -> None:
    assert len(planned(doubled(apart=True), 1).stages) == 41
    assert len(planned(doubled(10), 1).stages) == 1


def test_a_step_that_shuffles_gets_a_side_of_what_it_reads_behind_tasks_of_their_own() -> None:
    flow = Flow()
    words = flow.read("in").then(Parse)
    words.then(Job, apart=True).then(Count, sides={"total": words.then(Count)}).write("out")
    assert [stage.name for stage in planned(flow, 3).stages] == ["in:Parse", "Count", "Job", "Count (2)"]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Flow, "the flow writes nothing"),
        (unread, "nobody reads what the step Parse yields"),
        (twice, "two streams are written to out: unite them"),
        (circle, r"steps wait for each other's sides: Count; .* write .then\(Job, apart=True\) before"),
        (doubled, "more than 10000 ways without a shuffle behind flow.read\\(in\\): write .then\\(STEP, apart=True\\)"),
    ],
)
def test_flows_that_cannot_be_are_refused(make: Callable[[], Flow], words: str) -> None:
    with pytest.raises(JobError, match=words):
        plan_flow(make())


def joins_alone(flow: Flow) -> None:
    flow.join(flow.read("a"), flow.read("b")).write("out")


def map_behind_a_join(flow: Flow) -> None:
    flow.join(flow.read("a"), flow.read("b")).then(Parse)


def of_another(flow: Flow) -> None:
    flow.union(Flow().read("a"))


def no_job(flow: Flow) -> None:
    flow.read("a").then(int)  # type: ignore[arg-type]


class Combined(Merge):
    def combine(self, key: str, values: Iterator[int]) -> Iterator[tuple[str, int]]:
        yield key, sum(values)


def combined_join(flow: Flow) -> None:
    flow.join(flow.read("a"), flow.read("b")).then(Combined)


def no_reduces(flow: Flow) -> None:
    flow.read("a").then(Count, reduces=0)


#: as a script has it whose types nobody checks
Odd: Any = type("Odd", (Job,), {"name": 5})
MADE: Any = Flow


def then_with(flow: Flow, **more: Any) -> None:
    flow.read("a").then(Parse, **more)


def too_many(flow: Flow) -> None:
    stream = flow.read("a")
    for _ in range(10_000):
        stream = stream.then(Count)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (joins_alone, "goes to a step with a reduce"),
        (map_behind_a_join, "needs a reduce"),
        (of_another, "a stream of another flow"),
        (no_job, "give a subclass of yaqd.mapreduce.Job"),
        (combined_join, r"\.then\(Combined\): a step behind flow.join\(\) cannot combine"),
        (no_reduces, "has a reduce\\(\\) and no reduce tasks"),
        (too_many, "more than 1000 steps"),
        (lambda flow: flow.read(""), "give a path"),
        (lambda flow: flow.read("a", format="xml"), "xml"),
        (lambda flow: flow.join(flow.read("a")), "give 2 streams or more"),
        (lambda flow: flow.read("a").then(Count, reduces=-1), "give a number from 0"),
        (lambda flow: MADE(5), r"^Flow\(\): its name is 5: give text"),
        (lambda flow: flow.read("a").then(Odd), r"^\.then\(Odd\): its name is 5: give text"),
        (
            lambda flow: then_with(flow, sides={(1, 2): flow.read("b")}),
            r"Parse\): sides has the name \(1, 2\): give text",
        ),
        (
            lambda flow: then_with(flow, sides=[flow.read("b")]),
            r"Parse\): sides is \[Stream.*give a dict, as in {'name'",
        ),
        (
            lambda flow: then_with(flow, params=["a"]),
            r"Parse\): params is \['a'\]: give a dict, as in {'option': VALUE}",
        ),
        (lambda flow: then_with(flow, params={5: "a"}), r"Parse\): params has the name 5: give text"),
    ],
)
def test_what_a_script_says_wrong_is_said_where_it_says_it(build: Callable[[Flow], object], words: str) -> None:
    with pytest.raises(JobError, match=words):
        build(Flow())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1", "has no flow: write flow = yaqd.mapreduce.Flow"),
        ("a = Flow()\nb = Flow()", "has 2 flows \\(a, b\\): name one"),
        (
            "class J(Job):\n    def reduce(self, key):\n        yield 1, 1\nf = Flow()\nf.read('a').then(J).write('b')",
            "reduce",
        ),
        (
            "class J(Job):\n    def reduce(self, key, values):\n        yield 1, 1\n"
            "f = Flow()\nf.join(f.read('a'), f.read('b')).then(J).write('b')",
            "define it as reduce\\(self, key, values_1, values_2\\)",
        ),
        ("f = Flow()\nf.read('a').then(Job, params={'tpo': 1}).write('b')", "has no option tpo: it has none"),
    ],
)
def test_scripts_without_a_flow_that_can_run_are_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "job.py"
    path.write_text(f"from yaqd.mapreduce import Flow, Job\n{text}\n")
    with pytest.raises(JobError, match=words):
        load_flow(str(path), {})


def test_what_a_flow_refuses_is_one_line_that_names_the_scripts_own(tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    path.write_text(
        "from yaqd.mapreduce import Flow, Job\nf = Flow()\nf.read('a').then(\n    Job, reduces='3').write('b')\n"
    )
    with pytest.raises(JobError) as told:
        load_flow(str(path), {})
    assert str(told.value) == f"{path}:3: .then(Job): reduces is '3': give a number from 0"
    assert not told.value.detail


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{'tpo': 1}", "J has no option tpo: it has top"),
        ("{'top': 'many'}", "option top='many' is no int: invalid literal for int() with base 10: 'many'"),
        ("{'top': 3.7}", "option top='3.7' is no int: invalid literal for int() with base 10: '3.7'"),
    ],
)
def test_params_that_a_step_cannot_have_are_refused_with_their_line(tmp_path: Path, given: str, words: str) -> None:
    path = tmp_path / "job.py"
    path.write_text(
        "from yaqd.mapreduce import Flow, Job, Param\nclass J(Job):\n    top = Param(int, default=3)\n"
        f"f = Flow()\nf.read('a').then(J, params={given}).write('b')\n"
    )
    with pytest.raises(JobError) as told:
        load_flow(str(path), {})
    assert str(told.value) == f"{path}:5: .then(J): params: {words}"


def test_another_flow_in_a_task_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    path.write_text("from yaqd.mapreduce import Flow, Job\nf = Flow()\nf.read('a').write('b')\n")
    with pytest.raises(JobError, match="another one here than where it was submitted"):
        load_flow(str(path), {}, shape=("read x",))


def test_a_deep_flow_is_planned() -> None:
    flow = Flow()
    stream = flow.read("in")
    for _ in range(400):
        stream = stream.then(Count)
    stream.write("out")
    assert len(planned(flow, 1).stages) == 401


def test_a_long_chain_of_maps_is_refused_or_planned() -> None:
    flow = Flow()
    stream = flow.read("in")
    for _ in range(900):
        stream = stream.then(Parse)
    stream.write("out")
    with pytest.raises(JobError, match="more than 100 steps without a shuffle"):
        plan_flow(flow)


def test_what_tasks_take_is_said_by_step_and_summed_by_stage() -> None:
    flow = Flow()
    parsed = flow.read("in").then(Parse, task_s=2).then(Parse).then(Parse, task_s=0.5)
    parsed.then(Count, reduces=3, task_s=4.0).then(Count).write("out")
    plan = planned(flow, 5)
    assert [stage.task_s for stage in plan.stages] == [2.5, 4.0, None], "its map is a part of the first stage's tasks"


@pytest.mark.parametrize("said", [0, -1.0, float("nan"), float("inf"), 10**400, "3", True])
def test_what_no_task_can_take_is_refused(said: float) -> None:
    with pytest.raises(JobError, match=r"\.then\(Parse\): task_s is .*: give the seconds"):
        Flow().read("a").then(Parse, task_s=said)


@pytest.mark.parametrize("said", [True, False])
def test_what_tasks_take_is_shown_where_the_flow_says_it(tmp_path: Path, said: bool) -> None:
    (tmp_path / "in").write_text("a\n")
    (tmp_path / "job.py").write_text(
        "from yaqd.mapreduce import Flow, Job\nf = Flow()\n"
        f"f.read({str(tmp_path / 'in')!r}).then(Job, task_s={2.5 if said else None}).write({str(tmp_path / 'out')!r})\n"
    )
    shown = CliRunner().invoke(dag, ["plan", str(tmp_path / "job.py")], catch_exceptions=False).output.splitlines()
    assert shown[0].split()[:4] == (["stage", "tasks", "task", "s"] if said else ["stage", "tasks", "reads", "then"])
    assert shown[1].split()[1:3] == (["1", "2.5"] if said else ["1", "files"])
