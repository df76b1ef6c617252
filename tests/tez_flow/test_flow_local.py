"""Flows on this machine give what they mean, whatever they look like."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.tez_flow.flow_reference import evaluated, lines_below
from tests.tez_flow.flow_scripts import STEPS, scripts
from tez_adapter.client.flow import plan_script, run_flow_here, work_of_flow
from tez_adapter.client.staging import SubmitError
from tez_adapter.flow.program import load_flow
from tez_adapter.tasks.local_tasks import LocalTasks, Work
from yaqd.cli.jobs.dag import dag
from yaqd.config import Configuration
from yaqd.mapreduce import JobError
from yaqd.mapreduce.errors import SampleError

INPUTS = {"one": ["a bb a", "ccc bb", "", "dddd a a"], "two": ["bb x", "a yy", "q a bb"]}
#: whichever input is read first has more splits than the other, or fewer
BOTH_WAYS = [{"one": ["a bb a"] * 6, "two": ["bb x"]}, {"one": ["a"], "two": ["a yy", "q a bb"] * 4}, INPUTS]


def ran(folder: Path, script: str, conf: Configuration, inputs: dict[str, list[str]] = INPUTS) -> dict[str, list[str]]:
    """Run a flow; return its outputs as they should be. They are compared with what was written."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = folder / "job.py"
    path.write_text(script)
    for name, lines in inputs.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))

    def load(before: Callable[[Path], None]) -> Work:
        return work_of_flow(str(path), {}, before)

    with LocalTasks(load, conf) as tasks:
        program = load_flow(str(path), {})
        paths = {node.path: str(folder / node.path) for node in program.flow.nodes if node.path}
        planned = plan_script(conf, str(path), paths)
        run_flow_here(planned, conf, tasks)
    expected = evaluated(program, inputs)
    for name, lines in expected.items():
        assert lines_below(folder / name) == lines, name
        assert (folder / name / "_SUCCESS").exists()
    return expected


#: to make a flow smaller takes longer than to read it
_RANDOM = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


@pytest.mark.slow
@settings(_RANDOM, max_examples=8)
@given(script=scripts(), inputs=st.sampled_from(BOTH_WAYS))
def test_a_flow_gives_what_it_means(tmp_path: Path, script: str, inputs: dict[str, list[str]]) -> None:
    ran(tmp_path / "flow", script, small_splits(), inputs)


@pytest.mark.slow
@pytest.mark.full
@pytest.mark.timeout(600)
@settings(_RANDOM, max_examples=40)
@given(script=scripts(), inputs=st.sampled_from(BOTH_WAYS))
def test_many_flows_give_what_they_mean(tmp_path: Path, script: str, inputs: dict[str, list[str]]) -> None:
    ran(tmp_path / "flow", script, small_splits(), inputs)


def small_splits() -> Configuration:
    """Return settings by which the inputs have several splits."""
    return Configuration.load(
        None,
        overrides={
            "mapreduce.input.fileinputformat.split.maxsize": "8",
            "yaq.input.combine-small-files": "false",
        },
        environ={},
    )


def test_what_one_reader_changes_another_does_not_see(tmp_path: Path) -> None:
    script = STEPS + (
        "class Lists(Job):\n"
        "    def map(self, key, value):\n"
        "        yield key, [value]\n"
        "class Grow(Job):\n"
        "    def map(self, key, value):\n"
        "        value.append(0)\n"
        "        yield key, value\n"
        'lists = flow.read("one").then(Words).then(Lists)\n'
        'lists.then(Grow).write("grown")\n'
        'lists.then(Grow).write("again")\n'
    )
    found = ran(tmp_path / "flow", script, small_splits())
    assert found["grown"] == found["again"]


def test_a_task_that_fails_leaves_no_output(tmp_path: Path) -> None:
    script = STEPS + (
        "class Fails(Job):\n"
        "    def reduce(self, key, values):\n"
        "        raise ValueError('no')\n"
        "        yield\n"
        'words = flow.read("one").then(Words)\n'
        'words.write("first")\n'
        'words.then(Fails).write("second")\n'
    )
    with pytest.raises(JobError, match="ValueError: no"):
        ran(tmp_path / "flow", script, small_splits())
    assert not (tmp_path / "flow" / "first").exists()
    assert not (tmp_path / "flow" / "second").exists()


def test_a_task_that_ends_its_process_leaves_nothing_where_its_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = STEPS + (
        "class Dies(Job):\n"
        "    def reduce(self, key, values):\n"
        "        import os\n"
        "        os._exit(3)\n"
        'flow.read("one").then(Dies).write("out")\n'
    )
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(JobError, match="exit status 3"):
        ran(tmp_path / "flow", script, small_splits())
    assert not list((tmp_path / "here").iterdir())


def test_what_is_no_pair_is_told_in_mid_task(tmp_path: Path) -> None:
    script = STEPS + (
        "class Odd(Job):\n"
        "    def map(self, key, value):\n"
        "        yield (key, value) if value < 2 else (key, value, 1)\n"
        'flow.read("one").then(Words).then(Odd).then(Flip).write("out")\n'
    )
    with pytest.raises(JobError, match="the step before must yield pairs of key and value"):
        ran(tmp_path / "flow", script, small_splits())


def test_what_sets_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a\n")
    path = tmp_path / "job.py"
    path.write_text(STEPS + 'flow.read("one").then(Words).then(Some).write("out")\n')
    given = {"kep": "3", "mapreduce.job.reduces": "4"}
    conf = Configuration.load(None, overrides=given, environ={})
    paths = {"one": str(tmp_path / "one"), "out": str(tmp_path / "out")}
    notes = plan_script(conf, str(path), paths).notes
    assert any("-D kep: no step has such an option, so it sets nothing; did you mean keep?" in note for note in notes)
    assert any("mapreduce.job.reduces sets nothing in flows" in note for note in notes)
    words = ["plan", str(path), *(word for name, at in paths.items() for word in ("--path", f"{name}={at}"))]
    planned = CliRunner().invoke(dag, [*words, "-D", "kep=3", "--json"], catch_exceptions=False)
    assert planned.stderr == "yaq: -D kep: no step has such an option, so it sets nothing; did you mean keep?\n"
    assert json.loads(planned.stdout)["name"] == "random"


def test_two_outputs_in_one_folder_are_refused_by_whatever_name(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("a\n")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    path = tmp_path / "job.py"
    path.write_text(STEPS + 'words = flow.read("one").then(Words)\nwords.write("a")\nwords.then(Sum).write("b")\n')
    paths = {"one": str(tmp_path / "one"), "a": str(tmp_path / "real" / "out"), "b": str(tmp_path / "link" / "out")}
    with pytest.raises(SubmitError, match="each needs a folder of its own"):
        plan_script(Configuration.load(None, environ={}), str(path), paths)


def lines_of(folder: Path, script: str, *outputs: str) -> list[list[str]]:
    """Return the lines of each output of a flow that reads a, b and c from `one`."""
    path = folder / "job.py"
    path.write_text(STEPS + script)
    (folder / "one").write_text("a\nb\nc\n")
    conf = Configuration.load(None, environ={})
    paths = {name: str(folder / name) for name in ("one", *outputs)}
    with LocalTasks(lambda before: work_of_flow(str(path), {}, before), conf) as tasks:
        run_flow_here(plan_script(conf, str(path), paths), conf, tasks)
    return [lines_below(folder / name) for name in outputs]


def test_a_flow_that_is_another_one_when_loaded_again_is_refused(tmp_path: Path) -> None:
    script = (
        "import pathlib\n"
        f"seen = pathlib.Path({str(tmp_path / 'seen')!r})\n"
        "step = Gather if seen.exists() else Sum\n"
        "seen.touch()\n"
        'flow.read("one").then(Words).then(step).write("out")\n'
    )
    with pytest.raises(JobError, match=r"job\.py: its flow is another one here than where it was submitted"):
        lines_of(tmp_path, script, "out")
    assert not (tmp_path / "out").exists()


def test_what_a_step_yields_again_and_changes_counts_as_it_was(tmp_path: Path) -> None:
    script = (
        "class Buffer(Job):\n"
        "    def setup(self):\n"
        "        self.buffer = []\n"
        "    def map(self, key, value):\n"
        "        self.buffer.append(value)\n"
        "        yield key, self.buffer\n"
        'grown = flow.read("one").then(Buffer)\n'
        'grown.write("first")\n'
        'grown.then(Gather).write("second")\n'
    )
    first, second = lines_of(tmp_path, script, "first", "second")
    assert first == ['0\t["a"]', '2\t["a","b"]', '4\t["a","b","c"]']
    assert second == ["0\t[\"['a']\"]", "2\t[\"['a', 'b']\"]", "4\t[\"['a', 'b', 'c']\"]"]


@pytest.mark.parametrize(("apart", "ends"), [(True, False), (False, False), (False, True)])
def test_a_step_that_keeps_what_it_gets_has_it_as_it_was(tmp_path: Path, apart: bool, ends: bool) -> None:
    """Whether it is fused with the step before, or with the sort of the step behind, or runs in tasks of its own."""
    script = (
        "class Buffer(Job):\n"
        "    def setup(self):\n"
        "        self.buffer = {}\n"
        "    def map(self, key, value):\n"
        "        self.buffer['value'] = value\n"
        "        yield key, self.buffer\n"
        "class Keeps(Job):\n"
        "    def setup(self):\n"
        "        self.kept = []\n"
        "    def map(self, key, value):\n"
        "        self.kept.append(value)\n"
        "        return ()\n"
        "    def cleanup(self):\n"
        "        yield 'all', str([each['value'] for each in self.kept])\n"
        f"class Last({'Keeps, Gather' if ends else 'Keeps'}):\n"
        "    pass\n"
        f'flow.read("one").then(Buffer).then(Last, apart={apart}).write("out")\n'
    )
    (lines,) = lines_of(tmp_path, script, "out")
    # a step with a reduce ends twice, and has kept nothing the second time
    assert "'a', 'b', 'c'" in lines[0]


def test_keys_that_come_of_a_side_are_not_sampled(tmp_path: Path) -> None:
    path = tmp_path / "job.py"
    path.write_text(
        STEPS
        + "class Ordered(Job):\n"
        + "    partitioner = 'range'\n"
        + "    def setup(self):\n"
        + "        self.known = dict(self.task.sides['words'])\n"
        + "    def reduce(self, key, values):\n"
        + "        yield key, len(list(values))\n"
        + 'words = flow.read("one").then(Words)\n'
        + 'flow.read("one").then(Ordered, reduces=2, sides={"words": words}).write("out")\n'
    )
    (tmp_path / "one").write_text("a\nb\n")
    paths = {name: str(tmp_path / name) for name in ("one", "out")}
    with pytest.raises(SampleError, match="its sides are not there before the job runs: with reduces=1"):
        plan_script(Configuration.load(None, environ={}), str(path), paths)


@pytest.mark.parametrize("order", ["one, two", "two, one", "one, one", "two, two, one"])
def test_united_streams_before_a_step_that_is_apart_are_all_there(tmp_path: Path, order: str) -> None:
    script = STEPS + (
        'one, two = flow.read("one").then(Words), flow.read("two").then(Words)\n'
        f'flow.union({order}).then(Flip, apart=True).write("out")\n'
        'flow.union(one, two).write("all")\n'
    )
    ran(tmp_path / "flow", script, small_splits(), {"one": ["a b"] * 12, "two": ["c"]})
    ran(tmp_path / "flow", script, small_splits(), {"one": ["c"], "two": ["a b"] * 12})


def test_an_input_without_records_gives_outputs_without_records(tmp_path: Path) -> None:
    script = STEPS + (
        'one, two = flow.read("one").then(Words), flow.read("two").then(Words)\n'
        'flow.join(one, two).then(Match, reduces=2).write("matched")\n'
        'one.then(Flip, apart=True).write("flipped")\n'
        'two.then(Known, sides={"a": one, "b": two}).write("known")\n'
    )
    ran(tmp_path / "flow", script, small_splits(), {"one": [], "two": ["a b"]})


def test_a_name_that_breaks_a_line_leaves_the_table_of_a_plan_whole(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    (tmp_path / "job.py").write_text(
        STEPS + "class Odd(Words):\n    name = 'a\\nb\\tc'\n"
        f"flow.read({str(tmp_path / 'in')!r}).then(Odd).write({str(tmp_path / 'out')!r})\n"
    )
    words = ["plan", str(tmp_path / "job.py")]
    lines = CliRunner().invoke(dag, words, catch_exceptions=False).output.splitlines()
    assert len(lines) == 2 and "a?b?c" in lines[1]
    shown = CliRunner().invoke(dag, [*words, "--json"], catch_exceptions=False).output
    assert json.loads(shown)["stages"][0]["then"] == "a\nb\tc"
