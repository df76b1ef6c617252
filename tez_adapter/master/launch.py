"""Launch contexts: what a node needs to start our processes, warm on our NodeManagers, cold on any.

The command is the cold one. Two environment variables ask a NodeManager of ours to fork its prepared process
instead (`YAQ_WARM_ENTRY`, `YAQ_WARM_ARGS`). The import path travels as YAQ_PYTHONPATH: a PYTHONPATH in the
environment would force a cold start.
"""

import shlex
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import yaqd
from tez_adapter.jobspec import JobResource
from yaqd.config import Configuration
from yaqd.model import fixed_addresses
from yaqd.model.hash_seed import DEFAULT, VARIABLE, hash_seed
from yaqd.proto import yarn_common_pb2 as pb

_OUTPUT = "1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"


def python_environment(python: str | None = None) -> dict[str, str]:
    """Return where this project is found on a node without a prepared process, and the interpreter if given.

    A NodeManager of ours sets YAQ_PYTHON itself; naming another interpreter forces a cold start there.
    """
    own = {"YAQ_PYTHONPATH": str(Path(yaqd.__file__).resolve().parents[1])}
    return {**own, "YAQ_PYTHON": python} if python else own


def configured_environment(conf: Configuration, key: str) -> dict[str, str]:
    """Read NAME=value pairs, comma-separated; a comma in a value cannot be written, as in Hadoop."""
    found = {}
    for item in conf.get_list(key):
        name, equals, value = item.partition("=")
        if not equals or not name.strip().isidentifier():
            raise conf.error(key, f"{item!r} is not NAME=value", "write NAME=value,NAME=value")
        found[name.strip()] = value.strip()
    return found


def python_context(
    entry: str, arguments: Iterable[str], resources: Iterable[JobResource], environment: Mapping[str, str]
) -> pb.ContainerLaunchContext:
    """Run `module:function` of ours with the arguments.

    The hash seed is the environment's; the default, which prepared processes have, needs no cold start.
    """
    seed = hash_seed(environment)
    own = {name: value for name, value in environment.items() if name != VARIABLE or seed != DEFAULT}
    context = _context(resources, own)
    module = entry.partition(":")[0]
    line = shlex.join(arguments)
    # bash's default value: a stock node has no YAQ_PYTHON and gets the path of this very interpreter
    python = f"${{YAQ_PYTHON:-{sys.executable}}}"
    start = f"PYTHONPATH={{{{YAQ_PYTHONPATH}}}} {VARIABLE}={seed} {python}"
    context.command.append(f"{start} -m {fixed_addresses.__name__} {module} {_escaped(line)} {_OUTPUT}")
    _set(context, "YAQ_WARM_ENTRY", entry)
    _set(context, "YAQ_WARM_ARGS", line)
    return context


def command_context(
    command: str, resources: Iterable[JobResource], environment: Mapping[str, str]
) -> pb.ContainerLaunchContext:
    """Run a command line of the user's, with nothing of ours in its process."""
    context = _context(resources, environment)
    context.command.append(f"{_escaped(command)} {_OUTPUT}")
    return context


def _escaped(command: str) -> str:
    """The node writes commands inside double quotes of a bash script: what would end them or expand there is
    escaped once, so that the inner shell sees the words as they are."""
    return "".join(f"\\{c}" if c in '\\"$`' else c for c in command)


def _context(resources: Iterable[JobResource], environment: Mapping[str, str]) -> pb.ContainerLaunchContext:
    context = pb.ContainerLaunchContext()
    for resource in resources:
        entry = context.localResources.add(key=resource.name)
        value = entry.value
        value.resource.CopyFrom(url(resource.uri))
        value.size = resource.bytes
        value.timestamp = resource.timestamp_ms
        value.type = resource.type  # type: ignore[assignment]
        value.visibility = resource.visibility  # type: ignore[assignment]
    for name, text in environment.items():
        _set(context, name, text)
    return context


def _set(context: pb.ContainerLaunchContext, name: str, value: str) -> None:
    context.environment.add(key=name, value=value)


def url(uri: str) -> pb.URL:
    """Split a URI into the parts that YARN sends; the port is -1 where there is none."""
    parts = urlsplit(uri)
    message = pb.URL(scheme=parts.scheme or "file", file=parts.path, port=parts.port or -1)
    if parts.hostname:
        message.host = parts.hostname
    if parts.username:
        message.userInfo = parts.username
    return message
