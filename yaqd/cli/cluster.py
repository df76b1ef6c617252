"""`yaq cluster`: a ResourceManager and NodeManagers on this machine, kept running in the background."""

import time
from pathlib import Path

import click

from yaqd.cli.exits import UNREACHABLE
from yaqd.cli.local.cluster import READY_TIMEOUT_S, ClusterStatus, DaemonStatus, LocalCluster
from yaqd.cli.options import FiniteFloat, check_defines, define_option, json_option, parse_defines
from yaqd.cli.output import print_json, print_table, size

_dir_option = click.option(
    "--dir", "directory", type=click.Path(path_type=Path), required=True, metavar="DIR", help="The cluster's folder."
)


@click.group(help="Keep a small cluster running on this machine.")
def cluster() -> None:
    pass


@cluster.command("start")
@_dir_option
@click.option("--nodes", type=int, help="How many NodeManagers [default: as last time, else 1].")
@click.option("--hdfs", metavar="URI", help="An existing HDFS as default file system [default: the local one].")
@click.option(
    "--timeout",
    "timeout_s",
    type=FiniteFloat(0, min_open=True),
    default=READY_TIMEOUT_S,
    show_default=True,
    metavar="SECONDS",
)
@define_option
@json_option
def start(
    directory: Path, nodes: int | None, hdfs: str | None, timeout_s: float, defines: tuple[str, ...], as_json: bool
) -> None:
    """Start a cluster; return when every node is ready.

    -D settings stand in DIR/conf, also for later starts, unless this one fails.

    Where some daemons have died, those are started again.

    \b
    Example:
      yaq cluster start --dir ~/c --nodes 3
      export HADOOP_CONF_DIR=~/c/conf
    """
    overrides = parse_defines(defines)
    check_defines(overrides)
    began = time.monotonic()
    local = LocalCluster(directory)
    local.start(nodes, hdfs, overrides, timeout_s=timeout_s, note=lambda text: click.echo(f"yaq: {text}", err=True))
    elapsed_s = time.monotonic() - began
    state = local.status()
    if as_json:
        print_json({**_as_dict(local, state), "ready_after_s": round(elapsed_s, 3)})
    else:
        plural = "s" * (state.nodes_ready != 1)
        click.echo(f"cluster ready in {elapsed_s:.1f} s: {state.nodes_ready} node{plural}, logs in {local.logs_dir}")
        click.echo(f"export HADOOP_CONF_DIR={local.conf_dir}")


@cluster.command("status")
@_dir_option
@json_option
@click.pass_context
def status(ctx: click.Context, directory: Path, as_json: bool) -> None:
    """Show the daemons; exit code 3 unless all of them run.

    \b
    Example:
      yaq cluster status --dir ~/c
    """
    local = LocalCluster(directory)
    state = local.status()
    if as_json:
        print_json(_as_dict(local, state))
    else:
        rows = [(d.name, _state(d), d.pid or "-", size(d.pss_bytes or 0), d.log) for d in state.daemons]
        print_table(("daemon", "state", "pid", "memory", "log"), rows, empty=f"no cluster is running in {directory}")
        if state.nodes_ready is not None:
            click.echo(f"{state.nodes_ready} of {len(state.daemons) - 1} nodes ready")
    if not state.is_running:
        ctx.exit(UNREACHABLE)


@cluster.command("stop")
@_dir_option
@json_option
def stop(directory: Path, as_json: bool) -> None:
    """Stop the daemons and everything that they run. Stopping a stopped cluster is fine.

    \b
    Example:
      yaq cluster stop --dir ~/c
    """
    local = LocalCluster(directory)
    stopped = local.stop()
    if as_json:
        print_json({"dir": str(local.directory), "stopped": stopped})
    elif stopped:
        click.echo(f"stopped {', '.join(stopped)}")
    else:
        click.echo(f"no cluster is running in {local.directory}")


def _state(daemon: DaemonStatus) -> str:
    if daemon.is_halted:
        return "does not answer: a signal has stopped it (kill -CONT)"
    return "running" if daemon.is_running else "dead"


def _as_dict(local: LocalCluster, state: ClusterStatus) -> dict[str, object]:
    return {
        "dir": str(local.directory),
        "conf_dir": str(local.conf_dir),
        "running": state.is_running,
        "nodes_running": state.nodes_running,
        "daemons": [
            {
                "name": d.name,
                "pid": d.pid,
                "running": d.answers,
                "halted": d.is_halted,
                "log": str(d.log),
                "pss_bytes": d.pss_bytes,
            }
            for d in state.daemons
        ],
    }
