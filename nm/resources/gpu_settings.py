"""Which GPUs this node has, by its configuration: as Hadoop's GpuDiscoverer and GpuNodeResourceUpdateHandler.

With the plug-in `yarn.io/gpu` they are listed, or nvidia-smi is asked, and their number is what the node offers.
Without, the amount in `node-resources.xml` counts, and the devices are 0, 1, 2 and so on.
"""

import logging
import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from nm.resources.gpus import GPU
from yaqd.config import Configuration

log = logging.getLogger(__name__)

_PLUGINS: Final = "yarn.nodemanager.resource-plugins"
_ALLOWED: Final = "yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices"
_EXECUTABLE: Final = "yarn.nodemanager.resource-plugins.gpu.path-to-discovery-executables"
_PROGRAM: Final = "nvidia-smi"
#: where it is looked for, besides PATH
_FOLDERS: Final = ("/usr/bin", "/bin", "/usr/local/nvidia/bin")
_TIMEOUT_S: Final = 10.0
_DEVICE: Final = re.compile(r"(\d{1,4}):(\d{1,4})", re.ASCII)
_BY_HAND: Final = f"or list the devices in {_ALLOWED}, for example 0:0,1:1"


def gpu_devices(conf: Configuration, types: Iterable[str], configured: int) -> tuple[int, ...]:
    """Returns the devices that containers may be given. Blocking: may run nvidia-smi. Raises ConfigError.

    `types`: the resource types. `configured`: how many GPUs the node's files say it has.
    """
    plugins = conf.get_list(_PLUGINS, [])
    for name in plugins:
        if name != GPU:
            raise conf.error(_PLUGINS, f"there is no plug-in {name}", f"{GPU} is the one there is")
    if not plugins:
        return tuple(range(configured))
    if GPU not in types:
        raise conf.error(_PLUGINS, f"{GPU} is not a resource type", "name it in yarn.resource-types")
    text = (conf.get(_ALLOWED) or "").strip()
    devices = _discovered(conf) if text == "auto" else _listed(conf, text)
    if configured and configured != len(devices):
        log.warning("the node offers %d GPUs, by its plug-in, and not %d", len(devices), configured)
    return devices


def _listed(conf: Configuration, text: str) -> tuple[int, ...]:
    """`index:minor number` each. The second is what Hadoop's control groups go by; here it must only be a number."""
    devices: list[int] = []
    for word in (part.strip() for part in text.split(",")):
        if not word:
            continue
        match = _DEVICE.fullmatch(word)
        if match is None:
            raise conf.error(_ALLOWED, f"{word} is no device", "write index:minor number for each, for example 0:0,1:1")
        if int(match[1]) in devices:
            raise conf.error(_ALLOWED, f"device {match[1]} is named twice", "name each once")
        devices.append(int(match[1]))
    if not devices:
        raise conf.error(_ALLOWED, "names no device", "list them, for example 0:0,1:1, or write auto")
    return tuple(devices)


def _discovered(conf: Configuration) -> tuple[int, ...]:
    program = _program(conf)
    try:
        answer = subprocess.run([program, "-x", "-q"], capture_output=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise conf.error(_ALLOWED, f"{program} did not answer in {_TIMEOUT_S:g} s", f"repair it, {_BY_HAND}") from None
    except OSError as error:
        raise conf.error(_ALLOWED, f"{program} cannot be run: {error.strerror}", f"repair it, {_BY_HAND}") from None
    if answer.returncode:
        said = (answer.stderr or answer.stdout).decode("utf-8", "replace").strip().partition("\n")[0][:200]
        problem = f"{program} failed with exit code {answer.returncode}: {said}"
        raise conf.error(_ALLOWED, problem, f"repair it, {_BY_HAND}")
    try:
        count = len(ElementTree.fromstring(answer.stdout).findall("gpu"))
    except ElementTree.ParseError as error:
        problem = f"the answer of {program} -x -q cannot be read: {error}"
        raise conf.error(_ALLOWED, problem, f"repair it, {_BY_HAND}") from None
    if not count:
        raise conf.error(_ALLOWED, f"{program} finds no GPU", f"take {GPU} out of {_PLUGINS}, {_BY_HAND}")
    log.info("%s finds %d GPUs", program, count)
    return tuple(range(count))


def _program(conf: Configuration) -> Path:
    """The configured file, or the program in the configured folder, or in one of the usual ones."""
    configured = (conf.get(_EXECUTABLE) or "").strip()
    if configured:
        place = Path(configured)
        found = place / _PROGRAM if place.is_dir() else place
        if not found.is_file():
            raise conf.error(_EXECUTABLE, f"there is no file {found}", f"name {_PROGRAM}, {_BY_HAND}")
        return found
    folders = (*os.environ.get("PATH", "").split(os.pathsep), *_FOLDERS)
    for folder in filter(None, folders):
        if os.access(Path(folder) / _PROGRAM, os.X_OK):
            return Path(folder) / _PROGRAM
    raise conf.error(_ALLOWED, f"{_PROGRAM} is not on this machine", f"install it, {_BY_HAND}")
