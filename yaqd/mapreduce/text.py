"""Keys and values as text output shows them.

As Hadoop's TextOutputFormat writes what toString gives: str and bytes as they are (surrogate escapes become their bytes
again), int in decimal, bool as true and false, float as Python's shortest repr (Java's would be 1.0E10 for 1e+10),
tuple, list and dict as compact JSON with bytes shown as str. None is Hadoop's NullWritable: left out, and its TAB too.
"""

import json
import re
from typing import Any, Final

from yaqd.mapreduce.errors import JobError, shown

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
#: what Python shows of an object that has no text of its own
_AN_ADDRESS: Final = re.compile(r"<.* at 0x[0-9a-f]+>", re.DOTALL)


def text_of(value: Any) -> bytes:
    """Return the bytes that stand for `value` in text output; b"" for None."""
    kind = type(value)
    if kind is str:
        return _utf8(value)
    if kind is bytes:
        return value  # type: ignore[no-any-return]
    if kind is int or kind is float:
        return repr(value).encode()
    if value is None:
        return b""
    if kind is bool:
        return b"true" if value else b"false"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    if isinstance(value, str):
        return _utf8(str.__str__(value))
    if isinstance(value, (tuple, list, dict)):
        return _utf8(_compact(_json_form(value)))
    if isinstance(value, (set, frozenset)):
        raise _unshown(value, "the order of a set differs from run to run: yield sorted(...) or a list of it")
    text = str(value)
    if _AN_ADDRESS.fullmatch(text):
        raise _unshown(value, "it shows itself by its address: yield what it holds, as list(...) of a generator")
    return _utf8(text)


def line_of(key: Any, value: Any, separator: bytes = b"\t") -> bytes:
    """Write one line of text output."""
    if key is None:
        return text_of(value) + b"\n"
    if value is None:
        return text_of(key) + b"\n"
    return text_of(key) + separator + text_of(value) + b"\n"


def json_line_of(key: Any, value: Any) -> bytes:
    """Write one line of JSON output: UTF-8, as JSON must be, also where its text is not."""
    text = _compact(_json_form(value if key is None else (key, value)))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return _SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


def csv_line_of(key: Any, value: Any, columns: tuple[str, ...]) -> bytes:
    """Write one line of CSV output. Raises JobError for a record of other columns."""
    if isinstance(value, dict):
        if key is not None or value.keys() != set(columns):
            raise JobError(
                f"a record of CSV output has the fields {', '.join(map(str, value))}, not {', '.join(columns)}"
            )
        fields = [value[name] for name in columns]
    else:
        fields = [*_fields(key), *_fields(value)]
        if len(fields) != len(columns):
            raise JobError(f"a record of CSV output has {len(fields)} fields, and {len(columns)} columns are named")
    return b",".join(map(_csv_field, fields)) + b"\n"


def _fields(item: Any) -> tuple[Any, ...]:
    if item is None:
        return ()
    return tuple(item) if isinstance(item, (tuple, list)) else (item,)


def _csv_field(item: Any) -> bytes:
    text = text_of(item)
    if any(mark in text for mark in (b",", b'"', b"\n", b"\r")):
        return b'"' + text.replace(b'"', b'""') + b'"'
    return text


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        try:
            return text.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise JobError(f"cannot write {text[:80]!r}: it holds a lone surrogate, which UTF-8 cannot carry") from None


def _json_form(value: Any) -> Any:
    """What the JSON encoder can take: text for bytes and for the keys of dicts. JobError for what JSON has not."""
    if isinstance(value, dict):
        return _json_object(value)
    if isinstance(value, (tuple, list)):
        return [_json_form(item) for item in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "surrogateescape")
    if value is None or isinstance(value, (str, int, float)):
        return value
    if getattr(value, "ndim", None) == 0:
        return value.item()  # a number of NumPy's
    raise _unshown(value, "within a list or dict, and in JSON, are None, numbers, text, bytes, lists and dicts")


def _json_object(value: dict[Any, Any]) -> dict[str, Any]:
    form: dict[str, Any] = {}
    for key, item in value.items():
        name = key if isinstance(key, str) else "null" if key is None else text_of(key).decode(errors="surrogateescape")
        if name in form:
            raise JobError(f"cannot write a dict with two keys that are {name!r} in JSON: one of them would be lost")
        form[name] = _json_form(item)
    return form


def _unshown(value: Any, why: str) -> JobError:
    return JobError(f"cannot write {shown.repr(value)} of type {type(value).__name__}: {why}")
