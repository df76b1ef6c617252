"""Options that many commands share: which configuration, and whether the answer is JSON."""

import math
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from yaqd.cli.exits import CommandError
from yaqd.cli.shell.completing_keys import settings

_Command = TypeVar("_Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON value instead of text.")
quiet_option = click.option("--quiet", is_flag=True, help="Say nothing but what goes wrong.")
define_option = click.option(
    "-D",
    "defines",
    metavar="KEY=VALUE",
    multiple=True,
    help="Set a configuration key; may be repeated.",
    shell_complete=settings,
)
conf_dir_option = click.option(
    "--conf",
    "conf_dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Configuration folder [default: $HADOOP_CONF_DIR].",
)


def with_conf(command: _Command) -> _Command:
    """Adds --conf and -D, and calls the command with the configuration that they make as `conf`."""

    @wraps(command)
    def configured(*args: Any, conf_dir: Path | None, defines: tuple[str, ...], **kwargs: Any) -> Any:
        return command(*args, conf=load_conf(conf_dir, parse_defines(defines)), **kwargs)

    return conf_dir_option(define_option(configured))  # type: ignore[return-value]


def terms_options(command: _Command) -> _Command:
    """Adds --tags, --priority and --timeout, and hands them on as settings of `conf`."""

    @wraps(command)
    def with_terms(
        *args: Any, conf: Any, tags: tuple[str, ...], priority: str | None, timeout: str | None, **kwargs: Any
    ) -> Any:
        settings = (
            ("--tags", "mapreduce.job.tags", ",".join(words(tags)) or None),
            ("--priority", "mapreduce.job.priority", priority),
            ("--timeout", "yaq.job.lifetime-secs", timeout),
        )
        for option, key, value in settings:
            if value is not None:
                conf = conf.with_overrides({key: value}, source=option)
        return command(*args, conf=conf, **kwargs)

    tags = click.option("--tags", multiple=True, metavar="WORDS", help="Words to find it by, commas.")
    priority = click.option(
        "--priority",
        metavar="N",
        help="Served before lower ones of its queue, up to yarn.cluster.max-application-priority (0 as shipped).",
    )
    timeout = click.option(
        "--timeout",
        metavar="TIME",
        help="End it when it takes longer: seconds, or 90m, 12h; 0: no limit but its queue's.",
    )
    return tags(priority(timeout(with_terms)))  # type: ignore[return-value]


class FiniteFloat(click.FloatRange):
    """A number in a range, of which NaN is none, though no bound says so, nor is the infinite one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is no finite number.", param, ctx)
        return number

    def _describe_range(self) -> str:
        """Say nothing in the help where there are no bounds: click would say `x<=None`."""
        return "" if self.min is None and self.max is None else super()._describe_range()


def parse_defines(defines: tuple[str, ...]) -> dict[str, str]:
    """Parses `key=value` words to a mapping; the last one of a key counts."""
    parsed = {}
    for define in defines:
        key, equals, value = define.partition("=")
        if not equals or not key.strip():
            raise CommandError(f"-D {define}: write it as -D key=value")
        parsed[key.strip()] = value
    return parsed


def load_conf(conf_dir: Path | None, overrides: dict[str, str]) -> Any:
    """Loads the configuration and checks its -D settings.

    A misspelt key there is an error, not a setting that does nothing.
    """
    from yaqd.config import Configuration

    if overrides:
        check_defines(overrides)
    return Configuration.load(conf_dir, overrides=overrides)


def check_defines(overrides: dict[str, str]) -> None:
    from yaqd.config.check import Severity, check_overrides

    for finding in check_overrides(overrides):
        if finding.severity is Severity.ERROR:
            raise CommandError(f"-D {finding.key}={overrides[finding.key or '']}: {finding.message}")
        click.echo(f"yaq: {finding}", err=True)


def words(values: tuple[str, ...]) -> list[str]:
    """Splits the words of options that take comma-separated lists and may be repeated."""
    return [word for value in values for word in value.split(",") if word]


def assignments(option: str, values: tuple[str, ...]) -> dict[str, str]:
    """Parses `NAME=VALUE` options to a mapping."""
    parsed = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals or not name:
            raise CommandError(f"{option} {value}: write it as {option} NAME=VALUE")
        parsed[name] = text
    return parsed
