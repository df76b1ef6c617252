"""A click group that knows its commands by name and one line, and imports one only when it is called.

`yaq --help` therefore costs click's own import and nothing else. The group is also where errors become exit codes.
"""

import difflib
import importlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import click

from yaqd.cli.exits import INTERRUPTED, explain


@dataclass(frozen=True, slots=True)
class Lazy:
    """A command that lies in `module` under the name `attribute`."""

    module: str
    attribute: str
    summary: str


class LazyGroup(click.Group):
    """Commands are listed in the order of the table, with the table's one-line summaries."""

    def __init__(self, *args: Any, lazy: Mapping[str, Lazy] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self._lazy.get(cmd_name)
        if entry is None:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(importlib.import_module(entry.module), entry.attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve as click does, which sees no lazy commands when it looks for a name that is nearly right."""
        if args[0] not in self.list_commands(ctx) and args[0][:1].isalnum():
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, entry.summary) for name, entry in self._lazy.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class RootGroup(LazyGroup):
    """The outermost group: runs the command and exits with the code that its outcome deserves."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> NoReturn:
        extra["standalone_mode"] = False
        try:
            outcome: object = super().main(args, prog_name or "yaq", **extra)
        except click.exceptions.Exit as done:
            sys.exit(done.exit_code)
        except (click.exceptions.Abort, KeyboardInterrupt):
            _say("interrupted")
            sys.exit(INTERRUPTED)
        except click.exceptions.NoArgsIsHelpError as error:
            click.echo(error.format_message(), err=True)
            sys.exit(error.exit_code)
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            hint = f" (see `{context.command_path} --help`)" if context is not None else ""
            _say(f"{error.format_message()}{hint}")
            sys.exit(error.exit_code)
        except BrokenPipeError:
            # Whoever read our output has seen enough (`yaq app list | head -1`): end as other programs do.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(128 + signal.SIGPIPE)
        except Exception as error:
            explained = explain(error)
            if explained is None:
                raise
            _say(explained[0])
            sys.exit(explained[1])
        sys.exit(outcome if isinstance(outcome, int) else 0)


def _say(text: str) -> None:
    click.echo(f"yaq: {text}", err=True)
