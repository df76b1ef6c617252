"""`launch_container.sh`, line by line as Hadoop's ContainerLaunch writes it.

Values and the command stand verbatim between double quotes: clients escape for exactly this shell (Spark wraps its
arguments in single quotes, MapReduce relies on `$PWD`), so any quoting of ours would break them. Paths that we make
ourselves need no escaping either, except link names, which a client chooses.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from nm.launch.environment import Environment

_HARMLESS = re.compile(r"[\w./@%+=:,#~ -]+\Z", re.ASCII)


def launch_script(
    *,
    environment: Environment,
    links: Mapping[str, Path],
    command: Sequence[str],
    log_dir: Path,
) -> str:
    """Writes the whole script; `command` is already expanded, `links` maps link name to localized path.

    Hadoop's also copies itself and a listing of the folder into the logs; the NodeManager does that without processes.
    """
    lines = ["#!/bin/bash", "", "set -o pipefail -e"]
    for stream, variable in (("1", "PRELAUNCH_OUT"), ("2", "PRELAUNCH_ERR")):
        name = "prelaunch.out" if stream == "1" else "prelaunch.err"
        lines.append(f'export {variable}="{log_dir}/{name}"')
        lines.append(f'exec {"" if stream == "1" else "2"}>"${{{variable}}}"')
    lines.append('echo "Setting up env variables"')
    lines += [f'export {name}=${{{name}:-"{value}"}}' for name, value in environment.inherited.items()]
    lines += [f'export {name}="{value}"' for name, value in environment.node.items()]
    lines += [f'export {name}="{value}"' for name, value in environment.own.items()]
    lines.append('echo "Setting up job resources"')
    for link, target in links.items():
        if "/" in link:
            lines.append(f"mkdir -p -- {_quoted(str(PurePosixPath(link).parent))}")
        lines.append(f"ln -sf -- {_quoted(str(target))} {_quoted(link)}")
    lines.append('echo "Launching container"')
    lines.append(f'exec /bin/bash -c "{" ".join(command)}"')
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return f'"{text}"' if _HARMLESS.match(text) else shlex.quote(text)
