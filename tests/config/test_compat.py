"""`yaq.compat`: one key gives others the defaults of stock Hadoop; what somebody sets still counts."""

from pathlib import Path

import pytest

from nm.settings import NodeSettings
from rm.settings.daemon import RmSettings, read_queues
from rm.settings.queues import QueueSettings
from yaqd.config import ConfigError, Configuration, compat, write_properties
from yaqd.config.catalogue import documentation
from yaqd.config.check import Severity, check_folder

_STOCK = compat.PRESETS[compat.STOCK]
#: no file says otherwise, so the queues' file is not looked at for these
_OF_QUEUES = "yarn.scheduler.capacity."


def write(folder: Path, **properties: str) -> None:
    named = [(key.replace("__", ".").replace("_", "-"), value, "") for key, value in properties.items()]
    write_properties(folder / "yarn-site.xml", named)


def test_every_key_of_the_preset_is_documented_and_changed_by_it() -> None:
    ours, stock = Configuration.load(environ={}), Configuration.load(environ={}, overrides={compat.KEY: "stock"})
    assert documentation(compat.KEY) is not None
    for key, value in _STOCK.items():
        one, other = (c.capacity_scheduler() if key.startswith(_OF_QUEUES) else c for c in (ours, stock))
        assert documentation(key) is not None, key
        assert other.get(key) == value != one.get(key), key


def test_what_somebody_sets_still_counts_and_each_says_where_it_comes_from(tmp_path: Path) -> None:
    write(tmp_path, yaq__compat="stock", yaq__quality__enabled="true")
    conf = Configuration.load(tmp_path, environ={}, overrides={"yaq.queue.job-order": "fair"})
    site = f"{tmp_path}/yarn-site.xml"
    assert conf.get_bool("yaq.quality.enabled") and str(conf.origin("yaq.quality.enabled")) == f"{site}:7"
    assert conf.get("yaq.queue.job-order") == "fair" and str(conf.origin("yaq.queue.job-order")) == "-D"
    assert conf.get("yaq.queue.enabled") == "false"
    assert str(conf.origin("yaq.queue.enabled")) == f"{site}:3 (yaq.compat)"
    assert "yaq.queue.enabled" in conf.preset_keys()
    assert not {"yaq.quality.enabled", "yaq.queue.job-order"} & {*conf.preset_keys()}
    assert conf.changed_keys() == ["yaq.compat", "yaq.quality.enabled", "yaq.queue.job-order"]


def test_no_setting_is_as_before(tmp_path: Path) -> None:
    write(tmp_path, yaq__compat="yaq")
    for conf in (Configuration.load(environ={}), Configuration.load(tmp_path, environ={})):
        assert not conf.is_stock and conf.preset_keys() == []
        assert conf.get("yaq.queue.enabled") == "auto"


def test_another_reading_of_the_files_takes_the_key_anew(tmp_path: Path) -> None:
    write(tmp_path, yaq__compat="stock")
    conf = Configuration.load(tmp_path, environ={})
    write(tmp_path, yaq__rm__scheduler__at_asks="true")
    assert conf.reread().get("yaq.queue.enabled") == "auto"
    named = Configuration.load(tmp_path, environ={}, overrides={compat.KEY: "stock"})
    assert named.reread().get("yaq.queue.enabled") == "false"
    assert named.reread().get_bool("yaq.rm.scheduler.at-asks"), "the file does not count"
    assert conf.with_overrides({compat.KEY: "stock"}).get("yaq.queue.enabled") == "false"
    assert conf.with_overrides({compat.KEY: "yaq"}).get("yaq.queue.enabled") == "auto"


def test_what_a_job_is_told_says_the_same(tmp_path: Path) -> None:
    write(tmp_path, yaq__compat="stock")
    Configuration.load(tmp_path, environ={}).write_xml(tmp_path / "job.xml")
    told = Configuration.load(environ={}, extra_files=[tmp_path / "job.xml"])
    assert told.is_stock and not told.get_bool("yaq.riffle.enabled")


def test_a_misspelt_value_is_refused_with_its_place(tmp_path: Path) -> None:
    write(tmp_path, yaq__compat="stok")
    with pytest.raises(ConfigError, match=r'yarn-site.xml:3: yaq.compat = "stok": not one of yaq, stock'):
        Configuration.load(tmp_path, environ={})
    [finding] = check_folder(tmp_path)
    assert (finding.severity, finding.key, finding.line) == (Severity.ERROR, compat.KEY, 3)


def test_daemons_read_it(tmp_path: Path) -> None:
    write(tmp_path, yaq__compat="stock")
    conf = Configuration.load(tmp_path, environ={})
    manager, queues = RmSettings.read(conf), QueueSettings.read(conf)
    assert manager.is_stock and manager.quality is None and manager.masters_yield_after_s == float("inf")
    assert (queues.spec, queues.job_order, queues.at_asks) == (None, "fifo", False)
    spec = read_queues(conf)
    assert not spec.calculator.counts_vcores and spec.root.children[0].maximum_am_share == 0.1
    node = NodeSettings.read(conf)
    assert not (node.warm_start or node.batch_class or node.queue.by_resources)
    assert node.own_ways == node.stock_ways
    assert (node.own_ways.out_of_turn, node.own_ways.start_moment_s) == (True, 0.0)


def test_nodes_keep_what_their_own_files_say_under_a_stock_manager(tmp_path: Path) -> None:
    write(tmp_path, yaq__nm__containers__start_moment="3s")
    node = NodeSettings.read(Configuration.load(tmp_path, environ={}))
    assert (node.own_ways.out_of_turn, node.own_ways.start_moment_s) == (True, 3.0)
    assert (node.stock_ways.out_of_turn, node.stock_ways.start_moment_s) == (True, 3.0)
