"""Finding what is wrong with a configuration before a daemon trips over it.

Hadoop ignores a key it does not know, so a misspelt key is a setting that silently does nothing. Here a key under
`yarn.` or `yaq.` that nobody documents is an error with the nearest known name. That does not hold for a key of a part
of Hadoop that this project does not have: then, as for every other foreign key, there is at most a note.
"""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from yaqd.config import values
from yaqd.config.catalogue import documentation, documented_names, near_in_family
from yaqd.config.check_queues import queue_warnings
from yaqd.config.configuration import Configuration
from yaqd.config.defaults import QUEUES_FILE
from yaqd.config.deprecated import CURRENT_NAMES
from yaqd.config.errors import ConfigError
from yaqd.config.folders import FILES, lacks_files
from yaqd.config.foreign import UNREAD_PREFIXES
from yaqd.config.resource_types import node_resources, resource_types
from yaqd.config.xmlfile import Property, read_properties

OWN_PREFIXES = ("yarn.", "yaq.")
#: Where a name one or two letters off a known one earns a note.
HADOOP_PREFIXES = ("mapreduce.", "mapred.", "dfs.", "fs.", "hadoop.", "ipc.", "io.", "net.")
# Names are long, so two wrong letters still leave them very alike; unread families are compared more strictly.
ALIKE = 0.88
VERY_ALIKE = 0.95
#: of the last part of a family's name alone, which is short
PART_ALIKE = 0.75


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a check's result; file and line are None for what came from the command line."""

    severity: Severity
    message: str
    key: str | None = None
    file: Path | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = "-D" if self.file is None else str(self.file) if self.line is None else f"{self.file}:{self.line}"
        subject = f"{self.key}: " if self.key else ""
        return f"{place}: {self.severity}: {subject}{self.message}"


def check_folder(conf_dir: Path) -> list[Finding]:
    """Return findings about the folder's site files and queues, in file and line order, then about resolved values."""
    if not conf_dir.is_dir():
        raise ConfigError(f"no configuration folder {conf_dir}", remedy="create it or name another")
    if (lack := lacks_files(conf_dir)) is not None:
        return [Finding(Severity.ERROR, lack, file=conf_dir)]
    findings: list[Finding] = []
    for name in FILES:
        file = conf_dir / name
        if not file.exists():
            continue
        try:
            properties = read_properties(file)
        except ConfigError as error:
            findings.append(Finding(Severity.ERROR, error.problem, error.key, error.file, error.line))
        else:
            findings.extend(_with_queues(properties) if name == QUEUES_FILE else check_properties(properties))
    if not any(found.severity is Severity.ERROR for found in findings):
        findings.extend(_of_all(conf_dir))
    return findings


def _of_all(conf_dir: Path) -> list[Finding]:
    """What is found once all files are read together."""
    try:
        conf = Configuration.load(conf_dir)
    except ConfigError as error:
        return [finding_of(error)]
    return _unresolvable(conf) or [*_wrong_resource_types(conf), *contradictions(conf)]


def worth_logging(conf: Configuration) -> list[Finding]:
    """Return what a daemon says of the files it has read, and starts all the same: settings that do nothing, or not
    what was meant. Blocking."""
    wrong = contradictions(conf)
    in_files = check_folder(conf.conf_dir) if conf.conf_dir is not None else []
    return wrong + [found for found in in_files if found.severity is not Severity.NOTE and found not in wrong]


def _with_queues(properties: list[Property]) -> list[Finding]:
    """Findings about the file of queues: what a queue's settings miss takes the place of a note about the same line."""
    warned = {
        (found.name, found.line): Finding(Severity.WARNING, problem, found.name, found.file, found.line)
        for found, problem in queue_warnings(properties)
    }
    others = [found for found in check_properties(properties) if (found.key, found.line) not in warned]
    return sorted([*others, *warned.values()], key=lambda found: found.line or 0)


def _wrong_resource_types(conf: Configuration) -> list[Finding]:
    """What no daemon would start with."""
    try:
        node_resources(conf, resource_types(conf))
    except ConfigError as error:
        return [finding_of(error)]
    return []


_ROOM_FOR_SPARE = "yarn.nodemanager.opportunistic-containers-max-queue-length"
_SPARE = (
    "yarn.nodemanager.distributed-scheduling.enabled",
    "yarn.resourcemanager.opportunistic-container-allocation.enabled",
)


def contradictions(conf: Configuration) -> list[Finding]:
    """Return settings that are right one by one and together leave jobs waiting."""
    try:
        wanting = next((key for key in _SPARE if conf.get_bool(key)), None)
        if wanting is None or conf.get_int(_ROOM_FOR_SPARE) > 0:
            return []
    except ConfigError as error:
        return [finding_of(error)]
    origin = conf.origin(wanting)
    problem = f"opportunistic containers are given out, but nodes take none; set {_ROOM_FOR_SPARE} above 0"
    file, line = (origin.file, origin.line) if origin is not None else (None, None)
    return [Finding(Severity.WARNING, problem, wanting, file, line)]


def finding_of(error: ConfigError) -> Finding:
    """Return what a reader of the configuration has refused, as a finding."""
    message = f"{error.problem}; {error.remedy}" if error.remedy else error.problem
    return Finding(Severity.ERROR, message, error.key, error.file, error.line)


def check_properties(properties: Iterable[Property]) -> list[Finding]:
    """Return findings about names, values and repetitions in one file."""
    findings: list[Finding] = []
    seen: dict[str, Property] = {}
    for found in properties:
        findings.extend(_about(found))
        earlier = seen.get(found.name)
        if earlier is not None and earlier.value != found.value:
            counting = "the first is final and" if earlier.is_final else "this one"
            note = f"set before in line {earlier.line}; {counting} counts"
            findings.append(Finding(Severity.NOTE, note, found.name, found.file, found.line))
        seen[found.name] = found
    return findings


def check_overrides(overrides: dict[str, str]) -> list[Finding]:
    """Return findings about `-D` settings."""
    return check_properties(Property(name=key, value=value) for key, value in overrides.items())


def nearest_key(name: str) -> str | None:
    """Return the documented key that an unknown one may have been meant for."""
    is_read = name.startswith(OWN_PREFIXES) and not name.startswith(UNREAD_PREFIXES)
    if is_read and (in_family := near_in_family(name, PART_ALIKE)) is not None:
        return in_family
    found = difflib.get_close_matches(name, documented_names(), 1, ALIKE if is_read else VERY_ALIKE)
    return found[0] if found else None


def _about(found: Property) -> list[Finding]:
    def finding(severity: Severity, message: str) -> list[Finding]:
        return [Finding(severity, message, found.name, found.file, found.line)]

    if found.name in CURRENT_NAMES:
        return finding(Severity.NOTE, f"old name; write {CURRENT_NAMES[found.name]}")
    known = documentation(found.name)
    if known is not None:
        if found.value is None:
            return finding(Severity.NOTE, "has no <value>, so it sets nothing")
        problem = _value_problem(found.value, known)
        return finding(Severity.ERROR, problem) if problem else []
    is_unread = found.name.startswith(UNREAD_PREFIXES)
    is_own = found.name.startswith(OWN_PREFIXES)
    if not is_own and not found.name.startswith(HADOOP_PREFIXES):
        return []
    nearest = nearest_key(found.name)
    suggestion = f"; did you mean {nearest}?" if nearest else ""
    if is_own and (nearest or not is_unread):
        return finding(Severity.ERROR, f"unknown key{suggestion or '; `yaq conf docs` lists the known ones'}")
    if nearest:
        return finding(Severity.NOTE, f"nothing reads this key{suggestion}")
    return finding(Severity.NOTE, "a Hadoop key that nothing here reads") if is_unread else []


def _value_problem(value: str, known: Property) -> str | None:
    """What is wrong with a value, judged by the kind of the default. Values with variables are judged when resolved."""
    text, default = value.strip(), (known.value or "").strip()
    if "${" in text or "${" in default or not text:
        return None
    if default in ("true", "false"):
        return _rejection(text, (values.parse_bool,))
    if _rejection(default, (values.parse_int,)) is None:
        return _rejection(text, (values.parse_int, values.parse_duration_ms, values.parse_size_bytes))
    if _rejection(default, (values.parse_float,)) is None:
        return _rejection(text, (values.parse_float,))
    return None


def _rejection(text: str, parsers: tuple[object, ...]) -> str | None:
    first: str | None = None
    for parser in parsers:
        try:
            parser(text)  # type: ignore[operator]
        except ValueError as error:
            first = first or f'"{text}" is {error}'
        else:
            return None
    return first


def _unresolvable(conf: Configuration) -> list[Finding]:
    findings = []
    for key in conf.changed_keys():
        try:
            conf.get(key)
        except ConfigError as error:
            findings.append(Finding(Severity.ERROR, error.problem, key, error.file, error.line))
    return findings
