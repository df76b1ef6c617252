"""`yaq sim study`: what it prints, takes up and refuses."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from yaqd.cli.app import yaq
from yaqd.cli.exits import BAD_INPUT
from yaqd.sim.study.store import FILE


def run(*words: str) -> Result:
    return CliRunner().invoke(yaq, ["sim", "study", *words])


def test_the_list_has_every_cell_and_the_time() -> None:
    result = run("--list", "--only", "loads", "--workers", "2")
    assert result.exit_code == 0, result.output
    assert "42 cells, 5 seeds; 228 runs are left" in result.stdout
    assert "with --workers 2" in result.stdout
    stock = json.loads(run("--list", "--side", "stock", "--json").stdout)["cells"]
    assert {cell["cell"].partition(":")[0] for cell in stock} == {"stock"}
    found = json.loads(run("--list", "--json").stdout)
    assert {cell["part"] for cell in found["cells"]} == {"main", "loads", "others"}
    assert found["estimate_s"] > 60


def test_a_folder_is_needed() -> None:
    result = run("--only", "main")
    assert result.exit_code == BAD_INPUT
    assert "--out DIR" in result.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--quick", "--nodes", "200", "--list"), "leave --nodes out"),
        (("--list", "--page", "study.md"), "leave --page and --note out"),
        (("--list", "--note", "x"), "leave --page and --note out"),
        (("--out", "{folder}", "--note", "x"), "name it with --page FILE"),
        (("--out", "{folder}/absent", "--from-store"), "no study has run there"),
    ],
)
def test_no_option_is_left_unheeded(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    result = run(*(word.format(folder=tmp_path) for word in words))
    assert result.exit_code == BAD_INPUT
    assert said in result.stderr
    assert not list(tmp_path.iterdir())


def test_seeds_begin_where_they_are_told_to() -> None:
    assert json.loads(run("--list", "--json", "--first-seed", "2001").stdout)["seeds"] == list(range(2001, 2006))


@pytest.mark.parametrize("words", [("--side", "ours"), ("--cell", "jobs fifo")])
def test_a_page_is_of_all_cells(tmp_path: Path, words: tuple[str, str]) -> None:
    result = run("--out", str(tmp_path), *words, "--page", str(tmp_path / "study.md"))
    assert result.exit_code == BAD_INPUT
    assert "leave --side and --cell out" in result.stderr


def test_cells_are_chosen_by_what_their_names_and_factors_hold() -> None:
    found = json.loads(run("--list", "--json", "--only", "main", "--cell", "events off, asks on, jobs fifo").stdout)
    assert {cell["factors"]["queues"] for cell in found["cells"]} == {"off", "auto", "always"}
    assert all(cell["factors"].items() >= {"events": "off", "jobs": "fifo"}.items() for cell in found["cells"])
    others = json.loads(run("--list", "--json", "--only", "others", "--cell", "workload 1-sec").stdout)["cells"]
    assert [cell["factors"] for cell in others] == 4 * [{"workload": "1-sec"}]
    none = run("--list", "--cell", "jobs last")
    assert none.exit_code == BAD_INPUT
    assert "no cell is called so" in none.stderr


@pytest.mark.slow
def test_a_small_study_runs_and_is_taken_up(tmp_path: Path) -> None:
    words = ("--out", str(tmp_path), "--quick", "--only", "loads")
    result = run(*words)
    assert result.exit_code == 0, result.output
    store = tmp_path / FILE
    text = store.read_bytes()
    lines = text.splitlines(keepends=True)
    store.write_bytes(b"".join(lines[:-1]) + lines[-1][:30])
    again = run(*words, "--json")
    assert again.exit_code == 0, again.output
    figures = json.loads(again.stdout)
    assert figures["missing"] == {}
    assert [cell["load"] for cell in figures["cells"]] == sorted(cell["load"] for cell in figures["cells"])
    rows = [json.loads(line) for line in store.read_bytes().splitlines()]
    starts = [row["start"] for row in rows if "start" in row]
    assert len(starts) == 2
    assert starts[0]["digest"] == starts[1]["digest"]
    assert len(rows) - len(starts) == len(lines) - 1
    # two of stock and one of ours, which no table of the whole holds against each other
    some = run(*words, "--cell", "as", "--json")
    assert some.exit_code == 0, some.output
    found = json.loads(some.stdout)
    assert {cell["cell"] for cell in found["cells"]} == {"stock: fair, asynchronous", "ours as shipped"}
    (table,) = found["tables"]
    assert len(table["rows"]) == len(found["cells"])
    ours = json.loads(run(*words, "--cell", "ours", "--json").stdout)
    assert [table["title"] for table in ours["tables"]][1:] == [
        "auto against the better of queues always and none, the worst cells"
    ]


@pytest.mark.slow
def test_results_of_other_code_are_refused_and_shown(tmp_path: Path) -> None:
    words = ("--out", str(tmp_path), "--quick", "--only", "main", "--side", "stock")
    assert run(*words).exit_code == 0
    store = tmp_path / FILE
    digest = json.loads(store.read_bytes().splitlines()[0])["start"]["digest"]
    store.write_text(store.read_text().replace(digest, "0" * 16))
    refused = run(*words)
    assert refused.exit_code == BAD_INPUT
    assert "results of other code" in refused.stderr
    shown = run(*words, "--from-store")
    assert shown.exit_code == 0, shown.output
