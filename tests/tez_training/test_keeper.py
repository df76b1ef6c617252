"""What training jobs leave on storage, and for how long."""

import asyncio
import math
from itertools import pairwise
from pathlib import Path

from tez_adapter.jobspec import JobKind, JobResource, JobSpec, Training
from tez_adapter.training.curve import POINTS_MAX, Curve, Point
from tez_adapter.training.keeper import Keeper, Saved, read_curve, read_job, read_model, read_model_sum
from tez_adapter.training.settings import TrainingSettings
from yaqd.config import Configuration


def keeper(root: Path, number: int, resumes: str = "", **conf: str) -> tuple[Keeper, list[str]]:
    settings = Configuration.load(None, overrides={"yaq.ml.checkpoint.interval": "0", **conf})
    staging = root / f"me/.staging/job_1_{number:04d}"
    staging.mkdir(parents=True, exist_ok=True)
    (staging / "train.py").write_text("1")
    resource = JobResource("train.py", f"file://{staging}/train.py", 1, 0)
    spec = JobSpec(
        f"job_1_{number:04d}",
        "j",
        "me",
        JobKind.TRAINING,
        {},
        f"file://{staging}",
        resources=(resource,),
        script="train.py",
        training=Training(resumes=resumes),
    )
    notes: list[str] = []
    return Keeper(spec, settings, TrainingSettings.read(settings), note=notes.append), notes


def cut_the_newest(root: Path) -> Path:
    newest = max(root.glob("me/.training/job_1_0001/checkpoint-*"))
    newest.write_bytes(newest.read_bytes()[:-1])
    return newest


def numbers_of_checkpoints(root: Path) -> list[int]:
    return sorted(int(path.name.split("-")[1]) for path in root.glob("me/.training/job_1_0001/checkpoint-*"))


def text_of(resource: JobResource) -> str:
    return Path(resource.uri.removeprefix("file://")).read_text()


def curve_of(count: int) -> Curve:
    return Curve.of(Point(i, 1.0 / (i + 1), i, 1.0) for i in range(count))


async def test_a_checkpoint_is_read_by_the_job_and_by_the_one_that_resumes_it(tmp_path: Path) -> None:
    first, _ = keeper(tmp_path, 1)
    assert await first.load() is None
    evaluations = [("v0", (b"a", b"")), ("v1", (b"c", b"d"))]
    first.save(Saved(7, b"state", curve_of(3), evaluations))
    await first.written()
    for again, _ in (keeper(tmp_path, 1), keeper(tmp_path, 2, resumes="job_1_0001")):
        saved = await again.load()
        assert saved is not None and (saved.iteration, saved.program) == (7, b"state")
        assert [(v, tuple(p)) for v, p in saved.evaluations] == evaluations
        assert saved.curve.points == curve_of(3).points
    other, _ = keeper(tmp_path, 3)
    assert await other.load() is None


async def test_what_is_damaged_is_passed_over_and_said(tmp_path: Path) -> None:
    first, _ = keeper(tmp_path, 1)
    await first.load()
    for iteration in (1, 2):
        first.save(Saved(iteration, b"%d" % iteration))
        await first.written()
    newest = cut_the_newest(tmp_path)
    again, notes = keeper(tmp_path, 1)
    saved = await again.load()
    assert saved is not None and saved.program == b"1"
    assert len(notes) == 1 and str(newest) in notes[0]


async def test_a_job_whose_checkpoints_are_all_damaged_keeps_its_new_ones(tmp_path: Path) -> None:
    first, _ = keeper(tmp_path, 1)
    await first.load()
    for iteration in (100, 110):
        first.save(Saved(iteration, b"old"))
        await first.written()
        cut_the_newest(tmp_path)
    again, notes = keeper(tmp_path, 1)
    assert await again.load() is None and len(notes) == 2
    for iteration in (5, 10, 15, 20):
        again.save(Saved(iteration, b"new"))
        await again.written()
    again.leave(Saved(21, b"new"), curve_of(2), None)
    assert numbers_of_checkpoints(tmp_path) == [20, 21]
    third, notes = keeper(tmp_path, 1)
    saved = await third.load()
    assert saved is not None and saved.iteration == 21 and not notes


async def test_a_checkpoint_that_is_too_large_is_said_once(tmp_path: Path) -> None:
    small, notes = keeper(tmp_path, 1, **{"yaq.ml.checkpoint.bytes-max": "1000"})
    await small.load()
    for iteration in range(3):
        small.save(Saved(iteration, bytes(2000)))
        await small.written()
    assert len(notes) == 1 and "bytes" in notes[0]
    assert small.iteration == -1


async def test_the_oldest_jobs_that_have_ended_go(tmp_path: Path) -> None:
    running, _ = keeper(tmp_path, 1)
    await running.load()
    for number in range(2, 12):
        one, _ = keeper(tmp_path, number, **{"yaq.ml.kept-jobs": "3"})
        await one.load()
        await asyncio.to_thread(one.keep_job)
        await asyncio.to_thread(one.leave, None, curve_of(2), b"model")
    names = sorted(path.name for path in (tmp_path / "me/.training").iterdir())
    assert names == ["job_1_0001", "job_1_0009", "job_1_0010", "job_1_0011"]
    conf, folder = Configuration.load(None), f"file://{tmp_path}/me/.training/job_1_0011"
    assert read_model(conf, folder).pieces == [b"model"]
    assert len(read_model_sum(conf, folder)) == 64
    assert read_curve(conf, folder).points == curve_of(2).points
    spec = read_job(conf, folder)
    assert "/.training/" in spec.resources[0].uri
    assert text_of(spec.resources[0]) == "1"


def test_a_long_curve_is_thinned_evenly_and_keeps_its_ends() -> None:
    curve = curve_of(10 * POINTS_MAX)
    iterations = [point.iteration for point in curve.points]
    assert len(iterations) <= POINTS_MAX and iterations[0] == 0
    assert len({b - a for a, b in pairwise(iterations)}) == 1
    again = Curve.parse(curve.dump())
    assert again.points == curve.points and again.with_last() == [*curve.points, curve.last]
    assert curve.last is not None and curve.last.iteration == 10 * POINTS_MAX - 1


def test_losses_that_json_has_no_numbers_for_come_back() -> None:
    losses = [float("inf"), -float("inf"), float("nan"), 1.5, None]
    curve = Curve.of(Point(i, loss, 0, 1.0, {"m": float("nan")}) for i, loss in enumerate(losses))
    assert [repr(p.loss) for p in Curve.parse(curve.dump()).points] == [repr(loss) for loss in losses]
    assert (curve.loss, curve.odd, curve.normalized()) == (1.5, None, 1.0)


def test_the_last_loss_is_the_last_that_is_a_number() -> None:
    curve = Curve.of(Point(i, loss, 0, 1.0) for i, loss in enumerate((4.0, 2.0, 3.0, math.nan, math.inf, None)))
    assert (curve.loss, curve.normalized()) == (3.0, 0.5)
    assert curve.odd is not None and curve.odd.iteration == 3
    assert Curve.of([Point(1, math.nan, 0, 1.0)]).normalized() is None


def test_losses_that_grow_or_are_huge_have_a_share_too() -> None:
    for losses in ((1.0, 10.0, 1e300), (1e308, -1e308), (1e308, -1e308, 1e308), (5.0, 5.0)):
        found = Curve.of(Point(i, loss, 0, 1.0) for i, loss in enumerate(losses)).normalized()
        assert found == (0.0 if losses[-1] == -1e308 else 1.0)


async def test_a_job_that_was_resumed_leaves_what_it_began_with(tmp_path: Path) -> None:
    """Else a third one, which resumes it, would begin anew."""
    first, _ = keeper(tmp_path, 1)
    first.leave(Saved(7, b"state", curve_of(3)), curve_of(3), None)
    second, _ = keeper(tmp_path, 2, resumes="job_1_0001")
    saved = await second.load()
    assert saved is not None and not second.has_own
    second.leave(saved, saved.curve, None)
    third, _ = keeper(tmp_path, 3, resumes="job_1_0002")
    again = await third.load()
    assert again is not None and (again.iteration, again.program) == (7, b"state")
