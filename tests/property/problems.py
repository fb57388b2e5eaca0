"""Problems for the property tests, drawn by Hypothesis; more kinds are in ``tests.families``.

They shrink to what a person can read: one machine, one job, one block, small integers, names of a
letter. A counterexample is written out as its document.

The optimum of a ``TINY`` problem is within the reach of ``tests.oracle``: no job demands more than
four blocks of the weakest type that serves it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeAlias

from hypothesis import note, settings
from hypothesis import strategies as st

from cms import (
    Configuration,
    DemandFunction,
    Job,
    MachineType,
    Problem,
    Proof,
    SizeBoundedConfigurations,
    solve,
)
from cms.files import lay_out, problem_to_json

BLOCKS, JOBS, MACHINES = ("a", "b", "c", "d"), ("x", "y", "z", "w"), ("m", "n")
#: What a job demands at most, in blocks of the weakest type that serves it.
MOST_BLOCKS = 4

Exact: TypeAlias = int | Fraction
Shape: TypeAlias = Configuration | SizeBoundedConfigurations
#: A demand, and what one block of each type satisfies of it.
Row: TypeAlias = tuple[Exact, Mapping[str, Exact]]

# A third of all entries are 0; the first is what a counterexample shrinks to.
_SUPPLY = st.sampled_from((1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0))
#: Numbers of which none does what many of another do.
_CLOSE = st.sampled_from((2, 3, 4, 5, 0, 0))
_COSTS = st.sampled_from([Fraction(cost) for cost in ("1", "2", "1/2", "3", "2/3", "5/4")])
_LIMITS = st.sampled_from((None, 3, 2, 1, 0, 5))


def share(parts: int) -> settings:
    """Take a part of the short run's examples, of the long run's all.

    What solves many times a case, or is asked of many kinds, takes fewer cases.
    """
    if not settings().derandomize:
        return settings()
    return settings(max_examples=max(1, settings().max_examples // parts))


def _shapes(blocks: Sequence[str], most: int = 4) -> st.SearchStrategy[list[Configuration]]:
    counts = st.dictionaries(st.sampled_from(blocks), st.integers(1, most), min_size=1)
    return st.lists(counts.map(Configuration), min_size=1, max_size=4)


@st.composite
def a_row(draw: st.DrawFn, blocks: Sequence[str], numbers: st.SearchStrategy[int] = _SUPPLY) -> Row:
    """A job that some of the blocks serves."""
    table: dict[str, int] = {block: draw(numbers) for block in blocks}
    table[draw(st.sampled_from(blocks))] = draw(numbers.filter(bool))
    weakest = min(gives for gives in table.values() if gives)
    return draw(st.integers(1, MOST_BLOCKS * weakest)), table


def _rows(blocks: Sequence[str], most: int) -> st.SearchStrategy[list[Row]]:
    return st.lists(a_row(blocks), min_size=1, max_size=most)


def held(shapes: Iterable[Shape]) -> list[str]:
    """The block types that configurations speak of."""
    blocks = {b for s in shapes for b in (s.blocks if isinstance(s, Configuration) else s.sizes)}
    return sorted(blocks)


def made(
    shapes: Iterable[Shape], rows: Iterable[Row], types: Iterable[MachineType] = ()
) -> Problem:
    """The problem of these rows, its jobs named x, y, z, w."""
    jobs = [Job(name, *row) for name, row in zip(JOBS, rows, strict=False)]
    return Problem(configurations=shapes, jobs=jobs, machine_types=types)


@st.composite
def listed(draw: st.DrawFn, *, jobs: int = 3, blocks: int = 3, most: int = 4) -> Problem:
    """Up to four configurations of so many blocks a type, equal and dominated ones among them."""
    shapes = draw(_shapes(BLOCKS[:blocks], most))
    return made(shapes, draw(_rows(held(shapes), jobs)))


@st.composite
def demanding(draw: st.DrawFn, *, jobs: int) -> Problem:
    """Small machines, and jobs that want as much as they may: several machines are needed."""
    shapes = draw(_shapes(BLOCKS[:3], 1))
    rows: list[Row] = []
    for _ in range(draw(st.integers(1, jobs))):
        _, table = draw(a_row(held(shapes), _CLOSE))
        most = MOST_BLOCKS * int(min(gives for gives in table.values() if gives))
        rows.append((most - draw(st.integers(0, 3)), table))
    return made(shapes, rows)


@st.composite
def by_a_hair(draw: st.DrawFn) -> Problem:
    """Demands that blocks meet exactly, or miss by a part in millions or more that floats round."""
    shapes = draw(_shapes(BLOCKS[:2]))
    rows: list[Row] = []
    for demand, table in draw(_rows(held(shapes), 3)):
        unit, hair = draw(st.sampled_from((10**6, 10**12))), draw(st.sampled_from((1, 0, -1)))
        rows.append((demand * unit + hair, {block: f * unit for block, f in table.items()}))
    return made(shapes, rows)


@st.composite
def zero_demands(draw: st.DrawFn) -> Problem:
    """No jobs, or some without a demand, which nobody need serve."""
    shapes = draw(_shapes(BLOCKS[:2]))
    rows: list[Row] = []
    for _ in range(draw(st.sampled_from((2, 3, 3, 1, 0)))):
        demand, table = draw(a_row(held(shapes)))
        idle = draw(st.sampled_from(("busy", "busy", "busy", "idle", "idle and unserved")))
        rows.append((demand, table) if idle == "busy" else (0, table if idle == "idle" else {}))
    return made(shapes, rows)


@st.composite
def fleets(
    draw: st.DrawFn,
    costs: st.SearchStrategy[Fraction] = _COSTS,
    limits: st.SearchStrategy[int | None] = st.none(),  # noqa: B008 (a strategy never changes)
) -> Problem:
    """Two machine types that share blocks; one of them may have no configuration."""
    types = [MachineType(name, draw(costs), draw(limits)) for name in MACHINES]
    shapes = [
        Configuration(shape.blocks, draw(st.sampled_from(MACHINES)))
        for shape in draw(_shapes(BLOCKS[:3]))
    ]
    return made(shapes, draw(_rows(held(shapes), 3)), types)


@st.composite
def short_fleets(draw: st.DrawFn) -> Problem:
    """Two machine types cut alike: of the cheaper one there are hardly enough, or a few too few."""
    shapes = draw(_shapes(BLOCKS[:2], 2))
    rows = draw(_rows(held(shapes), 3))
    cost = draw(_COSTS)
    types = [MachineType("m", cost), MachineType("n", cost + draw(_COSTS))]
    both = [Configuration(shape.blocks, name) for name in MACHINES for shape in shapes]
    need = solve(made(both, rows, types), threads=1).machine_count or 0
    limit = max(0, need - draw(st.sampled_from((1, 1, 2, 0))))
    other = draw(st.sampled_from((None, None, need - limit, 1)))
    types = [MachineType("m", cost, limit), MachineType("n", types[1].cost, other)]
    return made(both, rows, types)


@st.composite
def size_bounded(draw: st.DrawFn, *, machine: str | None = None, beside: bool = False) -> Problem:
    """All multisets up to a capacity, and to a number of blocks; listed ones on another type."""
    sizes = draw(st.dictionaries(st.sampled_from(BLOCKS[:3]), st.integers(2, 7), min_size=1))
    capacity = max(sizes.values()) + draw(st.integers(0, 7))
    unit = draw(st.sampled_from((Fraction(1), Fraction(1, 3))))
    most = draw(st.none() | st.integers(1, 4))
    scaled = {block: size * unit for block, size in sizes.items()}
    shapes: list[Shape] = [SizeBoundedConfigurations(scaled, capacity * unit, machine, most)]
    types: list[MachineType] = []
    if beside:
        types = [MachineType(name, draw(_COSTS)) for name in MACHINES]
        shapes += [Configuration(shape.blocks, "n") for shape in draw(_shapes(BLOCKS[:2]))]
    return made(shapes, draw(_rows(held(shapes), 3)), types)


#: Kinds whose optimum ``tests.oracle`` finds in milliseconds.
TINY: dict[str, st.SearchStrategy[Problem]] = {
    "listed": listed(most=2) | demanding(jobs=3),
    "one job": listed(jobs=1, most=1) | demanding(jobs=1),
    "one block": listed(jobs=4, blocks=1),
    "by a hair": by_a_hair(),
    "zero demands": zero_demands(),
    "costs": fleets(),
    "free machines": fleets(st.just(Fraction(0)) | _COSTS),
    "limits": short_fleets() | fleets(_COSTS, _LIMITS),
    "size-bounded": size_bounded(),
    "size-bounded beside listed": size_bounded(machine="m", beside=True),
}
#: Those which only list configurations, on machines that cost something.
LISTED = ("listed", "one job", "one block", "zero demands", "costs", "by a hair")


def problems(kinds: Collection[str] = tuple(TINY)) -> st.SearchStrategy[Problem]:
    """Problems of these kinds, each as often; the one that a failure shrinks to is written out."""
    return st.one_of([TINY[kind] for kind in kinds]).map(shown)


#: Seconds for what takes one: if they are not enough, it does not end, on the slowest machine.
PLENTY = 600.0


def proved_optimum(problem: Problem) -> Fraction | None:
    """The least cost, None if there is no schedule; held to the oracle by ``test_differential``."""
    solution = solve(problem, threads=1, time_limit=PLENTY)
    assert solution.proof in (Proof.CHECKED, Proof.SOLVER), source(problem)
    return solution.cost


def rebuilt(
    problem: Problem,
    *,
    jobs: Iterable[Job] | None = None,
    configurations: Iterable[Shape] | None = None,
    machine_types: Iterable[MachineType] | None = None,
) -> Problem:
    """The problem with some parts exchanged; block types that are gone are gone from all tables."""
    shapes = list(problem.configurations if configurations is None else configurations)
    blocks = set(held(shapes))
    return Problem(
        configurations=shapes,
        jobs=[
            Job(job.name, job.demand, {b: f for b, f in supply(job).items() if b in blocks})
            for job in (problem.jobs if jobs is None else jobs)
        ],
        machine_types=problem.machine_types if machine_types is None else machine_types,
    )


def supply(job: Job) -> DemandFunction:
    """A job's demand function, which is a table in every problem."""
    assert isinstance(job.demand_function, DemandFunction)
    return job.demand_function


def shown(problem: Problem) -> Problem:
    """Have the problem written out where a test fails; its own name only counts its parts."""
    note(source(problem))
    return problem


def source(problem: Problem) -> str:
    """The document that a problem is read back from."""
    return lay_out(problem_to_json(problem))
