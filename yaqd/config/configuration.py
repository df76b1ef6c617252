"""What a daemon, a client or a task was told: defaults, site files and `-D` settings as one read-only view.

Layers, later ones win: the shipped defaults, the preset that `yaq.compat` names, `<resource>-site.xml` of the
configuration folder in the order asked for, extra files (a job's own), `-D` settings. A property that a file marks
final keeps its value against later files, and refuses a `-D`.
Every typed getter that meets a bad value raises a ConfigError which names key, value, file, line and the remedy.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self, TypeVar

from yaqd.config import compat, values
from yaqd.config.defaults import QUEUES_FILE, shipped_dir, shipped_properties
from yaqd.config.deprecated import current_name
from yaqd.config.errors import ConfigError
from yaqd.config.variables import VariableLoop, substitute
from yaqd.config.xmlfile import Property, read_properties, write_properties

DEFAULT_RESOURCES = ("core", "yarn", "mapred", "hdfs", "yaq")
COMMAND_LINE = "-D"
PROGRAM = "set by the program"

_Value = TypeVar("_Value")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from: a file and line, or (file None) the command line or the program."""

    source: str
    file: Path | None = None
    line: int | None = None
    is_default: bool = False
    #: it is the default that `yaq.compat` gives, which stands there
    is_preset: bool = False

    def __str__(self) -> str:
        place = self.source
        if self.file is not None:
            place = f"{self.file}:{self.line}" if self.line is not None else str(self.file)
        return f"{place} ({compat.KEY})" if self.is_preset else place


@dataclass(frozen=True, slots=True)
class _Entry:
    raw: str
    origin: Origin
    is_final: bool = False


class Configuration:
    """Immutable; `with_overrides` makes a changed copy. Values are read by Hadoop's key names."""

    def __init__(self, entries: Mapping[str, _Entry], conf_dir: Path | None, environ: Mapping[str, str]) -> None:
        self._entries = dict(entries)
        self._environ = environ
        self._replaced: dict[str, str] = {}
        #: The folder that the site files came from, if any.
        self.conf_dir = conf_dir
        #: what stands in the place of shipped defaults
        self._preset: dict[str, _Entry] = {}
        self._preset = self._read_preset()

    @classmethod
    def load(
        cls,
        conf_dir: Path | None = None,
        *,
        overrides: Mapping[str, str] | None = None,
        resources: Sequence[str] = DEFAULT_RESOURCES,
        extra_files: Sequence[Path] = (),
        environ: Mapping[str, str] | None = None,
    ) -> Self:
        """Read the layers. `conf_dir` defaults to $HADOOP_CONF_DIR; without either, the shipped defaults alone."""
        environ = os.environ if environ is None else environ
        folder = _folder(conf_dir, environ)
        entries: dict[str, _Entry] = {}
        _add(entries, shipped_properties(), is_default=True)
        sites = [folder / f"{resource}-site.xml" for resource in resources] if folder is not None else []
        for site in sites:
            if site.exists():
                _add(entries, read_properties(site))
        for file in extra_files:
            _add(entries, read_properties(file))
        for key, value in (overrides or {}).items():
            _override(entries, key, value)
        return cls(entries, folder, environ)

    def capacity_scheduler(self) -> "Configuration":
        """Return this configuration with `capacity-scheduler.xml` on top, read afresh (a queue refresh calls it again).

        The shipped queues count when the folder has no such file. `-D` settings stay on top.
        """
        own = self.conf_dir / QUEUES_FILE if self.conf_dir is not None else None
        is_shipped = own is None or not own.exists()
        properties = read_properties(shipped_dir() / QUEUES_FILE if own is None or is_shipped else own)
        entries = dict(self._entries)
        _add(entries, properties, is_default=is_shipped)
        kept = {key: entry for key, entry in self._entries.items() if _is_above_files(entry)}
        return Configuration({**entries, **kept}, self.conf_dir, self._environ)

    def reread(self) -> "Configuration":
        """Return this configuration with its files as they are now; `-D` and the program's settings stay on top.
        Blocking."""
        fresh = self.load(self.conf_dir, environ=self._environ)
        kept = {key: entry for key, entry in self._entries.items() if _is_above_files(entry)}
        return Configuration({**fresh._entries, **kept}, self.conf_dir, self._environ)

    def with_file(self, name: str) -> "Configuration":
        """Return this configuration with one more file of its folder on top, where the folder has it. Blocking."""
        file = self.conf_dir / name if self.conf_dir is not None else None
        if file is None or not file.exists():
            return self
        entries = dict(self._entries)
        _add(entries, read_properties(file))
        kept = {key: entry for key, entry in self._entries.items() if _is_above_files(entry)}
        return Configuration({**entries, **kept}, self.conf_dir, self._environ)

    def with_overrides(self, overrides: Mapping[str, str], source: str = PROGRAM) -> "Configuration":
        """Return a copy with these values on top, final ones included: the program's own settings, not a user's.

        `source` is what an error in one of them is blamed on.
        """
        added = {current_name(key): _Entry(value, Origin(source)) for key, value in overrides.items()}
        return Configuration({**self._entries, **added}, self.conf_dir, self._environ)

    # Reading ----------------------------------------------------------------------------------------------------------

    def get(self, key: str, default: str | None = None) -> str | None:
        """Return the value with its variables replaced; `default` when nothing sets the key."""
        key = current_name(key)
        replaced = self._replaced.get(key)
        if replaced is not None:
            return replaced
        entry = self._entry(key)
        if entry is None:
            return default
        try:
            text = substitute(entry.raw, self._raw, self._environ, (key,))
        except VariableLoop as loop:
            raise self._error(key, entry.raw, f"its variables go in a circle ({loop})", "break the circle") from None
        except ValueError as error:
            raise self._error(key, entry.raw, str(error), None) from None
        self._replaced[key] = text
        return text

    def require(self, key: str) -> str:
        """Return the value, trimmed; ConfigError when it is missing or empty."""
        return self._typed(key, None, str)

    def get_named(self, key: str, make: Callable[[str], _Value]) -> _Value:
        """Return what `make` makes of the name, in lower case; its ValueError says that there is nothing of that
        name."""
        name = self.require(key).lower()
        try:
            return make(name)
        except ValueError as error:
            raise self.error(key, str(error), "give another name") from None

    def get_int(
        self, key: str, default: int | None = None, *, minimum: int | None = None, maximum: int | None = None
    ) -> int:
        return self._within(key, self._typed(key, default, values.parse_int), minimum, maximum)

    def get_float(
        self, key: str, default: float | None = None, *, minimum: float | None = None, maximum: float | None = None
    ) -> float:
        return self._within(key, self._typed(key, default, values.parse_float), minimum, maximum)

    def get_bool(self, key: str, default: bool | None = None) -> bool:
        return self._typed(key, default, values.parse_bool)

    def get_list(self, key: str, default: Sequence[str] | None = None) -> list[str]:
        """Return comma-separated words; an unset key without a default is the empty list."""
        text = self.get(key)
        if text is None:
            return list(default or ())
        return values.parse_list(text)

    def get_duration_ms(
        self,
        key: str,
        default: int | None = None,
        *,
        unit: str | None = None,
        minimum: int | None = None,
        maximum: int | None = None,
    ) -> int:
        """Return milliseconds. A bare number counts in `unit`, by default what the key's name says (`-secs`), else
        ms."""
        bare = unit or values.bare_duration_unit(key)
        found = self._typed(key, default, lambda text: values.parse_duration_ms(text, bare))
        return self._within(key, found, minimum, maximum, " ms")

    def get_size_bytes(self, key: str, default: int | None = None, *, minimum: int | None = None) -> int:
        return self._within(key, self._typed(key, default, values.parse_size_bytes), minimum, None)

    def get_address(self, key: str) -> tuple[str, int]:
        """Return (host, port); port 0 means any free one."""
        return self._typed(key, None, values.parse_address)

    def get_choice(self, key: str, choices: Iterable[str], default: str | None = None) -> str:
        """Return one of the words, whatever its case, in the spelling of `choices`."""
        by_lower = {choice.lower(): choice for choice in choices}

        def parse(text: str) -> str:
            if text.lower() not in by_lower:
                raise ValueError(f"not one of {', '.join(by_lower.values())}")
            return by_lower[text.lower()]

        return self._typed(key, default, parse)

    def error(self, key: str, problem: str, remedy: str | None = None) -> ConfigError:
        """Return a ConfigError about this key's present value, for checks that its reader makes itself."""
        return self._error(current_name(key), self.get(key), problem, remedy)

    # Looking at it ----------------------------------------------------------------------------------------------------

    def items(self) -> Iterator[tuple[str, str]]:
        """Return all keys in order with their replaced values."""
        for key in sorted(self._entries):
            value = self.get(key)
            if value is not None:
                yield key, value

    def origin(self, key: str) -> Origin | None:
        entry = self._entry(current_name(key))
        return entry.origin if entry else None

    def raw(self, key: str) -> str | None:
        """Return the value as written, variables not replaced."""
        return self._raw(current_name(key))

    def changed_keys(self) -> list[str]:
        """Return the keys that something above the shipped defaults sets, in order."""
        return sorted(key for key, entry in self._entries.items() if not entry.origin.is_default)

    @property
    def is_stock(self) -> bool:
        """Tell whether `yaq.compat` has what is ours turned off."""
        return self.get_choice(compat.KEY, compat.PRESETS, compat.OURS) == compat.STOCK

    def preset_keys(self) -> list[str]:
        """Return the keys that have the default that `yaq.compat` gives, in order."""
        return sorted(key for key in self._preset if self._entries[key].origin.is_default)

    def write_xml(self, path: Path, keys: Iterable[str] | None = None) -> None:
        """Write the named keys (by default the changed ones), as written, to a file that `load` and Hadoop read."""
        chosen = self.changed_keys() if keys is None else [current_name(key) for key in keys]
        found = ((key, self._entry(key)) for key in chosen)
        write_properties(path, [(key, entry.raw, "") for key, entry in found if entry is not None])

    def __contains__(self, key: str) -> bool:
        return current_name(key) in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    # Inside -----------------------------------------------------------------------------------------------------------

    def _read_preset(self) -> dict[str, _Entry]:
        """Return what stands in the place of shipped defaults. Raises ConfigError."""
        entry = self._entries.get(compat.KEY)
        if entry is None or entry.origin.is_default:
            return {}
        name = self.get_choice(compat.KEY, compat.PRESETS, compat.OURS)
        origin = replace(entry.origin, is_default=True, is_preset=True)
        return {key: _Entry(raw, origin) for key, raw in compat.PRESETS[name].items() if key in self._entries}

    def _entry(self, key: str) -> _Entry | None:
        entry = self._entries.get(key)
        return self._preset.get(key, entry) if entry is not None and entry.origin.is_default else entry

    def _raw(self, key: str) -> str | None:
        entry = self._entry(key)
        return entry.raw if entry else None

    def _typed(self, key: str, default: _Value | None, parse: Callable[[str], _Value]) -> _Value:
        text = (self.get(key) or "").strip()
        if not text:
            if default is None:
                raise self._error(current_name(key), None, "is not set", "give it a value in a site file or with -D")
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise self._error(current_name(key), text, str(error), None) from None

    def _within(self, key: str, number: _Value, minimum: float | None, maximum: float | None, unit: str = "") -> _Value:
        if minimum is not None and number < minimum:  # type: ignore[operator]
            raise self.error(key, f"less than {minimum}{unit}", f"give {minimum}{unit} or more")
        if maximum is not None and number > maximum:  # type: ignore[operator]
            raise self.error(key, f"more than {maximum}{unit}", f"give {maximum}{unit} or less")
        return number

    def _error(self, key: str, value: str | None, problem: str, remedy: str | None) -> ConfigError:
        origin = self.origin(key)
        if origin is None:
            return ConfigError(problem, key=key, value=value, remedy=remedy)
        source = None if origin.file is not None else origin.source
        return ConfigError(
            problem, key=key, value=value, file=origin.file, line=origin.line, source=source, remedy=remedy
        )


def _folder(conf_dir: Path | None, environ: Mapping[str, str]) -> Path | None:
    named = str(conf_dir) if conf_dir is not None else environ.get("HADOOP_CONF_DIR", "")
    if not named:
        return None
    folder = Path(named)
    if not folder.is_dir():
        source = None if conf_dir is not None else "HADOOP_CONF_DIR"
        raise ConfigError(f"no configuration folder {folder}", source=source, remedy="create it or name another")
    return folder


def _add(entries: dict[str, _Entry], properties: Iterable[Property], is_default: bool = False) -> None:
    for found in properties:
        if found.value is None:
            continue
        name = current_name(found.name)
        present = entries.get(name)
        if present is not None and present.is_final:
            if present.raw != found.value:
                log.warning("%s:%s: %s is final in %s; ignored", found.file, found.line, name, present.origin)
            continue
        origin = Origin("file", found.file, found.line, is_default)
        entries[name] = _Entry(found.value, origin, found.is_final)


def _override(entries: dict[str, _Entry], key: str, value: str) -> None:
    name = current_name(key)
    present = entries.get(name)
    if present is not None and present.is_final and present.raw != value:
        raise ConfigError(
            f"is final in {present.origin}", key=name, value=value, source=COMMAND_LINE, remedy="leave it out"
        )
    entries[name] = _Entry(value, Origin(COMMAND_LINE))


def _is_above_files(entry: _Entry) -> bool:
    return entry.origin.file is None
