"""Configuration errors: one line that says which setting, where it stands and what to write instead."""

from pathlib import Path


class ConfigError(Exception):
    """A setting that cannot be used. `file` and `line` (1-based) are None when it came from no file: see `source`."""

    def __init__(
        self,
        problem: str,
        *,
        key: str | None = None,
        value: str | None = None,
        file: Path | None = None,
        line: int | None = None,
        source: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem = problem
        self.key = key
        self.value = value
        self.file = file
        self.line = line
        self.source = source
        self.remedy = remedy
        super().__init__(self._one_line())

    def _one_line(self) -> str:
        where = self.source or ""
        if self.file is not None:
            where = str(self.file) if self.line is None else f"{self.file}:{self.line}"
        what = ""
        if self.key is not None:
            what = self.key if self.value is None else f"{self.key} = {_shown(self.value)}"
        text = ": ".join(part for part in (where, what, self.problem) if part)
        return f"{text}; {self.remedy}" if self.remedy else text


def _shown(value: str) -> str:
    """The value as one short quoted line."""
    flat = " ".join(value.split())
    return f'"{flat[:117]}..."' if len(flat) > 120 else f'"{flat}"'
