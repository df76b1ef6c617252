"""What a job's containers ask for beyond memory and cores, by option and by Hadoop's keys."""

import sys
import zipfile
from pathlib import Path

import pytest

from tez_adapter.client.sizes import command_size, in_single_units, task_size, too_large
from tez_adapter.client.staging import SubmitError
from tez_adapter.client.submit import check_output, submit_command
from tez_adapter.core.demand import Ask
from tez_adapter.kinds.command import CommandKind
from tez_adapter.kinds.mapreduce import MapReduceKind
from tez_adapter.master.rm_link import _add_ask
from tez_adapter.tasks.scripts import check_script
from yaqd.config import ConfigError, Configuration
from yaqd.model import Resource
from yaqd.proto import convert
from yaqd.proto import yarn_common_pb2 as common
from yaqd.proto import yarn_service_pb2 as pb

GPU = "yarn.io/gpu"


def conf(**settings: str) -> Configuration:
    return Configuration.load(environ={}).with_overrides(settings)


def test_tasks_ask_by_hadoops_keys() -> None:
    asked = conf(**{f"mapreduce.map.resource.{GPU}": "2", "mapreduce.reduce.resource.memory-mb": "2Gi"})
    assert task_size("map", asked).resource == Resource(1024, 1, {GPU: 2})
    assert task_size("reduce", asked).resource == Resource(2048, 1)
    assert command_size(conf(**{f"yaq.job.command.resource.{GPU}": "1"})).resource.extras == {GPU: 1}


def test_a_manager_of_commands_is_small_unless_its_own_submission_says_otherwise(tmp_path: Path) -> None:
    def site(size_mb: int) -> Configuration:
        value = f"<property><name>yarn.app.mapreduce.am.resource.mb</name><value>{size_mb}</value></property>"
        (tmp_path / "mapred-site.xml").write_text(f"<configuration>{value}</configuration>")
        return Configuration.load(tmp_path)

    small, command = Configuration.load(environ={}), CommandKind()
    assert [command.master_memory_mb(tasks, small) for tasks in (1, 10_000, 100_000)] == [256, 256, 518]
    assert MapReduceKind().master_memory_mb(1, small) == 1536
    assert [command.master_memory_mb(1, site(size_mb)) for size_mb in (4096, 200)] == [256, 200]
    said = conf(**{"yarn.app.mapreduce.am.resource.mb": "700"})
    assert command.master_memory_mb(1, said) == 700


def test_the_ask_on_the_wire_has_them() -> None:
    request = pb.AllocateRequest()
    _add_ask(request, Ask(10, "*", 3, Resource(512, 1, {GPU: 1})))
    assert convert.resource(request.ask[0].capability) == Resource(512, 1, {GPU: 1})


def test_the_kind_of_container_is_said_with_a_request_id_of_its_own() -> None:
    request = pb.AllocateRequest()
    for opportunistic in (False, True):
        _add_ask(request, Ask(10, "*", 3, Resource(512, 1), opportunistic=opportunistic))
    kinds = [(a.execution_type_request.execution_type, a.allocation_request_id) for a in request.ask]
    assert kinds == [(common.GUARANTEED, -1), (common.OPPORTUNISTIC, 1)]


def test_a_bare_number_counts_in_the_types_unit_whoever_reads_it_later(tmp_path: Path) -> None:
    (tmp_path / "resource-types.xml").write_text(
        '<configuration><property name="yarn.resource-types" value="disk"/>'
        '<property name="yarn.resource-types.disk.units" value="Gi"/></configuration>'
    )
    submitter = Configuration.load(tmp_path).with_overrides({"mapreduce.map.resource.disk": "3"})
    sent = in_single_units(submitter).get("mapreduce.map.resource.disk") or ""
    assert task_size("map", conf(**{"mapreduce.map.resource.disk": sent})).resource.extras == {"disk": 3 << 30}


def test_more_than_the_cluster_has_is_one_line_with_the_key() -> None:
    asked = conf(**{f"mapreduce.reduce.resource.{GPU}": "4"})
    line = too_large(MapReduceKind().sizes(1, asked), Resource(8192, 8, {GPU: 2}))
    assert line is not None
    assert line.startswith(f"the 4 {GPU} of each reduce task (mapreduce.reduce.resource.{GPU}) are more than the 2 ")
    assert too_large(MapReduceKind().sizes(0, asked), Resource(8192, 8)) is None, "no reduces, no reduces' resources"


@pytest.mark.parametrize(("name", "amount"), [(GPU, "lots"), (GPU, "-1"), ("no name", "1"), ("vcores", "0")])
def test_bad_requests_are_refused_before_anything_is_asked(name: str, amount: str) -> None:
    with pytest.raises(ConfigError, match=name):
        task_size("map", conf(**{f"mapreduce.map.resource.{name}": amount}))


def test_the_option_is_blamed() -> None:
    with pytest.raises(ConfigError, match=f"--resource: yaq.job.command.resource.{GPU}"):
        submit_command(conf(), ["true"], resources={GPU: "one"})
    with pytest.raises(ConfigError, match=r'^--memory: yaq.job.command.memory-mb = "0"'):
        submit_command(conf(), ["true"], memory_mb=0)
    with pytest.raises(ConfigError, match=r'^--vcores: yaq.job.command.vcores = "-1"'):
        submit_command(conf(), ["true"], vcores=-1)


@pytest.mark.parametrize("name", ["memory-mb", "memory", "vcores"])
def test_what_two_options_say_is_refused(name: str) -> None:
    """As Hadoop's keys the further resource would count, and the option that one looks at would not."""
    with pytest.raises(SubmitError, match=rf"^--resource {name}=4000 and --(memory|vcores) 100 both say the "):
        submit_command(conf(), ["true"], memory_mb=100, vcores=100, resources={name: "4000"})
    with pytest.raises(SubmitError, match="memory-mb=1 and --resource memory=2 both say the memory of each"):
        submit_command(conf(), ["true"], resources={"memory": "2", "memory-mb": "1"})


def test_an_output_folder_that_nobody_could_remove_is_not_to_be_removed() -> None:
    with pytest.raises(SubmitError, match=r"exists already: name another$"):
        check_output(conf(**{"fs.defaultFS": "file:///"}), "/")


def test_a_file_to_import_from_is_of_a_kind_that_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "job.py").write_text(
        "import packed_helper\nfrom yaqd.mapreduce import Job\n\n\nclass J(Job):\n    pass\n"
    )
    text, packed = tmp_path / "notes.txt", tmp_path / "helpers.egg"
    text.write_text("nothing to import\n")
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("packed_helper.py", "")
    with pytest.raises(SubmitError, match=f"^--py-files {text}: neither a .py file nor"):
        check_script(conf(), str(tmp_path / "job.py"), None, [f"{text}#notes"])
    assert check_script(conf(), str(tmp_path / "job.py"), None, [str(packed)]).job_class.__name__ == "J"
