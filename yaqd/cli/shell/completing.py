"""What a shell offers for arguments: applications of the cluster, experiments.

Nobody who presses a key wants an error: what cannot be found out in a moment offers nothing. Everything is imported
when a shell asks.
"""

from typing import Final

import click

#: a ResourceManager that does not answer holds the shell up for so long
_TIMEOUT_S: Final = 1.0
_APPLICATIONS_MAX: Final = 100


def all_applications(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return _applications(ctx, incomplete, only_open=False)


def open_applications(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """List applications that wait or run, without those that the line has already."""
    given = ctx.params.get(param.name or "") or ()
    return [name for name in _applications(ctx, incomplete, only_open=True) if name not in given]


def _applications(ctx: click.Context, incomplete: str, *, only_open: bool) -> list[str]:
    """The latest first."""
    try:
        from tez_adapter.client.rm_client import RmClient
        from yaqd.cli.options import load_conf, parse_defines
        from yaqd.model import YarnApplicationState

        conf = load_conf(ctx.params.get("conf_dir"), parse_defines(ctx.params.get("defines") or ()))
        states = [state for state in YarnApplicationState if not (only_open and state.is_final)]
        with RmClient(conf, timeout_s=_TIMEOUT_S, patience_s=0.0) as rm:
            found = sorted((report.id for report in rm.applications(states=states)), reverse=True)
    except Exception:
        return []
    return [name for name in map(str, found) if name.startswith(incomplete)][:_APPLICATIONS_MAX]


def experiments(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    from yaqd.sim.experiments import EXPERIMENTS

    return [name for name in (*EXPERIMENTS, "all") if name.startswith(incomplete)]
