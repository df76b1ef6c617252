"""The examples do what they say."""

import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from tez_adapter.client.flow import plan_script, run_flow_here, work_of_flow
from tez_adapter.client.local import run_local
from tez_adapter.tasks.local_tasks import LocalTasks
from yaqd.cli.jobs.dag import dag
from yaqd.config import Configuration
from yaqd.mapreduce import JobError, load_job, parse_params

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, tmp_path: Path, text: str, reduces: int | None = None, **options: str) -> list[str]:
    """The lines of all parts in order; the input is cut into many splits."""
    (tmp_path / "in.txt").write_text(text)
    job = load_job(EXAMPLES / name)
    conf = Configuration.load(
        environ={}, overrides={"mapreduce.input.fileinputformat.split.maxsize": str(len(text) // 5 + 1)}
    )
    run_local(job, [f"{tmp_path}/in.txt"], f"{tmp_path}/out", conf, reduces, parse_params(job, options))
    return [line for part in sorted(tmp_path.glob("out/part-*")) for line in part.read_text().splitlines()]


def test_every_example_is_run_here() -> None:
    named = {"wordcount.py", "grep.py", "mean.py", "inverted_index.py", "sort_lines.py", "flow.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == named


@pytest.mark.parametrize("name", ["plan", "submit", "local"])
def test_the_example_of_each_command_of_flows_has_the_paths_of_its_script(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (tmp_path / "README.md").write_text("a b\n")
    said = CliRunner().invoke(dag, [name, "--help"]).output
    (words,) = (line.split() for line in said.splitlines() if line.strip().startswith(f"yaq dag {name} "))
    done = CliRunner().invoke(dag, ["plan", *words[3:]])
    assert done.exit_code == 0, done.output
    if name != "plan":
        assert [word.partition("=")[0] for word in words if "=" in word] == ["lines", "top", "shares"]


def test_wordcount(tmp_path: Path) -> None:
    assert sorted(run("wordcount.py", tmp_path, "The cat, the dog.\nA dog\n" * 50, 2, min_length="2")) == [
        "cat\t50",
        "dog\t100",
        "the\t100",
    ]


def test_grep(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(200)) + "Line 7"
    found = run("grep.py", tmp_path, text, pattern="LINE 7$", ignore_case="yes")
    assert found == [f"file://{tmp_path}/in.txt:49\tline 7", f"file://{tmp_path}/in.txt:{len(text) - 6}\tLine 7"]
    with pytest.raises(JobError, match="Grep needs the option pattern"):
        run("grep.py", tmp_path, "")


def test_mean(tmp_path: Path) -> None:
    text = "".join(f"k{number % 3}\tx\t{number}\n" for number in range(300)) + "k0\tx\nk1\tx\tno\n"
    assert run("mean.py", tmp_path, text, column="3") == ["k0\t148.5", "k1\t149.5", "k2\t150.5"]


def test_inverted_index(tmp_path: Path) -> None:
    rng = random.Random(4)
    lines = [" ".join(rng.choices(["ant", "bee", "Cat", "no", "x1"], k=6)) for _ in range(100)]
    wanted: dict[str, list[str]] = {}
    offset = 0
    for line in lines:
        for word in sorted(set(line.lower().split()) & {"ant", "bee", "cat"}):
            wanted.setdefault(word, []).append(f"in.txt:{offset}")
        offset += len(line) + 1
    found = run("inverted_index.py", tmp_path, "\n".join(lines), 2)
    assert sorted(found) == [f"{word}\t{' '.join(places)}" for word, places in sorted(wanted.items())]


def test_sort_lines(tmp_path: Path) -> None:
    lines = [f"{random.Random(number).random()}" for number in range(2000)]
    assert run("sort_lines.py", tmp_path, "\n".join(lines), 3) == sorted(lines)
    assert all(part.stat().st_size > 8000 for part in tmp_path.glob("out/part-*"))


def test_the_job_of_the_guide(tmp_path: Path) -> None:
    guide = (EXAMPLES.parent / "docs" / "writing-jobs.md").read_text()
    (tmp_path / "guide.py").write_text(guide.partition("```python\n")[2].partition("```")[0])
    (tmp_path / "in").write_text("a bb\n\nbb\n")
    job = load_job(tmp_path / "guide.py")
    counters = run_local(
        job,
        [f"{tmp_path}/in"],
        f"{tmp_path}/out",
        Configuration.load(environ={}),
        params=parse_params(job, {"min_length": "2"}),
    )
    assert (tmp_path / "out" / "part-r-00000").read_text() == "bb\t2\n"
    assert counters.get("WordCount", "blank") == 1


@pytest.mark.slow
def test_flow(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("# a b a\n| a | b |\nb b c\nc b\n")
    conf = Configuration.load(environ={})
    with LocalTasks(lambda before: work_of_flow(str(EXAMPLES / "flow.py"), {}, before), conf) as tasks:
        paths = {name: str(tmp_path / name) for name in ("lines", "top", "shares")}
        run_flow_here(plan_script(conf, str(EXAMPLES / "flow.py"), paths), conf, tasks)
    assert (tmp_path / "top/part-r-00000").read_text() == "heading\ta:2 b:1\nrow\ta:1 b:1\ntext\tb:3 c:2\n"
    shares = sorted(line for part in tmp_path.glob("shares/part-*") for line in part.read_text().splitlines())
    assert shares[:2] == ['["heading","a"]\t0.6667', '["heading","b"]\t0.3333']
