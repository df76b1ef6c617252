"""The demo's input and its judge."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from yaqd.cli.exits import CommandError
from yaqd.cli.jobs.demo import example, input_files
from yaqd.cli.jobs.demo_text import count_words, differences, find_words, library_texts, read_counts
from yaqd.mapreduce import load_job


def test_every_machine_has_text_and_the_bound_holds() -> None:
    files = library_texts(300_000)
    assert 100_000 < sum(file.stat().st_size for file in files) <= 300_000
    assert len(files) == len(set(files))
    assert files == library_texts(300_000)


def test_the_plain_count_counts(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one two\r\nTwo\xff_three 3 \xc3\x9cber")
    with gzip.open(tmp_path / "b.gz", "wb") as packed:
        packed.write(b"two")
    seen: list[int] = []
    counts = count_words(input_files(tmp_path, 1), seen.append)
    assert counts == {"one": 1, "two": 3, "three": 1, "über": 1}
    assert seen == [(tmp_path / "a").stat().st_size, (tmp_path / "b.gz").stat().st_size]


def test_the_judge_and_the_example_mean_the_same_words() -> None:
    job = load_job(example("wordcount.py"))
    text = "Eins, zwei_drei 4 \udcff ΣΑΣ"
    mapped = [word for word, one in job().map(0, text) if one == 1]
    assert mapped == find_words(text.lower()) == ["eins", "zwei", "drei", "σας"]


def test_the_examples_option_leaves_out_short_words() -> None:
    job = load_job(example("wordcount.py"))({"min_length": 4})
    assert list(job.map(0, "a bird in the hand")) == [("bird", 1), ("hand", 1)]
    assert list(job.reduce("bird", iter([1, 2]))) == [("bird", 3)]


def test_results_are_read_from_all_parts_and_differences_are_told(tmp_path: Path) -> None:
    (tmp_path / "part-r-00000").write_text("a\t1\nb\t2\n")
    (tmp_path / "part-r-00001").write_text("c\t3\n")
    (tmp_path / "_SUCCESS").touch()
    counted = read_counts(tmp_path)
    assert differences(counted, Counter(a=1, b=2, c=3)) == []
    assert differences(counted, Counter(a=1, b=5, d=1)) == [
        "'b': counted 2, really 5",
        "'c': counted 3, really 0",
        "'d': counted 0, really 1",
    ]


def test_hidden_files_are_left_out_and_bad_inputs_named(tmp_path: Path) -> None:
    for name in (".hidden", "_log", "seen"):
        (tmp_path / name).write_text("x")
    assert input_files(tmp_path, 1) == [tmp_path / "seen"]
    assert input_files(tmp_path / "_log", 1) == [tmp_path / "_log"]
    (tmp_path / "empty").mkdir()
    for source, words in ((tmp_path / "no", "no such file or folder"), (tmp_path / "empty", "no files in this folder")):
        with pytest.raises(CommandError, match=words):
            input_files(source, 1)
    with pytest.raises(CommandError, match="--size"):
        input_files(None, 0)
