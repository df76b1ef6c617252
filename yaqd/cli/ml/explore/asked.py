"""From the options of `yaq ml explore` to the terms of an exploration; what makes no sense is refused in a line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tez_adapter.exploration.beginnings import TRIALS_MAX, check_terms
from tez_adapter.exploration.generators.adaptive import check_installed
from tez_adapter.exploration.generators.generator import GeneratorError
from tez_adapter.exploration.generators.make import ADAPTIVE, make_generator
from tez_adapter.exploration.joins.command import pattern_for
from tez_adapter.exploration.joins.style import Joined, style_of
from tez_adapter.exploration.joins.suggested import suggested_space
from tez_adapter.exploration.terms import make_policy, refuse_contradictions
from tez_adapter.jobspec import Exploration
from yaqd.cli.exits import CommandError
from yaqd.config.values import parse_duration_ms
from yaqd.ml.space import Space
from yaqd.policies.curves.outlook import EPOCHS_MAX
from yaqd.policies.explore.metric import Limit
from yaqd.policies.registry import UnknownPolicy

_NAME: Final = re.compile(r"[^\W\d]\w*")
#: arguments of `report`
_RESERVED: Final = ("iteration", "checkpoint", "threads")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user asked for, checked."""

    terms: Exploration
    joined: Joined
    space: Space | None
    #: SCRIPT as it was given; "" of a command
    script: str


def asked(
    script: str,
    arguments: Sequence[str],
    *,
    space: Path | None,
    configurations: Path | None,
    is_command: bool,
    style: str | None,
    max_time: str | None,
    limits: Sequence[str],
    **options: Any,
) -> Asked:
    """Return the checked terms. CommandError, JobError: an option, the space or the program makes no sense."""
    if is_command:
        if style not in (None, "command"):
            raise CommandError(f"--command and --style {style}: leave one of them out")
        joined = Joined("", "command")
        words: tuple[str, ...] = (script, *arguments)
    else:
        joined = style_of(script, style)
        words = tuple(arguments)
        if words and joined.style != "script":
            raise CommandError(f"{joined.path} is called as {joined.function}(...): it takes no ARGUMENTS")
        if options["pattern"]:
            raise CommandError("--pattern finds the metric in the output of a --command; a Python file reports it")
    space_text, where = text_of("--space", space), str(space)
    if space is None and configurations is None and joined.style == "objective":
        space_text, where = suggested_space(joined), f"{joined.path}, as it suggests"
    lines = text_of("--configurations", configurations)
    terms = Exploration(
        space=space_text,
        configurations=lines,
        style=joined.style,
        arguments=words,
        max_time_s=0.0 if max_time is None else seconds(max_time),
        limits=tuple((limit.name, limit.relation, limit.bound) for limit in map(_limit, limits)),
        **options,
    )
    parsed = Space.parse(space_text, where) if space_text else None
    _check(terms)
    found = Asked(terms, joined, parsed, "" if is_command else script)
    _check_generator(found, configurations)
    return found


def _check(terms: Exploration) -> None:
    """Refuse terms that contradict each other."""
    if not _NAME.fullmatch(terms.metric) or terms.metric in _RESERVED:
        raise CommandError(f"--metric {terms.metric}: give the name that report() has it by, as in accuracy=...")
    if terms.epochs > EPOCHS_MAX:
        raise CommandError(f"--epochs {terms.epochs}: at most {EPOCHS_MAX}; have the program report every n-th epoch")
    if terms.trials > TRIALS_MAX:
        raise CommandError(f"--trials {terms.trials}: at most {TRIALS_MAX}")
    try:
        refuse_contradictions(terms)
        if terms.style == "command":
            pattern_for(terms.metric, terms.pattern)
        make_policy(terms)
    except UnknownPolicy as error:
        raise CommandError(f"--{'predictor' if error.kind == 'reach' else 'policy'}: {error}") from None
    except ValueError as error:
        raise CommandError(str(error)) from None


def _check_generator(found: Asked, configurations: Path | None) -> None:
    terms = found.terms
    if (terms.generator == "file") != (configurations is not None):
        raise CommandError("--generator file needs --configurations FILE, and no other generator takes one")
    if found.space is None and terms.generator != "file":
        raise CommandError("--space FILE: say which hyperparameters there are (yaq ml explore --help has one)")
    if terms.guided and terms.generator in ADAPTIVE:
        raise CommandError(f"--guided and --generator {terms.generator}: leave one of them out; both learn the order")
    if terms.guided and found.space is None:
        raise CommandError("--guided needs --space: the model learns over the ranges of it")
    try:
        if terms.generator in ADAPTIVE:
            check_installed(terms.generator)
        else:
            make_generator(
                terms.generator,
                found.space,
                seed=terms.seed,
                trials=terms.trials,
                configurations=terms.configurations,
                where=str(configurations),
            )
        check_terms(terms)
    except (GeneratorError, ValueError) as error:
        raise CommandError(str(error)) from None


def text_of(option: str, path: Path | None) -> str:
    """Return what a file says, "" without one. CommandError names the option."""
    if path is None:
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise CommandError(f"{option} {path}: it is not UTF-8") from None
    except OSError as error:
        raise CommandError(f"{option} {path}: {error.strerror or error}") from None


def seconds(text: str) -> float:
    """Return what --max-time says. CommandError: it is no duration, or none above 0."""
    try:
        found = parse_duration_ms(text, "s") / 1000
    except ValueError as error:
        raise CommandError(f"--max-time {text}: {error}") from None
    if found <= 0:
        raise CommandError(f"--max-time {text}: give more than 0, or leave it out")
    return found


def _limit(text: str) -> Limit:
    try:
        return Limit.parse(text)
    except ValueError as error:
        raise CommandError(f"--limit: {error}") from None
