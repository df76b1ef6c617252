"""Layers, variables, final, typed getters and what their errors say."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.config import ConfigError, Configuration, write_properties


def site(folder: Path, resource: str, **properties: str) -> None:
    write_properties(folder / f"{resource}-site.xml", [(k.replace("__", "."), v, "") for k, v in properties.items()])


def test_later_layers_win_and_origins_are_told(tmp_path: Path) -> None:
    site(tmp_path, "core", fs__defaultFS="hdfs://a:1", x__core="core", x__both="core")
    site(tmp_path, "yarn", x__both="yarn")
    conf = Configuration.load(tmp_path, overrides={"x.core": "line"})
    assert [conf.get(key) for key in ("fs.defaultFS", "x.core", "x.both")] == ["hdfs://a:1", "line", "yarn"]
    assert str(conf.origin("x.both")) == f"{tmp_path}/yarn-site.xml:3"
    assert str(conf.origin("x.core")) == "-D"
    assert str(conf.origin("dfs.replication")).endswith("yaq-default.xml:" + str(conf.origin("dfs.replication").line))  # type: ignore[union-attr]
    assert conf.changed_keys() == ["fs.defaultFS", "x.both", "x.core"]
    assert conf.origin("nothing") is None


def test_the_folder_comes_from_the_environment(tmp_path: Path) -> None:
    site(tmp_path, "mapred", x="1")
    assert Configuration.load(environ={"HADOOP_CONF_DIR": str(tmp_path)}).get_int("x") == 1
    assert "x" not in Configuration.load(environ={})
    with pytest.raises(ConfigError, match="HADOOP_CONF_DIR: no configuration folder"):
        Configuration.load(environ={"HADOOP_CONF_DIR": str(tmp_path / "no")})


def test_a_final_value_stands_against_later_files_and_refuses_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text(
        '<configuration>\n<property name="a" value="1" final="true"/></configuration>'
    )
    site(tmp_path, "yarn", a="2")
    assert Configuration.load(tmp_path).get("a") == "1"
    with pytest.raises(ConfigError, match=r'-D: a = "3": is final in .*core-site.xml:2'):
        Configuration.load(tmp_path, overrides={"a": "3"})
    assert Configuration.load(tmp_path).with_overrides({"a": "4"}).get("a") == "4"


def test_extra_files_lie_between_sites_and_the_command_line(tmp_path: Path) -> None:
    site(tmp_path, "core", a="site", b="site", c="site")
    site(tmp_path, "job", b="job", c="job")
    conf = Configuration.load(tmp_path, extra_files=[tmp_path / "job-site.xml"], overrides={"c": "line"})
    assert [conf.get(key) for key in "abc"] == ["site", "job", "line"]


def test_old_names_are_the_new_ones() -> None:
    conf = Configuration.load(environ={}, overrides={"mapred.reduce.tasks": "7"})
    assert conf.get_int("mapreduce.job.reduces") == conf.get_int("mapred.reduce.tasks") == 7


def test_the_queues_come_from_their_own_file_and_are_read_afresh(tmp_path: Path) -> None:
    queues = "yarn.scheduler.capacity.root.queues"
    conf = Configuration.load(tmp_path, overrides={"yarn.scheduler.capacity.maximum-applications": "3"})
    assert queues not in conf
    assert conf.capacity_scheduler().get_list(queues) == ["default"]
    for names in ("a", "a,b"):
        write_properties(
            tmp_path / "capacity-scheduler.xml",
            [(queues, names, ""), ("yarn.scheduler.capacity.maximum-applications", "9", "")],
        )
        merged = conf.capacity_scheduler()
        assert merged.get_list(queues) == names.split(",")
        assert merged.get_int("yarn.scheduler.capacity.maximum-applications") == 3
    assert "yarn.scheduler.capacity.root.default.capacity" not in conf.capacity_scheduler()


def resolved(text: str, **others: str) -> str | None:
    environ = {"HOME": "/home/h", "EMPTY": "", "SET": "set"}
    conf = Configuration.load(
        environ=environ, overrides={"text": text, **{k.replace("_", "."): v for k, v in others.items()}}
    )
    return conf.get("text")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("${a}-${a}", "1-1"),
        ("${b}", "<1>"),
        ("${n${a}}", "nested"),
        ("${${${c}}}", "1"),
        ("${unset}", "${unset}"),
        ("${x${unset}y}", "${x${unset}y}"),
        ("a${", "a${"),
        ("}${a}}$", "}1}$"),
        ("${${a}", "${1"),
        ("$a {a} $${a}", "$a {a} $1"),
        ("${env.SET}", "set"),
        ("${env.NONE}", "${env.NONE}"),
        ("${env.NONE-d}", "d"),
        ("${env.EMPTY-d}", ""),
        ("${env.EMPTY:-d-e}", "d-e"),
        ("${env.NONE:-${a}}", "1"),
        ("${user.home}/x", "/home/h/x"),
        ("${java.io.tmpdir}", "/tmp"),
    ],
)
def test_variables(text: str, expected: str) -> None:
    assert resolved(text, a="1", b="<${a}>", n1="nested", c="d", d="a") == expected


@pytest.mark.parametrize("chain", [["text"], ["text", "b"], ["text", "b", "c"]])
def test_a_circle_of_variables_is_an_error_that_shows_it(chain: list[str]) -> None:
    links = dict(zip(chain, [f"x${{{name}}}" for name in [*chain[1:], "text"]], strict=True))
    with pytest.raises(ConfigError, match="circle") as caught:
        resolved(**links)
    assert f"({' -> '.join([*chain, 'text'])})" in str(caught.value)


def test_a_value_that_explodes_is_refused() -> None:
    doubling = {f"v{n}": f"${{v{n - 1}}}" * 2 for n in range(1, 40)}
    with pytest.raises(ConfigError, match="1 MiB"):
        resolved("${v39}", v0="x" * 1000, **doubling)


@given(st.text(alphabet="ab${}.", max_size=12), st.text(alphabet="ab${}.", max_size=12))
def test_replacement_always_ends(first: str, second: str) -> None:
    conf = Configuration.load(environ={}, overrides={"a": first, "b": second})
    for key in "ab":
        try:
            assert conf.get(key) is not None
        except ConfigError as error:
            assert "circle" in str(error)


Getter = Callable[[Configuration], object]


@pytest.mark.parametrize(
    ("text", "read", "expected"),
    [
        (" 42 ", lambda c: c.get_int("k"), 42),
        ("0x10", lambda c: c.get_int("k"), 16),
        ("1.0f", lambda c: c.get_float("k"), 1.0),
        ("TRUE", lambda c: c.get_bool("k"), True),
        ("a, b,,c", lambda c: c.get_list("k"), ["a", "b", "c"]),
        ("10s", lambda c: c.get_duration_ms("k"), 10_000),
        ("1500", lambda c: c.get_duration_ms("k"), 1500),
        ("2", lambda c: c.get_duration_ms("k", unit="s"), 2000),
        ("1.5 h", lambda c: c.get_duration_ms("k"), 5_400_000),
        ("128m", lambda c: c.get_size_bytes("k"), 128 << 20),
        ("1 GiB", lambda c: c.get_size_bytes("k"), 1 << 30),
        ("h:8032", lambda c: c.get_address("k"), ("h", 8032)),
        ("[::1]:0", lambda c: c.get_address("k"), ("::1", 0)),
        ("fair", lambda c: c.get_choice("k", ["FIFO", "FAIR"]), "FAIR"),
        ("", lambda c: c.get_int("k", 5), 5),
        (" x ", lambda c: c.get("k"), " x "),
        (" x ", lambda c: c.require("k"), "x"),
    ],
)
def test_typed_getters(text: str, read: Getter, expected: object) -> None:
    assert read(Configuration.load(environ={}, overrides={"k": text})) == expected


def test_bare_durations_follow_the_name() -> None:
    conf = Configuration.load(
        environ={}, overrides={"x.interval-secs": "3", "x.interval-ms": "3", "y.retain-seconds": "3"}
    )
    found = [conf.get_duration_ms(key) for key in ("x.interval-secs", "x.interval-ms", "y.retain-seconds")]
    assert found == [3000, 3, 3000]


@pytest.mark.parametrize(
    ("text", "read", "words"),
    [
        ("lots", lambda c: c.get_int("k"), "not a whole number"),
        ("1_000", lambda c: c.get_int("k"), "not a whole number"),
        ("9" * 5000, lambda c: c.get_int("k"), "not a whole number"),
        ("0", lambda c: c.get_int("k", minimum=1), "less than 1; give 1 or more"),
        ("9", lambda c: c.get_int("k", maximum=8), "more than 8"),
        ("nan", lambda c: c.get_float("k"), "not a number"),
        ("yes", lambda c: c.get_bool("k"), "neither true nor false"),
        ("10 parsecs", lambda c: c.get_duration_ms("k"), "not a duration"),
        ("12q", lambda c: c.get_size_bytes("k"), "not a size"),
        ("host", lambda c: c.get_address("k"), "write host:port"),
        ("host:99999", lambda c: c.get_address("k"), "not an address"),
        ("::1:80", lambda c: c.get_address("k"), "not an address"),
        ("host:²", lambda c: c.get_address("k"), "not an address"),
        ("lifo", lambda c: c.get_choice("k", ["fifo", "fair"]), "not one of fifo, fair"),
        ("", lambda c: c.get_int("k"), "is not set"),
        (None, lambda c: c.require("k"), "is not set; give it a value"),
    ],
)
def test_bad_values_name_key_value_file_and_line(tmp_path: Path, text: str | None, read: Getter, words: str) -> None:
    if text is not None:
        write_properties(tmp_path / "yarn-site.xml", [("k", text, "")])
    with pytest.raises(ConfigError) as caught:
        read(Configuration.load(tmp_path, environ={}))
    message = str(caught.value)
    assert words in message
    assert caught.value.key == "k"
    assert text is None or message.startswith(f"{tmp_path}/yarn-site.xml:3: k")
    assert "\n" not in message
    assert len(message) < 400


def test_what_is_written_configures_the_same(tmp_path: Path) -> None:
    conf = Configuration.load(environ={}, overrides={"a": "${b}/x", "b": "<&>", "dfs.replication": "1"})
    conf.write_xml(tmp_path / "core-site.xml")
    again = Configuration.load(tmp_path, environ={})
    assert again.changed_keys() == ["a", "b", "dfs.replication"]
    assert dict(again.items()) == dict(conf.items())
    assert again.raw("a") == "${b}/x"
    conf.write_xml(tmp_path / "core-site.xml", keys=["b", "unset"])
    assert Configuration.load(tmp_path, environ={}).changed_keys() == ["b"]


def test_an_error_of_the_readers_own_names_the_place(tmp_path: Path) -> None:
    site(tmp_path, "yarn", a="/x")
    error = Configuration.load(tmp_path).error("a", "no such folder", "create it")
    assert str(error) == f'{tmp_path}/yarn-site.xml:3: a = "/x": no such folder; create it'
