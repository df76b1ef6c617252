"""`yaq conf check` refuses what the daemons refuse, each mistake with its file and line."""

import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from yaqd.cli.app import yaq
from yaqd.config.stage_weights import shipped_weights

QUEUES = "yarn.scheduler.capacity."


def check(folder: Path, settings: dict[str, str], file: str = "yarn-site.xml") -> Result:
    lines = "\n".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()
    )
    (folder / file).write_text(f"<configuration>\n{lines}\n</configuration>")
    return CliRunner().invoke(yaq, ["conf", "check", "--conf", str(folder)])


def check_queues(folder: Path, **settings: str) -> Result:
    named = {QUEUES + key.replace("__", "."): value for key, value in settings.items()}
    return check(folder, named, "capacity-scheduler.xml")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (
            "yarn.resourcemanager.scheduler.class",
            "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler",
            "not supported",
        ),
        ("hadoop.security.authentication", "kerberos", "not one of simple"),
        ("yarn.nm.liveness-monitor.expiry-interval-ms", "-5", "less than 1"),
        ("yarn.nodemanager.resource.memory-mb", "4g", "not a whole number"),
        ("yarn.resourcemanager.nodes.exclude-path", "/nowhere/at/all", "cannot be read"),
        ("yarn.resourcemanager.address", "nohost", "not an address"),
        ("fs.defaultFS", "hfds://", "names no file system"),
        ("fs.defaultFS", "hfds://master:8020", "no file system for hfds"),
        ("yarn.nodemanager.local-dirs", "relative/folder", "not an absolute path"),
        ("mapreduce.map.memory.mb", "0", "less than 1"),
        ("mapreduce.job.priority", "URGENT", "no priority"),
        ("mapreduce.map.output.compress.codec", "lzo", "write lz4, snappy, zstd or none"),
        ("yaq.log.level", "LOUD", "not one of DEBUG"),
        ("yaq.clotho.weights", "stages.npz", "not an absolute path; give the full path"),
    ],
)
def test_what_a_daemon_or_a_client_refuses_is_an_error(tmp_path: Path, key: str, value: str, words: str) -> None:
    result = check(tmp_path, {"some.other.key": "1", key: value})
    assert result.exit_code == 2, result.output
    (line,) = [line for line in result.output.splitlines() if "error: " in line]
    assert line.startswith(f"{tmp_path}/yarn-site.xml:3: error: {key}: ") and words in line
    assert result.output.splitlines()[-1] == f"{tmp_path}: 1 error"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("yaq.riffle.merger.memory", "5zz", "not a size"),
        ("yaq.riffle.merger.nice", "99", "more than 19"),
        ("yaq.riffle.merger.io-class", "foo", "write idle or best-effort"),
        ("yaq.riffle.merger.stall-ms", "foo", "not a"),
        ("yaq.riffle.shuffle.policy", "foo", "not one of auto, files, off"),
        ("yaq.riffle.shuffle.kept-memory", "foo", "not a size"),
        ("yaq.riffle.disk.seek-ms", "foo", "not a number"),
        ("yaq.riffle.files", "0", "less than 2"),
        ("yaq.riffle.policy", "foo", "not one of auto, files, block-size, off"),
        ("yaq.riffle.storage", "foo", "not one of local, hdfs"),
    ],
)
def test_what_a_node_or_a_job_that_merges_refuses_is_an_error(tmp_path: Path, key: str, value: str, words: str) -> None:
    result = check(tmp_path, {"yaq.riffle.enabled": "true", key: value})
    assert result.exit_code == 2, result.output
    (line,) = [line for line in result.output.splitlines() if "error: " in line]
    assert line.startswith(f"{tmp_path}/yarn-site.xml:3: error: {key}: ") and words in line


@pytest.mark.parametrize(
    ("damaged", "words"),
    [
        (lambda whole: whole[:900], "no .npz of plain arrays"),
        (lambda whole: pickle.dumps(whole), "no .npz of plain arrays"),
        (lambda whole: whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:], "has no weights that load"),
        (lambda whole: whole * 4, "weights have at most 65536"),
    ],
    ids=["truncated", "pickled", "changed", "long"],
)
def test_weights_that_do_not_load_are_named(tmp_path: Path, damaged: Callable[[bytes], bytes], words: str) -> None:
    (bad := tmp_path / "bad.npz").write_bytes(damaged(shipped_weights()))
    result = check(tmp_path, {"yaq.clotho.weights": str(bad)})
    (line,) = [line for line in result.output.splitlines() if "error: " in line]
    assert line.startswith(f"{tmp_path}/yarn-site.xml:2: error: yaq.clotho.weights: has no weights that load: ")
    assert words in line and result.exit_code == 2
    bad.write_bytes(shipped_weights())
    assert check(tmp_path, {"yaq.clotho.weights": str(bad)}).exit_code == 0


def test_a_folder_without_configuration_files_is_not_sound(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    (tmp_path / "conf").mkdir()
    words = ["conf", "check", "--conf", str(tmp_path)]
    result = CliRunner().invoke(yaq, words)
    none = f"{tmp_path}: error: no configuration file in {tmp_path}"
    assert result.exit_code == 2 and result.output == f"{none}\n{tmp_path}: 1 error\n"
    (tmp_path / "conf" / "core-site.xml").write_text("<configuration/>")
    result = CliRunner().invoke(yaq, words)
    assert result.exit_code == 2 and f"{none}; did you mean {tmp_path}/conf?\n" in result.output
    for name in ("hdfs-site.xml", "capacity-scheduler.xml"):
        (tmp_path / name).write_text("<configuration/>")
        assert "no configuration file" not in CliRunner().invoke(yaq, words).output
        (tmp_path / name).unlink()


@pytest.mark.parametrize("enabled", ["false", "true", "yes"])
def test_settings_of_merging_are_checked_whether_it_is_on_or_not(tmp_path: Path, enabled: str) -> None:
    wrong = {
        "yaq.riffle.policy": "flies",
        "yaq.riffle.files": "1000",
        "yaq.riffle.best-effort": "1.5",
        "yaq.riffle.block-size": "2mm",
        "yaq.riffle.disk.seek-ms": "foo",
        "yaq.riffle.shuffle.policy": "foo",
    }
    result = check(tmp_path, {"yaq.riffle.enabled": enabled, **wrong})
    assert result.exit_code == 2, result.output
    errors = [line.split(": ") for line in result.output.splitlines() if "error: " in line]
    named = (["yaq.riffle.enabled"] if enabled == "yes" else []) + list(wrong)
    assert sorted(error[2] for error in errors) == sorted(named)
    lines = {"yaq.riffle.enabled": 2, **{key: 3 + at for at, key in enumerate(wrong)}}
    assert all(error[0] == f"{tmp_path}/yarn-site.xml:{lines[error[2]]}" for error in errors), errors


def test_all_mistakes_are_named_at_once(tmp_path: Path) -> None:
    wrong = {
        "yarn.nm.liveness-monitor.expiry-interval-ms": "-5",
        "yarn.resourcemanager.address": "nohost",
        "yarn.resourcemanager.scheduler.class": "FairScheduler",
        "yarn.nodemanager.resource.memory-mb": "4g",
    }
    result = check(tmp_path, wrong)
    assert result.exit_code == 2
    errors = [line for line in result.output.splitlines() if "error: " in line]
    assert sorted(key for key in wrong for line in errors if f" {key}: " in line) == sorted(wrong)
    assert len(errors) == len(wrong)


@pytest.mark.parametrize(
    ("settings", "line", "words"),
    [
        (
            {"root__queues": "a,b", "root__a__capacity": "60", "root__b__capacity": "50"},
            2,
            "root.queues: cannot be used; the capacities of its queues add up to 110",
        ),
        ({"root__queues": "a,b", "root__a__capacity": "100"}, 2, "root.b.capacity: is missing"),
        (
            {"root__queues": "a", "root__a__capacity": "100", "root__a__maximum-capacity": "50"},
            4,
            "root.a.maximum-capacity: cannot be used; is below the queue's capacity",
        ),
        ({"root__queues": "a", "root__a__capacity": "2w"}, 3, "root.a.capacity: cannot be used; write percent"),
        ({"root__queues": "a", "root__a__capacity": "[memory=10]"}, 3, "root.a.capacity: cannot be used"),
    ],
)
def test_queues_that_the_scheduler_refuses(tmp_path: Path, settings: dict[str, str], line: int, words: str) -> None:
    result = check_queues(tmp_path, **settings)
    assert result.exit_code == 2
    (error,) = [found for found in result.output.splitlines() if "error: " in found]
    assert error.startswith(f"{tmp_path}/capacity-scheduler.xml:{line}: error: {QUEUES}{words}")


def test_every_queue_at_fault_is_named(tmp_path: Path) -> None:
    result = check_queues(
        tmp_path, root__queues="a,b", root__a__capacity="2w", root__a__state="OPEN", root__b__capacity="3w"
    )
    errors = [line.split(": ")[2] for line in result.output.splitlines() if "error: " in line]
    assert errors == [f"{QUEUES}root.{name}" for name in ("a.capacity", "a.state", "b.capacity")]


def test_settings_of_queues_that_do_nothing_are_warnings(tmp_path: Path) -> None:
    settings = {
        "root__queues": "dev",
        "root__dev__capacity": "100",
        "root__dve__capacity": "100",
        "root__dev__user-limit-facter": "2",
        "root__dev__accessible-node-labels__gpu__capacity": "2",
        "root__dev__ordering-policy": "fair",
    }
    result = check_queues(tmp_path, **settings)
    assert result.exit_code == 0
    file = f"{tmp_path}/capacity-scheduler.xml"
    lines = result.output.splitlines()
    assert [line for line in lines if "warning" in line] == [
        f"{file}:4: warning: {QUEUES}root.dve.capacity: there is no queue root.dve, so this does nothing; "
        "did you mean root.dev?",
        f"{file}:5: warning: {QUEUES}root.dev.user-limit-facter: unknown setting of a queue; "
        "did you mean root.dev.user-limit-factor?",
        f"{tmp_path}: sound, 2 warnings",
    ]


def test_settings_of_a_queue_are_read_whatever_its_name(tmp_path: Path) -> None:
    read = {"user-limit-factor": "2", "minimum-user-limit-percent": "25", "disable_preemption": "true"}
    own = {f"root__batch__{name}": value for name, value in read.items()}
    everywhere = {"user-limit-factor": "2", "minimum-user-limit-percent": "25", "global-queue-max-application": "9"}
    result = check_queues(tmp_path, root__queues="batch", root__batch__capacity="100", **own, **everywhere)
    assert (result.exit_code, result.output) == (0, f"{tmp_path}: sound\n")


def test_a_misspelt_setting_of_a_leaf_queue_or_a_host_is_told_its_name(tmp_path: Path) -> None:
    result = check(tmp_path, {"yaq.queue.leaf.root.default.oder": "srjf", "yaq.queue.node.h1.starve-sm": "5"})
    assert [line.rpartition(": ")[2] for line in result.output.splitlines() if "error: " in line] == [
        "unknown key; did you mean yaq.queue.leaf.root.default.order?",
        "unknown key; did you mean yaq.queue.node.h1.starve-ms?",
    ]


def test_settings_of_a_host_that_no_node_may_be_at_are_warnings(tmp_path: Path) -> None:
    included = tmp_path / "included"
    included.write_text("host8 host9\n")
    settings = {
        "yarn.resourcemanager.nodes.include-path": str(included),
        "yaq.queue.node.host7.bound": "2",
        "yaq.queue.node.host8.bound": "2",
    }
    result = check(tmp_path, settings)
    assert result.exit_code == 0
    [warning] = [line for line in result.output.splitlines() if "warning: " in line]
    assert warning.startswith(
        f"{tmp_path}/yarn-site.xml:3: warning: yaq.queue.node.host7.bound: no node may be at host7"
    )
    included.write_text("host8 10.0.0.7\n")
    assert "warning" not in check(tmp_path, settings).output, "a name's address may be in the list"


def test_gpus_that_nodes_find_themselves_are_not_looked_for_here(tmp_path: Path) -> None:
    settings = {
        "yarn.resource-types": "yarn.io/gpu",
        "yarn.nodemanager.resource-plugins": "yarn.io/gpu",
        "yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices": "auto",
    }
    result = check(tmp_path, settings)
    assert (result.exit_code, result.output) == (0, f"{tmp_path}: sound\n")


def test_a_wrong_bound_of_one_node_is_said_once(tmp_path: Path) -> None:
    result = check(tmp_path, {"yaq.queue.node.host7.bound": "x", "yaq.queue.leaf.root.spark.enabled": "maybe"})
    errors = [line for line in result.output.splitlines() if "error: " in line]
    assert sorted(line.partition("error: ")[2].partition(";")[0] for line in errors) == [
        "yaq.queue.leaf.root.spark.enabled: neither true nor false",
        "yaq.queue.node.host7.bound: not a whole number",
    ]
    assert check(tmp_path, {"yaq.queue.node.host7.bound": ""}).exit_code == 0
