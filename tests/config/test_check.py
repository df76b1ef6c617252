"""What `yaq conf check` finds, that the shipped files are sound, and that the reference is current."""

import re
from collections import Counter
from pathlib import Path

import pytest

from yaqd.config import ConfigError, Configuration, compat, read_properties, shipped_dir
from yaqd.config.catalogue import documentation, documented
from yaqd.config.check import Finding, Severity, check_folder, check_overrides
from yaqd.config.reference import reference_markdown

ROOT = Path(__file__).resolve().parents[2]


def check(folder: Path, body: str, file: str = "yarn-site.xml") -> list[Finding]:
    (folder / file).write_text(f"<configuration>\n{body}\n</configuration>")
    return check_folder(folder)


def test_a_misspelt_key_is_an_error_with_the_nearest_name_file_and_line(tmp_path: Path) -> None:
    (finding,) = check(tmp_path, '<property name="yarn.nodemanager.resource.memroy-mb" value="1"/>')
    assert str(finding) == (
        f"{tmp_path}/yarn-site.xml:2: error: yarn.nodemanager.resource.memroy-mb: unknown key; "
        "did you mean yarn.nodemanager.resource.memory-mb?"
    )


@pytest.mark.parametrize(
    ("key", "value", "severity", "words"),
    [
        ("yaq.no.such.key.at.all", "1", Severity.ERROR, "`yaq conf docs` lists"),
        ("yarn.wholly.unknown.thing", "1", Severity.ERROR, "unknown key"),
        ("yarn.timeline-service.enabled", "false", Severity.NOTE, "nothing here reads"),
        ("mapreduce.job.reducess", "1", Severity.NOTE, "did you mean mapreduce.job.reduces?"),
        ("fs.default.name", "file:///", Severity.NOTE, "write fs.defaultFS"),
        ("yarn.acl.enable", "yes", Severity.ERROR, '"yes" is neither true nor false'),
        ("yarn.scheduler.minimum-allocation-mb", "lots", Severity.ERROR, '"lots" is not a whole number'),
        ("yarn.nodemanager.vmem-pmem-ratio", "two", Severity.ERROR, '"two" is not a number'),
    ],
)
def test_findings(tmp_path: Path, key: str, value: str, severity: Severity, words: str) -> None:
    (finding,) = check(tmp_path, f'<property name="{key}" value="{value}"/>')
    assert (finding.severity, finding.key, finding.line) == (severity, key, 2)
    assert words in finding.message
    (same,) = check_overrides({key: value})
    assert str(same).startswith(f"-D: {severity}: {key}: ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("my.own.setting", "1"),
        ("yarn.nm.liveness-monitor.expiry-interval-ms", "10m"),
        ("mapreduce.map.memory.mb", "${some.size}"),
        ("dfs.blocksize", "64m"),
        ("yarn.log.dir", ""),
        ("yaq.nm.out-of-turn-heartbeats", "false"),
        *compat.PRESETS[compat.STOCK].items(),
        ("mapreduce.client.genericoptionsparser.used", "true"),
    ],
)
def test_sound_settings_are_passed_in_silence(tmp_path: Path, key: str, value: str) -> None:
    assert check(tmp_path, f'<property name="{key}" value="{value}"/>') == []


def test_each_file_is_checked_even_if_one_is_malformed(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration>\n<property>")
    findings = check(tmp_path, '<property name="yarn.acl.enabel" value="true"/>')
    assert [(found.file, found.line) for found in findings] == [
        (tmp_path / "core-site.xml", 2),
        (tmp_path / "yarn-site.xml", 2),
    ]


def test_repetitions_and_circles_are_found(tmp_path: Path) -> None:
    (note,) = check(tmp_path, '<property name="a" value="1"/>\n<property name="a" value="2"/>')
    assert str(note).endswith("yarn-site.xml:3: note: a: set before in line 2; this one counts")
    (error,) = check(tmp_path, '<property name="a" value="${a}"/>')
    assert (error.severity, error.key, error.line) == (Severity.ERROR, "a", 2)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no configuration folder"):
        check_folder(tmp_path / "no")


def test_every_shipped_key_is_explained_once_and_sound() -> None:
    counts = Counter(found.name for found in documented())
    assert [name for name, count in counts.items() if count > 1] == []
    assert [found.name for found in documented() if len(found.description) < 12] == []
    assert [found.name for found in documented() if "*" in found.name and found.value is not None] == []
    for key, _ in Configuration.load(environ={}).items():
        assert documentation(key) is not None


def test_the_example_site_files_are_sound() -> None:
    assert check_folder(shipped_dir() / "examples") == []
    conf = Configuration.load(shipped_dir() / "examples", environ={})
    assert conf.get_address("yarn.resourcemanager.address") == ("master.example.org", 8032)


def test_a_family_explains_its_members() -> None:
    assert documentation("yarn.scheduler.capacity.root.a.b.capacity") is not None
    assert documentation("yarn.scheduler.capacity.root.a.nosuch") is None


@pytest.mark.parametrize(("room", "expected"), [("", 1), ("0", 1), ("5", 0)])
def test_opportunistic_containers_that_no_node_takes_are_warned_of(tmp_path: Path, room: str, expected: int) -> None:
    body = '<property name="yarn.nodemanager.distributed-scheduling.enabled" value="true"/>'
    if room:
        body += f'<property name="yarn.nodemanager.opportunistic-containers-max-queue-length" value="{room}"/>'
    found = check(tmp_path, body)
    line = (
        f"{tmp_path}/yarn-site.xml:2: warning: yarn.nodemanager.distributed-scheduling.enabled: opportunistic"
        " containers are given out, but nodes take none; set"
        " yarn.nodemanager.opportunistic-containers-max-queue-length above 0"
    )
    assert [str(finding) for finding in found] == [line] * expected


def test_a_choice_that_a_variable_spoils_is_a_finding_too(tmp_path: Path) -> None:
    body = (
        '<property name="yarn.nodemanager.distributed-scheduling.enabled" value="${the.choice}"/>\n'
        '<property name="the.choice" value="maybe"/>'
    )
    (found,) = check(tmp_path, body)
    assert (found.severity, found.line) == (Severity.ERROR, 2) and "neither true nor false" in found.message


# A key as it stands in a getter's call; f-strings and constants are beyond this test.
_READ = re.compile(r'\.(?:get|get_\w+|require)\(\s*"((?:yarn|yaq|mapreduce|fs|dfs|hadoop|ipc|io|net)\.[\w.-]+)"')


def test_every_key_that_the_code_reads_is_documented() -> None:
    rooms = ("yaqd", "rm", "nm", "riffle_merger", "tez_adapter")
    sources = [file for room in rooms for file in (ROOT / room).rglob("*.py")]
    read = {(key, file.name) for file in sources for key in _READ.findall(file.read_text())}
    assert sorted((key, file) for key, file in read if documentation(key) is None) == []


def test_the_defaults_read_without_a_section_comment_astray() -> None:
    sections = {found.section for found in read_properties(shipped_dir() / "yaq-default.xml")}
    assert "Hadoop RPC" in sections and all(sections)


def test_the_reference_is_current() -> None:
    assert (ROOT / "docs/configuration.md").read_text() == reference_markdown(), "run scripts/docs.sh"
