"""Hadoop Streaming's command line: its names, repetitions and mistakes."""

import pytest
from click.testing import CliRunner

from yaqd.cli.app import yaq
from yaqd.cli.exits import CommandError
from yaqd.cli.jobs.streaming_options import StreamingOptions, parse_streaming

LEAST = ["-input", "in", "-output", "out", "-mapper", "cat"]


def parse(*words: str) -> StreamingOptions:
    return parse_streaming([*LEAST, *words])


def test_a_typical_command_line() -> None:
    line = (
        "-D mapreduce.job.name=n -D mapred.reduce.tasks=3 -files a.py,b.txt#c -archives d.zip -input x,y -input z "
        "-output o -file e.py -combiner comb -reducer red -numReduceTasks 2 -cmdenv A=1 -cmdenv B=x=y "
        "-inputformat org.apache.hadoop.mapred.TextInputFormat -verbose -mapper"
    )
    options = parse_streaming([*line.split(), "python3 a.py --flag"])
    assert options == StreamingOptions(
        inputs=["x", "y", "z"],
        output="o",
        mapper="python3 a.py --flag",
        combiner="comb",
        reducer="red",
        reduces=2,
        files=["a.py", "b.txt#c", "e.py"],
        archives=["d.zip"],
        environment={"A": "1", "B": "x=y"},
        defines={"mapreduce.job.name": "n", "mapred.reduce.tasks": "3"},
    )


def test_spellings_that_fingers_produce() -> None:
    assert parse("-Da=b", "--numReduceTasks", "0").defines == {"a": "b"}
    assert parse("--reducer", "NONE").reducer == "NONE"
    assert parse("-jobconf", "a=b").defines == {"a": "b"}
    assert parse("-background").is_background
    assert parse("-partitioner", "a.B").defines == {"mapred.partitioner.class": "a.B"}
    assert set(parse("-io", "text").defines.values()) == {"text"}
    assert parse("-queue", "q").defines == {"mapreduce.job.queuename": "q"}


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ("pin/{a,b}.txt", ["pin/{a,b}.txt"]),
        ("x,pin/{a,{b,c}}.txt,,y", ["x", "pin/{a,{b,c}}.txt", "y"]),
        ("{a,b},{c,d},e", ["{a,b}", "{c,d}", "e"]),
        ("a{b,c", ["a{b,c"]),
        ("a},b", ["a}", "b"]),
    ],
)
def test_commas_within_braces_are_part_of_an_input_pattern(value: str, paths: list[str]) -> None:
    assert parse("-input", value).inputs == ["in", *paths]


def test_our_own_flags() -> None:
    options = parse("--overwrite", "--quiet", "--json")
    assert options.overwrite and options.is_quiet and options.as_json
    plain = parse()
    assert not (plain.overwrite or plain.is_quiet or plain.as_json)


def test_values_may_look_like_options() -> None:
    assert parse("-reducer", "-input").reducer == "-input"
    options = parse("-reducer", "--json")
    assert options.reducer == "--json" and not options.as_json


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-reducre", "x"], 'unknown option "-reducre"; did you mean -reducer?'),
        (["stray"], 'unknown word "stray"'),
        (["-reducer"], "-reducer needs a value"),
        (["-numReduceTasks", "two"], "-numReduceTasks two: not a whole number"),
        (["-numReduceTasks", "-1"], "-numReduceTasks -1: not a whole number"),
        (["-cmdenv", "A"], "-cmdenv A: write it as -cmdenv NAME=VALUE"),
        (["-D", "=x"], "-D =x: write it as -D NAME=VALUE"),
        (["-mapdebug", "x.sh"], "-mapdebug runs a script where a task has failed, which is not done here"),
        (["-libjars", "x.jar"], "-libjars sends Java classes along"),
        (["-lazyOutput"], "-lazyOutput leaves out empty output files"),
        (["-inputformat", "SequenceFileInputFormat"], "-inputformat SequenceFileInputFormat: only TextInputFormat"),
        (["-inputformat", "my.TextInputFormat"], "only TextInputFormat is there"),
        (["-outputformat", "TextInputFormat"], "only TextOutputFormat is there"),
    ],
)
def test_mistakes_name_the_option_and_the_remedy(words: list[str], message: str) -> None:
    with pytest.raises(CommandError) as caught:
        parse(*words)
    assert message in str(caught.value)


@pytest.mark.parametrize("missing", ["-input", "-output", "-mapper"])
def test_what_a_job_cannot_do_without(missing: str) -> None:
    at = LEAST.index(missing)
    with pytest.raises(CommandError, match=f"{missing} is missing"):
        parse_streaming(LEAST[:at] + LEAST[at + 2 :])


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (["mr", "streaming", *LEAST, "-cmdenv", "A B=c d"], "-cmdenv"),
        (["run", "--env", "A B=c d", "--", "date"], "--env"),
    ],
)
def test_names_that_no_shell_takes_are_refused_before_anything_is_asked(words: list[str], option: str) -> None:
    done = CliRunner().invoke(yaq, words, env={"HADOOP_CONF_DIR": None})
    said = f"yaq: {option}: environment variable name 'A B' is not a shell name: rename it\n"
    assert (done.exit_code, done.stderr) == (2, said)


@pytest.mark.parametrize("command", [["mr", "submit"], ["run"]])
def test_help_says_what_no_time_limit_is(command: list[str]) -> None:
    said = " ".join(CliRunner().invoke(yaq, [*command, "--help"]).output.split())
    assert "seconds, or 90m, 12h; 0: no limit but its queue's." in said
