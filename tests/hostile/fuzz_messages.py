"""Damaging what a request says while it stays a message: values that handlers do not expect, at any depth."""

from random import Random
from typing import Any, cast

from google.protobuf.descriptor import FieldDescriptor as Field
from google.protobuf.message import Message

from tez_adapter.protocol import JobClientProtocol, TaskUmbilicalProtocol
from yaqd.proto import protocols
from yaqd.proto.protocols import Method


def _methods() -> dict[tuple[str, str], Method[Any, Any]]:
    tables = [*vars(protocols).values(), JobClientProtocol, TaskUmbilicalProtocol]
    found = [m for table in tables if isinstance(table, type) for m in vars(table).values() if isinstance(m, Method)]
    return {(m.protocol, m.name): m for m in found}


#: every method there is, by protocol and name
METHODS = _methods()

_INTEGERS = (0, 1, -1, 2, 7, 127, 128, 65_536, 2**31 - 1, -(2**31), 2**31, 2**32 - 1, 2**63 - 1, -(2**63), 2**64 - 1)
_FLOATS = (0.0, -1.0, 1.5, 1e38, float("inf"), float("-inf"), float("nan"))
_TEXTS = (
    "",
    " ",
    "*",
    "..",
    "../../../etc/passwd",
    "/etc/passwd",
    "a\0b",
    "a\r\nb: c",
    "%2e%2e%2f",
    "root",
    "\x1b[31m",
    "\ud7ff\U0010ffff",
    "x" * 300,
    "y" * 70_000,
    "{}",
    "1e999",
    "$(id)",
    "-1",
    "host:99999",
    "application_1_0001",
    "container_1_0001_01_000001",
)
_DEPTH_MAX = 8
#: larger elements of lists are not made two hundred, or many inside many would never end
_MULTIPLIED_BYTES_MAX = 500
_INTEGER_BITS = {
    Field.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    Field.CPPTYPE_UINT32: (0, 2**32 - 1),
    Field.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    Field.CPPTYPE_UINT64: (0, 2**64 - 1),
}


def damage(message: Message, random: Random, depth: int = 0) -> None:
    """Change one field somewhere inside, set or not."""
    fields: Any = message.DESCRIPTOR.fields
    if not fields or depth > _DEPTH_MAX:
        return
    filled = [field for field, _ in message.ListFields()]
    field = random.choice(filled if filled and random.random() < 0.7 else fields)
    if random.random() < 0.08:
        message.ClearField(field.name)
    elif field.is_repeated:
        _damage_list(getattr(message, field.name), field, random, depth)
    elif field.cpp_type == Field.CPPTYPE_MESSAGE:
        getattr(message, field.name).SetInParent()
        damage(getattr(message, field.name), random, depth + 1)
    else:
        setattr(message, field.name, _value(field, random))


def _damage_list(items: Any, field: Field, random: Random, depth: int) -> None:
    if len(items) and random.random() < 0.3:
        del items[random.randrange(len(items))]
    elif field.cpp_type != Field.CPPTYPE_MESSAGE:
        items.extend(_value(field, random) for _ in range(random.choice((1, 1, 3, 200))))
    elif len(items) and random.random() < 0.6:
        damage(items[random.randrange(len(items))], random, depth + 1)
    else:
        template = items[0] if len(items) else None
        is_small = template is None or len(template.SerializePartialToString()) < _MULTIPLIED_BYTES_MAX
        for number in range(random.choice((1, 1, 3, 200 if is_small else 2))):
            added = items.add()
            if template is not None:
                added.CopyFrom(template)
            if number < 3:  # many, or many inside many, but not many inside each of many
                damage(added, random, depth + 1)


def _value(field: Field, random: Random) -> Any:
    kind = field.cpp_type
    if kind in _INTEGER_BITS:
        low, high = _INTEGER_BITS[kind]
        value = random.choice(_INTEGERS)
        return value if low <= value <= high else random.randint(low, high)
    if kind in (Field.CPPTYPE_DOUBLE, Field.CPPTYPE_FLOAT):
        return random.choice(_FLOATS)
    if kind == Field.CPPTYPE_BOOL:
        return random.random() < 0.5
    if kind == Field.CPPTYPE_ENUM:
        return random.choice(cast(Any, field.enum_type).values).number
    if field.type == Field.TYPE_BYTES:
        return random.choice((b"", b"\0", b"HDTS\0\x7f", random.randbytes(40), random.randbytes(3000)))
    return random.choice(_TEXTS)
