"""A third party's algorithm may do what it likes to its objects: a false claim does not pass."""

from __future__ import annotations

import gc
import numbers
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from cms.certificate.certificate import BlockPrices, Branch
from cms.certificate.quantity import BlocksOf, MachinesOfType
from cms.errors import AlgorithmError, InvalidOption
from cms.plugin.algorithm import Budget, Claim, Named, SolverBound, Support
from cms.plugin.border import Border
from cms.problem.machine_problem import MachineProblem
from cms.problem.parts import (
    AnyConfiguration,
    Configuration,
    MachineType,
    SizeBoundedConfigurations,
)
from cms.problem.problem import Problem
from cms.referee.check import check
from cms.schedule.columns import Columns
from cms.schedule.schedule import MachineGroup, Schedule
from cms.solving.solve import solve
from cms.values.frozen import FrozenMap
from cms.values.names import NumberedNames
from tests.plugins import OneByOne
from tests.scripted import HALF, QUARTER, Run, Scripted, serving

put = object.__setattr__
DEMAND, OPTIMUM = 5, 3


def problem() -> Problem:
    """Five blocks, two on a machine, limited machines: nothing in it is made when asked for."""
    return Problem.from_arrays(
        demands=[DEMAND],
        supply=[[1]],
        configurations=[[2]],
        blocks=["b"],
        machine_types=[MachineType("machine", limit=50)],
    )


def serves(machines: int) -> Schedule:
    """A schedule for it, on so many machines."""
    plain = serving(DEMAND, machines)
    return Schedule.from_columns(plain.columns._replace(contents=("j0",)))


# --- liars that leave no trace --------------------------------------------------------------------


def changes_a_configuration(given: Problem, budget: Budget) -> Iterator[Claim]:
    shape = given.configurations[0]
    assert isinstance(shape, Configuration)
    counts = shape.blocks._items
    counts["b"] = 5
    yield Schedule([MachineGroup(shape, {("b", "j0"): 5}, 1)])
    counts["b"] = 2


def changes_a_cost(given: Problem, budget: Budget) -> Iterator[Claim]:
    put(given.machine_types[0], "cost", Fraction(1000))
    yield BlockPrices({"b": 500})
    put(given.machine_types[0], "cost", Fraction(1))


def changes_a_cost_within(given: Problem, budget: Budget) -> Iterator[Claim]:
    cost: Any = given.machine_types[0].cost
    cost._numerator = 1000
    yield BlockPrices({"b": 500})
    cost._numerator = 1


def changes_the_rows(given: Problem, budget: Budget) -> Iterator[Claim]:
    demands = given.rows.demands
    put(given.rows, "demands", demands * 0 + 1)
    yield Schedule([MachineGroup(Configuration({"b": 2}), {("b", "j0"): 1}, 1)])
    put(given.rows, "demands", demands)


def changes_the_limit(given: Problem, budget: Budget) -> Iterator[Claim]:
    put(given.machine_types[0], "limit", 1)
    yield BlockPrices({"b": 1}, {"machine": 1})  # with one machine there would be no schedule
    put(given.machine_types[0], "limit", 50)


def changes_the_names(given: Problem, budget: Budget) -> Iterator[Claim]:
    names: Any = given.job_names
    put(names, "_n", 2)
    columns = serves(3).columns._replace(contents=names, entry_content=np.array([1, 1]))
    yield Schedule.from_columns(columns)
    put(names, "_n", 1)


def changes_prices_once_checked(given: Problem, budget: Budget) -> Iterator[Claim]:
    leaf = BlockPrices({"b": "1/4"})
    yield leaf
    leaf.prices._items["b"] = Fraction(1000)


def changes_a_branch_once_checked(given: Problem, budget: Budget) -> Iterator[Claim]:
    tree = Branch(MachinesOfType("machine"), 0, BlockPrices({"b": 1}, {}, [1]), QUARTER_BELOW)
    yield tree
    put(tree.quantity, "weights", FrozenMap({"moon": 1}))
    put(tree, "above", BlockPrices({"b": 1000}, {}, [0]))


def changes_a_schedule_once_checked(given: Problem, budget: Budget) -> Iterator[Claim]:
    schedule = serves(4)
    yield Named(schedule, "a word")
    put(schedule, "columns", Schedule().columns)


def changes_the_best(given: Problem, budget: Budget) -> Iterator[Claim]:
    yield serves(4)
    assert budget.best is not None
    put(budget.best, "columns", Schedule().columns)
    yield QUARTER


def changes_the_budget(given: Problem, budget: Any) -> Iterator[Claim]:
    yield QUARTER
    budget._ledger.known = budget._ledger.known._replace(lower_bound=Fraction(1000))
    budget.lower_bound._numerator = 1000
    budget._end = float("inf")
    budget._lock.acquire()
    threading.current_thread().__dict__.clear()
    yield serves(4)


class Lie(Fraction):
    """A number that agrees with everybody."""

    @property
    def numerator(self) -> Any:
        return Flattery(1000)

    def __le__(self, other: object) -> bool:
        return True

    __lt__ = __ge__ = __gt__ = __eq__ = __le__
    __hash__ = Fraction.__hash__


class Flattery(int):
    """A count that is as small as is wanted, and as large."""

    def __mul__(self, other: object) -> Any:
        return Fraction(0)

    __rmul__ = __add__ = __radd__ = __sub__ = __mul__

    def __lt__(self, other: object) -> bool:
        return True

    __le__ = __lt__

    def __index__(self) -> int:
        return 1


class Everyone(str):
    """A name that everybody has."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("j0")


def claims_lying_prices(given: Problem, budget: Budget) -> Iterator[Claim]:
    leaf = BlockPrices({"b": 1})
    leaf.prices._items["b"] = Lie(1000)
    yield leaf


class Text(str, numbers.Rational):  # type: ignore[misc]
    """A text that Fraction takes for a number, and asks for its numerator."""

    numerator = property(lambda self: Few(1000))
    denominator = property(lambda self: 1)

    def strip(self, _: Any = None) -> Any:
        return self


Text.__abstractmethods__ = frozenset()


class Few(int):
    """A number that is nothing on two blocks of a machine."""

    def __mul__(self, other: Any) -> Any:
        return 0 if other == 2 else int(self) * other

    __rmul__ = __mul__

    def __lt__(self, other: object) -> bool:
        return True

    __gt__ = __lt__


def claims_prices_in_lying_texts(given: Problem, budget: Budget) -> Iterator[Claim]:
    leaf = BlockPrices({"b": 1})
    leaf.prices._items["b"] = Text("1/2")  # type: ignore[abstract]
    yield leaf


def claims_a_lying_bound(given: Problem, budget: Budget) -> Iterator[Claim]:
    tree = Branch(MachinesOfType("machine"), 0, BlockPrices({"b": 1}, {}, [1]), QUARTER_BELOW)
    put(tree, "at_most", Flattery(10**9))
    yield tree


def claims_lying_counts(given: Problem, budget: Budget) -> Iterator[Claim]:
    columns = serves(3).columns
    counts = np.array([Flattery(0) for _ in columns.group_count], dtype=object)
    schedule = Schedule()
    put(schedule, "columns", columns._replace(group_count=counts))
    yield schedule


def claims_a_lying_name(given: Problem, budget: Budget) -> Iterator[Claim]:
    schedule = Schedule()
    put(schedule, "columns", serves(3).columns._replace(contents=(Everyone("nobody"),)))
    yield schedule


def claims_lying_columns(given: Problem, budget: Budget) -> Iterator[Claim]:
    class Twofaced(Columns):
        __slots__ = ()

    schedule = serves(3)
    put(schedule, "columns", Twofaced(*schedule.columns))
    yield schedule


QUARTER_BELOW = BlockPrices({"b": "1/4"}, {}, [0])


@pytest.mark.parametrize(
    "run",
    [
        changes_a_configuration,
        changes_a_cost,
        changes_a_cost_within,
        changes_the_rows,
        changes_the_limit,
        changes_the_names,
        changes_prices_once_checked,
        changes_a_branch_once_checked,
        changes_a_schedule_once_checked,
        changes_the_best,
        changes_the_budget,
        claims_lying_prices,
        claims_prices_in_lying_texts,
        claims_a_lying_bound,
        claims_lying_counts,
        claims_a_lying_name,
        claims_lying_columns,
    ],
)
def test_what_is_returned_holds_whatever_an_algorithm_does_to_its_objects(run: Run) -> None:
    posed, start = problem(), serves(9)
    solution = None
    with suppress(AlgorithmError):
        solution = solve(posed, Scripted(run), start=start, time_limit=5)
    if solution is not None:
        assert check(posed, solution.schedule) == ()
        assert solution.cost == solution.schedule.cost(posed) >= OPTIMUM
        assert solution.lower_bound == -(-solution.certificate.bound(posed) // 1) <= OPTIMUM
        assert all(type(line.lower_bound.numerator) is int for line in solution.history)
    assert posed.compute_sha256() == problem().compute_sha256()
    assert start == serves(9)


# --- nothing in common ----------------------------------------------------------------------------

ATOMS = (int, float, str, bytes, bool, type(None), type, np.dtype, types.ModuleType)
CODE = (types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType)


def reachable(*roots: object) -> dict[int, object]:
    """All that attributes, items and bases lead to, but for code and what cannot change."""
    found: dict[int, object] = {}
    pending = list(roots)
    while pending:
        thing = pending.pop()
        if isinstance(thing, (*ATOMS, *CODE)) or id(thing) in found:
            continue
        if not isinstance(thing, tuple) or hasattr(thing, "__dict__"):
            found[id(thing)] = thing
        pending += gc.get_referents(thing)
        if isinstance(thing, np.ndarray):
            pending += [thing.base, *(thing.tolist() if thing.dtype == object else [])]
        if isinstance(thing, types.MethodType):
            pending.append(thing.__self__)
    return found


class Keeps(OneByOne):
    """Keeps all it is given."""

    def __init__(self) -> None:
        self.kept: list[object] = []

    def run(self, given: Problem, options: Any, budget: Budget) -> Iterator[Claim]:
        thread = threading.current_thread()
        self.kept += [given, options, budget, budget.best, budget.lower_bound, vars(thread)]
        yield from super().run(given, options, budget)
        self.kept += [budget.best, budget.lower_bound]
        yield BlockPrices({"b": "1/10", "c": "1/10"})


def test_nothing_that_could_be_changed_is_in_common() -> None:
    half: Any = Fraction(1, 2)
    shapes: list[AnyConfiguration] = [
        Configuration({"b": 2}, "m"),
        SizeBoundedConfigurations({"b": half, "c": 1}, 3, "n"),
    ]
    posed = Problem.from_arrays(
        demands=np.array([5, 2**70], dtype=object),
        supply=[[1, half], [3, 2**65]],
        configurations=shapes,
        machine_types=[MachineType("m", half), MachineType("n", Fraction(2, 3))],
        blocks=["b", "c"],
    )
    assert isinstance(posed.job_names, NumberedNames)
    method = Keeps()
    given = {("b", "j0"): 5, ("b", "j1"): 2**70}
    start = Schedule.from_counts(posed, {posed.listed_configurations[0]: 2**71}, given)
    assert start.columns.group_count.dtype == object
    options = {"choose": "first"}
    solution = solve(posed, method, start=start, options=options)
    assert solution.lower_bound > 0
    theirs = reachable(*method.kept)
    ours = reachable(posed, start, options, solution)
    assert len(theirs) > 50
    common = [theirs[number] for number in theirs.keys() & ours.keys()]
    assert [thing for thing in common if type(thing).__module__.startswith(("cms", "fract"))] == []
    assert [t for t in common if isinstance(t, dict | list | set | np.ndarray)] == []


def test_options_are_an_algorithms_own() -> None:
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Options:
        """parts"""

        parts: Any = ()

    class Takes(OneByOne):
        options_type = Options

        def support(self, given: Problem, options: object) -> Support:
            return Support(True)

        def run(self, given: Problem, options: Any, budget: Budget) -> Iterator[Claim]:
            options.parts.clear()
            yield from ()

    options = {"parts": [Fraction(1, 2)]}
    solve(problem(), Takes(), options=options)
    assert options == {"parts": [Fraction(1, 2)]}


def test_options_that_cannot_be_copied_are_refused_in_words() -> None:
    endless: list[object] = []
    endless.append(endless)
    for value in (threading.Lock(), endless):
        with pytest.raises(InvalidOption, match="options of a third party's method are copied"):
            solve(problem(), OneByOne(), options={"choose": value})


def test_the_names_of_the_jobs_as_they_were_given_need_not_be_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A million names would take seconds, for every claim."""
    posed = problem()
    border = Border(posed)
    claim = Schedule.from_columns(serves(3).columns._replace(contents=border.given.job_names))
    taken = border.taken(claim)
    assert isinstance(taken, Schedule)
    monkeypatch.delattr(MachineProblem, "job_index")
    assert check(posed, taken) == check(posed, claim) == ()


# --- trees that are none --------------------------------------------------------------------------


def circle() -> Branch:
    tree = Branch(BlocksOf("b"), 0, QUARTER_BELOW, QUARTER_BELOW)
    put(tree, "below", tree)
    return tree


def giant() -> Branch:
    tree = Branch(BlocksOf("b"), 0, QUARTER_BELOW, QUARTER_BELOW)
    for _ in range(60):
        above = Branch(BlocksOf("b"), 0, QUARTER_BELOW, QUARTER_BELOW)
        put(above, "below", tree)
        put(above, "above", tree)
        tree = above
    return tree


def with_a_strange_quantity() -> Branch:
    tree = Branch(BlocksOf("b"), 0, QUARTER_BELOW, QUARTER_BELOW)
    put(tree, "quantity", "b")
    return tree


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (circle, "more than 200 branches above one another"),
        (giant, "more than 20000 leaves"),
        (with_a_strange_quantity, "a branch on 'b'; expected one of"),
        (lambda: Named(Named(HALF, "inner"), "outer"), "an object of type 'Named'"),  # type: ignore[arg-type]
        (lambda: SolverBound(2, 3), "cannot be checked: InvalidProblem: solver name is 3"),  # type: ignore[arg-type]
    ],
)
def test_a_claim_that_cannot_be_rebuilt_is_refused(claim: Callable[[], Any], words: str) -> None:
    with pytest.raises(AlgorithmError, match=r"scripted.* claims") as caught:
        solve(problem(), Scripted([claim()]))
    assert words in str(caught.value)
