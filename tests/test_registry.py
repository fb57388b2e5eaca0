"""Plug-ins are found by name, loaded when asked for, and those that cannot be used say why."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from importlib.metadata import EntryPoints
from pathlib import Path

import pytest

import cms.plugin.registry
from cms.errors import AlgorithmError, UnknownMethod
from cms.plugin.registry import (
    NamedProblem,
    PluginError,
    UnknownInstance,
    algorithm_details,
    list_algorithms,
    list_instances,
    load_algorithm,
    load_instance,
)
from cms.solving.solution import Status
from cms.solving.solve import solve
from cms.testing import check_algorithm
from cms.testing.edge_problems import EDGE_PROBLEMS
from tests.conftest import Install
from tests.samples import few
from tests.scripted import blocks

OWN = "configurable-machines"
ROOT = Path(__file__).resolve().parent.parent

PLUGIN = """
from cms import SolverBound
from cms import NamedProblem
from tests.plugins import OneByOne
from tests.scripted import blocks

class Visitor(OneByOne):
    '''Serves every job by itself.

    And more words.
    '''
    name = "visitor"

class Boaster(OneByOne):
    name = "boaster"
    def run(self, problem, options, budget):
        yield SolverBound(1, "my friend")

class Misnamed(OneByOne):
    name = "somebody else"

class Fails(OneByOne):
    name = "fails"
    def __init__(self):
        raise OSError("no licence")

class Number:
    name = 3

eight = NamedProblem(name="eight", title="8 blocks", source="here", make=lambda: blocks(8))
"""


def test_an_installed_algorithm_is_found_run_and_checked(install: Install) -> None:
    install(
        "Acme_Scheduling",
        {
            "cms.algorithms": {
                "visitor": "acme_plugin:Visitor",
                "boaster": "acme_plugin:Boaster",
            }
        },
        acme_plugin=PLUGIN,
    )
    assert "visitor" in list_algorithms()
    assert "acme_plugin" not in sys.modules, "names are listed without loading anything"
    solution = solve(blocks(8), "visitor", options={"choose": "first"})
    assert (solution.status, solution.method) == (Status.OPTIMAL, "visitor")
    assert solution.cost == Fraction(4)
    algorithm, trusted = load_algorithm("visitor")
    assert not trusted
    assert load_algorithm("visitor")[0] is not algorithm
    assert check_algorithm("visitor", EDGE_PROBLEMS[:3], seeds=[0]).ok
    with pytest.raises(AlgorithmError, match=r"'boaster': claims SolverBound.*configurable-mach"):
        solve(blocks(8), "boaster")
    details = {line.name: line for line in algorithm_details()}
    summary = "Serves every job by itself."
    options = {"choose": "cheapest"}
    assert details["visitor"] == ("visitor", "acme-scheduling", False, summary, options)
    assert details["auto"].trusted
    assert details["auto"].distribution == OWN
    assert details["auto"].summary


def test_an_installed_instance_is_found(install: Install) -> None:
    install("acme", {"cms.instances": {"eight": "acme_plugin:eight"}}, acme_plugin=PLUGIN)
    assert "eight" in list_instances()
    named = load_instance("eight")
    assert isinstance(named, NamedProblem)
    assert named.make() == blocks(8)
    assert (named.title, named.source, named.optimum) == ("8 blocks", "here", None)
    with pytest.raises(UnknownInstance, match=r"instance 'eigth' is unknown; nearest: 'eight'; "):
        load_instance("eigth")


def test_two_providers_of_one_name_are_both_named(install: Install) -> None:
    install("acme", {"cms.algorithms": {"auto": "acme_plugin:Visitor"}}, acme_plugin=PLUGIN)
    with pytest.raises(PluginError, match="offered by 2 .*, acme and configurable-machines; unins"):
        load_algorithm("auto")
    with pytest.warns(RuntimeWarning, match="'auto' is offered by 2 distributions.*left out"):
        details = algorithm_details()
    names = {line.name for line in details}
    assert "auto" not in names
    assert "cp_sat" in names


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("acme_plugin:Misnamed", "calls itself 'somebody else'"),
        ("acme_plugin:Fails", "cannot be made: OSError: no licence"),
        ("acme_plugin:Number", "expected a class with name, options_type"),
        ("acme_plugin:eight", "expected a class with name, options_type"),
        ("acme_plugin:Missing", "cannot be loaded: AttributeError"),
        ("a_module_that_is_not_there:It", "cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_an_entry_that_is_no_algorithm_is_refused(install: Install, entry: str, words: str) -> None:
    install("acme", {"cms.algorithms": {"it": entry}}, acme_plugin=PLUGIN)
    with pytest.raises(PluginError, match=f"algorithm 'it' .*of distribution acme.*{words}"):
        load_algorithm("it")


@pytest.mark.parametrize("place", few(1, ["algorithms/__init__.py", "algorithms.py"]))
def test_a_folder_or_file_of_the_users_that_hides_ours_is_named(place: str, tmp_path: Path) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_text("raise SystemExit('their code ran')")
    script = tmp_path / "mine.py"
    script.write_text(
        "from cms import *\n"
        "solve(Problem(configurations=Configuration({'a': 1}), jobs=[Job('j', 1, {'a': 1})]))"
    )
    last = last_words(str(script), tmp_path)
    hidden = tmp_path / place.removesuffix("/__init__.py")
    assert f"PluginError: algorithm 'auto' (algorithms.auto:Auto, of distribution {OWN})" in last
    assert f"{hidden} is not of {OWN} and hides its 'algorithms': Python finds it first" in last
    assert "Rename it, or move the script to another folder" in last


def last_words(*command: str | Path) -> str:
    """The last line on stderr of a Python that fails in a folder, the last argument."""
    *arguments, folder = command
    run = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    return run.stderr.strip().splitlines()[-1]


def test_an_empty_registry_says_how_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    cms.plugin.registry._entries.cache_clear()
    monkeypatch.setattr(cms.plugin.registry, "entry_points", lambda group: EntryPoints())
    try:
        assert list_algorithms() == ()
        with pytest.raises(UnknownMethod, match=r"run `pip install -e \.`"):
            load_algorithm("auto")
    finally:
        cms.plugin.registry._entries.cache_clear()
