"""Reading and writing Hadoop's XML files: places, includes, odd forms, malformed input."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yaqd.config import ConfigError, read_properties, write_properties

XI = 'xmlns:xi="http://www.w3.org/2001/XInclude"'


def write(folder: Path, name: str, body: str) -> Path:
    file = folder / name
    file.write_text(body)
    return file


def values(file: Path) -> list[tuple[str, str | None]]:
    return [(found.name, found.value) for found in read_properties(file)]


def test_a_property_knows_its_file_line_and_finality(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "core-site.xml",
        "<?xml version='1.0'?>\n<configuration>\n  <!-- Size -->\n  <property>\n    <name> a </name>\n"
        "    <value>\n      1\n    </value>\n    <final>true</final>\n    <description>two\n words</description>\n"
        "  </property>\n</configuration>\n",
    )
    (found,) = read_properties(file)
    assert (found.name, found.value, found.is_final, found.description) == ("a", "1", True, "two words")
    assert (found.file, found.line, found.section) == (file, 4, "Size")


def test_attributes_nested_configurations_and_missing_values(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "x.xml",
        '<configuration><property name="a" value="1"/><configuration><property><name>b</name><value/></property>'
        "</configuration><property><name>c</name></property><other><name>d</name></other></configuration>",
    )
    assert values(file) == [("a", "1"), ("b", ""), ("c", None)]


def test_blanks_on_the_value_line_are_kept(tmp_path: Path) -> None:
    file = write(
        tmp_path, "x.xml", "<configuration><property><name>a</name><value> x </value></property></configuration>"
    )
    assert values(file) == [("a", " x ")]


def test_included_properties_stand_where_the_include_stands(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    write(tmp_path, "more/b.xml", '<configuration><property name="b" value="2"/></configuration>')
    file = write(
        tmp_path,
        "a.xml",
        f'<configuration {XI}><property name="a" value="1"/><xi:include href="more/b.xml">'
        '<xi:fallback><property name="unused" value="0"/></xi:fallback></xi:include>'
        '<property name="c" value="3"/></configuration>',
    )
    assert values(file) == [("a", "1"), ("b", "2"), ("c", "3")]
    assert read_properties(file)[1].file == tmp_path / "more/b.xml"


def test_the_fallback_counts_when_the_file_is_missing(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "a.xml",
        f'<configuration {XI}><xi:include href="no.xml"><xi:fallback><property name="a" value="1"/>'
        '<xi:include href="neither.xml"><xi:fallback/></xi:include></xi:fallback></xi:include>'
        '<property name="b" value="2"/></configuration>',
    )
    assert values(file) == [("a", "1"), ("b", "2")]


@pytest.mark.parametrize(
    ("body", "line", "words"),
    [
        ("<configuration>\n<property>\n<name>a</name>\n</configuration>", 4, "mismatched tag"),
        ("<configuration>\n", 2, "no element found"),
        ("", 1, "no element found"),
        ("<configuration>\n&nosuch;\n</configuration>", 2, "undefined entity"),
        ("\x00\x01", 1, "malformed XML"),
        ("<html/>", 1, "root element is <html>"),
        ("<configuration>\n<property><value>1</value></property></configuration>", 2, "without a <name>"),
        (f'<configuration {XI}>\n<xi:include href="gone.xml"/></configuration>', 2, "gone.xml does not exist"),
        (f'<configuration {XI}>\n<xi:include href="http://x/y.xml"/></configuration>', 2, "only local files"),
        (f'<configuration {XI}>\n<xi:include href="bad.xml"/></configuration>', 2, "includes itself"),
        ("<configuration>" * 200, 1, "nested deeper"),
    ],
)
def test_malformed_files_name_file_and_line(tmp_path: Path, body: str, line: int, words: str) -> None:
    file = write(tmp_path, "bad.xml", body)
    with pytest.raises(ConfigError, match=words) as caught:
        read_properties(file)
    assert (caught.value.file, caught.value.line) == (file, line)
    assert f"{file}:{line}: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_entity_bomb_is_refused(tmp_path: Path) -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    file = write(
        tmp_path,
        "bomb.xml",
        f'<!DOCTYPE c [<!ENTITY e0 "0123456789">{levels}]><configuration><property><name>a</name>'
        "<value>&e11;</value></property></configuration>",
    )
    with pytest.raises(ConfigError, match="malformed XML"):
        read_properties(file)


def test_external_entities_are_not_fetched(tmp_path: Path) -> None:
    secret = write(tmp_path, "secret", "s3cret")
    file = write(
        tmp_path,
        "x.xml",
        f'<!DOCTYPE c [<!ENTITY x SYSTEM "{secret}">]><configuration><property><name>a</name><value>[&x;]</value>'
        "</property></configuration>",
    )
    assert values(file) == [("a", "[]")]


def test_a_loop_over_two_files_is_found(tmp_path: Path) -> None:
    for one, other in (("a", "b"), ("b", "a")):
        write(tmp_path, f"{one}.xml", f'<configuration {XI}><xi:include href="{other}.xml"/></configuration>')
    with pytest.raises(ConfigError, match="circle of includes"):
        read_properties(tmp_path / "a.xml")


def test_an_unreadable_file_says_why(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        read_properties(tmp_path)


# What XML 1.0 can carry at all; a value's own line breaks at the edges are layout and may go.
TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufffe\uffff"), max_size=30)


@pytest.mark.slow
@given(st.lists(st.tuples(TEXT.map(lambda t: f"k{t.strip()}"), TEXT), max_size=5))
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]) -> None:
    file = tmp_path_factory.getbasetemp() / "round-trip.xml"
    write_properties(file, [(name, value, "why & what") for name, value in pairs], comment="from -- a test")
    assert values(file) == pairs


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "x.xml"
    write_properties(file, [("a", "1", "")])
    with pytest.raises(UnicodeEncodeError):
        write_properties(file, [("a", "\ud800", "")])
    assert values(file) == [("a", "1")]
    assert list(tmp_path.iterdir()) == [file]
