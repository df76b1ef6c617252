"""Old aggregated logs are deleted, by Hadoop's rule."""

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rm.logs.retention import LogRetention, RetentionSettings, sweep
from tests.examples import examples
from tests.rm.rm_harness import cluster
from yaqd.config import Configuration
from yaqd.model import ApplicationId
from yaqd.storage import get_filesystem
from yaqd.storage.tfile import RemoteLogs

_NOW_S = 1_800_000_000
_OVER, _RUNNING = ApplicationId(1700000000000, 1), ApplicationId(1700000000000, 10002)


def _conf(root: Path, **more: str) -> Configuration:
    given = {"fs.defaultFS": "file:///", "yarn.nodemanager.remote-app-log-dir": str(root)}
    return Configuration.load(environ={}, overrides=given | {key.replace("_", "."): v for key, v in more.items()})


def _make(folder: Path, ages_s: Mapping[str, int], own_age_s: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, age_s in ages_s.items():
        (folder / name).write_text("log")
        os.utime(folder / name, (_NOW_S - age_s, _NOW_S - age_s))
    os.utime(folder, (_NOW_S - own_age_s, _NOW_S - own_age_s))


def _bucket(root: Path, app: ApplicationId) -> Path:
    return root / "alice" / "bucket-logs-tfile" / f"{app.id % 10000:04d}" / str(app)


def _sweep(root: Path, retain_s: int, active: set[ApplicationId]) -> tuple[int, int, list[str]]:
    conf = _conf(root)
    remote = RemoteLogs.read(conf)
    swept = sweep(get_filesystem(remote.root, conf), remote, active, (_NOW_S - retain_s) * 1000)
    return swept.folders, swept.files, swept.problems


@settings(max_examples=examples(60), deadline=None)
@given(
    st.booleans(),
    st.dictionaries(st.sampled_from(["h_1", "h_2", "h_3"]), st.integers(0, 200)),
    st.integers(0, 200),
    st.booleans(),
)
def test_the_rule(
    tmp_path_factory: pytest.TempPathFactory, is_running: bool, ages: dict[str, int], own: int, is_older_layout: bool
) -> None:
    root = tmp_path_factory.mktemp("logs")
    app = _RUNNING if is_running else _OVER
    folder = root / "alice" / "logs" / str(app) if is_older_layout else _bucket(root, app)
    _make(folder, ages, own)
    _sweep(root, 100, {_RUNNING})
    kept = {path.name for path in folder.iterdir()} if folder.exists() else None
    if own <= 100:
        assert kept == set(ages)
    elif is_running:
        assert kept == {name for name, age in ages.items() if age <= 100}
    else:
        assert kept == (set(ages) if any(age <= 100 for age in ages.values()) else None)


def test_what_is_no_application_stays(tmp_path: Path) -> None:
    for place in ("alice/other/application_1700000000000_0001", "alice/logs/notes", "alice/bucket-logs-tfile/0001/x"):
        _make(tmp_path / place, {"h_1": 500}, 500)
    (tmp_path / "outside").mkdir()
    _make(tmp_path / "outside" / str(_OVER), {"h_1": 500}, 500)
    (tmp_path / "bob").mkdir()
    (tmp_path / "bob" / "logs").symlink_to(tmp_path / "outside")
    link = tmp_path / "carol" / "logs" / str(_OVER)
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / "outside" / "elsewhere")
    before = sorted(tmp_path.rglob("h_1"))
    assert _sweep(tmp_path / "nothing", 100, set()) == (0, 0, [])
    assert _sweep(tmp_path, 100, set()) == (0, 0, [])
    assert sorted(tmp_path.rglob("h_1")) == before


@pytest.mark.parametrize(
    ("retain", "interval", "expected"),
    [
        ("-1", "5", None),
        ("100", "-1", RetentionSettings(100, 10.0)),
        ("100", "7", RetentionSettings(100, 7)),
        ("1", "0", RetentionSettings(1, 1.0)),
    ],
)
def test_settings(tmp_path: Path, retain: str, interval: str, expected: RetentionSettings | None) -> None:
    given = {
        "yarn.log-aggregation-enable": "true",
        "yarn.log-aggregation.retain-seconds": retain,
        "yarn.log-aggregation.retain-check-interval-seconds": interval,
    }
    assert RetentionSettings.read(Configuration.load(environ={}, overrides=given)) == expected


@pytest.mark.slow
async def test_the_resource_manager_deletes_what_is_old_of_applications_that_are_over(tmp_path: Path) -> None:
    overrides = {
        "fs.defaultFS": "file:///",
        "yarn.nodemanager.remote-app-log-dir": str(tmp_path),
        "yarn.log-aggregation-enable": "true",
        "yarn.log-aggregation.retain-seconds": "100",
        "yarn.log-aggregation.retain-check-interval-seconds": "1",
    }
    _make(_bucket(tmp_path, _OVER), {"h_1": 10**9}, 10**9)
    async with cluster(overrides) as harness:
        node = await harness.node()
        app, _ = await harness.running(node)
        running = _bucket(tmp_path, app)
        _make(running, {"h_1": 10**9, "h_2": -(10**9)}, 10**9)
        await harness.until(lambda: not _bucket(tmp_path, _OVER).exists() and not (running / "h_1").exists())
        assert [path.name for path in running.iterdir()] == ["h_2"]


@pytest.mark.parametrize("out", ["", "nonsense", "[]", '{"folders": 1}'])
async def test_a_sweep_that_breaks_breaks_nothing_else(
    tmp_path: Path, out: str, caplog: pytest.LogCaptureFixture
) -> None:
    retention = LogRetention(
        _conf(tmp_path),
        RetentionSettings(100, 1),
        active=lambda: [_RUNNING],
        wall_ms=lambda: _NOW_S * 1000,
        command=(sys.executable, "-c", f"import sys; sys.stdin.read(); print({json.dumps(out)})"),
    )
    await retention.sweep_once()
    assert "ended without an answer" in caplog.text


async def test_a_sweep_that_fails_unforeseen_is_told_and_is_not_the_last(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[None] = []

    def active() -> list[ApplicationId]:
        asked.append(None)
        raise KeyError("broken on purpose")

    retention = LogRetention(_conf(tmp_path), RetentionSettings(100, 0.001), active=active, wall_ms=lambda: 0)
    retention.start()
    async with asyncio.timeout(20):
        while len(asked) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    await retention.stop()
    assert [record.levelname for record in caplog.records] == ["ERROR"] * len(asked)


async def test_stopping_ends_a_sweep_that_hangs(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    retention = LogRetention(
        _conf(tmp_path),
        RetentionSettings(100, 0.001),
        active=list,
        wall_ms=lambda: _NOW_S * 1000,
        command=(
            sys.executable,
            "-c",
            f"import os,time; open({str(mark)!r},'w').write(str(os.getpid())); time.sleep(99)",
        ),
    )
    retention.start()
    async with asyncio.timeout(20):
        while not mark.exists() or not mark.read_text().strip():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await retention.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
