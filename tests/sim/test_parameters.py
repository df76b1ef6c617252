"""What systems can be told is explained, in the terminal and in the documentation, and nothing that they cannot."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from yaqd.cli.app import yaq
from yaqd.cli.simulation.parameters import MEANINGS, unsaid, with_table
from yaqd.cli.simulation.systems import PARAMETERS, parse_system
from yaqd.config.catalogue import documented
from yaqd.sim.shape import SYSTEMS

PAGE = Path(__file__).resolve().parents[2] / "docs/simulator.md"


def run(*words: str) -> Result:
    return CliRunner().invoke(yaq, ["sim", "parameters", *words])


def test_every_parameter_is_explained_and_nothing_else() -> None:
    assert list(PARAMETERS) == list(SYSTEMS)
    assert {name for names in PARAMETERS.values() for name in names} == set(MEANINGS)


def test_the_page_has_the_table_as_it_is() -> None:
    text = PAGE.read_text()
    assert with_table(text) == text, "run scripts/docs.sh"
    assert all(text.count(f"\n| `{name}` | ") == 1 for name in MEANINGS)


@pytest.mark.parametrize("system", [None, *SYSTEMS])
def test_the_command_explains_all_or_those_of_one_system(system: str | None) -> None:
    named = [] if system is None else [system]
    expected = set(MEANINGS) if system is None else set(PARAMETERS[system])
    assert {row["parameter"] for row in json.loads(run(*named, "--json").stdout)} == expected
    text = run(*named).stdout
    assert set(re.findall(r"^(\w+) \[", text, re.MULTILINE)) == expected


def test_a_system_that_is_none_is_refused() -> None:
    result = run("spark")
    assert result.exit_code == 2 and "there is no system 'spark'" in result.output


def test_what_holds_unsaid_may_be_said() -> None:
    assert unsaid("out_of_turn") == "off (yarn yarn-opportunistic mercury sparrow), on (yaq-c yaq-d)"
    for system, names in PARAMETERS.items():
        for row in json.loads(run(system, "--json").stdout):
            said = f"{system},{row['parameter']}={row['unsaid']}"
            if row["parameter"] not in ("bound", "bound_wait_s"):  # which say that bound_target is not meant
                assert parse_system(said) == parse_system(system), said
        assert names


def test_keys_that_are_named_are_keys_of_a_cluster() -> None:
    known = {entry.name for entry in documented()}
    named = {key for text in MEANINGS.values() for key in re.findall(r"\b(?:yaq|yarn)\.[\w.-]+\w", text)}
    assert len(named) > 10 and named <= known, named - known


@pytest.mark.parametrize("command", ["compare", "replay"])
def test_help_says_where(command: str) -> None:
    shown = CliRunner().invoke(yaq, ["sim", command, "--help"]).stdout
    assert "`yaq sim parameters` explains all keys" in " ".join(shown.split())
