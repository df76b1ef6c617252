"""`${name}` in values, as Hadoop replaces them: environment, then what Java calls system properties, then other keys.

`${env.X}`, `${env.X-default}` (unset) and `${env.X:-default}` (unset or empty) read the environment. `${user.name}`,
`${user.home}`, `${user.dir}` and `${java.io.tmpdir}` stand for what a JVM would have. A name that nothing defines stays
as it is written. Names may be nested (`${a.${b}}`); a circle is an error here, where Hadoop gives up after twenty
rounds.
"""

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

_TOKENS = re.compile(r"\$\{|\}|[^$}]+|\$")
EXPANDED_CHARS_MAX = 1 << 20


class VariableLoop(Exception):
    """The chain of names, first and last equal."""

    def __init__(self, chain: tuple[str, ...]) -> None:
        self.chain = chain
        super().__init__(" -> ".join(chain))


def substitute(
    text: str, raw: Callable[[str], str | None], environ: Mapping[str, str], chain: tuple[str, ...] = ()
) -> str:
    """Return the text with its variables replaced. `raw` gives a key's unreplaced value, `chain` the keys being
    replaced."""
    if "${" not in text:
        return text
    # One buffer per open "${"; the first is the text itself.
    stack: list[list[str]] = [[]]
    for token in _TOKENS.findall(text):
        if token == "${":
            stack.append([])
        elif token == "}" and len(stack) > 1:
            name = "".join(stack.pop())
            stack[-1].append(_replacement(name, raw, environ, chain))
        else:
            stack[-1].append(token)
    result = "${".join("".join(buffer) for buffer in stack)
    if len(result) > EXPANDED_CHARS_MAX:
        raise ValueError("grows beyond 1 MiB when its variables are replaced")
    return result


def _replacement(
    name: str, raw: Callable[[str], str | None], environ: Mapping[str, str], chain: tuple[str, ...]
) -> str:
    if name in chain:
        raise VariableLoop((*chain[chain.index(name) :], name))
    value = _outside(name, environ)
    if value is not None:
        return value
    inner = raw(name)
    return f"${{{name}}}" if inner is None else substitute(inner, raw, environ, (*chain, name))


def _outside(name: str, environ: Mapping[str, str]) -> str | None:
    if name.startswith("env."):
        return _from_environment(name[4:], environ)
    match name:
        case "user.name":
            return user_name()
        case "user.home":
            return environ.get("HOME") or str(Path.home())
        case "user.dir":
            return str(Path.cwd())
        case "java.io.tmpdir":
            return "/tmp"
    return None


def _from_environment(expression: str, environ: Mapping[str, str]) -> str | None:
    name, dash, default = expression.partition("-")
    if not dash:
        return environ.get(expression)
    if name.endswith(":"):
        return environ.get(name[:-1]) or default
    return environ.get(name, default)


def user_name() -> str:
    """Return the operating system's name of this user, or its number where there is none (containers)."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
