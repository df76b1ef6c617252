"""From a launch context to files on disk and a process to start: what happens once a container's turn has come."""

import errno
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from nm.containers.executor import ProcessSpec, WarmEntry
from nm.launch.context import BadLaunchContext, LaunchContext
from nm.launch.environment import Environment, NeedsShell, build_environment, expand, resolve
from nm.launch.java import add_opens
from nm.launch.script import launch_script
from nm.resources.directories import ContainerFolders, make_container_folders

#: credentials stream without tokens and secrets
EMPTY_CREDENTIALS = b"HDTS\0\0\0"
_FORCES_COLD = re.compile(r"(?:PYTHON|LD_|OMP_|MALLOC_|OPENBLAS_|MKL_|BLIS_|NPY_)|LANG\Z|LC_")
_REFERENCE = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_]*)\}\}")
_MAX_WARM_ARGUMENTS = 1024


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """What every container is told about its node."""

    host: str
    port: int
    web_port: int
    user_home: str
    whitelist: tuple[str, ...]
    admin: Mapping[str, str]
    #: the daemon's own environment
    environment: Mapping[str, str]
    #: NM_AUX_SERVICE_ values, Base64 text by service name
    services: Mapping[str, str]
    debug_copies: bool


def prepare(
    *,
    container_id: str,
    user: str,
    is_master: bool,
    launch: LaunchContext,
    folders: ContainerFolders,
    links: Mapping[str, Path],
    localization: tuple[int, ...],
    devices: Mapping[str, str],
    node: NodeIdentity,
) -> ProcessSpec:
    """Makes the folders, writes script and tokens, decides between warm and cold. Blocking.

    `devices`: variables that say which of the node's devices are the container's. Raises OSError, BadLaunchContext.
    """
    variables = {**_node_variables(container_id, user, folders, localization, node), **devices}
    environment, script = _environment_and_script(launch, variables, folders.log_dir, links, node)
    try:
        warm = _warm_entry(launch, resolve(environment), folders.log_dir, node)
    except NeedsShell:
        warm = None
    make_container_folders(folders)
    script_path = _write_files(folders, container_id, script, launch.tokens or EMPTY_CREDENTIALS)
    if node.debug_copies:
        _write_debug_copies(folders.log_dir, script, links)
    if warm is not None:
        make_links(folders.work_dir, links)
    return ProcessSpec(
        container_id=container_id,
        run_as_user=user,
        work_dir=folders.work_dir,
        log_dir=folders.log_dir,
        pid_file=folders.private_dir / f"{container_id}.pid",
        script=script_path,
        is_master=is_master,
        environment={**environment.inherited, "CONTAINER_ID": container_id},
        warm=warm,
    )


def _environment_and_script(
    launch: LaunchContext, variables: Mapping[str, str], log_dir: Path, links: Mapping[str, Path], node: NodeIdentity
) -> tuple[Environment, str]:
    """Joins what the job, the administrator and the node say. Raises BadLaunchContext."""
    java_home = launch.environment.get("JAVA_HOME") or node.environment.get("JAVA_HOME")
    java_options = add_opens(java_home, search_path(launch.environment, node.environment))
    environment = build_environment(
        launch.environment,
        node=variables,
        admin=node.admin,
        whitelist=node.whitelist,
        node_environment=node.environment,
        log_dir=log_dir,
        java_options=java_options,
    )
    command = [expand(part, log_dir=log_dir, add_opens=java_options) for part in launch.commands]
    script = launch_script(environment=environment, links=links, command=command, log_dir=log_dir)
    if "\0" in script:
        raise BadLaunchContext("the command holds a NUL character")
    return environment, script


def search_path(launch: Mapping[str, str], node: Mapping[str, str]) -> str:
    """Returns where the container finds `java`.

    If its PATH refers to variables, the node's PATH is searched after it.
    """
    own = launch.get("PATH")
    inherited = node.get("PATH", os.defpath)
    return inherited if own is None else f"{own}:{inherited}" if "$" in own or "{{" in own else own


def _node_variables(
    container_id: str, user: str, folders: ContainerFolders, localization: tuple[int, ...], node: NodeIdentity
) -> dict[str, str]:
    return {
        "CONTAINER_ID": container_id,
        "NM_HOST": node.host,
        "NM_PORT": str(node.port),
        "NM_HTTP_PORT": str(node.web_port),
        "LOCAL_DIRS": ",".join(map(str, folders.app_dirs)),
        "LOCAL_USER_DIRS": ",".join(f"{path}/" for path in folders.user_dirs),
        "LOG_DIRS": ",".join(map(str, folders.log_dirs)),
        "USER": user,
        "LOGNAME": user,
        "HOME": node.user_home,
        "PWD": str(folders.work_dir),
        "HADOOP_TOKEN_FILE_LOCATION": str(folders.work_dir / "container_tokens"),
        "JVM_PID": "$$",
        "LOCALIZATION_COUNTERS": ",".join(map(str, localization)),
        **{f"NM_AUX_SERVICE_{name}": value for name, value in node.services.items()},
    }


def _warm_entry(
    launch: LaunchContext, environment: Mapping[str, str], log_dir: Path, node: NodeIdentity
) -> WarmEntry | None:
    """The entry to call in the prepared process; None when the job did not ask or needs its own interpreter."""
    entry = launch.environment.get("YAQ_WARM_ENTRY")
    if not entry or any(_FORCES_COLD.match(name) for name in launch.environment):
        return None
    if launch.environment.get("YAQ_PYTHON", node.environment["YAQ_PYTHON"]) != node.environment["YAQ_PYTHON"]:
        return None
    text = launch.environment.get("YAQ_WARM_ARGS", "").replace("<LOG_DIR>", str(log_dir)).replace("<CPS>", ":")
    text = _REFERENCE.sub(lambda match: environment.get(match[1], ""), text)
    try:
        arguments = shlex.split(text)
    except ValueError as error:
        raise BadLaunchContext(f"YAQ_WARM_ARGS is not shell-quoted text: {error}") from None
    if len(arguments) > _MAX_WARM_ARGUMENTS:
        raise BadLaunchContext(f"YAQ_WARM_ARGS holds {len(arguments)} words, at most {_MAX_WARM_ARGUMENTS} are taken")
    return WarmEntry(entry=entry, arguments=tuple(arguments), environment=environment)


def _write_files(folders: ContainerFolders, container_id: str, script: str, tokens: bytes) -> Path:
    """The script and the credentials, each in the private folder and in the container's."""
    for directory, name in ((folders.private_dir, f"{container_id}.tokens"), (folders.work_dir, "container_tokens")):
        _write(directory / name, tokens, 0o600)
    for directory in (folders.private_dir, folders.work_dir):
        _write(directory / "launch_container.sh", script.encode("utf-8", "surrogateescape"), 0o700)
    return folders.work_dir / "launch_container.sh"


def _write_debug_copies(log_dir: Path, script: str, links: Mapping[str, Path]) -> None:
    """For whoever has to find out what a container was started with, after its folder is gone."""
    _write(log_dir / "launch_container.sh", script.encode("utf-8", "surrogateescape"), 0o640)
    listing = "".join(f"{link} -> {target}\n" for link, target in links.items())
    _write(log_dir / "directory.info", listing.encode("utf-8", "surrogateescape"), 0o640)


def _write(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with open(descriptor, "wb") as file:
        file.write(content)


def make_links(work_dir: Path, links: Mapping[str, Path]) -> None:
    """Makes the links as the script's `ln -sf` does. Blocking.

    Raises OSError for a link whose folder leads out of the work folder.
    """
    root = work_dir.resolve()
    for link, target in links.items():
        place = work_dir / link
        if not place.parent.resolve().is_relative_to(root):
            raise PermissionError(errno.EPERM, "its folder leads out of the container's", str(place))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        place.symlink_to(target)
