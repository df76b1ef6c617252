"""The container's environment and the replacement rules of launch contexts, as Hadoop's ContainerLaunch.

The values are shell text: clients escape them for one pair of double quotes in `launch_container.sh` and rely on
`$PWD`, `$CLASSPATH` and the like being expanded there. So this module keeps them verbatim for the script. For a process
that starts without a shell `resolve` evaluates the plain cases and refuses the rest.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_REFERENCE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_QUOTED_PIECE = re.compile(
    r"""(?P<plain>[^$`"\\]+)
      | \\(?P<escaped>[$`"\\])
      | (?P<backslash>\\)(?=[^\n])
      | \$(?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | \$\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)\}""",
    re.VERBOSE,
)
#: variables that steer the node manager and are not part of the container's environment
_WARM_PREFIX = "YAQ_WARM_"


class NeedsShell(ValueError):
    """A value that only a shell can evaluate (command substitution, parameter operators, open quotes)."""


@dataclass(frozen=True, slots=True)
class Environment:
    """The exports of one container in three groups, each in the order in which the script writes them."""

    #: taken from the node manager's own environment where the launch context has none
    inherited: Mapping[str, str]
    #: set by the node manager, over the launch context's
    node: Mapping[str, str]
    #: the launch context's own, a referenced variable before the one that refers to it
    own: Mapping[str, str]


def expand(text: str, *, log_dir: Path, add_opens: str) -> str:
    """Makes the literal replacements of commands and environment values, in Hadoop's order."""
    text = text.replace("<LOG_DIR>", str(log_dir)).replace("<CPS>", ":").replace("<ADD_OPENS>", add_opens)
    return text.replace("{{", "$").replace("}}", "")


def build_environment(
    launch: Mapping[str, str],
    *,
    node: Mapping[str, str],
    admin: Mapping[str, str],
    whitelist: Iterable[str],
    node_environment: Mapping[str, str],
    log_dir: Path,
    java_options: str,
) -> Environment:
    """Joins the three sources; `node` wins over `admin`, which wins over the launch context."""
    own = {k: v for k, v in launch.items() if not k.startswith(_WARM_PREFIX)}
    own.update(_admin_values(admin, node_environment))
    inherited = {k: node_environment[k] for k in whitelist if k not in own and k not in node and k in node_environment}
    own = {k: expand(v, log_dir=log_dir, add_opens=java_options) for k, v in own.items() if k not in node}
    return Environment(inherited=inherited, node=dict(node), own=_referenced_first(own))


def _admin_values(admin: Mapping[str, str], node_environment: Mapping[str, str]) -> dict[str, str]:
    """The operator's variables with `$X` taken from the node manager; an empty one leaves the user's value alone."""
    values = {k: _REFERENCE.sub(lambda m: node_environment.get(m[1], ""), v) for k, v in admin.items()}
    return {k: v for k, v in values.items() if v}


def _referenced_first(values: Mapping[str, str]) -> dict[str, str]:
    """Depth first in the given order; a cycle is cut where it closes, as no order satisfies it."""
    ordered: dict[str, str] = {}
    entered: set[str] = set()
    for root in values:
        stack = [(root, iter(_references(values, root)))] if root not in entered else []
        entered.add(root)
        while stack:
            name, pending = stack[-1]
            following = next((r for r in pending if r not in entered), None)
            if following is None:
                ordered[name] = values[name]
                stack.pop()
            else:
                entered.add(following)
                stack.append((following, iter(_references(values, following))))
    return ordered


def _references(values: Mapping[str, str], name: str) -> list[str]:
    return [r for r in _REFERENCE.findall(values[name]) if r in values and r != name]


def resolve(environment: Environment) -> dict[str, str]:
    """Returns the environment as the script's shell would leave it, for a process that starts without one.

    JVM_PID stays `$$`: only the process itself knows it. Raises NeedsShell for values that call for a real shell.
    """
    values: dict[str, str] = {}
    for name, text in environment.inherited.items():
        values[name] = text
    for name, text in environment.node.items():
        values[name] = text if text == "$$" else double_quoted(text, values)
    for name, text in environment.own.items():
        values[name] = double_quoted(text, values)
    return values


def double_quoted(text: str, values: Mapping[str, str]) -> str:
    """Evaluates text as bash does between double quotes, without commands and operators."""
    result: list[str] = []
    position = 0
    while position < len(text):
        match = _QUOTED_PIECE.match(text, position)
        if match is None:
            raise NeedsShell(text[:120])
        position = match.end()
        name = match["name"] or match["braced"]
        if name is not None:
            result.append(values.get(name, ""))
        else:
            result.append(match["plain"] or match["escaped"] or match["backslash"])
    return "".join(result)
