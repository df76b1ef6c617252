"""The root of the `yaq` command: what groups there are, in the order in which a newcomer needs them."""

import click

from yaqd.cli.lazy import Lazy, RootGroup
from yaqd.cli.version import show_version

_COMMANDS = {
    "demo": Lazy("yaqd.cli.jobs.demo", "demo", "Start a cluster, count words on it, show what happened, clean up."),
    "cluster": Lazy("yaqd.cli.cluster", "cluster", "Keep a small cluster running on this machine."),
    "mr": Lazy("yaqd.cli.jobs.mr", "mr", "Run MapReduce jobs: Python classes or streaming programs."),
    "dag": Lazy("yaqd.cli.jobs.dag", "dag", "Run jobs of many steps: a Flow in a Python script."),
    "run": Lazy("yaqd.cli.jobs.run", "run", "Run any command in N containers."),
    "ml": Lazy("yaqd.cli.ml.group", "ml", "Train models: iterations, losses, cores by what they buy."),
    "clotho": Lazy("yaqd.cli.clotho.group", "clotho", "Train the policy that orders stages, and measure it."),
    "app": Lazy("yaqd.cli.applications.commands", "app", "List applications, look at one, end it, read its logs."),
    "node": Lazy("yaqd.cli.nodes", "node", "List the cluster's nodes."),
    "top": Lazy("yaqd.cli.top", "top", "Watch the nodes: what runs, what waits and for how long, how busy they are."),
    "explain": Lazy("yaqd.cli.applications.explain", "explain", "Say why an application waits, where, and until when."),
    "queue": Lazy("yaqd.cli.queues", "queue", "List the cluster's queues."),
    "sim": Lazy("yaqd.cli.simulation.commands", "sim", "Try a policy on a simulated cluster; repeat experiments."),
    "riffle": Lazy(
        "yaqd.cli.mergers.commands", "riffle", "Look at mergers of map outputs; merge and check files by hand."
    ),
    "conf": Lazy("yaqd.cli.conf", "conf", "Look at the configuration, find mistakes in it."),
    "rm": Lazy("yaqd.cli.daemons", "rm", "Run a ResourceManager; have it read its files again."),
    "nm": Lazy("yaqd.cli.daemons", "nm", "Run a NodeManager in the foreground."),
    "completion": Lazy("yaqd.cli.shell.completion", "completion", "Print a completion script for bash, zsh or fish."),
}

_HELP = """Batch jobs in Python on Hadoop's protocols.

\b
  yaq demo                                     see it work
  yaq cluster start --dir ~/c --nodes 3        a cluster that stays
  export HADOOP_CONF_DIR=~/c/conf              ... which every client finds
  yaq mr submit count.py --input big.txt --output out

\b
Exit codes: 0 success, 1 the job failed, 2 bad input, 3 the cluster does not answer, 130 interrupted,
143 ended by SIGTERM, 129 by SIGHUP.
"""


@click.group(cls=RootGroup, lazy=_COMMANDS, help=_HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=show_version,
    help="Show the version, and whether what decides is compiled, and exit.",
)
def yaq() -> None:
    pass
