"""What the tests of this folder share: a problem and a solution as text, and random ones."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

from hypothesis import strategies as st

from cms.certificate.certificate import BlockPrices, Branch, Certificate
from cms.certificate.quantity import BlocksOfType
from cms.files import Parsed, Source, parse_json
from cms.plugin.guarantee import Guarantee, GuaranteeVerdict, Reference, Verdict
from cms.problem.parts import (
    AnyConfiguration,
    Configuration,
    GroupLimit,
    Job,
    MachineType,
    SizeBoundedConfigurations,
)
from cms.problem.problem import Problem
from cms.schedule.schedule import MachineGroup, Schedule
from cms.solving.solution import Incumbent, Proof, Solution, Status, StopReason
from tests.texts import LETTERS

PROBLEM = """\
{
  "format": "cms-problem",
  "schema": 2,
  "machine_types": [
    {"name": "a100", "cost": "1.5", "limit": 8},
    {"name": "shared", "cost": 1, "limit": null}
  ],
  "blocks": ["1g", "3g", "half"],
  "configurations": [
    {"machine": "a100", "blocks": {"1g": 4, "3g": 1}},
    {"machine": "shared", "sizes": {"half": "0.5"}, "capacity": 1, "max_blocks": null}
  ],
  "jobs": [
    {"name": "bert", "demand": 1200, "demand_function": {"1g": 90, "3g": "310.5"}},
    {"name": "vgg", "demand": "1/3", "demand_function": {"half": "0.1"}}
  ]
}
"""

SOLUTION = """\
{
  "format": "cms-solution",
  "schema": 2,
  "problem_sha256": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
  "status": "feasible",
  "proof": "none",
  "stop_reason": "finished",
  "method": "greedy",
  "seconds": 0.125,
  "machine_count": 7,
  "cost": "10.5",
  "lower_bound": 9,
  "claimed_bound": null,
  "gap": "1.5",
  "schedule": {
    "groups": [
      {"machine": "a100", "configuration": {"1g": 4, "3g": 1}, "count": 7, "assignment": [["1g", \
"bert", 2], ["3g", "bert", 1]]}
    ]
  },
  "certificate": {"problem_sha256": \
"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "tree": {"branch": \
{"blocks_of": "1g"}, "at_most": 3, "below": {"prices": {"1g": "1/7"}, "limit_prices": {}, \
"multipliers": [0]}, "above": {"prices": {}, "limit_prices": {"a100": 2}, "multipliers": [1]}}},
  "guarantee": {"factor": 2, "additive": "0.5", "against": "LP_AGG", "theorem": "T-2", "verdict": \
"open"},
  "history": [
    {"seconds": 0.01, "cost": null, "lower_bound": 0, "claimed_bound": null, "source": "trivial"},
    {"seconds": 0.1, "cost": "10.5", "lower_bound": 9, "claimed_bound": 9, "source": "greedy"}
  ]
}
"""


def parsed(text: str) -> Parsed:
    """The document of a text."""
    source = Source("p.json", text)
    return Parsed(parse_json(source), source)


# Made once each: to make and to check a strategy takes longer than to draw from it.

#: Numbers of every kind: whole, decimal, rational, far beyond 64 bits.
NUMBERS = st.one_of(
    st.integers(0, 50).map(Fraction),
    st.decimals(0, 1000, places=3).map(Fraction),
    st.fractions(0, 1000, max_denominator=97),
    st.integers(2**62, 2**70).map(Fraction),
)
#: Names with everything that a name may have.
NAMES = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=6
)
PERHAPS_NUMBERS = st.none() | NUMBERS


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Problems with several machine types, listed and size-bounded configurations, zeros."""
    blocks = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    types = [
        MachineType(name, draw(NUMBERS), draw(st.none() | st.integers(0, 10**20)))
        for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    ]
    shapes: list[AnyConfiguration] = []
    for _ in range(draw(st.integers(1, 4))):
        machine = draw(st.sampled_from(types)).name
        chosen = draw(st.lists(st.sampled_from(blocks), min_size=1, unique=True))
        if draw(st.booleans()):
            counts = {block: draw(st.integers(1, 9)) for block in chosen}
            shapes.append(Configuration(counts, machine))
            continue
        sizes = {block: draw(NUMBERS.filter(bool)) for block in chosen}
        most = draw(st.none() | st.integers(1, 48))
        shapes.append(SizeBoundedConfigurations(sizes, draw(NUMBERS), machine, most))
    known = {b for s in shapes for b in (s.blocks if isinstance(s, Configuration) else s.sizes)}
    jobs = [
        Job(name, draw(NUMBERS), {b: draw(NUMBERS) for b in sorted(known)})
        for name in draw(st.lists(NAMES, max_size=4, unique=True))
    ]
    groups = [
        GroupLimit(name, {each.name: draw(NUMBERS.filter(bool)) for each in types}, draw(NUMBERS))
        for name in draw(st.lists(NAMES, max_size=2, unique=True))
        if all(name != each.name for each in types)
    ]
    return Problem(configurations=shapes, jobs=jobs, machine_types=types, group_limits=groups)


@cache
def schedules(least: int = -1) -> st.SearchStrategy[Schedule]:
    """Schedules with counts from ``least``, right or wrong: the files do not judge them."""
    configurations = st.builds(
        Configuration,
        st.dictionaries(NAMES, st.integers(1, 9), min_size=1, max_size=3),
        st.none() | NAMES,
    )
    groups = st.builds(
        MachineGroup,
        configurations,
        st.dictionaries(st.tuples(NAMES, NAMES), st.integers(least, 10**20), max_size=3),
        st.integers(least, 10**20),
    )
    return st.builds(Schedule, st.lists(groups, max_size=3))


@cache
def certificates() -> st.SearchStrategy[Certificate]:
    """Trees of prices; branches of every kind are written in ``tests.test_certificate``."""
    tables = st.dictionaries(NAMES, NUMBERS, max_size=2)
    leaves = st.builds(BlockPrices, tables, tables, st.lists(NUMBERS, max_size=2))
    trees = st.builds(
        Branch, st.builds(BlocksOfType, NAMES), st.integers(-3, 10**20), leaves, leaves
    )
    return leaves | trees


@st.composite
def solutions(draw: st.DrawFn) -> Solution:
    """Solutions of every status whose parts could be true together."""
    status = draw(st.sampled_from(list(Status)))
    has_schedule = status in (Status.OPTIMAL, Status.FEASIBLE)
    proof = Proof.NONE
    if status in (Status.OPTIMAL, Status.INFEASIBLE):
        proof = draw(st.sampled_from([Proof.CHECKED, Proof.SOLVER]))
    reasons = [why for why in StopReason if why is not StopReason.PROVED]
    proved = [StopReason.PROVED] if proof is Proof.CHECKED else []
    cost = draw(NUMBERS) if has_schedule else None
    lower_bound = draw(NUMBERS)
    claimed_bound = draw(PERHAPS_NUMBERS)
    if cost is not None and claimed_bound is not None:
        claimed_bound = min(claimed_bound, cost)
    if cost is not None and status is Status.OPTIMAL:
        if proof is Proof.CHECKED:
            lower_bound = cost
        else:
            claimed_bound = cost
    return Solution(
        status=status,
        proof=proof,
        stop_reason=draw(st.sampled_from(reasons + proved)),
        method=draw(NAMES),
        seconds=draw(_SECONDS),
        schedule=draw(schedules(least=1)) if has_schedule else Schedule(),
        cost=cost,
        certificate=draw(certificates()),
        lower_bound=lower_bound,
        claimed_bound=claimed_bound,
        guarantee=draw(_verdicts(cost, lower_bound)),
        history=draw(_histories(cost, lower_bound)),
        problem_sha256=draw(st.text("0123456789abcdef", min_size=64, max_size=64)),
    )


_SECONDS = st.floats(0, 1e6)


@st.composite
def _verdicts(
    draw: st.DrawFn, cost: Fraction | None, lower_bound: Fraction
) -> GuaranteeVerdict | None:
    if cost is None or draw(st.booleans()):
        return None
    against = draw(st.sampled_from(list(Reference)))
    guarantee = Guarantee(draw(NUMBERS), draw(NUMBERS), against, draw(st.text(LETTERS)))
    possible = [Verdict.BREACHED, Verdict.OPEN]
    if cost <= guarantee.allows(lower_bound):
        possible.append(Verdict.VERIFIED)
    return GuaranteeVerdict(guarantee, draw(st.sampled_from(possible)))


@st.composite
def _histories(
    draw: st.DrawFn, cost: Fraction | None, lower_bound: Fraction
) -> tuple[Incumbent, ...]:
    """Costs that fall to the solution's, if there is one, and bounds that rise to its own."""
    number = draw(st.integers(0, 3))
    bounds = sorted(min(draw(NUMBERS), lower_bound) for _ in range(number))
    costs: list[Fraction | None] = [None] * number
    if cost is not None:
        first = draw(st.integers(0, number))
        known = sorted((cost + draw(NUMBERS) for _ in range(number - first)), reverse=True)
        costs[first:] = known
    return tuple(
        Incumbent(draw(_SECONDS), known, bound, draw(PERHAPS_NUMBERS), draw(NAMES))
        for known, bound in zip(costs, bounds, strict=True)
    )
