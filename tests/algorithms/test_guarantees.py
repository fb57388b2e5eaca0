"""Every algorithm, in every variant, conforms and keeps its guarantee, or refuses at the door."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

import cms
from cms import Configuration, InvalidOption, Job, MachineType, Problem, SizeBoundedConfigurations
from cms.plugin.registry import algorithm_of, list_algorithms, read_options
from cms.testing import check_algorithm
from cms.testing.checks import Laboratory
from cms.testing.edge_problems import CROWDS, EDGE_PROBLEMS
from instances.families import generate
from tests.algorithms.gpulet.test_gpulet import serving, whole
from tests.families import FAMILIES, instance
from tests.oracle import optimum
from tests.property.problems import source
from tests.references.guarantees import VARIANTS, Options, examine, promise
from tests.samples import few, so_many

#: Each variant with what is plain of it or without; in the long run it is both.
VARIED = [
    pytest.param(
        method,
        {**options, **plain},
        id=" ".join([method, *map(str, options.values()), *plain]),
        marks=[pytest.mark.long] if (at + len(plain)) % 2 else [],
    )
    for at, (method, options) in enumerate((m, each) for m in VARIANTS for each in VARIANTS[m])
    for plain in ({}, {"plain": True})
]
TAKEN = tuple(
    family
    for family in FAMILIES
    if family not in ("limits", "groups", "infeasible_by_limit", "infeasible_by_block")
)


def answered(method: str, options: Options, numbers: Iterable[int]) -> int:
    """How many problems a variant answers; a guarantee that is broken names the problem."""
    families = ("size_bounded", "max_blocks") if options.get("route") == "cells" else TAKEN
    seen = 0
    for number in numbers:
        family = families[number % len(families)]
        problem = instance(family, number)
        try:
            seen += examine(problem, optimum(problem), method, options) is not None
        except Exception as fault:
            raise AssertionError(
                f"instance({family!r}, {number}): {fault}\n{source(problem)}"
            ) from fault
    return seen


@pytest.mark.parametrize(("method", "options"), VARIED)
def test_a_variant_keeps_its_guarantee(method: str, options: Options) -> None:
    most = so_many(8, 16) // (2 if "plain" in options else 1)
    assert answered(method, options, range(most)) >= most // 3


@pytest.mark.parametrize("method", ["greedy", "lp_rounding", "ptas"])
def test_limits_are_refused_or_leave_no_guarantee(method: str) -> None:
    few = Problem(
        configurations=Configuration({"a": 2}),
        jobs=[Job("x", 3, {"a": 1})],
        machine_types=[cms.MachineType("machine", limit=3)],
    )
    algorithm, _ = algorithm_of(method)
    support = algorithm.support(few, read_options(algorithm, {}))
    assert support or "limit" in support.reason
    tiny = (instance(family, number) for family in ("limits", "groups") for number in range(20))
    for problem in (few, *tiny):
        limited = any(problem.weights[str(shape.machine)] for shape in problem.configurations)
        if limited and examine(problem, optimum(problem), method, {}) is not None:
            assert promise(problem, method, {}) is None, source(problem)


@pytest.mark.long
@pytest.mark.parametrize("method", VARIANTS)
def test_every_variant_keeps_its_guarantee_on_a_thousand_problems(method: str) -> None:
    for options in VARIANTS[method]:
        answered(method, options, range(60, 1060))


#: What else runs than by default.
WAYS: list[tuple[str, dict[str, Any]]] = [
    ("ptas", {"exact": "program"}),
    ("conic", {"route": "points"}),
    ("conic", {"route": "cells"}),
    ("ptas", {"plain": True, "epsilon": "1/10"}),
    ("conic", {"route": "cells", "plain": True}),
]
#: One of them is for the long run: "auto" hands its problems over to it.
NAMES = [
    pytest.param(name, marks=[pytest.mark.long] if name == "branch_and_price" else [])
    for name in list_algorithms()
]


#: Made once for all algorithms.
CROWD = tuple(replace(CROWDS[at], make=cache(CROWDS[at].make)) for at in (1, 3))


@pytest.mark.parametrize("name", NAMES)
def test_every_installed_algorithm_conforms(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On an eighth of the problems, not the same for all, and in one crowd; on all of a few."""
    monkeypatch.setattr("cms.testing.checks.CROWDS", CROWD)
    problems = Laboratory(name).problems
    if len(problems) > 20:
        problems = problems[list_algorithms().index(name) % 8 :: 8]
    report = check_algorithm(name, problems, seeds=[0])
    assert report.ok, str(report)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", list_algorithms())
def test_every_installed_algorithm_conforms_on_every_problem(name: str, seed: int) -> None:
    report = check_algorithm(name, seeds=[seed])
    assert report.ok, str(report)


@pytest.mark.parametrize("way", few(3, WAYS))
def test_an_algorithm_conforms_with_other_options(way: tuple[str, dict[str, Any]]) -> None:
    name, options = way
    problems = EDGE_PROBLEMS[so_many(1, 0) :: so_many(4, 1)]
    report = check_algorithm(name, problems, options=options, seeds=[0])
    assert report.ok, str(report)


SMALL = Problem(configurations=Configuration({"a": 2}), jobs=[Job("x", 3, {"a": 1})])
LIMITED = SMALL.replace(machine_types=[MachineType("machine", limit=1)])
FREE = SMALL.replace(machine_types=[MachineType("machine", 0)])
GREEDY, ROUNDING, MIG = "greedy", "lp_rounding", ("mig_serving_fast", "mig_serving")
GPULET = ("gpulet", "gpulet_sbp", "gpulet_guided")


def asked(demand: int, blocks: int = 1, configuration: Any = None) -> Problem:
    """One job that gets 1 from each block."""
    shape = configuration or Configuration({"a": blocks})
    names = shape.sizes if isinstance(shape, SizeBoundedConfigurations) else shape.blocks
    return Problem(configurations=shape, jobs=[Job("x", demand, dict.fromkeys(names, 1))])


def bounded(types: int, capacity: int, jobs: int = 1) -> Problem:
    """A size-bounded set of so many types that all differ."""
    sizes = {f"b{i}": 2 * i + 3 for i in range(types)}
    rows = {f"b{i}": 1 + i * i for i in range(types)}
    return Problem(
        configurations=SizeBoundedConfigurations(sizes, capacity),
        jobs=[Job(f"x{j}", 10**9, rows) for j in range(jobs)],
    )


def of_two(first: Any, second: Any, *costs: Any) -> Problem:
    """Two machine types."""
    return Problem(
        configurations=[Configuration({"a": first}, "m"), Configuration({"b": second}, "n")],
        jobs=[Job("x", 100_000, {"a": 1, "b": 10_000})],
        machine_types=[MachineType(name, cost) for name, cost in zip("mn", costs, strict=True)],
    )


def on_gpus(configurations: Any, **more: Any) -> cms.TimeSharedProblem:
    return cms.TimeSharedProblem(configurations=configurations, **more)


SHARES = SizeBoundedConfigurations({f"mps:{s}": s for s in range(1, 91)}, 100, max_blocks=48)
LIST, SHORT = (
    Problem(
        configurations=[Configuration({"b0": i, "b1": number - i}) for i in range(number)],
        jobs=[Job("x", 900, {"b0": 2, "b1": 3})],
    )
    for number in (101, 3)
)
MANY_WAYS = Problem(
    configurations=SizeBoundedConfigurations({"a": 1, "b": 2, "c": 3}, 30),
    jobs=[Job(name, 90, {"a": 1, "b": 3, "c": 5}) for name in "wxyz"],
)
#: Methods, what they do not take, with which options, and a word of the reason.
PROBLEMS: list[tuple[Any, Any, dict[str, Any], str]] = [
    ((GREEDY, ROUNDING, "ptas", *MIG), LIMITED, {}, "limit"),
    (GREEDY, asked(3, 20), {"inner": "exact"}, "up to 20 blocks"),
    (GREEDY, asked(7 * 10**15, 10**15), {"variant": "units", "inner": "dependent"}, "blocks"),
    ((GREEDY,), bounded(30, 10**4), {"variant": "units"}, "maximal configurations"),
    ((ROUNDING,), bounded(30, 10**4), {"variant": "supports"}, "maximal configurations"),
    (("ptas", "cp_sat"), asked(300, 1, SHARES), {}, "more than 20000 maximal"),
    ("ptas", of_two(1, 9, "1e-60", 10**60), {}, "costs more than"),
    ("cp_sat", of_two(1, 1, "0.01", "1e99"), {}, "times"),
    ("conic", LIST, {}, "101 configurations"),
    ("conic", SHORT, {"route": "cells"}, "one size-bounded set"),
    ("conic", of_two(1, 1, 1, 2), {}, "2 machine types"),
    ("conic", bounded(1, 9, 101), {}, "101 jobs"),
    ("conic", bounded(9, 40), {}, "9 block types"),
    ("conic", bounded(2, 10**6), {"route": "points"}, "maximal contents"),
    ("conic", bounded(3, 10**6), {}, "maximal contents"),
    ("conic", bounded(3, 50), {"route": "cells"}, "two block types"),
    (MIG, FREE, {}, "costs nothing"),
    (MIG, asked(10**12), {}, "one by one"),
    (MIG, generate("real-rows", n=30_000, m=1, seed=0), {}, "30000 machines"),
    (MIG, asked(9, 10**6), {}, "1000000"),
    (MIG, MANY_WAYS, {}, "all scored"),
    (MIG[0], of_two(1, 1, "0.00005", 1), {}, "20000"),
    (GPULET, on_gpus(Configuration({"80": 1, "10": 2})), {}, "10 + 10 + 80"),
    (GPULET, on_gpus(Configuration({"mps:60": 1})), {}, "cut into 60"),
    (GPULET, on_gpus(Configuration({"3g.40gb": 2})), {}, "no share"),
    (GPULET, on_gpus(Configuration({"50": 1, "mps:50": 1})), {}, "same share"),
    (GPULET, on_gpus(SizeBoundedConfigurations({"50": 50}, 100)), {}, "size-bounded"),
    (
        (*GPULET, "mix_first_fit"),
        on_gpus(Configuration({"100": 1}), machine_types=[MachineType("machine", limit=1)]),
        {},
        "limit of 1",
    ),
    (
        GPULET,
        on_gpus(
            [Configuration({"100": 1}, name) for name in "ab"],
            machine_types=[MachineType("a"), MachineType("b")],
        ),
        {},
        "several machine types",
    ),
    (("gpulet", "gpulet_guided"), serving(("x", 10**9, {100: 1})), {}, "at most 2000"),
    (
        "gpulet",
        whole(("1", 10**14, [(1, 1), (10**12, 10**13)])),
        {"interpolate": True},
        "were measured",
    ),
    ("mix_first_fit", on_gpus(Configuration({"1": 1001})), {}, "1001 blocks"),
]
#: Values that the options of a method do not have.
OPTIONS: dict[str, list[tuple[str, Any]]] = {
    GREEDY: [("variant", "bets"), ("inner", "fast"), ("delta", 0), ("plain", 1)],
    ROUNDING: [("variant", "simplex"), ("epsilon", 0), ("epsilon", "-1/2"), ("plain", "yes")],
    "ptas": [("epsilon", 0), ("epsilon", "5/4"), ("exact", "magic"), ("plain", 1)],
    "conic": [("route", "all"), ("plain", 1)],
    "cp_sat": [("workers", 0), ("workers", True), ("workers", 1025)],
    MIG[0]: [("mixed", 0), ("mixed", 6), ("last_mile", 2)],
    MIG[1]: [("score", "best"), ("playouts", 0), ("erased", "1.5"), ("backup", "best")],
}


def cases() -> Iterator[Any]:
    for methods, *case in PROBLEMS:
        for method in [methods] if isinstance(methods, str) else methods:
            yield pytest.param(method, *case, id=f"{method} {case[2]}")


@pytest.mark.parametrize(("method", "problem", "options", "reason"), [*cases()])
def test_what_a_method_does_not_take_it_refuses_with_the_reason(
    method: str, problem: Any, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(cms.UnsupportedProblem, match=reason.replace("+", r"\+")):
        cms.solve(problem, method, options=options)


@pytest.mark.parametrize(
    ("method", "option", "value"),
    [(method, *each) for method, several in OPTIONS.items() for each in several],
)
def test_a_value_that_an_option_does_not_have_is_refused_by_name(
    method: str, option: str, value: Any
) -> None:
    with pytest.raises(InvalidOption, match=f"{option} is .*expected"):
        cms.solve(SMALL, method, options={option: value})
