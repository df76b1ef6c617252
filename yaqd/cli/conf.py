"""`yaq conf`: what the configuration is, where each value comes from, what is wrong with it."""

from pathlib import Path
from typing import Final

import click

from yaqd.cli.exits import BAD_INPUT, CommandError
from yaqd.cli.options import conf_dir_option, json_option, with_conf
from yaqd.cli.output import print_json, print_table
from yaqd.cli.shell import completing_keys
from yaqd.config import Configuration

#: what is read from `capacity-scheduler.xml` before any other file
_QUEUES: Final = ("yarn.scheduler.capacity.", "yarn.resourcemanager.monitor.capacity.preemption.")


@click.group(help="Look at the configuration, find mistakes in it.")
def conf() -> None:
    pass


@conf.command("show")
@click.argument("keys", nargs=-1, shell_complete=completing_keys.keys)
@click.option("--all", "show_all", is_flag=True, help="The defaults too, not only what something sets.")
@json_option
@with_conf
def show(conf: Configuration, keys: tuple[str, ...], show_all: bool, as_json: bool) -> None:
    """Show values and where each comes from.

    \b
    Example:
      yaq conf show yarn.resourcemanager.address
    """
    # a mistake in the file of queues is in the way of nobody who asks for something else
    wants_queues = not keys or any(map(_is_of_queues, keys))
    queues = conf.capacity_scheduler() if wants_queues else conf
    for key in keys:
        if key not in (queues if _is_of_queues(key) else conf):
            raise CommandError(_unset(key))
    chosen = list(keys) or _all_keys(conf, queues, show_all)
    rows = []
    for key in chosen:
        source = queues if _is_of_queues(key) else conf
        rows.append((key, source.get(key, "") or "", str(source.origin(key))))
    if as_json:
        print_json([{"key": key, "value": value, "origin": origin} for key, value, origin in rows])
    else:
        print_table(("key", "value", "origin"), rows, empty="nothing differs from the defaults (--all shows them)")


def _is_of_queues(key: str) -> bool:
    """The ResourceManager reads it from `capacity-scheduler.xml` first."""
    return key.startswith(_QUEUES)


def _all_keys(conf: Configuration, queues: Configuration, show_defaults: bool) -> list[str]:
    """What is set, and the defaults too; of the file of queues what anybody reads there."""

    def keys(of: Configuration) -> list[str]:
        return [key for key, _ in of.items()] if show_defaults else [*of.changed_keys(), *of.preset_keys()]

    return sorted({key for key in keys(conf) if not _is_of_queues(key)} | set(filter(_is_of_queues, keys(queues))))


def _unset(key: str) -> str:
    from rm.scheduler.queues.spec import PREFIX, UNSAID
    from yaqd.config.catalogue import documentation
    from yaqd.config.check import nearest_key

    if (value := UNSAID.get(key.removeprefix(PREFIX))) is not None and key.startswith(PREFIX):
        return f"{key}: nothing sets it in capacity-scheduler.xml, so that {value} holds, as in Hadoop"
    if documentation(key) is not None:
        return f"{key}: nothing sets it; `yaq conf docs` says what that means"
    nearest = nearest_key(key)
    hint = f"did you mean {nearest}?" if nearest else "`yaq conf docs` lists the known keys"
    return f"{key}: nothing sets it and it has no default; {hint}"


@conf.command("check")
@conf_dir_option
@json_option
@click.pass_context
def check(ctx: click.Context, conf_dir: Path | None, as_json: bool) -> None:
    """Find misspelt keys, malformed files, and what no daemon would start with; each line names file and line.

    Everything is read as the ResourceManager, the NodeManager and jobs read it, and nothing is started.

    \b
    Example:
      yaq conf check --conf ~/c/conf
    """
    import os

    from yaqd.cli.conf_readers import refusals, strangers
    from yaqd.config.check import Severity, check_folder

    named = os.environ.get("HADOOP_CONF_DIR")
    folder = conf_dir or (Path(named) if named else None)
    if folder is None:
        raise CommandError("no configuration folder: give --conf DIR or set HADOOP_CONF_DIR")
    findings = check_folder(folder)
    findings.extend(refusals(folder, findings))
    findings.extend(strangers(folder))
    if as_json:
        fields = ("severity", "key", "file", "line", "message")
        print_json([{field: getattr(found, field) for field in fields} for found in findings])
    else:
        for found in findings:
            click.echo(str(found))
        errors = sum(found.severity is Severity.ERROR for found in findings)
        warnings = sum(found.severity is Severity.WARNING for found in findings)
        verdict = f"{errors} error{'s' * (errors != 1)}" if errors else "sound"
        click.echo(f"{folder}: {verdict}" + (f", {warnings} warning{'s' * (warnings != 1)}" if warnings else ""))
    if any(found.severity is Severity.ERROR for found in findings):
        ctx.exit(BAD_INPUT)


@conf.command("docs")
@json_option
def docs(as_json: bool) -> None:
    """Print the reference of all keys, as Markdown.

    \b
    Example:
      yaq conf docs > configuration.md
    """
    from yaqd.config.catalogue import documented
    from yaqd.config.reference import reference_markdown

    if as_json:
        print_json([{"key": d.name, "default": d.value, "description": d.description} for d in documented()])
    else:
        click.echo(reference_markdown(), nl=False)
