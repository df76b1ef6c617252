"""Resource types and what a node has of them: files, units, bounds, and every way to get them wrong."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from yaqd.config import ConfigError, Configuration, write_properties
from yaqd.config.check import Severity, check_folder
from yaqd.config.resource_types import ResourceType, node_resources, resource_types

GPU, DISK = "yarn.io/gpu", "disk"
TYPES = "yarn.resource-types"
LARGEST = 2**63 - 1
NOTHING: Mapping[str, str] = MappingProxyType({})


def configuration(folder: Path, types: Mapping[str, str], node: Mapping[str, str] = NOTHING) -> Configuration:
    for name, settings in (("resource-types.xml", types), ("node-resources.xml", node)):
        if settings:
            write_properties(folder / name, [(key, value, "") for key, value in settings.items()])
    return Configuration.load(folder, environ={})


def test_none_without_files(tmp_path: Path) -> None:
    conf = configuration(tmp_path, NOTHING)
    assert resource_types(conf) == () and node_resources(conf, ()) == {}


def test_types_in_single_units(tmp_path: Path) -> None:
    conf = configuration(
        tmp_path,
        {
            TYPES: f"{GPU}, {DISK},memory-mb",
            f"{TYPES}.{GPU}.maximum-allocation": "4",
            f"{TYPES}.{DISK}.units": "Gi",
            f"{TYPES}.{DISK}.minimum-allocation": "512Mi",
            f"{TYPES}.{DISK}.maximum-allocation": "2",
        },
        {f"yarn.nodemanager.resource-type.{GPU}": "8", f"yarn.nodemanager.resource-type.{DISK}": "3 T"},
    )
    types = resource_types(conf)
    assert types == (ResourceType(GPU, "", 0, 4), ResourceType(DISK, "Gi", 512 << 20, 2 << 30))
    assert node_resources(conf, types) == {GPU: 8, DISK: 3 * 1000**4}


def test_the_site_may_define_them_too() -> None:
    conf = Configuration.load(environ={}, overrides={TYPES: GPU, f"yarn.nodemanager.resource-type.{GPU}": "0"})
    assert resource_types(conf) == (ResourceType(GPU, "", 0, LARGEST),)
    assert node_resources(conf, resource_types(conf)) == {}


@pytest.mark.parametrize(
    ("types", "line", "words"),
    [
        ({TYPES: f"{GPU},{GPU}"}, 3, "twice"),
        ({TYPES: "0gpu"}, 3, "a name begins with a letter"),
        ({TYPES: "-x/gpu"}, 3, "a name begins with a letter"),
        ({TYPES: "memory"}, 3, "is no name"),
        ({TYPES: ",".join(f"t{n}" for n in range(65))}, 3, "64 at most"),
        ({TYPES: "vcores", f"{TYPES}.vcores.units": "k"}, 7, "built in"),
        ({TYPES: "memory-mb", f"{TYPES}.memory-mb.maximum-allocation": "9"}, 7, "yarn.scheduler.maximum-allocation-mb"),
        ({TYPES: GPU, f"{TYPES}.{GPU}.units": "m"}, 7, "no unit that can be counted in"),
        ({TYPES: GPU, f"{TYPES}.{GPU}.type": "SHARED"}, 7, "write COUNTABLE"),
        ({TYPES: GPU, f"{TYPES}.{GPU}.maximum-allocation": "four"}, 7, "is no amount"),
        ({TYPES: GPU, f"{TYPES}.{GPU}.maximum-allocation": "-1"}, 7, "is no amount"),
        ({TYPES: GPU, f"{TYPES}.{GPU}.maximum-allocation": "99999999P"}, 7, "more than can be counted"),
        ({TYPES: GPU, f"{TYPES}.gpu.units": "k"}, 7, "gpu is not a resource type"),
    ],
)
def test_wrong_types_are_named_with_file_and_line(tmp_path: Path, types: dict[str, str], line: int, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as caught:
        resource_types(configuration(tmp_path, types))
    assert (caught.value.file, caught.value.line) == (tmp_path / "resource-types.xml", line)


def test_a_maximum_below_the_minimum(tmp_path: Path) -> None:
    key = f"{TYPES}.{GPU}"
    conf = configuration(tmp_path, {TYPES: GPU, f"{key}.minimum-allocation": "2", f"{key}.maximum-allocation": "1"})
    with pytest.raises(ConfigError, match="less than the minimum"):
        resource_types(conf)


@pytest.mark.parametrize(
    ("key", "value", "words"), [(GPU, "many", "is no amount"), ("fpga", "1", "not a resource type")]
)
def test_wrong_amounts_of_a_node(tmp_path: Path, key: str, value: str, words: str) -> None:
    conf = configuration(tmp_path, {TYPES: GPU}, {f"yarn.nodemanager.resource-type.{key}": value})
    with pytest.raises(ConfigError, match=words) as caught:
        node_resources(conf, resource_types(conf))
    assert caught.value.file == tmp_path / "node-resources.xml" and caught.value.line is not None


def test_the_check_of_a_folder_finds_them(tmp_path: Path) -> None:
    configuration(tmp_path, {TYPES: GPU}, {"yarn.nodemanager.resource-type.fpga": "1"})
    (found,) = check_folder(tmp_path)
    assert (found.severity, found.file, found.line) == (Severity.ERROR, tmp_path / "node-resources.xml", 3)
    assert "fpga is not a resource type" in found.message
