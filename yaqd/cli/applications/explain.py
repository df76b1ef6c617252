"""`yaq explain`: why an application waits, where, behind whom, until when; and how right the estimates were."""

import time
from typing import TYPE_CHECKING, Any

import click

from yaqd.cli.applications.attempts import Told, story
from yaqd.cli.applications.explain_stages import show_stages
from yaqd.cli.applications.explain_training import show_training
from yaqd.cli.options import json_option, with_conf
from yaqd.cli.output import duration, print_fields, print_json, print_table
from yaqd.cli.shell.completing import all_applications
from yaqd.config import ConfigError, Configuration
from yaqd.model import ApplicationId

if TYPE_CHECKING:
    from tez_adapter.history import JobHistory

#: containers listed; --json has more
_LISTED = 20
#: decisions listed, of those that gave a container and of all others
_DECISIONS = 10
_ENDLESS = "no known end"
#: how a merge policy is named that goes by the number of outputs
_BY_NUMBER = " files"


@click.command()
@click.argument("application", metavar="APP", shell_complete=all_applications)
@json_option
@with_conf
def explain(conf: Configuration, application: str, as_json: bool) -> None:
    """Say why application APP waits and what it waits for.

    For each kind of container it still wants: why it has none, and with which estimate. For each that waits at a node:
    which rule put it there, behind whom it waits and when it should start. For those that have ended: how long they
    should have waited and run, and how long they did. For a job of ours that is over: whether its map outputs were
    merged, why, and what that saved; that also under a stock ResourceManager, which knows nothing of the rest. For an
    unmodified job: what its nodes did with its map outputs by themselves, why, and what that saved. For a training job:
    why it has its cores; under a stock ResourceManager, that nobody divides them. In a queue that decides by stages:
    the stages weighed, their scores, how many containers it should have, and what weighted fair sharing would do.

    \b
    Example:
      yaq explain application_1700000000000_0001
    """
    from yaqd.cli.applications.explain_alone import STOCK, of_the_job, show_alone, show_application
    from yaqd.cli.applications.explain_nodes import of_nodes, show_nodes
    from yaqd.cli.applications.known import known_application
    from yaqd.cli.exits import BAD_INPUT, CommandError
    from yaqd.cli.rm_web import NoSuchResource, get_json

    app_id = known_application(conf, application)
    found: dict[str, Any] = {}
    refusal = None
    try:
        found = get_json(conf, f"/ws/v1/yaq/explain/{app_id}")["explanation"]
    except CommandError as error:
        if error.exit_code != BAD_INPUT:
            raise
        refusal = error
    history = _history(conf, app_id)
    if found and history is not None:
        found["accuracy"] = _of_tasks(found["ended"], found.get("gaveBack", []), history)
    shuffle = _shuffle(history)
    of_its_nodes = of_nodes(conf, app_id) if shuffle is None else None
    is_stock = isinstance(refusal, NoSuchResource)
    alone = None
    if shuffle is None and (is_stock or (refusal is None and not found.get("training"))):
        alone = of_the_job(conf, app_id, is_stock=is_stock)
    if refusal is not None:
        if shuffle is None and of_its_nodes is None and alone is None:
            raise refusal
        click.echo(STOCK if is_stock else f"{refusal}", err=True)
    if as_json:
        told = {"shuffle": shuffle, "nodeShuffle": of_its_nodes, "training": alone}
        print_json(found | {name: facts for name, facts in told.items() if facts is not None})
        return
    if found:
        _show(found)
    if alone is not None:
        if not found:
            show_application(alone)
        show_alone(alone)
    if shuffle is not None:
        _show_shuffle(shuffle)
    if of_its_nodes is not None:
        show_nodes(of_its_nodes)


def _counted(number: int) -> str:
    return f"{number} more container{'s' * (number != 1)}"


def _were(number: int) -> str:
    return f"{number} {'was' if number == 1 else 'were'} expected"


def _show(found: dict[str, Any]) -> None:
    fields = [(name, found[name]) for name in ("id", "name", "user", "queue", "state")]
    if found.get("finalState"):
        fields.append(("final state", found["finalState"]))
    print_fields([*fields, ("wants", f"{_counted(found['askedFor'])}, {found['waitingCount']} wait at nodes")])
    for line in _attempts(found["attempts"]):
        click.echo(line)
    if found.get("masterSilent"):
        click.echo(found["masterSilent"]["why"])
    if not found["queueing"]:
        click.echo("Nothing is sent to wait at nodes: yaq.queue.enabled is false.")
    elif found.get("queueingWhy"):
        click.echo(f"Queues at nodes: {found['queueingWhy']}.")
    for ask in found["asks"]:
        click.echo(f"\n{_wanted(ask)}: {ask['why']}")
        if ask["shortestWaitS"] is not None:
            click.echo(f"  {_shortest(ask)}")
    _show_kept(found["keptNodes"], found["keptForOthers"])
    if found.get("training"):
        show_training(found["training"])
    if found.get("stages"):
        show_stages(found["stages"])
    if found["waiting"]:
        click.echo()
        _show_waiting(found["waiting"])
    _show_accuracy(found["accuracy"])
    _show_decisions(found["decisions"])


def _attempts(attempts: list[dict[str, Any]]) -> list[str]:
    """What became of those before the present one."""
    now_ms = time.time() * 1000
    known = [
        Told(one["attempt"], one["state"], one["node"], _then(one["endedAgoS"], now_ms), one["diagnostics"])
        for one in attempts
    ]
    return story(known, max((one.number for one in known), default=1))


def _then(ago_s: float | None, now_ms: float) -> float:
    return 0.0 if ago_s is None else now_ms - ago_s * 1000


def _wanted(ask: dict[str, Any]) -> str:
    what = "its application master" if ask["isMaster"] else f"{ask['containers']} of priority {ask['priority']}"
    kind = "opportunistic; " if ask["executionType"] == "OPPORTUNISTIC" else ""
    size = (
        "" if ask["memoryMb"] is None else f"{ask['memoryMb']} MB, {ask['vcores']} core{'s' * (ask['vcores'] != 1)}; "
    )
    verb = "waits" if ask["isMaster"] else "none given"
    since = "" if ask["waitingS"] is None else f", {verb} for {_seconds(ask['waitingS'])}"
    runs = f"runs {_seconds(ask['estimateS'])}" if ask["estimateS"] is not None else f"{_ENDLESS} of its run"
    task = f", a task {_seconds(ask['taskS'])}" if ask["isAtMost"] else ""
    return f"{what} ({kind}{size}{runs}{task}){since}"


def _shortest(ask: dict[str, Any]) -> str:
    wait_s, said_ago_s = ask["shortestWaitS"], ask["shortestSaidAgoS"]
    if wait_s > 0 or said_ago_s is None:
        most = "at most " if ask["isAtMost"] else ""
        return f"at the node where it is shortest a container waits {most}{_seconds(wait_s)}"
    return f"a node had room at its last report, {_seconds(said_ago_s)} ago"


def _show_kept(kept: list[dict[str, Any]], others: int) -> None:
    """Nodes whose queues get shorter for an application that would otherwise never be given anything."""
    for node in kept:
        left = f"{node['containers']} container{'s' * (node['containers'] != 1)}"
        click.echo(
            f"\nnode {node['node']} has been held for it for {_seconds(node['sinceS'])}, for {left} more: nobody "
            "else's opportunistic containers are sent there meanwhile, as it had been given none for "
            f"{_seconds(node['starvedS'])} (yaq.queue.starve-ms) and its master does not say that they may wait"
        )
    if others:
        many = f"{others} nodes are" if others > 1 else "1 node is"
        click.echo(
            f"\n{many} held for other applications, which had been given nothing for yaq.queue.starve-ms: no "
            "opportunistic container of this one is sent there meanwhile"
        )


def _show_waiting(waiting: list[dict[str, Any]]) -> None:
    rows = []
    #: each said once, below: most were placed by the same one
    rules: dict[str, int] = {}
    for entry in waiting[:_LISTED]:
        rows.append(
            (
                entry["container"],
                entry["node"],
                _seconds(entry["estimateS"], _ENDLESS),
                _seconds(entry["placedAgoS"]),
                _starts(_expected(entry), entry["isAtMost"]),
                f"({rules.setdefault(entry['rule'], len(rules) + 1)})",
                _behind(entry),
            )
        )
    print_table(("container", "waits at", "runs", "placed", "starts in", "rule", "behind"), rows, empty="")
    if len(waiting) > _LISTED:
        click.echo(f"... and {len(waiting) - _LISTED} more (--json)")
    for rule, number in rules.items():
        click.echo(f"({number}) {rule}")
    if any(entry["isAtMost"] for entry in waiting[:_LISTED]):
        click.echo(
            "at most: containers run several tasks here, one after the other, and those that wait fewer, or none if "
            "others have done the work by then"
        )


def _expected(entry: dict[str, Any]) -> float | None:
    """Whose turn has come starts any moment, where its node does not say more."""
    expected_s: float | None = entry["expectedStartInS"]
    return 0.0 if expected_s is None and entry["heldS"] is not None else expected_s


def _starts(expected_s: float | None, is_at_most: bool) -> str:
    most = "at most " if is_at_most and expected_s is not None else ""
    return "any moment" if expected_s == 0 else f"{most}{_seconds(expected_s)}"


def _behind(entry: dict[str, Any]) -> str:
    if entry["nodeSilentS"] is not None:
        return f"its node has not been heard of for {_seconds(entry['nodeSilentS'])}"
    if not entry["isAtNode"]:
        return "not started by its master yet"
    if entry["heldS"] is not None:
        return f"nobody: its turn has come, it has waited for a processor for {_seconds(entry['heldS'])}"
    if entry["behind"] is None:
        return "further back than its node tells"
    behind = entry["behind"]
    return f"{len(behind)}: {behind[0]}{' ...' if len(behind) > 1 else ''}" if behind else "nobody"


def _show_decisions(decisions: list[dict[str, Any]]) -> None:
    """The last ones, newest last; many containers given at once do not hide what else was decided."""
    given = [at for at, entry in enumerate(decisions) if entry["decision"] == "Allocate"]
    others = [at for at, entry in enumerate(decisions) if entry["decision"] not in ("Allocate", "AcceptApplication")]
    shown = [decisions[at] for at in sorted(given[-_DECISIONS:] + others[-_DECISIONS:])]
    if shown:
        click.echo()
        rows = [
            (
                f"{_seconds(entry['agoS'])} ago",
                entry["decision"],
                entry["container"] or "",
                entry["node"] or "",
                entry["reason"] or "",
            )
            for entry in shown
        ]
        print_table(("when", "the scheduler decided", "container", "node", "why"), rows, empty="")


def _show_accuracy(seen: dict[str, Any]) -> None:
    idle = seen.get("withoutTask", 0)
    _show_given_back(seen)
    if not idle and not any(seen[what] for what in ("withEstimate", "withWait", "afterRoom", "roomTaken", "held")):
        return
    click.echo(f"\nOf the last {seen['tasks'] + idle} containers that ended")
    if idle:
        click.echo(f"  {idle} never had a task, as others did the work: they are in no number below")
    if seen["withEstimate"]:
        click.echo(
            f"  {_were(seen['withEstimate'])} to run {_seconds(seen['meanEstimateS'])} and ran "
            f"{_seconds(seen['meanRanS'])} in the mean, {_seconds(seen['meanErrorS'])} off"
        )
    if seen["withWait"]:
        click.echo(
            f"  {_were(seen['withWait'])} to wait {_seconds(seen['meanExpectedWaitS'])} and waited "
            f"{_seconds(seen['meanWaitedS'])} in the mean, {_seconds(seen['meanWaitErrorS'])} off"
        )
    if seen["afterRoom"]:
        click.echo(
            f"  {seen['afterRoom']} waited {_seconds(seen['meanWaitedAfterRoomS'])} in the mean at nodes that had room "
            f"at their last report, {_seconds(seen['meanRoomSaidAgoS'])} before: others were given it"
        )
    if seen["roomTaken"]:
        click.echo(
            f"  {seen['roomTaken']} waited {_seconds(seen['meanWaitedRoomTakenS'])} in the mean although there was "
            "free room when they were given: others had come to their nodes first"
        )
    if seen["held"]:
        click.echo(
            f"  {seen['held']} had their turn and were held for {_seconds(seen['meanHeldS'])} in the mean, which is "
            "in no mean above, and in how far off waits were: the processors were busy with others that were starting"
        )


def _show_given_back(seen: dict[str, Any]) -> None:
    if not seen.get("gaveBack"):
        return
    expected = f" in the mean, where {_seconds(seen['meanExpectedWaitGaveBackS'])} were expected"
    click.echo(
        f"\n{seen['gaveBack']} of its containers waited at nodes in vain, for {_seconds(seen['meanWaitedGaveBackS'])}"
        f"{expected if seen['gaveBackExpected'] else ' in the mean'}: they were given back and placed again"
    )


def _history(conf: Configuration, application: ApplicationId) -> "JobHistory | None":
    """Of a job of ours that is over; None for any other."""
    from tez_adapter.history import NoHistory, read_history

    try:
        return read_history(conf, application)
    except (NoHistory, ConfigError):
        return None


def _of_tasks(ended: list[dict[str, Any]], gave_back: list[dict[str, Any]], history: "JobHistory") -> dict[str, Any]:
    """The accuracy over containers that were given a task, and how many were not. Those say nothing of how long tasks
    take: they ended when they heard that there was nothing to do."""
    from rm.node_queues.accuracy import accuracy_of

    used = {attempt["container"] for attempt in history.attempts if isinstance(attempt.get("container"), str)}
    # a history is of its job manager's own attempt alone: of containers of the one before it nobody knows
    told = {name.rpartition("_")[0] for name in used}
    worked = [one for one in ended if one["container"] in used or one["container"].rpartition("_")[0] not in told]
    return accuracy_of(worked + gave_back) | {"withoutTask": len(ended) - len(worked)}


def _shuffle(history: "JobHistory | None") -> dict[str, Any] | None:
    """What a finished job of ours says of its merging; None for any other."""
    found = history.end.get("shuffle") if history is not None else None
    return found if isinstance(found, dict) else None


def _show_shuffle(found: dict[str, Any], of: str = "") -> None:
    """A history file may be of another version, or damaged: what it lacks is left out. `of`: which of several."""
    shuffles = found.get("shuffles")
    if isinstance(shuffles, dict):
        for name, one in shuffles.items():
            if isinstance(one, dict):
                _show_shuffle(one, f" of {name}")
        return
    how = "chosen automatically" if found.get("automatic") else "as configured"
    where = " on HDFS" if found.get("storage") == "hdfs" else ""
    policy = found.get("policy", "unknown")
    meaning = " (so many map outputs to one merged file)" if str(policy).endswith(_BY_NUMBER) else ""
    click.echo(f"\nMap outputs{of}{where}: {policy}, {how}{meaning}")
    if found.get("reason"):
        click.echo(f"  {found['reason']}")
    if found.get("unmerged"):
        click.echo(f"  {found['unmerged']}")
    reads, files = found.get("reads"), found.get("files")
    if isinstance(reads, int) and isinstance(files, int) and found.get("merged_files"):
        click.echo(
            f"  each reduce read {files} files instead of {reads}: {found.get('saved_reads')} reads fewer in all; "
            f"merging itself took {found.get('merge_requests')} requests"
        )
    merges = found.get("merges")
    if isinstance(merges, dict) and merges:
        click.echo("  merges: " + ", ".join(f"{count} {state}" for state, count in merges.items()))
    mergers = found.get("mergers")
    if isinstance(mergers, dict) and mergers:
        click.echo("  by the mergers at " + ", ".join(f"{address} ({count})" for address, count in mergers.items()))
    _show_own_mergers(found.get("own_mergers"), found.get("own_mergers_trouble"))


def _show_own_mergers(started: object, trouble: object) -> None:
    """Of the job's own, where no node had one."""
    if isinstance(started, int) and started:
        why = f", then none: {trouble}" if trouble else ""
        click.echo(f"  no node had a merger: the job started {started} in containers of its own{why}")
    elif trouble:
        click.echo(f"  no node had a merger, and the job started none: {trouble}")


def _seconds(seconds: float | None, unknown: str = "-") -> str:
    return unknown if seconds is None else duration(seconds * 1000)
