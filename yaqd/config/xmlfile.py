"""Hadoop's XML configuration files: reading with places, and writing.

The standard library's expat is used directly, because it alone says on which line an element began. XInclude is
resolved here: `xml.etree.ElementInclude` ignores `xi:fallback` and fails on a missing file. Nested `<configuration>`
elements are flattened and `<property name="..." value="..."/>` is read, as Hadoop's own parser does. External entities
are never fetched.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.parsers import expat
from xml.sax.saxutils import escape

from yaqd.config.errors import ConfigError

FILE_BYTES_MAX = 16 << 20
INCLUDE_DEPTH_MAX = 16
NESTING_MAX = 64


@dataclass(frozen=True, slots=True)
class Property:
    """One setting as it stands in a file, variables not yet replaced."""

    name: str
    #: None when the file gives no `<value>`: such a property documents the key and sets nothing.
    value: str | None
    #: No later file may change it.
    is_final: bool = False
    description: str = ""
    file: Path | None = None
    #: 1-based line on which the `<property>` begins.
    line: int | None = None
    #: The last comment before it on the top level of its file: the shipped defaults group their keys so.
    section: str = ""


def read_properties(path: Path) -> list[Property]:
    """Return all properties of the file and of what it includes, in document order. ConfigError names the file and
    line."""
    return _Reader(path, ()).read()


def write_properties(path: Path, properties: Iterable[tuple[str, str, str]], comment: str = "") -> None:
    """Write (name, value, description) triples; the file appears whole or not at all."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    if comment:
        lines.append(f"<!-- {comment.replace('--', '- -')} -->")
    lines.append("<configuration>")
    for name, value, description in properties:
        lines.append("  <property>")
        lines.append(f"    <name>{escape(name)}</name>")
        lines.append(f"    <value>{escape(value, {chr(13): '&#13;'})}</value>")
        if description:
            lines.append(f"    <description>{escape(description)}</description>")
        lines.append("  </property>")
    lines.append("</configuration>\n")
    _write_whole(path, "\n".join(lines).encode("utf-8"))


def _write_whole(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@dataclass(slots=True)
class _Pending:
    """A `<property>` that is being read."""

    line: int
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Include:
    """An `<xi:include>` that is being read; its fallback counts only when the file was not there."""

    line: int
    href: str
    is_loaded: bool
    has_fallback: bool = False


class _Reader:
    """Reads one file; an include makes a reader of its own, and `ancestors` finds the loops."""

    def __init__(self, path: Path, ancestors: tuple[Path, ...]) -> None:
        self._path = path
        self._ancestors = ancestors
        self._found: list[Property] = []
        self._open: list[str] = []
        self._pending: _Pending | None = None
        self._includes: list[_Include] = []
        self._skip_from: int | None = None  # depth from which elements are ignored
        self._text: list[str] | None = None
        self._parser = expat.ParserCreate()
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.CommentHandler = self._comment
        self._section = ""
        self._parser.buffer_text = True

    def read(self) -> list[Property]:
        try:
            with open(self._path, "rb") as source:
                content = source.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", file=self._path) from error
        if len(content) > FILE_BYTES_MAX:
            raise ConfigError(f"larger than {FILE_BYTES_MAX >> 20} MiB; is this a configuration file?", file=self._path)
        try:
            self._parser.Parse(content, True)
        except expat.ExpatError as error:
            raise ConfigError(
                f"malformed XML: {expat.ErrorString(error.code)} (column {error.offset + 1})",
                file=self._path,
                line=error.lineno,
                remedy="mend the file; every <property> needs <name>, <value> and its closing tag",
            ) from error
        return self._found

    def _fail(self, problem: str, line: int | None = None, remedy: str | None = None) -> ConfigError:
        return ConfigError(problem, file=self._path, line=line or self._parser.CurrentLineNumber, remedy=remedy)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        depth = len(self._open)
        self._open.append(name)
        if depth >= NESTING_MAX:
            raise self._fail(f"elements nested deeper than {NESTING_MAX}")
        if self._skip_from is not None:
            return
        if depth == 0 and name not in ("configuration", "property"):
            raise self._fail(f"the root element is <{tag}>", remedy="it must be <configuration>")
        if self._pending is not None:
            self._text = []
        elif name == "property":
            self._pending = _Pending(self._parser.CurrentLineNumber, dict(attributes))
        elif name == "include":
            self._start_include(attributes)
        elif name == "fallback" and self._includes:
            include = self._includes[-1]
            include.has_fallback = True
            if include.is_loaded:
                self._skip_from = depth

    def _end(self, tag: str) -> None:
        name = self._open.pop()
        if self._skip_from is not None:
            if len(self._open) == self._skip_from:
                self._skip_from = None
            return
        if self._pending is not None and name != "property":
            self._pending.fields[name] = "".join(self._text or ())
            self._text = None
        elif self._pending is not None:
            self._found.append(self._finished(self._pending))
            self._pending = None
        elif name == "include":
            include = self._includes.pop()
            if not include.is_loaded and not include.has_fallback:
                raise self._fail(
                    f"included file {include.href} does not exist", include.line, "create it or add an <xi:fallback/>"
                )

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _comment(self, text: str) -> None:
        if len(self._open) == 1:
            self._section = " ".join(text.split())

    def _finished(self, pending: _Pending) -> Property:
        name = pending.fields.get("name", "").strip()
        if not name:
            raise self._fail("<property> without a <name>", pending.line, "give it one or delete it")
        value = pending.fields.get("value")
        return Property(
            name=name,
            value=None if value is None else _unindented(value),
            is_final=pending.fields.get("final", "").strip().lower() == "true",
            description=" ".join(pending.fields.get("description", "").split()),
            file=self._path,
            line=pending.line,
            section=self._section,
        )

    def _start_include(self, attributes: dict[str, str]) -> None:
        href = attributes.get("href", "")
        line = self._parser.CurrentLineNumber
        parts = urlsplit(href)
        if not parts.path or parts.scheme not in ("", "file") or parts.netloc not in ("", "localhost"):
            raise self._fail(f'cannot include "{href}"', line, "only local files can be included")
        if attributes.get("parse", "xml") != "xml" or "xpointer" in attributes:
            raise self._fail("only whole XML files can be included", line, 'leave out parse="..." and xpointer="..."')
        target = self._path.parent / unquote(parts.path)
        chain = (*self._ancestors, self._path.resolve())
        if target.resolve() in chain:
            raise self._fail(f'"{href}" includes itself', line, "break the circle of includes")
        if len(chain) > INCLUDE_DEPTH_MAX:
            raise self._fail(f"includes nested deeper than {INCLUDE_DEPTH_MAX}", line)
        is_loaded = target.is_file()
        if is_loaded:
            self._found.extend(_Reader(target, chain).read())
        self._includes.append(_Include(line, href, is_loaded))


def _unindented(value: str) -> str:
    """Drops line breaks and indentation around a value that stands on lines of its own; other blanks may be meant."""
    stripped = value.strip()
    if not stripped:
        return "" if "\n" in value else value
    start = value[: value.index(stripped[0])]
    end = value[value.rindex(stripped[-1]) + 1 :]
    return ("" if "\n" in start else start) + stripped + ("" if "\n" in end else end)
