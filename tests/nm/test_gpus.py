"""GPUs of a node: which are there, who gets which, and when they are free again."""

import json
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nm.containers.states import Stage
from nm.daemon import NodeManager
from nm.resources.gpus import GPU, Gpus, NotEnoughGpus
from nm.settings import NodeSettings
from tests.nm.nm_cluster import FakeResourceManager, Master, add_update, container_id, launch_context, log_text
from yaqd.config import ConfigError, Configuration
from yaqd.model import ContainerId, ContainerSubState, ExitStatus, Resource
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_server_pb2 as server

PLUGINS = "yarn.nodemanager.resource-plugins"
ALLOWED = f"{PLUGINS}.gpu.allowed-gpu-devices"
EXECUTABLE = f"{PLUGINS}.gpu.path-to-discovery-executables"
TWO = {"yarn.resource-types": GPU, f"yarn.nodemanager.resource-type.{GPU}": "2"}
ONE, OTHER, THIRD = (container_id(number) for number in (1, 2, 3))
SHOW = "echo $CUDA_VISIBLE_DEVICES/$NVIDIA_VISIBLE_DEVICES/$CUDA_DEVICE_ORDER > <LOG_DIR>/gpus"


def of(count: int) -> Resource:
    return Resource(512, 1, {GPU: count} if count else {})


# ---- who gets which


def test_devices_are_distinct_and_come_back_at_the_end() -> None:
    gpus = Gpus((0, 1, 4))
    assert (gpus.assign(ONE, of(1)), gpus.assign(OTHER, of(2))) == ((0,), (1, 4))
    gpus.release(ONE)
    assert gpus.assign(THIRD, of(1)) == (0,)
    assert gpus.environment(OTHER)["CUDA_VISIBLE_DEVICES"] == "1,4"
    gpus.validate({OTHER, THIRD})


def test_a_container_that_runs_again_keeps_its_own_and_gets_what_was_granted_since() -> None:
    gpus = Gpus((0, 1, 2))
    gpus.assign(ONE, of(1))
    gpus.assign(OTHER, of(1))
    assert [gpus.assign(ONE, of(count)) for count in (1, 2, 1)] == [(0,), (0, 2), (0, 2)]


def test_what_a_process_sees_is_in_use_until_it_ends() -> None:
    gpus = Gpus((0, 1))
    gpus.assign(ONE, of(2))
    assert gpus.in_use(ONE, of(1)) == of(2)
    assert gpus.in_use(ONE, of(3)) == of(3) and gpus.in_use(OTHER, of(1)) == of(1)


def test_too_many_change_nothing() -> None:
    gpus = Gpus((0, 1))
    gpus.assign(ONE, of(1))
    with pytest.raises(NotEnoughGpus, match=r"Failed to find enough GPUs.*#RequestedGPUs=2, #availableGPUs=1"):
        gpus.assign(OTHER, of(2))
    assert gpus.assign(THIRD, of(1)) == (1,)


def test_a_node_without_gpus_says_nothing_of_them() -> None:
    assert Gpus(()).environment(ONE) == {}
    assert set(Gpus((0,)).environment(ONE).values()) == {"", "PCI_BUS_ID"}


@given(st.lists(st.tuples(st.sampled_from([ONE, OTHER, THIRD]), st.integers(-1, 3)), max_size=40))
def test_no_history_gives_a_device_to_two(steps: list[tuple[Any, int]]) -> None:
    gpus = Gpus((3, 1, 0))
    live = set()
    for container, count in steps:
        if count < 0:
            gpus.release(container)
            live.discard(container)
            continue
        try:
            assert len(gpus.assign(container, of(count))) >= count
            live.add(container)
        except NotEnoughGpus:
            pass
        gpus.validate(live)


# ---- which are there


def devices(tmp_path: Path, settings: Mapping[str, str]) -> tuple[tuple[int, ...], Resource]:
    types = {"yarn.resource-types": GPU}
    read = NodeSettings.read(Configuration.load(tmp_path, environ={}, overrides={**types, **settings}))
    return read.gpus, read.resource


def program(tmp_path: Path, script: str) -> str:
    file = tmp_path / "nvidia-smi"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def test_a_plain_amount_is_numbered_from_0(tmp_path: Path) -> None:
    found, resource = devices(tmp_path, {f"yarn.nodemanager.resource-type.{GPU}": "3"})
    assert found == (0, 1, 2) and resource.extras == {GPU: 3}
    assert devices(tmp_path, {})[0] == ()


def test_listed_devices_are_what_the_node_offers(tmp_path: Path) -> None:
    amount = {f"yarn.nodemanager.resource-type.{GPU}": "7"}
    found, resource = devices(tmp_path, {PLUGINS: GPU, ALLOWED: "1:1, 3:4,", **amount})
    assert found == (1, 3) and resource.extras == {GPU: 2}


@pytest.mark.parametrize("names_folder", [False, True])
def test_nvidia_smi_is_asked(tmp_path: Path, names_folder: bool) -> None:
    answer = "<nvidia_smi_log><gpu><minor_number>2</minor_number></gpu><gpu/></nvidia_smi_log>"
    doctype = '<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">'
    file = program(tmp_path, f"[ \"$*\" = '-x -q' ] && echo '<?xml version=\"1.0\" ?>{doctype}{answer}'")
    settings = {PLUGINS: GPU, EXECUTABLE: str(tmp_path) if names_folder else file}
    assert devices(tmp_path, settings) == ((0, 1), Resource(8192, 8, {GPU: 2}))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({PLUGINS: "yarn.io/fpga"}, "there is no plug-in yarn.io/fpga"),
        ({PLUGINS: GPU, "yarn.resource-types": ""}, "is not a resource type"),
        ({PLUGINS: GPU, ALLOWED: " ,"}, "names no device"),
        ({PLUGINS: GPU, ALLOWED: "0:0,1"}, "1 is no device"),
        ({PLUGINS: GPU, ALLOWED: "0:0,0:1"}, "device 0 is named twice"),
        ({PLUGINS: GPU, EXECUTABLE: "/nowhere/nvidia-smi"}, "there is no file /nowhere/nvidia-smi"),
    ],
)
def test_bad_settings_are_refused_at_the_start(tmp_path: Path, settings: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        devices(tmp_path, settings)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo NVIDIA-SMI has failed: no driver; exit 9", "failed with exit code 9: NVIDIA-SMI has failed: no driver"),
        ("echo nonsense", "cannot be read"),
        ("echo '<nvidia_smi_log/>'", "finds no GPU"),
    ],
)
def test_a_broken_nvidia_smi_is_a_clear_error(tmp_path: Path, script: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        devices(tmp_path, {PLUGINS: GPU, EXECUTABLE: program(tmp_path, script)})


def test_auto_without_nvidia_smi_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("nm.resources.gpu_settings._FOLDERS", ())
    with pytest.raises(ConfigError, match=f"nvidia-smi is not on this machine.*or list the devices in {ALLOWED}"):
        devices(tmp_path, {PLUGINS: GPU})


# ---- a node


async def seen(rm: FakeResourceManager, node: NodeManager, container: ContainerId) -> list[str]:
    """What a container wrote; waits for it where it still runs."""
    file = node.settings.log_dirs[0] / str(container.application_id) / str(container) / "gpus"
    text = await rm.until(lambda: file.exists() and file.read_text())
    return str(text).strip().split("/")


async def test_two_containers_have_a_gpu_each_and_a_third_waits_for_one(
    rm: FakeResourceManager, start_node: Callable[..., Any]
) -> None:
    node: NodeManager = await start_node({**TWO, "yaq.nm.queue.enabled": "false"})
    assert rm.registrations[0].resource.resource_value_map[-1].value == 2
    master = Master(rm, node)
    for container in (ONE, OTHER):
        await master.run(container, launch_context(f"{SHOW}; sleep 1000"), resource=of(1))
    none = container_id(4)
    overruled = {"CUDA_VISIBLE_DEVICES": "0,1"}
    await master.run(none, launch_context(SHOW, environment=overruled), resource=of(0))
    assert (await rm.end_of(none)).exit_status == 0
    assert await seen(rm, node, none) == ["", "", "PCI_BUS_ID"], "a container without GPUs sees none, whatever it says"
    await master.run(THIRD, launch_context(SHOW), resource=of(1))
    assert await seen(rm, node, ONE) == ["0", "0", "PCI_BUS_ID"]
    assert await seen(rm, node, OTHER) == ["1", "1", "PCI_BUS_ID"]
    await rm.until(lambda: node.runtime.containers[THIRD].stage is Stage.SCHEDULED)
    async with aiohttp.ClientSession() as session:
        address = "http://{}:{}/ws/v1/node/containers".format(*node.web_address)
        async with session.get(address) as answer:
            shown = {c["id"]: c["gpus"] for c in (await answer.json())["containers"]["container"]}
    assert [shown[str(c)] for c in (ONE, OTHER, THIRD)] == [[0], [1], []]
    await master.stop(OTHER)
    assert (await rm.end_of(THIRD)).exit_status == 0
    assert await seen(rm, node, THIRD) == ["1", "1", "PCI_BUS_ID"]
    node.runtime.validate()
    await master.client.close()


async def test_a_node_without_gpus_leaves_the_variables_alone(
    rm: FakeResourceManager, node: NodeManager, master: Master
) -> None:
    context = launch_context(SHOW, environment={"CUDA_VISIBLE_DEVICES": "5"})
    await master.run(ONE, context)
    assert (await rm.end_of(ONE)).exit_status == 0
    assert await seen(rm, node, ONE) == ["5", "", ""]


async def test_gpus_come_back_after_a_failed_launch_a_crash_and_a_lost_process(
    rm: FakeResourceManager, start_node: Callable[..., Any]
) -> None:
    node: NodeManager = await start_node(TWO)
    master = Master(rm, node)
    await master.run(ONE, launch_context("\0"), resource=of(2))
    assert "could not be launched" in (await rm.end_of(ONE)).diagnostics
    await master.run(OTHER, launch_context("kill -9 $$"), resource=of(2))
    assert (await rm.end_of(OTHER)).exit_status == 137
    await master.run(THIRD, launch_context("sleep 1000"), resource=of(2))
    container = node.runtime.containers[THIRD]
    await rm.until(lambda: container.stage is Stage.RUNNING)
    assert container.process is not None
    container.process.signal_group(signal.SIGKILL)
    assert (await rm.end_of(THIRD)).exit_status == 137
    last = container_id(4)
    await master.run(last, launch_context(SHOW), resource=of(2))
    await rm.end_of(last)
    assert (await seen(rm, node, last))[0] == "0,1"
    await master.client.close()


async def test_more_than_there_are_fails_in_hadoops_words_though_the_resource_manager_grants_it(
    rm: FakeResourceManager, start_node: Callable[..., Any]
) -> None:
    node: NodeManager = await start_node(TWO)
    master = Master(rm, node)

    def grow(response: server.NodeHeartbeatResponse) -> None:
        response.resource.CopyFrom(rm.registrations[0].resource)
        response.resource.resource_value_map[-1].value = 8

    rm.orders.append(grow)
    beats = len(rm.heartbeats)
    await rm.until(lambda: len(rm.heartbeats) > beats + 2)
    await master.run(ONE, launch_context("true"), resource=of(3))
    end = await rm.end_of(ONE)
    assert "Failed to find enough GPUs" in end.diagnostics and end.exit_status == ExitStatus.INVALID
    await master.run(OTHER, launch_context("sleep 1000"), resource=of(1))
    await master.run(THIRD, launch_context("true"), resource=of(2))
    await rm.until(lambda: rm.sub_state(OTHER) == ContainerSubState.RUNNING)
    await rm.until(lambda: node.runtime.containers[THIRD].stage is Stage.SCHEDULED)
    await master.client.close()


async def test_a_gpu_taken_from_a_running_container_is_given_to_nobody_before_its_end(
    rm: FakeResourceManager, start_node: Callable[..., Any]
) -> None:
    node: NodeManager = await start_node(TWO)
    master = Master(rm, node)
    await master.run(ONE, launch_context("sleep 1000"), resource=of(2))
    await rm.until(lambda: rm.sub_state(ONE) == ContainerSubState.RUNNING)
    token = rm.container_token(ONE, node.node_id, resource=of(1), version=1)
    rm.orders.append(partial(add_update, token))
    await rm.until(lambda: node.runtime.containers[ONE].grant.version == 1)
    await master.run(OTHER, launch_context(SHOW), resource=of(1))
    await rm.until(lambda: node.runtime.containers[OTHER].stage is Stage.SCHEDULED)
    await master.stop(ONE)
    assert (await rm.end_of(OTHER)).exit_status == 0
    await master.client.close()


@pytest.mark.slow
async def test_a_container_that_is_run_again_sees_the_same_gpus(
    rm: FakeResourceManager, start_node: Callable[..., Any], tmp_path: Path
) -> None:
    node: NodeManager = await start_node(TWO)
    master = Master(rm, node)
    context = launch_context(
        f"echo $CUDA_VISIBLE_DEVICES >> {tmp_path}/runs; test -e been || {{ touch been; exit 1; }}"
    )
    context.container_retry_context.retry_policy = common.RETRY_ON_ALL_ERRORS
    context.container_retry_context.max_retries = 1
    await master.run(ONE, context, resource=of(1))
    await rm.until(lambda: node.runtime.containers[ONE].stage is Stage.RELAUNCHING)
    await master.run(OTHER, launch_context("sleep 1000"), resource=of(1))
    assert (await rm.end_of(ONE)).exit_status == 0
    assert (tmp_path / "runs").read_text() == "0\n0\n"
    await master.client.close()


async def test_a_warm_task_sees_its_gpus_as_a_cold_one_does(
    rm: FakeResourceManager, start_node: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    warm = {"yaq.nm.warm-start.enabled": "true", "yaq.nm.warm-start.preload": "nm_warm_probe"}
    node: NodeManager = await start_node({**TWO, **warm, "yarn.nodemanager.vmem-check-enabled": "false"})
    assert node.prepared is not None
    await node.prepared.ready()
    master = Master(rm, node)
    context = launch_context("exit 77", environment={"YAQ_WARM_ENTRY": "tez_adapter.probe:report"})
    for container in (ONE, OTHER):
        await master.run(container, context, resource=of(1 if container == OTHER else 0))
        assert (await rm.end_of(container)).exit_status == 0
    told = [json.loads(log_text(node, c, "stdout"))["environment"]["CUDA_VISIBLE_DEVICES"] for c in (ONE, OTHER)]
    assert told == ["", "0"]
    await master.client.close()
