"""Certificates: their depth and their leaves, what they may not say, and checks given up."""

from __future__ import annotations

import copy
import json
import pickle
import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import (
    BlockPrices,
    BlocksOfJob,
    BlocksOfType,
    Branch,
    Certificate,
    Configuration,
    InvalidCertificate,
    Job,
    MachinesOfConfiguration,
    MachinesOfType,
    MachinesWithBlocks,
    MachineType,
    Problem,
    solve,
)
from cms.certificate.certificate import LARGEST_DEPTH, LARGEST_LEAVES, first_certificate
from cms.certificate.quantity import Quantity
from cms.files import certificate_from_json, problem_to_json
from cms.knapsack.pricing import price_jobs
from cms.problem.parts import SizeBoundedConfigurations as SizeBounded
from tests.property.certificates import random_certificate
from tests.property.definition import INVALID
from tests.property.problems import problems
from tests.property.verdicts import judge_certificate
from tests.samples import refusal, triple, two_types

refused = partial(refusal, InvalidCertificate)
MACHINES = MachinesOfType("machine")


def chain(depth: int) -> Certificate:
    """A branch above a branch above a branch; each leaf with its multipliers."""
    tree: Certificate = BlockPrices(multipliers=[0] * depth)
    for above in range(depth - 1, -1, -1):
        tree = Branch(MACHINES, 0, BlockPrices(multipliers=[0] * (above + 1)), tree)
    return tree


def shared(depth: int, multiplier: int = 0) -> Branch:
    """Branches whose two sides are the same object; 2 ** depth leaves."""
    tree: Certificate = BlockPrices({"b": "1/3"}, multipliers=[multiplier] * depth)
    for _ in range(depth):
        tree = Branch(MACHINES, 1, tree, tree)
    assert isinstance(tree, Branch)
    return tree


def test_the_deepest_tree_allowed_can_be_used_in_every_way_and_no_deeper_one() -> None:
    tree = chain(LARGEST_DEPTH)
    assert isinstance(tree, Branch)
    assert tree.depth == LARGEST_DEPTH
    assert len(list(tree.leaves())) == LARGEST_DEPTH + 1
    assert tree.bound(triple()) == 0
    twin = pickle.loads(pickle.dumps(tree))
    for each in (twin, certificate_from_json(json.loads(json.dumps(tree.to_json())))):
        assert each == tree
        assert hash(each) == hash(tree)
    assert repr(tree)
    message = f"a certificate has more than {LARGEST_DEPTH} branches above one another"
    assert refused(chain, LARGEST_DEPTH + 1) == message
    # Leaves are counted as often as they stand.
    assert shared(14).leaf_count == 2**14 < LARGEST_LEAVES < 2**15
    assert refused(shared, 15).startswith(f"a certificate has more than {LARGEST_LEAVES} leaves")


@pytest.mark.parametrize("certificate", [BlockPrices({"b": 1}, {"m": 1}, [1]), chain(1)], ids=repr)
def test_a_certificate_cannot_be_changed(certificate: Any) -> None:
    before = certificate.to_json()
    for name in ("prices", "limit_prices", "multipliers", "quantity", "below", "depth", "new"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(certificate, name, None)
        with pytest.raises((AttributeError, TypeError)):
            delattr(certificate, name)
    for leaf in certificate.leaves():
        with pytest.raises((AttributeError, TypeError)):
            leaf.prices["b"] = 5
    before["prices" if "prices" in before else "below"] = None
    assert certificate.to_json() != before


def test_the_first_certificate_sees_blocks_that_no_machine_can_have() -> None:
    shapes: list[Configuration | SizeBounded] = [
        Configuration({"here": 1}),
        SizeBounded({"small": 1, "giant": 3}, capacity=2),
    ]
    problem = Problem(configurations=shapes, jobs=[Job("x", 1, {"here": 1, "giant": 1})])
    first = first_certificate(problem)
    assert first == BlockPrices({"giant": 1})
    assert (first.bound(problem), first.proves_infeasible(problem)) == (0, False)
    lost = Problem(configurations=shapes, jobs=[Job("x", 5, {"giant": 2})])
    # three giants that nobody has
    assert (first.bound(lost), first.proves_infeasible(lost)) == (3, True)
    assert first_certificate(Problem(configurations=[])) == BlockPrices()


def passes(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """When ``price_jobs`` is to be stopped, from now on."""
    asked: list[object] = []

    def counted(*given: Any, **more: Any) -> Any:
        asked.append((more["stopped"], more["undisturbed"]))
        return price_jobs(*given, **more)

    monkeypatch.setattr("cms.certificate.certificate.price_jobs", counted)
    return asked


def test_leaves_that_prove_the_same_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = passes(monkeypatch)
    # whether the sides are the same objects or only equal
    for tree in (shared(14), certificate_from_json(shared(6).to_json())):
        asked.clear()
        assert tree.bound(triple()) == Fraction(4, 3)
        assert len(asked) == 1
    # with multipliers each path is a case of its own, unless it has the same branches
    asked.clear()
    shared(6, 1).bound(triple(cost=9))
    assert len(asked) == 2**6


SIDES = st.tuples(
    st.sampled_from([MACHINES, BlocksOfJob("b", "x")]), st.integers(0, 1), *[st.integers(0, 2)] * 2
)


@given(st.data())
def test_a_tree_with_shared_sides_proves_what_its_leaves_do_one_by_one(data: st.DataObject) -> None:
    depth = data.draw(st.integers(1, 2))
    numbers = st.sampled_from([Fraction(0), Fraction(0), Fraction(1), Fraction(1, 2)])
    multipliers = st.lists(numbers, min_size=depth, max_size=depth)
    level: list[Certificate] = [
        BlockPrices({"b": "1/3"}, multipliers=data.draw(multipliers)) for _ in range(3)
    ]
    for _ in range(depth):
        drawn: list[tuple[Quantity, int, int, int]] = data.draw(
            st.lists(SIDES, min_size=3, max_size=3)
        )
        level = [Branch(what, most, level[one], level[other]) for what, most, one, other in drawn]
    with pytest.MonkeyPatch.context() as patch:
        judged = proved(level[0])
        patch.setattr(BlockPrices, "numbers", lambda self: object())  # no two are the same
        assert proved(level[0]) == judged


def proved(certificate: Certificate) -> Any:
    try:
        return certificate.judged(triple(cost=3))
    except InvalidCertificate as fault:
        return str(fault)


@pytest.mark.parametrize("undisturbed", [0, 10**6])
def test_a_check_can_be_stopped_between_leaves_and_within_them(
    monkeypatch: pytest.MonkeyPatch, undisturbed: int
) -> None:
    asked = passes(monkeypatch)

    def stopped() -> bool:
        return len(asked) >= 3

    tree = shared(6, 1)
    assert tree.judged(triple(cost=9), stopped=stopped, undisturbed=undisturbed) is None
    assert asked == [(stopped, undisturbed)] * 3
    asked.clear()
    assert tree.judged(triple(cost=9), stopped=lambda: False) == tree.judged(triple(cost=9))


LEAF = BlockPrices(multipliers=[0])


def on(quantity: Quantity) -> Branch:
    return Branch(quantity, 0, LEAF, LEAF)


@pytest.mark.parametrize(
    ("certificate", "words"),
    [
        (BlockPrices({"B": 1}), "block 'B'"),
        (BlockPrices(proper={"b": 1}), "proper count of 1 for the block 'b'"),
        (BlockPrices({}, {"Dear": 0}), "group 'Dear'"),
        (BlockPrices({}, {"dear": "1/7"}), "limit price 1/7 on machine type 'dear'"),
        (BlockPrices(multipliers=[1]), "1 multipliers"),
        (BlockPrices({"b": "2.5"}, {"cheap": 1}), "b on 'cheap' is worth 2.5"),
        (on(MachinesOfType("DEAR")), "machine type 'DEAR'"),
        (on(BlocksOfType("c")), "block 'c'"),
        (on(BlocksOfJob("b", "z")), "job 'z'"),
        (on(MachinesWithBlocks(Configuration({"c": 1}, "dear"))), "block 'c'"),
        (on(MachinesWithBlocks(Configuration({"b": 1}))), "Configuration(b)"),
        (on(MachinesOfConfiguration(Configuration({"b": 1}))), "Configuration(b)"),
        (on(MachinesOfConfiguration(Configuration({"b": 2}, "dear"))), "(2 x b on dear)"),
    ],
)
def test_a_breach_is_named(certificate: Certificate, words: str) -> None:
    assert words in refused(certificate.bound, two_types())
    assert words in refused(certificate.proves_infeasible, two_types())
    assert BlockPrices({"b": 2}, {"cheap": 1}, proper={"b": 2}).bound(two_types()) == 4 - 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        *((({"b": price},), f"price of block 'b' is {price}") for price in (-1, None, True)),
        (({"b": float("nan")},), "price of block 'b' is nan"),
        *((({}, {}, (), {"b": n}), f"count of block 'b' is {n!r}") for n in (-1, 1.5, "2")),
        (({}, {}, (), ["b"]), "['b']"),
        (({}, {}, (), {"": 1}), "''"),
        ((0,), "price of every block is"),
        (({}, 0), "every limit is 0"),
        (({}, {}, (), 0), "proper count of every block is 0"),
        (({}, {"m": -1}), "price of limit 'm' is -1"),
        (({}, {}, [-1]), "multiplier is -1"),
        (({}, {}, "12"), "multipliers is '12'"),
    ],
)
def test_prices_that_are_none_are_refused(arguments: Any, words: str) -> None:
    assert words in refused(BlockPrices, *arguments)


class Everywhere(BlocksOfType):
    """A quantity of one's own, that could be known to every problem."""


class Turncoat(Configuration):
    """A configuration that could be equal to any other."""


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Branch("b", 0, LEAF, LEAF), "'b'"),  # type: ignore[arg-type]
        (lambda: Branch(Everywhere("b"), 0, LEAF, LEAF), "Everywhere"),
        (lambda: Branch(BlocksOfType("b"), 0.5, LEAF, LEAF), "at_most is 0.5"),  # type: ignore[arg-type]
        (lambda: Branch(BlocksOfType("b"), 0, None, LEAF), "None"),  # type: ignore[arg-type]
        (lambda: MachinesOfType(5), "5"),  # type: ignore[arg-type]
        (lambda: MachinesOfType({}), "no type"),
        (lambda: MachinesOfType({"m": 0}), "machine type 'm' is 0"),
        (lambda: BlocksOfType(""), "''"),
        (lambda: BlocksOfJob("b", ["x"]), "['x']"),  # type: ignore[arg-type]
        (lambda: MachinesOfConfiguration(Turncoat({"b": 3})), "3 x b"),
        (lambda: MachinesOfConfiguration(SizeBounded({"b": 1}, 1)), "SizeBounded"),  # type: ignore[arg-type]
        (lambda: MachinesWithBlocks("b"), "'b'"),  # type: ignore[arg-type]
    ],
)
def test_branches_and_quantities_that_are_none_are_refused(
    make: Callable[[], object], words: str
) -> None:
    assert words in refused(make)


@given(problems(), st.integers(0, 10**9), st.integers(-1, 3), st.booleans())
def test_a_tree_proves_what_the_definition_and_the_second_checker_say(
    problem: Problem, seed: int, hairs: int, near_the_best: bool
) -> None:
    best = solve(problem, threads=1).certificate if near_the_best else None
    near = best.prices if isinstance(best, BlockPrices) and any(best.prices.values()) else None
    document = random_certificate(random.Random(seed), problem, near=near).to_json()
    verdict = judge_certificate(problem_to_json(problem), document)
    assert verdict != INVALID
    # As it was drawn, it holds; with costs that differ by a hair it may not.
    machines = [
        MachineType(m.name, max(Fraction(0), m.cost + Fraction(hairs, 100)), m.limit)
        for m in problem.machine_types
    ]
    judge_certificate(problem_to_json(problem.replace(machine_types=machines)), document)


@given(problems(), st.integers(0, 10**9))
def test_a_certificate_survives_json_pickle_and_copies(problem: Problem, seed: int) -> None:
    certificate = random_certificate(random.Random(seed), problem)
    text = json.dumps(certificate.to_json())
    for twin in (
        certificate_from_json(json.loads(text)),
        pickle.loads(pickle.dumps(certificate)),
        copy.deepcopy(certificate),
    ):
        assert twin == certificate
        assert hash(twin) == hash(certificate)
        assert twin.to_json() == certificate.to_json()
