"""What nodes did by themselves with the map outputs of an unmodified job: merged or not, why, and what that saved."""

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import quote

import click

from yaqd.cli.output import print_table
from yaqd.config import Configuration
from yaqd.model import ApplicationId

_TIMEOUT_S: Final = 5.0
_ANSWER_BYTES_MAX: Final = 64 << 10
_ASKED_AT_ONCE: Final = 16
#: nodes listed; --json has more
_LISTED: Final = 20
#: of a node that merges; one that does not has the first five alone
_NUMBERS: Final = (
    "segments",
    "reads",
    "readBytes",
    "mergedSegments",
    "fallbacks",
    "outputs",
    "leftAlone",
    "withoutIndex",
    "readBefore",
    "waiting",
    "merging",
    "mergedOutputs",
    "mergedFiles",
    "mergesFailed",
    "mergeRequests",
)
_NUMBER_MAX: Final = 1 << 63
#: as nodes say it
_OFF: Final = "no merging"


def of_nodes(conf: Configuration, application: ApplicationId) -> dict[str, Any] | None:
    """Return `{"nodes": [...], "silent": [...], ...}` with sums over the nodes.

    None where no node has outputs that it was to merge by itself.
    """
    from yaqd.cli.exits import CommandError
    from yaqd.cli.rm_web import get_json

    try:
        listed = (get_json(conf, "/ws/v1/cluster/nodes").get("nodes") or {}).get("node") or []
        places = sorted((str(n["id"]), str(n["nodeHTTPAddress"])) for n in listed if n.get("nodeHTTPAddress"))
    except (CommandError, AttributeError, TypeError, KeyError):
        return None
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        answers = list(pool.map(lambda place: _ask(place[1], application), places))
    told = [(name, answer) for (name, _), answer in zip(places, answers, strict=True)]
    nodes = [{"node": name, **answer} for name, answer in told if answer and not answer["plansMerges"]]
    if not nodes:
        return None
    sums = {name: sum(node[name] for node in nodes) for name in _NUMBERS}
    return {"nodes": nodes, "silent": [name for name, answer in told if answer is None], **sums}


def _ask(address: str, application: ApplicationId) -> dict[str, Any] | None:
    """None where it says nothing that can be used, an empty one where it knows nothing of the application."""
    from yaqd.storage.paths import hadoop_user

    connection = None
    try:
        connection = http.client.HTTPConnection(address, timeout=_TIMEOUT_S)
        path = f"/ws/v1/node/apps/{application}/shuffle?user.name={quote(hadoop_user(), safe='')}"
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read(_ANSWER_BYTES_MAX)
        if response.status != http.client.OK:
            return {} if response.status in (http.client.NOT_FOUND, http.client.FORBIDDEN) else None
        return _checked(json.loads(body)["shuffle"])
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return None
    finally:
        if connection is not None:
            connection.close()


def _checked(facts: Any) -> dict[str, Any]:
    """All that is shown. ValueError where it is something else."""
    if not isinstance(facts, dict):
        raise ValueError("no facts")
    found: dict[str, Any] = {name: facts.get(name, 0) for name in _NUMBERS}
    if not all(type(number) is int and 0 <= number <= _NUMBER_MAX for number in found.values()):
        raise ValueError("no counts")
    for name in ("isOver", "plansMerges", "hasMerger", "automatic"):
        found[name] = bool(facts.get(name))
    for name in ("policy", "reason"):
        text = facts.get(name) or ""
        if not isinstance(text, str) or not text.isprintable():
            raise ValueError("no text")
        found[name] = text
    return found


def show_nodes(found: dict[str, Any]) -> None:
    nodes = found["nodes"]
    click.echo("\nMap outputs, merged by their nodes where it pays:")
    rows = []
    #: each said once, below
    reasons: dict[str, int] = {}
    for node in nodes[:_LISTED]:
        number = reasons.setdefault(_why(node), len(reasons) + 1)
        rows.append((node["node"], node["outputs"], node["mergedOutputs"], node["mergedFiles"], f"({number})"))
    print_table(("node", "outputs", "merged", "into files", "why"), rows, empty="")
    if len(nodes) > _LISTED:
        click.echo(f"... and {len(nodes) - _LISTED} more nodes (--json)")
    for reason, number in reasons.items():
        click.echo(f"({number}) {reason}")
    click.echo(_reads(found))
    if found["silent"]:
        click.echo(f"  not counted: {len(found['silent'])} nodes that do not say, {found['silent'][0]} for one")


def _reads(found: dict[str, Any]) -> str:
    segments, reads = found["segments"], found["reads"]
    if not segments:
        return "  no reducer has asked a node for them yet"
    said = f"  reducers' {segments} parts of map outputs took {reads} reads"
    if not found["mergedSegments"]:
        return f"{said}, none of merged files"
    fallbacks = found["fallbacks"]
    instead = f", {fallbacks} of them of originals whose merged file could not be used" if fallbacks else ""
    return f"{said} instead of {segments}{instead}; merging itself took {found['mergeRequests']} reads and writes"


def _why(node: dict[str, Any]) -> str:
    if not node["hasMerger"]:
        return "no merger there: yaq.riffle.enabled is false"
    how = "chosen automatically" if node["automatic"] else "as configured (yaq.riffle.shuffle.policy)"
    said = [f"{node['policy']}, {how}" if node["policy"] else "nothing has appeared that could be merged"]
    if node["reason"]:
        said[0] += f": {node['reason']}"
    if node["policy"] == _OFF:
        return said[0]
    large = node["leftAlone"] - node["withoutIndex"]
    more = (
        (large, "left alone: their parts are large, or not as many as those of the others"),
        (
            node["withoutIndex"],
            "have so many parts that a merged file's index has no room (yaq.riffle.shuffle.index-memory)",
        ),
        (node["readBefore"], "had been read for the most part before they were merged"),
        (node["waiting"], "too few to be merged" if node["isOver"] else "wait for more to be merged with"),
        (node["mergesFailed"], "merges failed: the node's log says why"),
    )
    return "; ".join([*said, *(f"{count} {text}" for count, text in more if count > 0)])
