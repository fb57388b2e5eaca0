"""What must not change when a problem is written another way; the edited one needs no oracle.

An edit leaves the optimum as it is (theory 9.4), or cannot lower it (9.3). So an algorithm on the
edited problem is held to its guarantee against the optimum of the *original*. What it answers may
differ: ties fall another way. Only greedy with weights 1/demand must not see in what unit a job is
counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cms import (
    Configuration,
    Job,
    MachineType,
    Problem,
    SizeBoundedConfigurations,
    UnsupportedProblem,
    solve,
)
from tests.property.problems import (
    LISTED,
    PLENTY,
    UNIT,
    Shape,
    a_row,
    huge,
    problems,
    proved_optimum,
    rebuilt,
    share,
    shown,
    supply,
)
from tests.references.guarantees import METHODS, VARIANTS, examine, promise

Edit = Callable[[st.DrawFn, Problem], Problem]


@st.composite
def edited(draw: st.DrawFn, edit: Edit, problem: Problem) -> Problem:
    """A problem after an edit, written out where a test fails."""
    return shown(edit(draw, problem))


_FACTORS = st.sampled_from((Fraction(2), Fraction(1, 3), Fraction(10**12), Fraction(7, 5)))


# --- edits that leave the optimum as it is --------------------------------------------------------


def scale_a_job(draw: st.DrawFn, problem: Problem) -> Problem:
    """Count one job's demand and supply in another unit."""
    jobs = list(problem.jobs)
    if jobs:
        at, factor = draw(st.integers(0, len(jobs) - 1)), draw(_FACTORS)
        job = jobs[at]
        table = {block: amount * factor for block, amount in supply(job).items()}
        jobs[at] = Job(job.name, job.demand * factor, table)
    return rebuilt(problem, jobs=jobs)


def permute(draw: st.DrawFn, problem: Problem) -> Problem:
    """Name jobs, configurations and machine types in another order."""
    return rebuilt(
        problem,
        jobs=draw(st.permutations(list(problem.jobs))),
        configurations=draw(st.permutations(problem.configurations)),
        machine_types=draw(st.permutations(problem.machine_types)),
    )


def rename_blocks(draw: st.DrawFn, problem: Problem) -> Problem:
    """Let the block types change their names, and so their order."""
    names = dict(zip(problem.blocks, draw(st.permutations(problem.blocks)), strict=True))
    jobs = [
        Job(job.name, job.demand, {names[block]: n for block, n in supply(job).items()})
        for job in problem.jobs
    ]
    shapes = [_with_blocks(shape, names) for shape in problem.configurations]
    return rebuilt(problem, jobs=jobs, configurations=shapes)


def _with_blocks(shape: Shape, names: Mapping[str, str]) -> Shape:
    if isinstance(shape, Configuration):
        return Configuration({names[b]: n for b, n in shape.blocks.items()}, shape.machine)
    return _with_sizes(shape, {names[block]: size for block, size in shape.sizes.items()})


def _with_sizes(
    shape: SizeBoundedConfigurations, sizes: Mapping[str, Fraction]
) -> SizeBoundedConfigurations:
    return SizeBoundedConfigurations(sizes, shape.capacity, shape.machine, shape.max_blocks)


def truncate(draw: st.DrawFn, problem: Problem) -> Problem:
    """Let no block give a job more than it demands."""
    jobs = [
        Job(job.name, job.demand, {b: min(n, job.demand) for b, n in supply(job).items()})
        for job in problem.jobs
    ]
    return rebuilt(problem, jobs=jobs)


def add_a_useless_type(draw: st.DrawFn, problem: Problem) -> Problem:
    """Put blocks that serve nobody on some machines."""
    shapes: list[Shape] = []
    for shape in problem.configurations:
        if isinstance(shape, Configuration):
            blocks = {**shape.blocks, "u": draw(st.integers(0, 2))}
            shapes.append(Configuration(blocks, shape.machine))
        else:
            size = shape.capacity / draw(st.integers(1, 3))
            shapes.append(_with_sizes(shape, {**shape.sizes, "u": size}))
    return rebuilt(problem, configurations=shapes)


def split_a_type(draw: st.DrawFn, problem: Problem) -> Problem:
    """Make two block types of one, both as good as it was, and divide its blocks between them."""
    old = draw(st.sampled_from(problem.blocks))
    shapes: list[Shape] = []
    for shape in problem.configurations:
        if isinstance(shape, Configuration):
            number = shape.blocks.get(old, 0)
            new = draw(st.integers(0, number))
            blocks = {**shape.blocks, old: number - new, "s": new}
            shapes.append(Configuration(blocks, shape.machine))
        else:
            twin = {"s": shape.sizes[old]} if old in shape.sizes else {}
            shapes.append(_with_sizes(shape, {**shape.sizes, **twin}))
    jobs = [
        Job(job.name, job.demand, {**supply(job), "s": supply(job)(old)}) for job in problem.jobs
    ]
    return rebuilt(problem, jobs=jobs, configurations=shapes)


def duplicate_a_configuration(draw: st.DrawFn, problem: Problem) -> Problem:
    """List a configuration twice."""
    again = draw(st.sampled_from(problem.configurations))
    return rebuilt(problem, configurations=[*problem.configurations, again])


def add_a_dominated_configuration(draw: st.DrawFn, problem: Problem) -> Problem:
    """List a part of a configuration as one more."""
    whole = draw(st.sampled_from(problem.configurations))
    if isinstance(whole, Configuration):
        counts = {block: draw(st.integers(0, n)) for block, n in whole.blocks.items()}
        some = draw(st.sampled_from(sorted(counts)))
        part = Configuration({**counts, some: max(1, counts[some])}, whole.machine)
    else:
        fits = sorted(block for block in whole.sizes if whole.largest_count(block))
        part = Configuration({draw(st.sampled_from(fits)): 1}, whole.machine)
    first = draw(st.booleans())
    shapes = [part, *problem.configurations] if first else [*problem.configurations, part]
    return rebuilt(problem, configurations=shapes)


#: Edits that keep a size-bounded set the only thing a machine may be cut into.
SAME: tuple[Edit, ...] = (
    scale_a_job,
    permute,
    rename_blocks,
    truncate,
    add_a_useless_type,
    split_a_type,
)
#: And all of them.
SAME_BESIDE: tuple[Edit, ...] = (*SAME, duplicate_a_configuration, add_a_dominated_configuration)


# --- edits after which no schedule is cheaper -----------------------------------------------------


def raise_a_demand(draw: st.DrawFn, problem: Problem) -> Problem:
    """Let a job want more, those included that wanted nothing."""
    jobs = list(problem.jobs)
    if jobs:
        at = draw(st.integers(0, len(jobs) - 1))
        more = draw(st.sampled_from((Fraction(1), Fraction(1, 3), Fraction(5))))
        jobs[at] = Job(jobs[at].name, jobs[at].demand + more, supply(jobs[at]))
    return rebuilt(problem, jobs=jobs)


def lower_a_supply(draw: st.DrawFn, problem: Problem) -> Problem:
    """Let a block give a job less, or nothing."""
    jobs = list(problem.jobs)
    if jobs and problem.blocks:
        at, block = draw(st.integers(0, len(jobs) - 1)), draw(st.sampled_from(problem.blocks))
        part = draw(st.sampled_from((Fraction(9, 10), Fraction(1, 2), Fraction(0))))
        table = {**supply(jobs[at]), block: supply(jobs[at])(block) * part}
        jobs[at] = Job(jobs[at].name, jobs[at].demand, table)
    return rebuilt(problem, jobs=jobs)


def add_a_job(draw: st.DrawFn, problem: Problem) -> Problem:
    """Serve one job more."""
    demand, table = draw(a_row(problem.blocks))
    return rebuilt(problem, jobs=[*problem.jobs, Job("more", demand, table)])


def drop_a_configuration(draw: st.DrawFn, problem: Problem) -> Problem:
    """Allow a configuration, or a size-bounded set, no more."""
    shapes = list(problem.configurations)
    del shapes[draw(st.integers(0, len(shapes) - 1))]
    return rebuilt(problem, configurations=shapes)


def drop_a_block(draw: st.DrawFn, problem: Problem) -> Problem:
    """Take a block from a configuration, or a block type from a size-bounded set."""
    shapes = list(problem.configurations)
    at = draw(st.integers(0, len(shapes) - 1))
    shape = shapes.pop(at)
    if isinstance(shape, Configuration):
        block = draw(st.sampled_from(sorted(shape.blocks)))
        left = {**shape.blocks, block: shape.blocks[block] - 1}
        if any(left.values()):
            shapes.insert(at, Configuration(left, shape.machine))
    else:
        block = draw(st.sampled_from(sorted(shape.sizes)))
        sizes = {name: size for name, size in shape.sizes.items() if name != block}
        if sizes:
            shapes.insert(at, _with_sizes(shape, sizes))
    return rebuilt(problem, configurations=shapes)


def raise_a_cost(draw: st.DrawFn, problem: Problem) -> Problem:
    """Let a machine type cost more."""
    types = list(problem.machine_types)
    at = draw(st.integers(0, len(types) - 1))
    cost = types[at].cost + draw(st.sampled_from((Fraction(1), Fraction(1, 3))))
    types[at] = MachineType(types[at].name, cost, types[at].limit)
    return rebuilt(problem, machine_types=types)


def lower_a_limit(draw: st.DrawFn, problem: Problem) -> Problem:
    """Let there be fewer machines of a type."""
    types = list(problem.machine_types)
    at = draw(st.integers(0, len(types) - 1))
    limit = types[at].limit
    fewer = 3 if limit is None else max(0, limit - 1)
    types[at] = MachineType(types[at].name, types[at].cost, fewer)
    return rebuilt(problem, machine_types=types)


#: The last two are about costs and limits.
HARDER: tuple[Edit, ...] = (
    raise_a_demand,
    lower_a_supply,
    add_a_job,
    drop_a_configuration,
    drop_a_block,
    raise_a_cost,
    lower_a_limit,
)

#: What no method may refuse.
KINDS = {**dict.fromkeys(METHODS, ("size-bounded", *LISTED)), "conic": UNIT}


# --- the tests ------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@share(10)
@given(st.data())
def test_a_problem_written_another_way_leaves_the_guarantee(
    method: str, data: st.DataObject
) -> None:
    problem = data.draw(problems(KINDS[method]))
    options = data.draw(st.sampled_from(VARIANTS[method]))
    plain = data.draw(st.sampled_from(({}, {"plain": True})))
    edit = data.draw(st.sampled_from(SAME if method == "conic" else SAME_BESIDE))
    changed = data.draw(edited(edit, problem))
    examine(changed, proved_optimum(problem), method, {**options, **plain})


@pytest.mark.parametrize("method", METHODS)
@share(10)
@given(st.data())
def test_a_harder_problem_has_no_schedule_below_the_optimum_of_the_easier(
    method: str, data: st.DataObject
) -> None:
    problem = data.draw(problems(KINDS[method]))
    edit = data.draw(st.sampled_from(HARDER[:3] if method == "conic" else HARDER[:-1]))
    harder = data.draw(edited(edit, problem))
    assume(harder.configurations)
    best, found = proved_optimum(problem), solve(harder, method, threads=1, time_limit=PLENTY)
    assert best is not None
    assert found.cost is None or found.cost >= best


@share(2)
@given(st.data())
def test_greedy_with_weights_of_one_over_the_demand_does_not_see_a_job_s_unit(
    data: st.DataObject,
) -> None:
    problem = data.draw(problems(KINDS["greedy"]))
    scaled = data.draw(edited(scale_a_job, problem))
    options = {"variant": "inflated", "inner": "greedy", "plain": True}
    one, two = (solve(each, "greedy", options=options, threads=1) for each in (problem, scaled))
    assert one.cost == two.cost


def takes(problem: Problem, method: str) -> bool:
    """Whether a method answers, and does not refuse the problem."""
    try:
        solve(problem, method, threads=1, time_limit=PLENTY)
    except UnsupportedProblem:
        return False
    return True


@pytest.mark.parametrize("kind", ["listed", "size-bounded"])
@share(10)
@given(st.data())
def test_huge_demands_are_met_by_few_groups_within_every_guarantee(
    kind: str, data: st.DataObject
) -> None:
    problem = data.draw(huge(kind))
    methods = list(METHODS)
    if problem.rows.wide:
        # Numbers beyond a machine word: those that may refuse them are asked, but need not answer.
        methods = [method for method in methods if takes(problem, method)]
        assert {"greedy", "lp_rounding"} <= set(methods)
    found = {method: solve(problem, method, threads=1, time_limit=PLENTY) for method in methods}
    best = min(solution.cost for solution in found.values() if solution.cost is not None)
    for method, solution in found.items():
        assert solution.lower_bound <= best
        assert solution.cost is not None, method
        promised = promise(problem, method, {})
        assert promised is not None
        # No reference is above the optimum, which no schedule is below.
        assert solution.cost <= promised.allows(best), method
        # Theory 1.2: one group for each configuration in use, two more for each entry.
        schedule = solution.schedule
        entries = {pair for group in schedule.groups for pair in group.assignment}
        assert len(schedule.groups) <= len(schedule.machines) + 2 * len(entries), method
