"""Worst cases of the theory: bounds that are far off, greedy traps, cases that need care.

Each is registered under its name with what is known of it: ``optimum`` and, under the names of
:class:`cms.Reference`, the exact values of lower bounds (``LP_AGG`` the aggregated linear program,
``LP_STAR`` its truncation machine by machine, ``MILP_C`` with whole machines, ``LP_DW`` over
options). ``tests/instances`` recomputes every number.

*Identity* below means: one job a block type, which no other type serves, and one block gives it 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial

from cms.plugin.registry import NamedProblem
from cms.problem.parts import AnyConfiguration, Configuration, Job, SizeBoundedConfigurations
from cms.problem.problem import Problem
from cms.values.frozen import FrozenMap

_BOUNDS = ("LP_AGG", "LP_STAR", "MILP_C", "LP_DW")
_SOURCE = "derived and checked for this project"


def listed(
    table: str, makers: Mapping[str, Callable[[], Problem]], source: str = _SOURCE
) -> dict[str, NamedProblem]:
    """Read lines of name, optimum (``none`` if infeasible), known bounds, title and source.

    Bounds are in the order above, with ``-`` for an unknown one; problems are made by `makers`.
    """
    found = {}
    for line in table.strip().splitlines():
        name, optimum, bounds, title, *of = (cell.strip() for cell in line.split("|"))
        known = zip(_BOUNDS, bounds.split(), strict=False)
        found[name] = NamedProblem(
            name=name,
            title=title,
            source=", ".join([*of, source]),
            make=makers[name],
            optimum=None if optimum == "none" else Fraction(optimum),
            infeasible=optimum == "none",
            bounds=FrozenMap({bound: Fraction(value) for bound, value in known if value != "-"}),
        )
    return found


def attribute(known: Mapping[str, NamedProblem], name: str) -> NamedProblem:
    """Return the problem that entry points know by an attribute: ``NON_IRUP`` is ``non-irup``."""
    if (found := known.get(name.replace("_", "-").lower())) is None:
        raise AttributeError(f"there is no problem {name!r}")
    return found


def _identity(
    demands: Mapping[str, int], configurations: AnyConfiguration | Iterable[AnyConfiguration]
) -> Problem:
    jobs = [Job(name, demand, {name: 1}) for name, demand in demands.items()]
    return Problem(configurations=configurations, jobs=jobs)


def set_cover(sets: Iterable[Iterable[str]]) -> Problem:
    """Embed set cover, with its optimum: one job and one block an element, a configuration a set.

    So no factor (1 - epsilon) ln n is possible in polynomial time unless P = NP.
    """
    configurations = [Configuration(dict.fromkeys(elements, 1)) for elements in sets]
    elements = dict.fromkeys(block for shape in configurations for block in shape.blocks)
    return _identity(dict.fromkeys(elements, 1), configurations)


def vector_cover(q: int) -> Problem:
    """Set cover over the nonzero vectors of F_2^q, the set of v being {e : <e, v> = 1}.

    All 2^q - 1 sets, of weight 1 / 2^(q-1) each, cover everything; but any q - 1 sets miss a vector
    that is orthogonal to all of their v.
    """
    vectors = range(1, 2**q)
    return set_cover(
        [f"{e:0{q}b}" for e in vectors if (e & v).bit_count() % 2 == 1] for v in vectors
    )


def greedy_trap(h: int) -> Problem:
    """Two rows of 2^h - 1 elements; sets: column groups of widths 2^(h-1), ..., 2, 1, and rows.

    Each group covers strictly more of what is left than a row does, so greedy takes the h groups.
    """
    columns = range(2**h - 1)
    # the widths before a group's are 2^h less twice its own
    groups = [columns[2**h - 2 * 2**i :][: 2**i] for i in reversed(range(h))]
    wide = ([f"{row}{c}" for row in "ab" for c in group] for group in groups)
    return set_cover([*wide, *([f"{row}{c}" for c in columns] for row in "ab")])


def harmonic_trap(q: int) -> Problem:
    """Take q^3 elements in q equal columns; before the columns, the sets that greedy prefers.

    Each takes ceil(R / q) of the R elements left, evenly: as many as any column has left.
    """
    columns = [[f"{column}.{i}" for i in range(q * q)] for column in range(q)]
    left, preferred = [list(elements) for elements in columns], []
    while rest := sum(map(len, left)):
        preferred.append([max(left, key=len).pop() for _ in range(-(-rest // q))])
    return set_cover([*preferred, *columns])


def separate_types(n: int, copies: int, decoy: bool = False) -> Problem:
    """Identity, demands 1, and machines that hold copies of one type only.

    With a decoy there is a machine for everybody too; parts of those of many copies are cheaper.
    """
    jobs = dict.fromkeys([f"t{i}" for i in range(n)], 1)
    machines = [Configuration({name: copies}) for name in jobs]
    return _identity(jobs, [*machines, Configuration(jobs)] if decoy else machines)


def equal_jobs(n: int, demand: str | int, supply: str | int, blocks: int = 1) -> Problem:
    """Take n equal jobs, one block type, and machines with `blocks` blocks."""
    jobs = [Job(f"j{i}", demand, {"b": supply}) for i in range(n)]
    return Problem(configurations=Configuration({"b": blocks}), jobs=jobs)


def partition(weights: Sequence[int]) -> Problem:
    """Embed Partition: one block of each weight on a machine, two jobs that want half of the whole.

    One machine suffices iff the weights can be divided evenly, else two are needed; so no factor
    below 2 is possible in polynomial time, even for one configuration, unless P = NP.
    """
    table = {f"w{i}": weight for i, weight in enumerate(weights)}
    half = Fraction(sum(weights), 2)
    return Problem(
        configurations=Configuration(dict.fromkeys(table, 1)),
        jobs=[Job(name, half, table) for name in ("left", "right")],
    )


def half_trap(eta: Fraction) -> Problem:
    """Two blocks, two jobs: the best pair first gains 1 on one machine, 2 - 2 eta is possible."""
    less = 1 - eta
    return Problem(
        configurations=Configuration({"first": 1, "second": 1}),
        jobs=[Job("a", 1, {"first": 1, "second": less}), Job("b", 1, {"first": less})],
    )


def packing(sizes: Sequence[int], capacity: int, demands: Sequence[int]) -> Problem:
    """Embed cutting stock: identity, and every multiset of sizes within the capacity."""
    names = [str(size) for size in sizes]
    shapes = SizeBoundedConfigurations(dict(zip(names, sizes, strict=True)), capacity)
    return _identity(dict(zip(names, demands, strict=True)), shapes)


def two_numbers(width: int, listed: Sequence[int], machines: int, total: int) -> Problem:
    """Embed a subset sum: configurations (w, width - w) for listed w, demands for m machines.

    The m machines suffice iff m listed numbers, repetition allowed, sum to the total: NP-hard for
    two jobs and two types, when configurations are listed.
    """
    shapes = [Configuration({"a": w, "b": width - w}) for w in listed]
    return _identity({"a": total, "b": machines * width - total}, shapes)


PROBLEMS = listed(
    """
set-cover-f2-2 | 2 | 3/2 3/2 2 3/2 | set cover over F_2^2: linear programs below 2, optimum 2 \
| a classic gap of set cover
set-cover-f2-3 | 3 | 7/4 7/4 3 7/4 | set cover over F_2^3: linear programs below 2, optimum 3 \
| a classic gap of set cover
set-cover-f2-4 | 4 | 15/8 15/8 4 15/8 | set cover over F_2^4: linear programs below 2, optimum 4 \
| a classic gap of set cover
greedy-trap-3 | 2 | 2 2 2 2 | greedy takes 3 sets without any tie, two rows would do \
| a classic worst case of greedy set cover
greedy-trap-4 | 2 | 2 2 2 2 | greedy takes 4 sets without any tie, two rows would do \
| a classic worst case of greedy set cover
harmonic-trap-2 | 2 | 2 2 2 2 | greedy takes 4 sets, 2 columns would do: near the factor H_n \
| a worst case of greedy set cover with ties
harmonic-trap-3 | 3 | 3 3 3 3 | greedy takes 8 sets, 3 columns would do: near the factor H_n \
| a worst case of greedy set cover with ties
harmonic-trap-4 | 4 | 4 4 4 4 | greedy takes 13 sets, 4 columns would do: near the factor H_n \
| a worst case of greedy set cover with ties
aggregated-lp-gap | 4 | 2/5 4 4 2/5 | 4 jobs that need a machine each and use a tenth of it
decoys | 1 | 1/2 1 1 1/2 \
| 4 machines that look an eighth as dear each as the one that serves all 4 jobs
no-truncation-gap | 1 | 1 1 1 1 \
| a block that gives 10 times what is needed: without truncation the bound is 1/10
ceil-gap | 10 | 50/9 50/9 6 10 | 5 jobs that need two blocks of 0.9 each, one block a machine
needless-doubling | 1 | 1 1 1 1 | 5 jobs and 5 blocks on a machine: rounding by doubling takes two
partition-yes | 1 | 1 1 1 1 | weights 3, 1, 1, 2, 2, 1 can be divided evenly | Partition
partition-no | 2 | 1 1 1 8/7 | weights 3, 3, 3, 1 cannot be divided evenly | Partition
half-trap | 2 | 10/9 - 2 2 | the best pair first fills a machine half as well as is possible
bin-packing | 5 | | bin packing: 4, 6 and 5 items of sizes 7, 5 and 3 in bins of 16 | cutting stock
non-irup | 3 | 259/132 23/11 - 259/132 \
| cutting stock without the round-up property: the bound rounds up to 2, 3 are needed \
| a known cutting-stock instance without integer round-up
slots-needed | 1 | | one machine with 14 and 21 blocks: patterns at corners alone need two
explicit-list-yes | 3 | | do three of 3, 7, 11, 18 sum to 21? yes | a subset sum
explicit-list-no | 4 | | do three of 3, 7, 11, 18 sum to 22? no | a subset sum
""",
    {
        **{f"set-cover-f2-{q}": partial(vector_cover, q) for q in (2, 3, 4)},
        **{f"greedy-trap-{h}": partial(greedy_trap, h) for h in (3, 4)},
        **{f"harmonic-trap-{q}": partial(harmonic_trap, q) for q in (2, 3, 4)},
        "aggregated-lp-gap": partial(separate_types, 4, 10),
        "decoys": partial(separate_types, 4, 8, decoy=True),
        "no-truncation-gap": partial(equal_jobs, 1, 1, 10),
        "ceil-gap": partial(equal_jobs, 5, 1, "0.9"),
        "needless-doubling": partial(equal_jobs, 5, 1, 1, 5),
        "partition-yes": partial(partition, (3, 1, 1, 2, 2, 1)),
        "partition-no": partial(partition, (3, 3, 3, 1)),
        "half-trap": partial(half_trap, Fraction(1, 10)),
        "bin-packing": partial(packing, (7, 5, 3), 16, (4, 6, 5)),
        "non-irup": partial(packing, (44, 33, 12), 132, (2, 3, 6)),
        "slots-needed": partial(packing, (10, 7), 291, (14, 21)),
        "explicit-list-yes": partial(two_numbers, 20, (3, 7, 11, 18), 3, 21),
        "explicit-list-no": partial(two_numbers, 20, (3, 7, 11, 18), 3, 22),
    },
)
__getattr__ = partial(attribute, PROBLEMS)
