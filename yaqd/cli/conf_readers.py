"""What the daemons and the clients of this folder would refuse, found by the very reading that they do when they start.

Each stops at its first mistake; here the setting at fault is put back to its default and the reading goes on, so that
one check names them all. Nothing is started, and no folder is made.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from yaqd.config import ConfigError, Configuration
from yaqd.config.check import Finding, Severity, finding_of

_Reader = Callable[[Configuration], object]
#: mistakes after which a reader is left alone
_MISTAKES_MAX: Final = 100
_QUEUES: Final = "yarn.scheduler.capacity."
_INCLUDED: Final = "yarn.resourcemanager.nodes.include-path"
_GPUS: Final = "yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices"


def refusals(folder: Path, found: Sequence[Finding]) -> Iterator[Finding]:
    """Yield errors beyond those of `found`, which says what the files themselves show. Blocking."""
    try:
        conf = Configuration.load(folder)
        defaults = Configuration.load(environ={})
    except ConfigError:
        return  # a file that cannot be read at all, which is among what was found
    known = {(one.key, one.file, one.line) for one in found if one.severity is Severity.ERROR}
    for reader in (_common, _resource_manager, _queues, _node_manager, _clients):
        for finding in _mistakes(reader, conf, defaults):
            place = finding if finding.file is not None else dataclasses.replace(finding, file=folder)
            if (place.key, place.file, place.line) not in known:
                known.add((place.key, place.file, place.line))
                yield place


def strangers(folder: Path) -> Iterator[Finding]:
    """Yield warnings about settings of hosts whose nodes the ResourceManager would not let in. Blocking."""
    from rm.node_queues.orderings import named_hosts
    from rm.nodes.hosts import read_host_lists

    try:
        conf = Configuration.load(folder)
        lists = read_host_lists(conf)
        named = named_hosts(conf)
    except ConfigError:
        return  # said already
    if lists.name_addresses:
        return  # which host has which address may change
    for host, key in named.items():
        if lists.is_untracked(host):
            origin = conf.origin(key)
            file, line = (origin.file, origin.line) if origin is not None else (None, None)
            problem = f"no node may be at {host}, which {_INCLUDED} does not name"
            yield Finding(Severity.WARNING, problem, key, file, line)


def _mistakes(read: _Reader, conf: Configuration, defaults: Configuration) -> Iterator[Finding]:
    mended: set[str] = set()
    #: parents of queues whose own share was wrong: what their children add up to says nothing then
    doubtful: set[str] = set()
    for _ in range(_MISTAKES_MAX):
        try:
            read(conf)
        except ConfigError as error:
            key = error.key
            if key in mended:
                return
            if key not in doubtful:
                yield finding_of(error)
            if key is None or (key.startswith(_QUEUES) and key.endswith(".queues")):
                return
            mended.add(key)
            if key.startswith(_QUEUES) and key.endswith(".capacity"):
                parent = key.removesuffix(".capacity").rpartition(".")[0]
                doubtful.add(f"{parent}.queues")
                conf = conf.with_overrides({key: "0"})
            else:
                conf = conf.with_overrides({key: "" if key.startswith(_QUEUES) else defaults.raw(key) or ""})
        else:
            return


def _common(conf: Configuration) -> None:
    from yaqd.cli.daemons import check_supported, log_settings

    check_supported(conf)
    log_settings(conf)


def _resource_manager(conf: Configuration) -> None:
    from rm.logs.retention import RetentionSettings
    from rm.nodes.sizes import read_node_sizes
    from rm.nodes.topology import Topology
    from rm.settings.daemon import RmSettings
    from rm.settings.stages import verify_weights
    from yaqd.ipc import server_limits

    RmSettings.read(conf)
    verify_weights(conf)
    server_limits(conf)
    Topology.read(conf)
    read_node_sizes(conf)
    RetentionSettings.read(conf)
    _who_may(conf)


def _queues(conf: Configuration) -> None:
    from rm.settings.daemon import read_queues

    read_queues(conf)


def _node_manager(conf: Configuration) -> None:
    from nm.logs.aggregation.settings import LogAggregationSettings
    from nm.settings import NodeSettings
    from nm.shuffle.settings import MergingSettings
    from nm.web_settings import NodeWebSettings

    if (conf.get(_GPUS) or "").strip() == "auto":
        conf = conf.with_overrides({_GPUS: "0:0"})  # each node asks for its own, which this machine need not have
    settings = NodeSettings.read(conf)
    folder = next(iter(settings.local_dirs), Path("/"))
    MergingSettings.read(conf, bind_host=settings.bind_host, folder=folder)
    LogAggregationSettings.read(conf)
    NodeWebSettings.read(conf)
    _who_may(conf)


def _who_may(conf: Configuration) -> None:
    from yaqd.security.groups import Groups
    from yaqd.security.impersonation import ProxyUsers
    from yaqd.security.service_acls import ServiceAcls

    groups = Groups.read(conf)
    ProxyUsers(conf, groups)
    ServiceAcls(conf, groups)


def _clients(conf: Configuration) -> None:
    """What `yaq run` and `yaq mr` read before they ask anybody."""
    from tez_adapter.client.rm_client import ADDRESS_KEY
    from tez_adapter.client.sizes import command_size, in_single_units, task_size
    from tez_adapter.client.terms import set_terms
    from tez_adapter.merging.settings import check_merging, on_hdfs
    from tez_adapter.output_codec import shuffle_codec
    from yaqd.proto import yarn_common_pb2 as pb
    from yaqd.storage import locate

    conf.get_address(ADDRESS_KEY)
    scheme = locate("/", conf).scheme
    if scheme not in ("file", "hdfs"):
        raise conf.error("fs.defaultFS", f"there is no file system for {scheme}://", "use file:/// or hdfs://HOST:PORT")
    in_single_units(conf)
    for size in (command_size, lambda c: task_size("map", c), lambda c: task_size("reduce", c)):
        size(conf)
    for key in ("yarn.app.mapreduce.am.resource.mb", "yaq.job.reduces-max", "yaq.job.tasks-max"):
        conf.get_int(key, minimum=1)
    conf.get_int("yarn.app.mapreduce.am.resource.cpu-vcores", 1, minimum=1)
    conf.get_int("mapreduce.am.max-attempts", 2, minimum=1)
    shuffle_codec(conf)
    check_merging(conf)
    on_hdfs(conf)
    set_terms(pb.ApplicationSubmissionContext(), conf)
