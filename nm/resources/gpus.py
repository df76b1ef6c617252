"""Which GPUs of this node belong to which container: pure, container ids and amounts in, device numbers out.

The ResourceManager counts `yarn.io/gpu` and the node queue holds a container back until as many are free; what is left
to say is which ones. A container keeps its devices from its first launch to its end, however often its process is run
again. So no two processes ever see the same one. There is no memory across a restart of the NodeManager: it ends what a
former one left before it takes containers.

Devices are named by their place in the order of their bus addresses, as nvidia-smi and Hadoop's GpuResourceAllocator
name them. Processes learn theirs from the environment, which is a convention among honest programs and not a fence.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from yaqd.model import ContainerId, Resource

GPU: Final = "yarn.io/gpu"


class NotEnoughGpus(Exception):
    """Fewer are free than a container was granted; the text is Hadoop's, for the container's diagnostics."""


class Gpus:
    """Invariant: no device is with two containers, and all that are with one are the node's."""

    def __init__(self, devices: tuple[int, ...]) -> None:
        """`devices`: all that containers may be given, in the order in which they are."""
        self._devices = devices
        self._held: dict[ContainerId, tuple[int, ...]] = {}

    def assign(self, container_id: ContainerId, granted: Resource) -> tuple[int, ...]:
        """Returns the container's devices from now until `release`.

        Asked again, it returns those, and as many more as were granted since. Raises NotEnoughGpus, and then nothing
        has changed.
        """
        held = self._held.get(container_id, ())
        missing = granted.extras.get(GPU, 0) - len(held)
        free = self._free()
        if missing > len(free):
            raise NotEnoughGpus(
                f"Failed to find enough GPUs, requestor={container_id}, #RequestedGPUs={missing}, "
                f"#availableGPUs={len(free)}"
            )
        if missing > 0:
            held = self._held[container_id] = (*held, *free[:missing])
        return held

    def release(self, container_id: ContainerId) -> None:
        """Frees the container's devices: none of its processes is left. Without effect for one that has none."""
        self._held.pop(container_id, None)

    def of(self, container_id: ContainerId) -> tuple[int, ...]:
        """Returns the container's devices; none before its first launch and after its end."""
        return self._held.get(container_id, ())

    def environment(self, container_id: ContainerId) -> Mapping[str, str]:
        """Returns what a process must be told, over what its owner says; nothing where the node has no GPU.

        A container without GPUs sees none, rather than those of others. The order makes CUDA count as nvidia-smi does;
        by itself it puts the fastest first.
        """
        if not self._devices:
            return {}
        visible = ",".join(map(str, self.of(container_id)))
        return {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": visible,
            "NVIDIA_VISIBLE_DEVICES": visible,
        }

    def in_use(self, container_id: ContainerId, granted: Resource) -> Resource:
        """Returns a grant as the node queue must count it.

        A device taken from a running container is free at its end only.
        """
        held = len(self._held.get(container_id, ()))
        if held <= granted.extras.get(GPU, 0):
            return granted
        return replace(granted, extras={**granted.extras, GPU: held})

    def bounded(self, capacity: Resource) -> Resource:
        """Returns a node's capacity with no more GPUs than there are, whatever the ResourceManager was told."""
        if capacity.extras.get(GPU, 0) <= len(self._devices):
            return capacity
        return replace(capacity, extras={**capacity.extras, GPU: len(self._devices)})

    def validate(self, live: set[ContainerId]) -> None:
        """Raises AssertionError when an invariant does not hold, or a container that is over still has devices."""
        given = [device for held in self._held.values() for device in held]
        assert len(given) == len(set(given)) and set(given) <= set(self._devices), self._held
        assert self._held.keys() <= live, self._held.keys() - live

    def _free(self) -> list[int]:
        given = {device for held in self._held.values() for device in held}
        return [device for device in self._devices if device not in given]
