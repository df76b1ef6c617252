"""Options that a job declares: a type, a default, a line of help; set by `-D name=value`."""

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Final, Generic, Self, TypeVar, overload

from yaqd.mapreduce.errors import JobError

_T = TypeVar("_T")

_MISSING: Final[Any] = object()
_TRUE_WORDS: Final = frozenset(("true", "yes", "on", "1"))
_FALSE_WORDS: Final = frozenset(("false", "no", "off", "0"))


def _parse_bool(text: str) -> bool:
    word = text.strip().lower()
    if word not in _TRUE_WORDS | _FALSE_WORDS:
        raise ValueError("true or false expected")
    return word in _TRUE_WORDS


class Param(Generic[_T]):
    """One option: `top = Param(int, default=10, help="words to keep")`, read as `self.top`.

    The type is any callable that turns text into a value and raises ValueError, such as int, float, str, Path.
    Without a default the option is required.
    """

    def __init__(
        self, kind: Callable[[str], _T], *, default: _T = _MISSING, help: str = "", name: str | None = None
    ) -> None:
        self.kind = kind
        self.default = default
        self.help = help
        self.name = name or ""

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute = attribute
        self.name = self.name or attribute

    @property
    def is_required(self) -> bool:
        return self.default is _MISSING

    def parse(self, text: str, where: str = "", remedy: str | None = None) -> _T:
        """Return the value. Raises JobError, which begins with `where` and ends with `remedy`, by default for -D."""
        convert: Callable[[str], Any] = _parse_bool if self.kind is bool else self.kind
        try:
            value: _T = convert(text)
        except (ValueError, TypeError) as error:
            kind = getattr(self.kind, "__name__", str(self.kind))
            fix = f"; set it with -D {self.name}=VALUE" if remedy is None else remedy
            raise JobError(f"{where}option {self.name}={text!r} is no {kind}: {error}{fix}") from None
        return value

    @overload
    def __get__(self, job: None, owner: type) -> Self: ...
    @overload
    def __get__(self, job: Any, owner: type) -> _T: ...
    def __get__(self, job: Any, owner: type) -> "Self | _T":
        if job is None:
            return self
        if self.is_required:
            raise JobError(f"option {self.name} of {owner.__name__} is not set: give it with -D {self.name}=VALUE")
        return self.default


def declared_params(job_class: type) -> dict[str, Param[Any]]:
    """Return options of a job class by name, in the order of their declaration, base classes first."""
    found: dict[str, Param[Any]] = {}
    for base in reversed(job_class.__mro__):
        for attribute, value in vars(base).items():
            if isinstance(value, Param):
                found[value.name] = value
            elif attribute in {param.attribute for param in found.values()}:
                found = {name: param for name, param in found.items() if param.attribute != attribute}
    return found


def parse_params(job_class: type, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return values by attribute name of the options that `texts` sets; `texts` may hold configuration keys as well.

    JobError for a value that does not parse, for a required option that is missing, and for a name that is nearly an
    option's.
    """
    params = declared_params(job_class)
    _check_spelling(job_class, texts, params)
    values: dict[str, Any] = {}
    for name, param in params.items():
        if name in texts:
            values[param.attribute] = param.parse(texts[name])
        elif param.is_required:
            hint = f" ({param.help})" if param.help else ""
            raise JobError(f"{job_class.__name__} needs the option {name}{hint}: give it with -D {name}=VALUE")
    return values


def unread_names(job_class: type, texts: Mapping[str, str]) -> list[str]:
    """Return names in `texts` that set nothing: no option of the job's, and no configuration key, which all have a dot.
    One that other values refer to (`${name}`) sets those."""
    params = declared_params(job_class)
    return [
        name
        for name in texts
        if name not in params and "." not in name and not any(f"${{{name}}}" in text for text in texts.values())
    ]


def _check_spelling(job_class: type, texts: Mapping[str, str], names: Iterable[str]) -> None:
    known = list(names)
    for name in texts:
        # a dot marks a configuration key, whose spelling is checked elsewhere
        if name not in known and "." not in name:
            near = get_close_matches(name, known, n=1)
            if near:
                raise JobError(f"{job_class.__name__} has no option {name}: did you mean {near[0]}?")
