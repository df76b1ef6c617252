"""Which configuration keys the code reads, and where: the names that stand in the source itself.

A key counts as read by a room when its name stands there. It may be whole, or put together from a prefix and a rest (in
an f-string or with a constant). A module that reads keys for whoever imports it is in _LENT.
"""

import ast
import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from yaqd.config.catalogue import documented
from yaqd.config.xmlfile import Property

#: packages by the name a reader knows them under
ROOMS: Final = {
    "rm": "ResourceManager",
    "nm": "NodeManager",
    "tez_adapter": "job manager",
    "riffle_merger": "merger",
    "yaqd": "shared code",
}
#: Modules that name keys without reading them.
_NOT_READERS: Final = (
    "cli/conf_readers.py",
    "cli/local/site.py",
    "config/check_queues.py",
    "config/foreign.py",
    "config/deprecated.py",
    "config/reference.py",
    "tez_adapter/client/idle_keys.py",
)
#: read where no such name stands: handed whole to the HDFS library; put together in two steps (storage/tfile/layout.py)
_UNSEEN: Final = {
    "dfs.client.failover.max.attempts": ("yaqd",),
    "yarn.log-aggregation.TFile.remote-app-log-dir-suffix": ("yaqd",),
}
#: modules that read keys in the processes of the rooms that import them, whichever room they are in themselves
_LENT: Final = ("riffle_merger.merger.diskshape",)
_KEY_LIKE: Final = re.compile(r"[A-Za-z*][\w*-]*(\.[\w*-]+)+\.?|\.?[\w-]+(\.[\w*-]+)*")


@dataclass(frozen=True, slots=True)
class KeyUse:
    name: str
    #: rooms whose source names it, in the order of ROOMS; empty: only other values refer to it
    rooms: tuple[str, ...]
    #: keys whose shipped values hold it
    used_by: tuple[str, ...]


@lru_cache(maxsize=1)
def key_uses() -> tuple[KeyUse, ...]:
    """Return every documented key, in the order of the configuration reference."""
    properties = documented()
    words = "|".join(sorted({found.name.partition(".")[0] for found in properties}))
    beginning = re.compile(rf"[\"']({words})\.")
    modules = {room: tuple(_modules(room, beginning)) for room in ROOMS}

    def rooms(name: str) -> tuple[str, ...]:
        own = tuple(room for room in ROOMS if any(module.names(name) for module in modules[room]))
        family = next((f.name for f in properties if "*" in f.name and _is_member(name, f.name)), None)
        return own or (rooms(family) if family is not None else ()) or _UNSEEN.get(name, ())

    return tuple(KeyUse(found.name, rooms(found.name), _referring(found.name, properties)) for found in properties)


def _is_member(name: str, family: str) -> bool:
    return "*" not in name and re.fullmatch(re.escape(family).replace(r"\*", ".+"), name) is not None


def _referring(name: str, properties: tuple[Property, ...]) -> tuple[str, ...]:
    return tuple(other.name for other in properties if other.value and f"${{{name}}}" in other.value)


@dataclass(frozen=True, slots=True)
class _Module:
    """What one source file says that may be keys or pieces of keys."""

    texts: frozenset[str]
    #: f-strings that end in words of their own, with anything in place of what is put in
    patterns: tuple[re.Pattern[str], ...]

    @classmethod
    def of(cls, tree: ast.Module) -> "_Module":
        texts: set[str] = set()
        patterns: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                patterns.add(_pattern(node))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _KEY_LIKE.fullmatch(node.value):
                texts.add(node.value)
        return cls(frozenset(texts), tuple(re.compile(pattern) for pattern in sorted(patterns) if pattern))

    def names(self, key: str) -> bool:
        if key in self.texts:
            return True
        if any(pattern.fullmatch(key.replace("*", "any")) for pattern in self.patterns):
            return True
        if "*" in key:
            start, _, end = key.partition("*")
            return (self._has(start) and self._has(end)) or any(_is_member(text, key) for text in self.texts)
        return any(key[:cut] in self.texts and key[cut:] in self.texts for cut in _cuts(key))

    def _has(self, piece: str) -> bool:
        return not piece or piece in self.texts or piece.strip(".") in self.texts


def _cuts(key: str) -> Iterator[int]:
    """Where a prefix may end: before a dot or after it."""
    for match in re.finditer(r"\.", key):
        yield match.start()
        yield match.end()


def _pattern(node: ast.JoinedStr) -> str:
    """A regular expression for the keys an f-string can make, empty when it has too little of its own."""
    parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
    said = "".join(str(part or "any") for part in parts)
    if parts[-1] is None or len(said) < 15 or "." not in said or not _KEY_LIKE.fullmatch(said):
        return ""
    return "".join(r"[\w.-]+" if part is None else re.escape(str(part)) for part in parts)


def _modules(package: str, beginning: re.Pattern[str]) -> Iterator[_Module]:
    """Files in which no key begins are not looked at further."""
    lent: set[str] = set()
    for folder in importlib.import_module(package).__path__:
        for file in sorted(Path(folder).rglob("*.py")):
            path = file.as_posix()
            if not path.endswith((*_NOT_READERS, *map(_path, _LENT), "_pb2.py")) and "/cli/compatibility/" not in path:
                source = file.read_text(encoding="utf-8")
                lent.update(name for name in _LENT if f"from {name} import " in source)
                if beginning.search(source):
                    yield _Module.of(ast.parse(source))
    for name in sorted(lent):
        (room,) = importlib.import_module(name.partition(".")[0]).__path__
        yield _Module.of(ast.parse((Path(room).parent / _path(name)).read_text(encoding="utf-8")))


def _path(module: str) -> str:
    return module.replace(".", "/") + ".py"
