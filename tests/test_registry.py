"""Plug-ins: found by name, their options and kinds of problems, the conformance suite."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.metadata import EntryPoints
from pathlib import Path
from typing import Any

import pytest

import cms
import cms.plugin.registry
from cms import Schedule, solve
from cms.certificate.certificate import BlockPrices
from cms.errors import (
    AlgorithmError,
    InvalidOption,
    InvalidSchedule,
    UnknownMethod,
    UnsupportedProblem,
)
from cms.fleet.colocation import ColocationPlan, ColocationProblem
from cms.fleet.colocation.edge_problems import posed
from cms.plugin.algorithm import SolverBound, Support, kinds_taken
from cms.plugin.registry import (
    NamedProblem,
    PluginError,
    UnknownInstance,
    algorithm_details,
    algorithm_of,
    list_algorithms,
    list_instances,
    load_algorithm,
    load_instance,
    option_fields,
    read_options,
)
from cms.solving.solution import Status
from cms.testing import CHECKS, Check, ConformanceError, check_algorithm
from cms.testing.edge_problems import CROWDS, EDGE_PROBLEMS, TIME_SHARED_EDGE_PROBLEMS
from cms.values.numbers import exact
from tests import plugins
from tests.conftest import Install
from tests.plugins import OneByOne, count_in_eight_bytes, rename_the_jobs, saying
from tests.samples import few, so_many
from tests.scripted import Scripted, blocks

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


@dataclass(frozen=True)
class Options:
    """Options: epsilon and rounds."""

    epsilon: Any = Fraction(1, 2)
    rounds: int = 3
    derived: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", exact(self.epsilon, "epsilon", error=ValueError))
        if self.rounds < 1:
            raise ValueError("expected a whole number >= 1")
        if self.epsilon > 1 and self.rounds > 5:
            raise InvalidOption("more than 5 rounds need an epsilon of at most 1")
        if self.epsilon == 1 and self.rounds > 8:
            raise ValueError("expected fewer rounds")


class Algorithm(OneByOne):
    name = "ptas"
    options_type = Options


def test_values_are_converted_by_the_algorithm() -> None:
    assert read_options(Algorithm(), {"epsilon": "1/4"}) == Options(Fraction(1, 4))
    assert read_options(Algorithm(), {}) == Options()
    assert option_fields(Algorithm()) == {"epsilon": Fraction(1, 2), "rounds": 3}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilno": 1}, "method 'ptas' has no option 'epsilno'; nearest: 'epsilon'; it has"),
        ({"epsilno": 1}, r"epsilon \(default 1/2\), rounds \(default 3\)"),
        ({"derived": 1}, "no option 'derived'"),
        ({3: 1}, "no option 3"),
        ({"rounds": 0}, "method 'ptas', option rounds = 0: expected a whole number >= 1"),
        ({"rounds": "many"}, "option rounds = 'many': "),
        ({"epsilon": -1, "rounds": 4}, "option epsilon = -1: epsilon is -1; expected a number"),
        ({"epsilon": 1, "rounds": 9}, "option epsilon = 1, rounds = 9: expected fewer rounds"),
        ({"epsilon": 2, "rounds": 6}, "^more than 5 rounds need an epsilon of at most 1$"),
    ],
)
def test_a_bad_option_is_refused_by_name(given: dict[Any, Any], words: str) -> None:
    with pytest.raises(InvalidOption, match=words):
        read_options(Algorithm(), given)


def test_options_that_are_no_frozen_dataclass_with_defaults_are_the_algorithms_fault() -> None:
    @dataclass
    class Thawed:
        """None."""

    @dataclass(frozen=True)
    class Bare:
        """needed."""

        needed: int

    for kind, words in [
        (dict, "expected a frozen dataclass"),
        (Options(), "expected a frozen dataclass"),
        (Thawed, "Thawed is not frozen"),
        (Bare, "Bare needs a default for every option"),
    ]:
        algorithm = OneByOne()
        algorithm.options_type = kind  # type: ignore[misc, assignment]
        with pytest.raises(AlgorithmError, match=words):
            read_options(algorithm, {})


CROSSED = posed([1, 2], [2, 1], [[10, 9], [9, -1]])  # 9 + 2 * 9 = 27 of 29
BEST, WORSE = ColocationPlan({("g0", "w1"): 1, ("g1", "w0"): 2}), ColocationPlan({("g0", "w1"): 1})


class Sharing(Scripted):
    """Claims what it is told to about co-location problems."""

    takes = (ColocationProblem,)


def test_a_run_starts_from_a_schedule_of_its_kind() -> None:
    solution = solve(CROSSED, Sharing([BEST]), start=WORSE)
    assert [line.cost for line in solution.history] == [20, 2, 2]
    assert solution.schedule == BEST
    with pytest.raises(InvalidSchedule, match="start is not valid"):
        solve(CROSSED, Sharing([]), start=ColocationPlan({("g0", "w1"): 2}))
    with pytest.raises(InvalidOption, match="expected ColocationPlan"):
        solve(CROSSED, Sharing([]), start=Schedule())
    for claim in (Schedule(), cms.BlockPrices(), cms.SolverBound(3, "oracle")):
        with pytest.raises(AlgorithmError, match="expected ColocationPlan, |a solver's word is"):
            solve(CROSSED, Sharing([claim]))


@pytest.mark.parametrize(
    "method", [*cms.list_algorithms(), pytest.param(OneByOne(), id="one_by_one")]
)
def test_an_algorithm_that_does_not_take_it_says_so(method: Any) -> None:
    name, taken = getattr(method, "name", method), kinds_taken(algorithm_of(method)[0])
    for problem in (CROSSED, blocks(3), TIME_SHARED_EDGE_PROBLEMS[3].make()):
        if not isinstance(problem, taken):
            kind = type(problem).__name__
            words = rf"method '{name}' takes [\w ]*Problem; this problem is of type {kind}"
            with pytest.raises(UnsupportedProblem, match=words):
                solve(problem, method)


def test_an_algorithm_of_several_kinds_is_asked_about_each() -> None:
    class Both(OneByOne):
        takes = (cms.Problem, ColocationProblem)

    assert solve(blocks(3), Both()).cost == 2
    with pytest.raises(AlgorithmError, match=r"support\(\) raised AttributeError"):
        solve(CROSSED, Both())


def test_a_class_without_a_referee_is_no_problem() -> None:
    with pytest.raises(InvalidOption, match="expected a cms.Problem"):
        solve("a problem", OneByOne())  # type: ignore[arg-type]
    algorithm: Any = type("Odd", (OneByOne,), {"takes": (int,)})()
    report = check_algorithm(algorithm, [])
    assert "support" in report.failed
    assert "it takes int, for which no checker is registered" in str(report)


IDLE = saying(lambda problem: [Schedule()], served=False)
DEAR = saying(lambda problem: [BlockPrices(dict.fromkeys(problem.blocks, 10**6))])


class TakesNothing(OneByOne):
    """Refuses every problem."""

    def support(self, problem: object, options: object) -> Support:
        return Support(False, "not today")


@pytest.mark.parametrize("check", CHECKS, ids=str)
def test_a_minimal_good_plugin_passes(check: Check) -> None:
    check(OneByOne(), EDGE_PROBLEMS[:: so_many(6, 1)], seeds=[0])


@pytest.mark.parametrize(
    ("bad", "reason", "words"),
    [
        (IDLE, "claims", "of its demand served"),
        (DEAR, "claims", "more than its machine's cost"),
        (saying(rename_the_jobs), "inputs", "the problem has changed"),
        (plugins.IgnoresTheClock, "clock", "still at work"),
        (plugins.IsNotReproducible, "reproducible", "two runs differ from claim 1 on"),
        (saying(lambda problem: [3]), "claims", "type 'int'"),
        (saying(lambda problem: [SolverBound(0, "oracle")]), "claims", "a solver's word is acce"),
        (saying(count_in_eight_bytes), "edge_problems", "OverflowError"),
        (plugins.PromisesTooMuch, "guarantee", "Wishful Thinking"),
        (plugins.TakesAnyOption, "options", "does not mention 'choose'"),
        (plugins.LeavesACancel, "cancels", "no such solver"),
        (TakesNothing, "support", "it takes none of the"),
    ],
)
def test_a_bad_plugin_fails_for_the_named_reason_only(
    bad: type[OneByOne], reason: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cms.testing.checks.CROWDS", CROWDS[2:3])  # the one it can ignore
    report = check_algorithm(bad(), EDGE_PROBLEMS[2::3], seeds=[0])
    assert report.failed == (reason,), str(report)
    assert not report.ok
    assert words in str(report)
    assert str(report).count("passed") == len(CHECKS) - 1


def test_a_check_used_as_a_test_raises_with_its_name_and_promise() -> None:
    check = next(check for check in CHECKS if check.name == "claims")
    with pytest.raises(ConformanceError, match=r"^claims: .*served"):
        check(IDLE(), EDGE_PROBLEMS[:4])
    report = check_algorithm(OneByOne(), EDGE_PROBLEMS[:1], options={"choose": "worst"})
    assert "expected 'cheapest' or 'first'" in str(report)
