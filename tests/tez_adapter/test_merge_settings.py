"""How merging is configured, and what is refused."""

import dataclasses
from pathlib import Path

import pytest

from riffle_merger.merger.disk import DiskFacts
from riffle_merger.merger.diskshape import is_turning
from riffle_merger.plan.policy import OFF, MergePolicy
from tez_adapter.jobspec import JobKind, JobSpec
from tez_adapter.merging.settings import MergeSettings, unmerged_summary
from yaqd.config import Configuration
from yaqd.config.errors import ConfigError


def conf(**values: str) -> Configuration:
    keys = {f"yaq.riffle.{name.replace('_', '-')}": value for name, value in values.items()}
    return Configuration.load(None, overrides=keys, environ={})


@pytest.mark.parametrize(
    ("values", "policy"),
    [
        ({}, None),
        ({"policy": "auto"}, None),
        ({"policy": "off"}, OFF),
        ({"policy": "files", "files": "5"}, MergePolicy(files=5)),
        ({"policy": "block-size", "block_size": "512k"}, MergePolicy(block_bytes=512 * 1024)),
    ],
)
def test_policies_by_name(values: dict[str, str], policy: MergePolicy | None) -> None:
    assert MergeSettings.read(conf(**values)).policy == policy


def test_the_choice_knows_the_memory_of_a_merge() -> None:
    assert MergeSettings.read(conf()).disk.merge_memory == 256 << 20
    known = MergeSettings.read(
        Configuration.load(
            None, overrides={"yaq.riffle.merger.memory": "8g", "yaq.riffle.merger.merges-max": "10"}, environ={}
        )
    )
    assert known.disk.merge_memory == (8 << 30) / 10
    # what the nodes' disks do is no news of their mergers
    assert known.disk_of([DiskFacts(8000, 100_000_000, 0)]).merge_memory == (8 << 30) / 10


@pytest.mark.parametrize(
    "values",
    [
        {"policy": "sometimes"},
        {"policy": "files", "files": "1"},
        {"policy": "files", "files": "201"},
        {"policy": "block-size", "block_size": "0"},
        {"policy": "block-size", "block_size": "9000000t"},
        {"best_effort": "0"},
        {"best_effort": "1.5"},
        {"best_effort": "nan"},
        {"outstanding": "0"},
        {"merge_timeout_ms": "0"},
    ],
)
def test_what_cannot_be_is_refused_with_its_key(values: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"yaq\.riffle\."):
        MergeSettings.read(conf(**values))


def test_what_is_known_of_the_disk_is_taken_from_the_configuration_first() -> None:
    settings = MergeSettings.read(
        Configuration.load(
            None,
            overrides={
                "yaq.riffle.disk.seek-ms": "5",
                "yaq.riffle.disk.mb-per-second": "80",
                "yaq.riffle.disk.cache-mb": "10",
            },
            environ={},
        )
    )
    assert (settings.disk.seek_s, settings.disk.bytes_per_s, settings.disk.cache_bytes) == (0.005, 80e6, 10e6)


def test_a_folder_on_no_disk_does_not_turn() -> None:
    assert not is_turning(Path("/proc"))
    assert not is_turning(Path("/nowhere"))


def test_why_a_job_manager_merges_nothing_is_in_its_history() -> None:
    spec = JobSpec("job_1_0001", "n", "u", JobKind.MAPREDUCE, {}, "s", reduces=2)

    def why(spec: JobSpec, **values: str) -> str | None:
        overrides = {f"yaq.riffle.{name}": value for name, value in values.items()}
        conf = Configuration.load(None, overrides=overrides, environ={})
        found = unmerged_summary(dataclasses.replace(spec, conf=overrides), conf)
        return None if found is None else f"{found['policy']}: {found['reason']}"

    assert why(spec, enabled="false") == "no merging: yaq.riffle.enabled is false"
    assert why(spec) is None and why(spec, enabled="true") is None
    map_only = dataclasses.replace(spec, reduces=0)
    said = "no merging: the job has no reduces, so nobody reads parts of them"
    assert why(map_only) == why(map_only, enabled="true") == said


def test_what_mergers_tell_of_their_disks_fills_what_is_not_configured() -> None:
    tried = [DiskFacts(9000, 90_000_000, 4_000_000), DiskFacts(7000, 80_000_000, 2_000_000), DiskFacts(100, 10**10, 0)]
    settings = MergeSettings.read(conf(**{"disk.mb_per_second": "70"}))
    assert settings.disk_of([]) == settings.disk
    disk = settings.disk_of(tried)
    assert (disk.seek_s, disk.bytes_per_s, disk.cache_bytes) == (0.007, 70e6, 1_000_000)
