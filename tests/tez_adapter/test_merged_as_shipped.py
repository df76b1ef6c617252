"""Who merges a job of ours where nobody says anything of `yaq.riffle.enabled`, on nodes that merge what they find."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.tez_adapter.tez_merged import HELD, SPLIT, WORDS, counts, expected, finish, shuffle_of, until
from tez_adapter.client.submit import submit_mapreduce
from yaqd.cli.applications.explain_nodes import _ask
from yaqd.cli.rm_web import get_json
from yaqd.config import Configuration

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

#: unmodified jobs' outputs are merged by twos, as soon as they are there
EAGER = ("shuffle.policy=files", "shuffle.files=2", "shuffle.quiet-ms=100")


@pytest.fixture(scope="module")
def eager(
    running: Callable[..., AbstractContextManager[Configuration]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Configuration]:
    words = (word for setting in EAGER for word in ("-D", f"yaq.riffle.{setting}"))
    with running(tmp_path_factory.mktemp("shipped") / "c", 1, *words) as conf:
        yield conf.with_overrides(
            {"mapreduce.input.fileinputformat.split.maxsize": SPLIT, "yaq.input.combine-small-files": "false"}
        )


@pytest.mark.parametrize(
    ("policy", "said"), [({"policy": "off"}, "no merging"), ({"policy": "files", "files": "4"}, "4 files")]
)
def test_the_job_alone_decides(
    eager: Configuration, write: Callable[[str, str], str], tmp_path: Path, policy: dict[str, str], said: str
) -> None:
    conf = eager.with_overrides({f"yaq.riffle.{name}": value for name, value in policy.items()})
    inputs = [write("in.txt", WORDS), write("held.txt", "held\n")]
    source = write("held.py", HELD.format(here=str(tmp_path)))
    job = submit_mapreduce(conf, source, inputs=inputs, output=str(tmp_path / "out"), reduces=3)
    until(lambda: any(vertex.done >= 24 for vertex in job.status().vertices))
    (node,) = job_nodes(conf)
    facts = _ask(node, job.application_id)
    (tmp_path / "go").touch()
    finish(job)
    assert counts(tmp_path / "out") == expected() | {"held": 1}
    assert facts is not None and facts["hasMerger"] and facts["plansMerges"] and not facts["mergedFiles"], facts
    assert shuffle_of(conf, job)["policy"] == said


def job_nodes(conf: Configuration) -> list[str]:
    """Web addresses."""
    return [str(node["nodeHTTPAddress"]) for node in get_json(conf, "/ws/v1/cluster/nodes")["nodes"]["node"]]
