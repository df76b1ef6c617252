"""`yaq conf`: what the configuration is, where each value comes from, what is wrong with it."""

from pathlib import Path

import click

from yaqd.cli import completing
from yaqd.cli.exits import BAD_INPUT, CommandError
from yaqd.cli.options import conf_dir_option, json_option, with_conf
from yaqd.cli.output import print_json, print_table
from yaqd.config import Configuration


@click.group(help="Look at the configuration, find mistakes in it.")
def conf() -> None:
    pass


@conf.command("show")
@click.argument("keys", nargs=-1, shell_complete=completing.keys)
@click.option("--all", "show_all", is_flag=True, help="The defaults too, not only what something sets.")
@json_option
@with_conf
def show(conf: Configuration, keys: tuple[str, ...], show_all: bool, as_json: bool) -> None:
    """Show values and where each comes from.

    \b
    Example:
      yaq conf show yarn.resourcemanager.address
    """
    from yaqd.config.check import nearest_key

    for key in keys:
        if key not in conf:
            nearest = nearest_key(key)
            hint = f"did you mean {nearest}?" if nearest else "`yaq conf docs` lists the known keys"
            raise CommandError(f"{key}: nothing sets it and it has no default; {hint}")
    chosen = list(keys) or ([key for key, _ in conf.items()] if show_all else conf.changed_keys())
    rows = [(key, conf.get(key, "") or "", str(conf.origin(key))) for key in chosen]
    if as_json:
        print_json([{"key": key, "value": value, "origin": origin} for key, value, origin in rows])
    else:
        print_table(("key", "value", "origin"), rows, empty="nothing differs from the defaults (--all shows them)")


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
