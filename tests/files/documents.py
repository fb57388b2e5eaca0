"""What the tests of this folder share: a problem and a solution as text, and random ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from cms import (
    BlockPrices,
    Configuration,
    GroupLimit,
    Guarantee,
    Job,
    MachineType,
    Problem,
    Reference,
    SizeBoundedConfigurations,
    Solution,
    SolverBound,
)
from cms.files import Parsed, Source, parse_json
from cms.plugin.guarantee import judge
from cms.problem.parts import AnyConfiguration
from tests.scripted import blocks, serving, told
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


#: True of a job that needs 13 blocks, two on a machine.
TRUE_CLAIMS = st.lists(
    st.one_of(
        st.integers(7, 20).map(lambda machines: serving(13, machines)),
        st.fractions(0, "1/2", max_denominator=8).map(lambda p: BlockPrices({"b": p})),
        st.fractions(0, 7, max_denominator=3).map(lambda value: SolverBound(value, "oracle")),
    ),
    max_size=12,
)


@st.composite
def solutions(draw: st.DrawFn) -> Solution:
    """What such claims come to, or that there is no schedule; with any names and seconds."""
    few: Any = {} if draw(st.booleans()) else {"limit": draw(st.integers(0, 6))}
    claims = [SolverBound(None, "oracle")] if few else draw(TRUE_CLAIMS)
    found = told(blocks(13, **few), claims, trusted=True)
    verdict = None
    if found.cost is not None and draw(st.booleans()):
        numbers = draw(NUMBERS), draw(NUMBERS), draw(st.sampled_from(list(Reference)))
        promised = Guarantee(*numbers, draw(st.text(LETTERS)))
        bounds = {"lower_bound": found.lower_bound, "upper_value": found.cost}
        verdict = judge(promised, cost=found.cost, **bounds)
    history = tuple(line._replace(source=draw(NAMES)) for line in found.history)
    more: Any = {"method": draw(NAMES), "seconds": draw(st.floats(0, 1e6)), "history": history}
    made: Solution = replace(found, guarantee=verdict, **more)
    return made
