"""Proper contents by hand: bounds above the plain one, and forgeries that neither checker takes."""

from __future__ import annotations

import copy
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

from tests.oracle import optimum
from tests.proofs_checks.both import plain_problem, proved, refused
from tests.proofs_checks.documents import Document, problem

F = Fraction


def leaf(prices: Document, *multipliers: Any, proper: Document, **more: Any) -> Document:
    return {"prices": prices, "multipliers": list(multipliers), "proper": proper, **more}


class Paper(NamedTuple):
    """A problem, a proof with proper counts, and how far prices alone get.

    ``mixture`` has fractions of machines, as (content, type, number), that hold what any options of
    the jobs need; so no block prices without branches prove more than it costs, unless they count
    on proper contents.
    """

    problem: Document
    tree: Document
    bound: Fraction
    plain: Document
    mixture: list[tuple[Document, str, Fraction]]


# A job of three blocks. A hundred fit on a large machine of cost 10, so that prices may be 1/10;
# but nobody needs more than three, and at a price of 1 these are worth less than 10. A small
# machine has one block and costs 1: three of them are the best.
SPACIOUS = Paper(
    problem(
        [
            {"machine": "large", "sizes": {"a": 1}, "capacity": 100},
            {"machine": "small", "sizes": {"a": 1}, "capacity": 1},
        ],
        {"x": (3, {"a": 1})},
        [{"name": "large", "cost": 10}, {"name": "small", "cost": 1}],
    ),
    leaf({"a": 1}, proper={"a": 3}),
    F(3),
    {"prices": {"a": "1/10"}},
    [({"a": 100}, "large", F(3, 100))],
)

# Two blocks of size 44, three of 33 and six of 12 (theory 6.11): 3 · 44 = 4 · 33 = 11 · 12 = 132,
# so that machines of one type each need 2/3 + 3/4 + 6/11 = 259/132 < 2. But with no more than two,
# three and six of them, no content is worth more than 11 at the prices 4, 3 and 1: with two of the
# first 44 of room are left, for 33 and nothing, or for 3 · 12: 8 + 3; with one of them 88, for
# 2 · 33 and one of 12, for 33 and 4 · 12, or for 6 · 12: 4 + 7; with none 132, for 3 · 33 and
# 2 · 12, for 2 · 33 and 5 · 12, or less: 11. All blocks are worth 8 + 9 + 6 = 23: so 23/11 > 2.
SIZES = {"a": 44, "b": 33, "c": 12}
STOCK = {"x": (2, {"a": 1}), "y": (3, {"b": 1}), "z": (6, {"c": 1})}
PRICES = {"a": "4/11", "b": "3/11", "c": "1/11"}
PROPER = {"a": 2, "b": 3, "c": 6}
FULL = [({"a": 3}, F(2, 3)), ({"b": 4}, F(3, 4)), ({"c": 11}, F(6, 11))]
NO_ROUND_UP = Paper(
    problem([{"sizes": SIZES, "capacity": 132}], STOCK),
    leaf(PRICES, proper=PROPER),
    F(23, 11),
    {"prices": {"a": "1/3", "b": "1/4", "c": "1/11"}},
    [(content, "machine", number) for content, number in FULL],
)

# The same beside a machine of cost 1/4 with room for one block of size 12: of cost 9/4 are two
# large ones with all but one block (2 · 44 + 33, and 2 · 33 + 5 · 12), and a small one. With at
# most two large machines, each may cost 7/4 more than it does, for 7/2 in all: prices are 11/4
# times those above then, that of a small block 1/4, and 11/4 · 23/11 - 7/2 = 9/4. Three large ones
# cost 3.
LARGE = {"machine": "large", "sizes": SIZES, "capacity": 132}
SMALL = {"machine": "small", "sizes": {"c": 12}, "capacity": 12}
TYPES: list[Document] = [{"name": "large", "cost": 1}, {"name": "small", "cost": "1/4"}]
BESIDE = Paper(
    problem([LARGE, SMALL], STOCK, TYPES),
    {
        "branch": {"machines_of_type": "large"},
        "at_most": 2,
        "below": leaf({"a": 1, "b": "3/4", "c": "1/4"}, "7/4", proper=PROPER),
        "above": leaf({}, 1, proper={}),
    },
    F(9, 4),
    {"prices": {"a": "1/3", "b": "1/4", "c": "1/11"}},
    [(content, "large", number) for content, number in FULL],
)
PAPERS = [SPACIOUS, NO_ROUND_UP, BESIDE]


@pytest.mark.parametrize("paper", PAPERS, ids=["spacious", "no round-up", "beside"])
def test_both_checkers_take_a_bound_above_the_plain_one(paper: Paper) -> None:
    assert proved(paper.problem, paper.tree) == paper.bound
    about = plain_problem(paper.problem)
    best = optimum(about)
    assert best is not None
    assert paper.bound <= best < paper.bound + 1
    # The mixture serves every job by the one block that does, and costs what plain prices prove.
    cost = F(0)
    held = dict.fromkeys(about.blocks, F(0))
    for content, machine, number in paper.mixture:
        shapes = [s for s in about.size_bounded_configurations if s.machine == machine]
        assert any(shape.allows(content) for shape in shapes)
        cost += number * about.machine_type(machine).cost
        for block, count in content.items():
            held[block] += number * count
    assert all(
        held[block] * each >= job["demand"]
        for job in paper.problem["jobs"]
        for block, each in job["demand_function"].items()
    )
    assert proved(paper.problem, paper.plain) == cost < paper.bound
    # The same prices prove nothing without the counts.
    bare = copy.deepcopy(paper.tree)
    for node in (bare, bare.get("below", {})):
        node.pop("proper", None)
    assert "is worth" in refused(paper.problem, bare)


def test_a_fleet_of_two_is_proved_too_small() -> None:
    # The limit's price of 1 pays for all that a machine holds: 23/11 - 2 > 0 is left.
    types = [{"name": "machine", "limit": 2}]
    short = problem([{"sizes": SIZES, "capacity": 132}], STOCK, types)
    limit_prices = {"machine": 1}
    assert proved(short, leaf(PRICES, proper=PROPER, limit_prices=limit_prices)) is None
    # The mixture above needs less than two machines: no prices alone can prove it.
    plain = {**NO_ROUND_UP.plain, "limit_prices": limit_prices}
    assert proved(short, plain) == F(259, 132) - 2


def test_a_machine_may_go_without_blocks_that_nobody_can_use() -> None:
    # A count of 0, for a block that serves no job, or only jobs without demand.
    of = problem(
        [{"sizes": {"a": 1, "b": 2, "c": 3}, "capacity": 6}],
        {"x": (4, {"a": 2}), "y": (0, {"c": 1})},
    )
    assert proved(of, leaf({"a": "1/2", "b": 9, "c": 9}, proper={"a": 2, "b": 0, "c": 0})) == 1
    # Larger counts than needed say less, and are true.
    assert proved(of, leaf({"a": "1/6"}, proper={"a": 10**30})) == F(1, 3)
    assert "worth" in refused(of, leaf({"a": "1/2"}, proper={"a": 10**30}))


# Two jobs take c: together six.
SHARED = problem(
    [{"sizes": SIZES, "capacity": 132}],
    {"x": (2, {"a": 1}), "y": (3, {"b": 1}), "z": (7, {"c": 2}), "w": ("1/2", {"c": "1/3"})},
)
# x is served best by one b, but three a will do.
EITHER = problem([{"sizes": {"a": 1, "b": 4}, "capacity": 8}], {"x": (5, {"a": 2, "b": 5})})
LISTED = problem([{"blocks": {"a": 4}}, {"sizes": {"a": 1}, "capacity": 4}], {"x": (2, {"a": 1})})
TREE = BESIDE.tree


def changed(tree: Document, **changes: Any) -> Document:
    return {**copy.deepcopy(tree), **changes}


def less(block: str, count: object) -> Document:
    """The proof without round-up, with another count."""
    return changed(NO_ROUND_UP.tree, proper={**PROPER, block: count})


@pytest.mark.parametrize(
    ("of", "tree", "message"),
    [
        # a count too small by one, also where it gives a higher bound
        (NO_ROUND_UP.problem, less("c", 5), "a proper count of 5 for the block 'c': all jobs toge"),
        (NO_ROUND_UP.problem, leaf({"a": 1, "b": "1/2"}, proper={"a": 1, "b": 0, "c": 0}), "of 1"),
        (SPACIOUS.problem, leaf({"a": 1}, proper={"a": 2}), "all jobs together can use 3"),
        # a job's use left out: that of w, or of z; z's rounded down; w's as if it were z's
        (SHARED, leaf(PRICES, proper={**PROPER, "c": 4}), "all jobs together can use 6"),
        (SHARED, leaf(PRICES, proper={**PROPER, "c": 2}), "all jobs together can use 6"),
        (SHARED, leaf(PRICES, proper={**PROPER, "c": 5}), "all jobs together can use 6"),
        # what a job can use of a block that another one beats
        (EITHER, leaf({"a": "1/2", "b": 1}, proper={"a": 0, "b": 1}), "can use 3"),
        (EITHER, leaf({"a": "1/2", "b": 1}, proper={"a": 2, "b": 1}), "can use 3"),
        # a block that the problem does not have
        (NO_ROUND_UP.problem, less("d", 6), "a proper count for the block 'd', which the problem"),
        (NO_ROUND_UP.problem, less("C", 6), "nearest: 'c'"),
        # prices that only smaller counts would allow
        (NO_ROUND_UP.problem, leaf({**PRICES, "c": "1/10"}, proper=PROPER), "is worth 23/22"),
        (SPACIOUS.problem, leaf({"a": 1}, proper={"a": 11}), "is worth 11 at these prices"),
        (SPACIOUS.problem, leaf({"a": "1.001"}, proper={"a": 3}), "is worth 1.001"),
        # a listed configuration may idle: no counts for it
        (LISTED, leaf({"a": "1/2"}, proper={"a": 2}), "configuration 4 x a is worth 2"),
        # the counts of another leaf, or of another block
        (BESIDE.problem, changed(TREE, below=leaf(TREE["below"]["prices"], "7/4", proper={})), "w"),
        (NO_ROUND_UP.problem, leaf(PRICES, proper={"b": 3, "c": 6}), "is worth 12/11"),
        (
            BESIDE.problem,
            changed(TREE, above=leaf({}, 1, proper={"b": 2})),
            "a proper count of 2 for the block 'b': all jobs together can use 3",
        ),
        # no counts at all
        (NO_ROUND_UP.problem, less("c", 6.5), "proper.c is 6.5, expected a whole number >= 0"),
        (NO_ROUND_UP.problem, less("c", -6), "proper.c is -6, expected a whole number >= 0"),
        (NO_ROUND_UP.problem, changed(NO_ROUND_UP.tree, proper=[2]), "proper is an array"),
        (NO_ROUND_UP.problem, changed(NO_ROUND_UP.tree, propre=PROPER), 'unknown key "propre"'),
    ],
)  # fmt: skip
def test_neither_checker_takes_a_forged_count(of: Document, tree: Document, message: str) -> None:
    assert message in refused(of, tree)
