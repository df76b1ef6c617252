"""`yaq rm start` and `yaq nm start`: one daemon in the foreground, as service managers and `yaq cluster` start it.

`yaq rm refresh` has a module of its own.
"""

import logging
import logging.handlers
import sys
from pathlib import Path

import click

from yaqd.cli.log_flood import FloodGuard, PlainFormatter
from yaqd.cli.options import with_conf
from yaqd.cli.refresh import refresh
from yaqd.config import Configuration

log = logging.getLogger(__name__)

LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


@click.group(help="Run a ResourceManager in the foreground; have it read its files again.")
def rm() -> None:
    pass


rm.add_command(refresh)


@click.group(help="Run a NodeManager in the foreground.")
def nm() -> None:
    pass


@rm.command("start")
@with_conf
@click.pass_context
def rm_start(ctx: click.Context, conf: Configuration) -> None:
    """Run a ResourceManager until SIGTERM or Ctrl-C; one line on standard output says when it is ready.

    \b
    Example:
      yaq rm start --conf /etc/hadoop/conf
    """
    prepare(conf, "resourcemanager")
    from rm.foreground import main

    ctx.exit(main(conf))


@nm.command("start")
@click.option("--name", default="nodemanager", show_default=True, help="Name of the log file in yaq.log.dir.")
@with_conf
@click.pass_context
def nm_start(ctx: click.Context, conf: Configuration, name: str) -> None:
    """Run a NodeManager until SIGTERM or Ctrl-C; one line on standard output says when it is ready.

    \b
    Example:
      yaq nm start -D yarn.resourcemanager.hostname=rm.example.org
    """
    prepare(conf, name)
    from nm.foreground import main

    ctx.exit(main(conf))


def prepare(conf: Configuration, name: str) -> None:
    """Refuses what no daemon here can do, sets up logging, and logs what is wrong with the site files."""
    from yaqd.config.check import worth_logging

    check_supported(conf)
    set_up_logging(conf, name)
    for finding in worth_logging(conf):
        log.warning("%s", finding)


def check_supported(conf: Configuration) -> None:
    """Raises ConfigError for what no daemon here can do."""
    conf.get_choice("hadoop.security.authentication", ("simple",))


def log_settings(conf: Configuration) -> tuple[str, int, int]:
    """Return the level, and size in bytes and number of the files. Raises ConfigError."""
    return (
        conf.get_choice("yaq.log.level", LEVELS),
        conf.get_size_bytes("yaq.log.file.max-bytes", minimum=4096),
        conf.get_int("yaq.log.file.backups", minimum=1),
    )


def set_up_logging(conf: Configuration, name: str) -> None:
    """Log to `<yaq.log.dir>/<name>.log`, rotated by size, or to standard error when no folder is set."""
    level, max_bytes, backups = log_settings(conf)
    folder = (conf.get("yaq.log.dir") or "").strip()
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        handler = logging.handlers.RotatingFileHandler(
            Path(folder) / f"{name}.log",
            maxBytes=max_bytes,
            backupCount=backups,
            encoding="utf-8",
        )
    handler.setFormatter(PlainFormatter(LOG_FORMAT))
    handler.addFilter(FloodGuard())
    logging.basicConfig(level=level, handlers=[handler], force=True)
