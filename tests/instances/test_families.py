"""The interface of the families: names, seeds, parameters, errors, the suite and its document."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.suites.stock import LINES
from cms.errors import InvalidOption
from cms.problem.parts import Configuration
from cms.problem.problem import Problem
from instances.families import Family, UnknownFamily, families, family, generate, suite
from instances.families.mig_serving import SPREADS
from instances.families.rounding import KINDS
from instances.families.suite import VARIANTS
from tests.samples import few, so_many

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "families.md"
# A family's number is part of all its seeds: it never changes, and a new family gets a new one.
NUMBERS = {
    "real-rows": 1,
    "arbitrary": 2,
    "sparse": 3,
    "near-ties": 4,
    "superlinear": 5,
    "sublinear": 6,
    "mixed-fleet": 7,
    "mixed-fleet-infeasible": 8,
    "size-bounded": 9,
    "size-bounded-mixed": 10,
    "random-configurations": 11,
    "huge-demands": 12,
    "equal-jobs": 13,
    "rounding": 14,
    "mig-serving": 15,
    "stock-triplets": 16,
    "stock-uniform": 17,
    "stock-cutgen": 18,
    "stock-residual": 19,
    "stock-divisible": 20,
    "measured-shares": 21,
    "memory-shares": 22,
    "cluster-fleet": 23,
    "few-jobs-many-shares": 24,
}
ONES = {"stock-triplets", "stock-uniform", "cluster-fleet"}
# Of the benchmark suite of that name, and in no list that published tables are of.
STOCK = {name for name, number in NUMBERS.items() if number >= 16}
ALL_VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, dict(parameters)) for name, variants in VARIANTS.items() for parameters in variants),
    *(("rounding", {"kind": kind}) for kind in KINDS),
    *(("mixed-fleet-infeasible", {"types": types}) for types in (1, 3, 5)),
    *(("mig-serving", {"rates": rates}) for rates in SPREADS),
    *((line.family, {**line.always, **variant}) for line in LINES for variant in line.variants),
]


def test_the_families_are_these_and_keep_their_numbers() -> None:
    assert {name: family(name).number for name in families()} == NUMBERS
    for name in families():
        assert family(name).name == name
        assert issubclass(family(name), Family)
        assert family(name).__doc__
        assert family(name).title
        assert family(name).stresses
        assert family(name).source


def test_the_document_lists_every_family_with_its_parameters_and_defaults() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|(.*)\|$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    cells = {name: rest.split(" | ") for name, rest in rows}
    assert [name for name, _ in rows][: len(families())] == list(families())
    for name in families():
        written = dict(re.findall(r"`(\w+)` = ([\w./-]+)", cells[name][1]))
        assert written == {p: str(v) for p, v in family(name).parameters().items()}
    assert set(KINDS) <= cells.keys()


# -- seeds -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "parameters"), ALL_VARIANTS)
@pytest.mark.parametrize("n", few(1, [40, 1, 2, 3]))
def test_the_same_arguments_give_the_same_problem_and_another_seed_another(
    name: str, parameters: dict[str, Any], n: int
) -> None:
    first = generate(name, n=n, seed=5, **parameters)
    assert first == generate(name, n=n, seed=5, **parameters)
    assert first.n_jobs == n
    if n == 40 and parameters.get("kinds") != 1:
        assert first != generate(name, n=n, seed=6, **parameters)


@pytest.mark.parametrize(
    ("name", "arguments", "digest"),
    [
        (
            "real-rows",
            {"n": 1000, "seed": 1},
            "76eb8d43055a64f62032f4ff9d8b3333dc9c1e2c34c6721e15037cb906c5f60d",
        ),
        (
            "near-ties",
            {"n": 200, "seed": 2},
            "dbbaa2b9bb1bd6b78bf7748d1fc72ca6399137cbeac4fe73b467237ea0f1996f",
        ),
        (
            "mixed-fleet",
            {"n": 50, "seed": 3, "types": 5, "limits": "tight"},
            "be2b5625d418b6f61e767f20efd7d5dd7a177310cff57dc418e6239f8034d150",
        ),
        (
            "mixed-fleet-infeasible",
            {"n": 50, "seed": 4},
            "ab547dde8291ad6d322a0730c8c20594bb5e8e4a137e8e9531f300cf98d326a6",
        ),
        (
            "size-bounded-mixed",
            {"n": 50, "seed": 5, "mig_cost": "3/2"},
            "72802d3b5fcaa3ad584a45508948d4fbd617b6df6219304c52033596ce92c4fd",
        ),
        (
            "rounding",
            {"n": 30, "seed": 6, "kind": "full"},
            "85b4ec7871ddebb78b02d43333c4180e6ec5935dd696469ad7bf87251be22b3e",
        ),
        (
            "mig-serving",
            {"n": 100, "seed": 1, "rates": "lognormal"},
            "90ed8dd8f80157a04916d00a559e8367900700b6c9950887bf9111408e6e7442",
        ),
        (
            "stock-triplets",
            {"n": 60, "seed": 7},
            "a80edb6d85fe1a889e8d35fdf51f2774cde57e711f4f40ad6476f47170111544",
        ),
        (
            "stock-uniform",
            {"n": 120, "seed": 8},
            "bb4f4cdec8b357f7684403458b59f0752a9efd3b906b36e3e9d12e1d8e60241d",
        ),
        (
            "stock-cutgen",
            {"n": 50, "seed": 9, "demand": 50},
            "f9c29859aad94547c869e27aaa2ee69e25bcf17a53e871f8d4caa49191f69079",
        ),
        (
            "stock-residual",
            {"n": 50, "seed": 10},
            "82ca6c44b8a91c49d531dc8f779fad4af72f1c1eca481c6195089b696c833712",
        ),
        (
            "stock-divisible",
            {"n": 50, "seed": 11},
            "125cc7412c6b9dc9fade15cb31e4cbe666ab58eb5da51b234121d451ec427832",
        ),
        (
            "measured-shares",
            {"n": 20, "seed": 12, "step": 1},
            "5e7eb2b72f0470e9578f97a3383208832f603da65d1085de2efe4f3f1a3b2177",
        ),
        (
            "memory-shares",
            {"n": 20, "seed": 13},
            "dfbf5e56f3210d2cd638aef3bc64cbbbe0bf69aa701c749ddc39dcbc0950315e",
        ),
        (
            "cluster-fleet",
            {"n": 700, "seed": 14, "limits": "tight", "serving": "rates"},
            "e1be461430c532b6913f0c5a355376e9ed00b005ac7af1a2840c9ad104cfd03e",
        ),
        (
            "few-jobs-many-shares",
            {"n": 8, "seed": 15, "types": 4, "floor": 30},
            "3cd1e4fcbec179fbc96d945683dd53120163e2a64f03ddbe1f05fce4d60b4ec4",
        ),
    ],
)
def test_a_seed_names_a_problem_for_ever(name: str, arguments: Any, digest: str) -> None:
    assert generate(name, **arguments).sha256 == digest


def test_families_of_one_seed_do_not_share_their_numbers() -> None:
    one, other = generate("superlinear", n=50, seed=1), generate("sublinear", n=50, seed=1)
    mine, yours = (np.log(p.rows.demands / p.rows.supplies[:, -1]) for p in (one, other))
    assert abs(np.corrcoef(mine, yours)[0, 1]) < 0.5


def test_text_and_numbers_mean_the_same() -> None:
    assert generate("sparse", n=5, seed=1, m="30") == generate("sparse", n=5, seed=1, m=30.0)
    halves = [generate("mixed-fleet", n=5, seed=1, cost_step=step) for step in ("1/2", 0.5)]
    assert halves[0] == halves[1]


# -- what every problem has --------------------------------------------------------------------


def servable(problem: Problem) -> bool:
    """Whether every job has a block that gives it something, in some configuration."""
    held = {
        block
        for shape in problem.configurations
        for block in (shape.blocks if isinstance(shape, Configuration) else shape.sizes)
    }
    columns = [i for i, block in enumerate(problem.blocks) if block in held]
    return bool((problem.rows.supplies[:, columns] > 0).any(axis=1).all())


@pytest.mark.parametrize(("name", "parameters"), ALL_VARIANTS)
def test_rows_are_integers_with_a_demand_and_a_block_that_serves_it(
    name: str, parameters: dict[str, Any]
) -> None:
    for seed in range(so_many(1, 5)):
        problem = generate(name, n=60, seed=seed, **parameters)
        assert not problem.rows.wide
        assert (problem.rows.denominators == 1).all()
        assert (problem.rows.demands >= 1).all()
        assert servable(problem)


@pytest.mark.parametrize("name", sorted(set(families()) - {"mixed-fleet-infeasible"}))
def test_no_jobs_are_a_problem_too(name: str) -> None:
    assert generate(name, n=0, seed=1).n_jobs == 0
    for kind in KINDS if name == "rounding" else ():
        assert generate(name, n=0, seed=1, kind=kind).n_jobs == 0
    for limits in ("ample", "tight") if name in ("mixed-fleet", "cluster-fleet") else ():
        problem = generate(name, n=0, seed=1, limits=limits)
        assert {machine.limit for machine in problem.machine_types} == {0}


@pytest.mark.parametrize("name", families())
def test_jobs_beyond_the_first_piece_are_drawn_as_well(name: str) -> None:
    problem = generate(name, n=40_000, seed=1)
    assert (problem.rows.demands >= 1).all()
    assert servable(problem)
    # of bin packing and of pods the demands are all 1, and the jobs differ in what serves them
    numbers = problem.rows.supplies if name in ONES else problem.rows.demands
    assert (numbers[:7000] != numbers[-7000:]).any()


# -- errors ------------------------------------------------------------------------------------


def test_an_unknown_family_is_refused_with_the_nearest_and_all_names() -> None:
    with pytest.raises(UnknownFamily, match="nearest: 'real-rows'") as refused:
        generate("real-row", n=1, seed=1)
    assert all(name in str(refused.value) for name in families())
    with pytest.raises(ValueError, match="there is no family 7"):
        family(7)  # type: ignore[arg-type]


def test_an_unknown_parameter_is_refused_with_those_there_are() -> None:
    with pytest.raises(InvalidOption, match=r"no parameter 'typs'; nearest: 'types'; it has m"):
        generate("mixed-fleet", n=1, seed=1, typs=3)


@pytest.mark.parametrize("value", [-1, 2.5, "3", None, True])
@pytest.mark.parametrize("which", ["n", "seed"])
def test_a_bad_number_of_jobs_or_seed_is_refused_by_name(which: str, value: Any) -> None:
    arguments = {"n": 3, "seed": 3, which: value}
    with pytest.raises(InvalidOption, match=f"{which} of family 'sparse'.* expected a whole"):
        generate("sparse", **arguments)


def test_nothing_is_not_infeasible() -> None:
    with pytest.raises(InvalidOption, match="expected a whole number >= 1"):
        generate("mixed-fleet-infeasible", n=0, seed=1)


@pytest.mark.parametrize(
    ("name", "parameter", "value", "expected"),
    [
        ("real-rows", "m", 0, "a number > 0 and <= 1000000"),
        ("real-rows", "m", "five", "'five' is not a number"),
        ("real-rows", "sigma", -1, "expected a number >= 0"),
        ("real-rows", "sigma", 3, "a number >= 0 and <= 2"),
        ("arbitrary", "largest", 0, "whole number from 1 to"),
        ("sparse", "largest", 10**7, "1 to 1000000"),
        ("superlinear", "exponent", 1, "> 1 and <= 3"),
        ("sublinear", "exponent", "1.1", "> 0 and <= 1"),
        ("sublinear", "noise", 2, ">= 0 and <= 1"),
        ("mixed-fleet", "types", 6, "from 1 to 5"),
        ("mixed-fleet", "types", 2.0, "whole number from 1 to"),
        ("mixed-fleet", "cost_step", 0, "> 0"),
        ("mixed-fleet", "limits", "tigth", "expected one of none, ample, tight; nearest: 'tight'"),
        ("mixed-fleet-infeasible", "shortage", "0.02", "> 0.02 and <= 1"),
        ("size-bounded", "step", 51, "1 to 50"),
        ("size-bounded", "floor", 4, "from 5 to"),
        ("size-bounded", "floor", 105, "5 to 100"),
        ("size-bounded-mixed", "mig_cost", 0, "> 0"),
        ("random-configurations", "k", 0, "whole number from 1 to"),
        ("huge-demands", "high", 6, "whole number from 7 to 18"),
        ("huge-demands", "high", 19, "7 to 18"),
        ("equal-jobs", "kinds", 0, "whole number from 1 to"),
        ("rounding", "kind", ["hair"], "expected one of hair"),
        ("mig-serving", "rates", "log-normal", "one of normal, lognormal; nearest: 'lognormal'"),
        ("mig-serving", "m", 0, "a number > 0"),
        ("mig-serving", "spread", -1, "expected a number >= 0"),
        ("mig-serving", "spread", 3, "a number >= 0 and <= 2"),
        ("stock-cutgen", "low", 0, "a number > 0 and <= 1"),
        ("stock-cutgen", "high", "0.001", "a number >= 0.01"),
        ("stock-cutgen", "lengths", 0, "whole number from 1 to"),
        ("stock-cutgen", "demand", 0, "whole number from 1 to"),
        ("stock-residual", "demand", 2.5, "whole number from 1 to"),
        ("stock-divisible", "miss", 21, "whole number from 0 to 20"),
        ("stock-divisible", "demand", 0, "whole number from 1 to"),
        ("few-jobs-many-shares", "step", 51, "whole number from 1 to 50"),
        ("measured-shares", "step", "0.4", "a number >= 0.5 and <= 50"),
        ("memory-shares", "compute", 51, "whole number from 1 to 50"),
        ("memory-shares", "memory", 41, "whole number from 1 to 40"),
        ("cluster-fleet", "kinds", 0, "whole number from 1 to"),
        ("cluster-fleet", "types", 8, "from 1 to 7"),
        ("cluster-fleet", "blocks", 6, "whole number from 7 to"),
        ("cluster-fleet", "serving", "pod", "one of pods, rates; nearest: 'pods'"),
        ("cluster-fleet", "cost_step", 0, "> 0"),
        ("cluster-fleet", "limits", "few", "expected one of none, ample, tight"),
    ],
)
def test_a_parameter_out_of_its_range_is_refused_by_name(
    name: str, parameter: str, value: object, expected: str
) -> None:
    with pytest.raises(InvalidOption) as refused:
        generate(name, n=1, seed=1, **{parameter: value})
    assert f"parameter '{parameter}' of family '{name}'" in str(refused.value)
    assert expected in str(refused.value)


# -- the suite ---------------------------------------------------------------------------------


def test_the_suite_spreads_over_families_variants_and_sizes() -> None:
    listed = list(suite(2000, 1000, seed=1))
    assert listed == list(suite(2000, 1000, seed=1))
    assert len(listed) == 2000
    counts = Counter(name for name, _ in listed)
    assert set(counts) == set(families()) - STOCK - {"mixed-fleet-infeasible", "mig-serving"}
    assert max(counts.values()) - min(counts.values()) <= 1
    for name in counts:
        mine = [arguments for other, arguments in listed if other == name]
        sizes: list[Any] = [arguments["n"] for arguments in mine]
        assert (min(sizes), max(sizes)) == (1, 1000)
        assert 25 <= median(sizes) <= 40  # log-uniform: about the root of 1000
        variants = [{p: v for p, v in a.items() if p not in ("n", "seed")} for a in mine]
        assert all(dict(parameters) in variants for parameters in VARIANTS[name])
    seeds = {arguments["seed"] for _, arguments in listed}
    assert len(seeds) == 2000
    assert not seeds & {arguments["seed"] for _, arguments in suite(2000, 1000, seed=2)}


def test_a_suite_of_some_families_spreads_over_the_sizes_as_well() -> None:
    listed = list(suite(100, 12, 1, ("sparse", "rounding")))
    assert Counter(name for name, _ in listed) == {"sparse": 50, "rounding": 50}
    sizes = [arguments["n"] for _, arguments in listed]
    assert set(sizes) == set(range(1, 13))


@given(st.integers(0, 60), st.integers(1, 500), st.integers(0, 2**40))
def test_a_suite_of_any_length_keeps_to_its_sizes(instances: int, largest: int, seed: int) -> None:
    sizes: list[Any] = [arguments["n"] for _, arguments in suite(instances, largest, seed)]
    assert len(sizes) == instances
    assert all(1 <= n <= largest for n in sizes)
    assert not sizes or max(sizes) == largest


def test_the_suite_can_be_generated() -> None:
    for name, arguments in suite(60, 30, seed=3):
        assert generate(name, **arguments).n_jobs == arguments["n"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((-1, 5, 1), "instances"),
        ((5, 0, 1), "largest"),
        ((5, 5, "x"), "seed"),
        ((5, 5, 1, ["sparse", "dense"]), "no family 'dense' in the selection"),
    ],
)
def test_a_suite_of_nonsense_is_refused_at_once(arguments: Any, expected: str) -> None:
    with pytest.raises(InvalidOption, match=expected):
        suite(*arguments)
