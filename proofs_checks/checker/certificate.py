"""The certificate: a tree of prices, and the bound on every schedule's cost that it proves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from operator import attrgetter
from typing import Any, Protocol

from .boxes import Extra, dearest_with_extras
from .bundles import able, cheapest_bundle, most_used
from .dearest import Function
from .functions import paid, read_functions
from .knapsacks import integers
from .problem import Bounded, Listed, Problem, multiset, read_problem
from .reading import ZERO, Fault, as_a, integer, known_name, number, record, show, table_over

# Branches above one another, and leaves, that a tree may have; docs/reference/files.md says so.
_DEEPEST, _MOST_LEAVES = 200, 20_000
_OF_TYPE, _WITH = "machines_of_type", "machines_with"
# Blocks that the branches on machines with some content may name above a leaf; each may take twice
# the work.
_MOST_NAMED = 12


@dataclass(frozen=True)
class Side:
    """A side of a branch: it holds for the schedules with sign·quantity >= sign·limit."""

    kind: str  # machines_of_type, machines_of, machines_with, blocks_of or blocks_of_job
    what: Any  # the names that say what the quantity counts
    sign: int  # +1: at least ``limit``; -1: at most ``limit``
    limit: int


def read_quantity(value: object, problem: Problem) -> tuple[str, Any]:
    """Read what a branch counts: its kind, and the names that say what."""
    kinds = "machines_of_type machines_of machines_with blocks_of blocks_of_job"
    table = record(value, "a branch", "", kinds)
    if len(table) != 1:
        raise Fault(f"a branch is on {show(value)}, not on exactly one quantity")
    ((kind, what),) = table.items()
    if kind == _OF_TYPE:
        # Of one type, or of several, each machine counted so many times.
        if not isinstance(what, dict):
            known_name(problem.machine_types, what, "the machine type of a branch")
            return kind, frozenset({(what, 1)})
        if not what:
            raise Fault("a branch is on the machines of no type")
        table_over(problem.machine_types, what, "the machines of a branch")
        times = "how often a branch counts the machine type"
        return kind, frozenset((m, integer(n, times, m, least=1)) for m, n in what.items())
    if kind == "blocks_of":
        return kind, known_name(problem.blocks, what, "the block of a branch")
    if kind == "blocks_of_job":
        fields = record(what, "a branch", "block job", own=False)
        block = known_name(problem.blocks, fields["block"], "the block of a branch")
        return kind, (block, known_name(problem.jobs, fields["job"], "the job of a branch"))
    fields = record(what, "a branch", "blocks", "machine", own=False)
    machine = problem.machine_or_only(fields.get("machine"))
    known_name(problem.machine_types, machine, "the machine type of a branch")
    if kind == _WITH:
        least = multiset(fields["blocks"], "the content of a branch")
        for i in least:
            known_name(problem.blocks, i, "a block of the content of a branch")
        return kind, (machine, frozenset(least.items()))
    listed = Listed(machine, multiset(fields["blocks"], "the configuration of a branch"))
    if listed not in problem.configurations:
        raise Fault(f"the configuration of a branch, {show(listed.blocks)}, is not a listed one")
    # Machines of this configuration are counted by name, those of a size-bounded set are not.
    if any(c.allows(listed.blocks) for c in problem.size_bounded if c.machine == machine):
        raise Fault(f"the configuration of a branch, {show(listed.blocks)}, is in a set as well")
    return kind, (machine, frozenset(listed.blocks.items()))


def leaves_of(tree: object, problem: Problem) -> Iterator[tuple[object, tuple[Side, ...]]]:
    """Each leaf with the sides of the branches above it, outermost first.

    Every schedule has at most so many of something, or at least one more. So it satisfies all the
    sides above some leaf, whatever the branches are.
    """
    stack: list[tuple[object, tuple[Side, ...]]] = [(tree, ())]
    leaves = 0
    while stack:
        node, sides = stack.pop()
        if "branch" not in as_a(dict, node, "a node of the certificate"):
            leaves += 1
            if leaves > _MOST_LEAVES:
                raise Fault(f"the certificate has more than {_MOST_LEAVES} leaves")
            yield node, sides
            continue
        if len(sides) == _DEEPEST:
            raise Fault(f"the certificate has more than {_DEEPEST} branches above one another")
        fields = record(node, "a node of the certificate", "branch at_most below above")
        kind, what = read_quantity(fields["branch"], problem)
        at_most = integer(fields["at_most"], "at_most of a branch", least=None)
        stack.append((fields["above"], (*sides, Side(kind, what, +1, at_most + 1))))
        stack.append((fields["below"], (*sides, Side(kind, what, -1, at_most))))


@dataclass(frozen=True)
class Leaf:
    """The numbers of a leaf, each with what it belongs to."""

    price: dict[str, Fraction]  # of every block: π
    limit_price: dict[str, Fraction]  # of every limit, of a machine type or a group: σ
    weighted: list[tuple[Side, Fraction]]  # each side, with its sign times its multiplier: s·μ
    proper: dict[str, int]  # the most blocks of a type that a machine of a set counts with: u
    functions: dict[str, Function] | None  # of jobs: φ; None where every block serves one job

    def key(self) -> tuple[object, ...]:
        """All that its bound depends on."""
        counting = tuple((side, w) for side, w in self.weighted if w)
        proper = tuple(sorted(self.proper.items()))
        functions = None if self.functions is None else tuple(sorted(self.functions.items()))
        prices = tuple(self.price.values()), tuple(self.limit_price.values())
        return prices, counting, proper, functions

    def added(self, kind: str, what: object) -> Fraction:
        """The s·μ of the sides on this quantity."""
        return sum((w for side, w in self.weighted if (side.kind, side.what) == (kind, what)), ZERO)

    def extras(self, machine: str) -> list[Extra]:
        """What machines of this type with at least some content add to sides: the s·μ."""
        pairs = [(side.what, w) for side, w in self.weighted if side.kind == _WITH and w]
        return [(dict(least), w) for (of, least), w in pairs if of == machine]

    @property
    def special(self) -> frozenset[str]:
        """The jobs whose blocks some side counts."""
        return frozenset(side.what[1] for side, _ in self.weighted if side.kind == "blocks_of_job")

    def of_type(self, machine: str) -> Fraction:
        """The s·μ of the sides that count machines of this type, as often as they count one."""
        sides = [(dict(side.what), w) for side, w in self.weighted if side.kind == _OF_TYPE]
        return sum((w * times.get(machine, 0) for times, w in sides), ZERO)


def read_leaf(leaf: object, sides: tuple[Side, ...], problem: Problem) -> Leaf:
    """Read a leaf below these sides."""
    fields = record(
        leaf, "a leaf of the certificate", "prices", "limit_prices multipliers proper functions"
    )
    price = dict.fromkeys(problem.blocks, ZERO)
    for i, value in table_over(problem.blocks, fields["prices"], "prices").items():
        price[i] = number(value, "the price of", i)
    limit_price = dict.fromkeys(problem.limits, ZERO)
    names = {*problem.machine_types, *problem.groups}
    for g, value in table_over(names, fields.get("limit_prices", {}), "limit_prices").items():
        limit_price[g] = number(value, "the limit price of", g)
        if limit_price[g] > 0 and g not in problem.limits:
            raise Fault(f"there is a limit price of {show(g)}, which has no limit")
    multipliers = [
        number(value, "a multiplier")
        for value in as_a(list, fields.get("multipliers", []), "multipliers")
    ]
    if len(multipliers) != len(sides):
        raise Fault(f"a leaf has {len(multipliers)} multipliers below {len(sides)} branches")
    weighted = [(side, side.sign * value) for side, value in zip(sides, multipliers, strict=True)]
    named = sum(len(side.what[1]) for side, w in weighted if side.kind == _WITH and w)
    if named > _MOST_NAMED:
        raise Fault(f"the branches on machines with some content name {named} blocks above a leaf")
    proper = {
        i: integer(count, "the proper count of", i)
        for i, count in table_over(problem.blocks, fields.get("proper", {}), "proper").items()
    }
    functions = None
    if "functions" in fields:
        functions = read_functions(fields["functions"], problem)
    elif problem.sharing is not None and problem.sharing.max_jobs != 1:
        raise Fault("a leaf has no price functions, and a block may serve several jobs")
    return Leaf(price, limit_price, weighted, proper, functions)


class Jobs(Protocol):
    """What a certificate asks of all jobs together."""

    def worth(self, prices: Sequence[Fraction], special: frozenset[str]) -> Fraction:
        """What the jobs but the special ones pay at least at the blocks' prices: the sum of h_j."""

    def use(self, block: str) -> int:
        """How many blocks of one type all jobs can use: each as many as serve it without others."""

    def unserved(self) -> bool:
        """Whether some job has a demand and no block that covers any of it."""


class JobsAtHand:
    """The jobs of a problem that is read as a whole."""

    def __init__(self, problem: Problem) -> None:
        # Equal jobs have equal h. Those of equal supply, one after the other, share what is found
        # out.
        rows = (job.row for job in problem.jobs.values())
        self._rows = Counter(sorted(rows, key=attrgetter("supply")))
        self._problem = problem
        self._use = cache(self._used)

    def worth(self, prices: Sequence[Fraction], special: frozenset[str]) -> Fraction:
        """Price the rows one by one."""
        coin, costs = integers(prices)
        left = self._rows - Counter(self._problem.jobs[j].row for j in special)
        return coin * sum(
            (cheapest_bundle(costs, row.rule, row.demand, row.supply) or 0) * n
            for row, n in left.items()
        )

    def use(self, block: str) -> int:
        """Add up what each job can use."""
        return self._use(self._problem.blocks.index(block))

    def _used(self, at: int) -> int:
        rows = self._rows.items()
        return sum(most_used(r.rule, r.demand, r.supply, at) * times for r, times in rows)

    def unserved(self) -> bool:
        """Look for such a job."""
        return any(row.demand and not able(row.rule, row.demand, row.supply) for row in self._rows)


def _leaf_bound(read: Leaf, problem: Problem, jobs: Jobs) -> Fraction | None:
    """What a leaf proves for the schedules on its sides of the branches; None: there are none.

    Let a schedule have x_C machines of configuration C, of machine type m, and give job j y_ij
    blocks of type i. A limit g says that the machines, each times the weight w_gm of its type, add
    up to n_g at most; one of a machine type is a limit with weight 1 of it. As x is whole, n_g may
    be rounded down to a multiple of the weights' common step. The leaf has prices π_i >= 0 of
    blocks, prices σ_g >= 0 of limits, and a multiplier μ >= 0 for each side s·quantity >= s·limit.
    Let v_C be the worth of a machine: the π of its blocks, plus s·μ for each side, as often as the
    machine adds to its quantity. If v_C <= cost_m + Σ_g w_gm σ_g for every C, then

      cost >= Σ_C (v_C - Σ_g w_gm σ_g) x_C
           >= Σ_ij π_i y_ij + Σ s·μ·(quantity, of machines or their blocks) - Σ_g σ_g n_g
           >= Σ_j h_j + Σ s·μ·limit - Σ_g σ_g n_g,

    where h_j is the cheapest option of job j (``bundles.py``) at the prices π_i, minus the s·μ of
    the sides that count the blocks i of job j; these prices must be >= 0. If all this holds even
    for machines that cost nothing, and the last line is positive, then every schedule has 0 > 0:
    there is none. There is none either if some job has a demand and no option; its h_j is then 0.

    Where blocks serve mixes, the jobs have price functions instead: in the place of h_j stands what
    job j pays for its demand, and what the mixes on blocks i pay, the s·μ of the sides that count
    the blocks i of their jobs included, must be at most π_i; ``functions.py`` says why. Such a side
    may count only the blocks on which the job's turn takes so long or longer.

    (A machine adds to ``machines_with`` if it has at least the blocks named, idle ones counted.)

    A machine of a size-bounded set need only keep to that with at most u_i blocks of type i, if the
    leaf has such a number and all jobs together can use no more: a job that does not need a block
    can do without it, so that its blocks of type i are at most ceil(demand_j / f_ij); and a machine
    of a set can do without blocks that nobody has. A schedule that has come so far costs no more
    than it did; and whatever its quantities are now, it is on all sides above some leaf.
    """
    for i, count in read.proper.items():
        if count < jobs.use(i):
            raise Fault(
                f"the proper count of {show(i)} is {show(count)}; all jobs together can use "
                f"{show(jobs.use(i))}"
            )
    bound = sum((w * side.limit for side, w in read.weighted), ZERO)
    bound -= sum(read.limit_price[g] * limit.reach for g, limit in problem.limits.items())
    bound += _jobs_pay(read, problem, jobs)
    refuse_breach(read, problem)
    if bound > 0 and _dearer_machine(read, problem, with_costs=False) is None:
        return None
    return None if jobs.unserved() else bound


def refuse_breach(read: Leaf, problem: Problem) -> None:
    """Refuse a leaf by itself, whatever the jobs' numbers are."""
    for job in sorted(read.special) if read.functions is None else []:
        _own_prices(read, problem, job)
    breach = _dearer_machine(read, problem, with_costs=True)
    if breach is not None:
        raise Fault(breach)


def _jobs_pay(read: Leaf, problem: Problem, jobs: Jobs) -> Fraction:
    """What all jobs pay at least; those that no block serves pay nothing."""
    if read.functions is not None and problem.sharing is not None:
        charges = [(*side.what, w) for side, w in read.weighted if side.kind == "blocks_of_job"]
        return paid(problem, problem.sharing, read.price, read.functions, charges)
    worth = jobs.worth(list(read.price.values()), read.special)
    for job in sorted(read.special):
        row = problem.jobs[job].row
        coin, costs = integers(_own_prices(read, problem, job))
        worth += coin * (cheapest_bundle(costs, row.rule, row.demand, row.supply) or 0)
    return worth


def _own_prices(leaf: Leaf, problem: Problem, job: str) -> list[Fraction]:
    """The prices of a job whose blocks a branch counts."""
    own = [leaf.price[i] - leaf.added("blocks_of_job", (i, job)) for i in problem.blocks]
    if min(own) < 0:
        raise Fault(
            f"a block's price for job {show(job)}, less its multipliers, is {show(min(own))}"
        )
    return own


def _dearer_machine(leaf: Leaf, problem: Problem, *, with_costs: bool) -> str | None:
    """Name a machine worth more than its cost, or than nothing, and its limit price."""
    worth_of = {i: leaf.price[i] + leaf.added("blocks_of", i) for i in problem.blocks}
    limit_prices = dict.fromkeys(problem.machine_types, ZERO)  # Σ_g w_gm σ_g
    for g, limit in problem.limits.items():
        for m, weight in limit.weights.items():
            limit_prices[m] += weight * leaf.limit_price[g]
    for index, c in enumerate(problem.configurations):
        machine, limit_price = problem.machine_types[c.machine], limit_prices[c.machine]
        allowed = limit_price + (machine.cost if with_costs else ZERO)
        worth = leaf.of_type(c.machine)
        if isinstance(c, Bounded):
            extras = leaf.extras(c.machine)
            worth += dearest_with_extras(c, worth_of, leaf.proper, extras, allowed - worth)
        else:
            worth += leaf.added("machines_of", (c.machine, frozenset(c.blocks.items())))
            worth += sum((worth_of[i] * n for i, n in c.blocks.items()), ZERO)
            for least, amount in leaf.extras(c.machine):
                if all(c.blocks.get(i, 0) >= n for i, n in least.items()):
                    worth += amount
        if worth > allowed:
            return (
                f"a machine of configurations[{index}] is worth {show(worth)} at a leaf's prices, "
                f"more than its cost {show(machine.cost)} and its limit price {show(limit_price)}"
            )
    return None


def read_leaves(tree: object, problem: Problem) -> list[Leaf]:
    """Read all leaves of a tree but those that prove the same as one before.

    These are of equal prices, below the same sides that count.
    """
    leaves = (read_leaf(leaf, sides, problem) for leaf, sides in list(leaves_of(tree, problem)))
    return list({leaf.key(): leaf for leaf in leaves}.values())


def least_bound(leaves: Sequence[Leaf], problem: Problem, jobs: Jobs) -> Fraction | None:
    """What leaves prove for all schedules: the least that one proves; None: there are none."""
    bounds = [_leaf_bound(leaf, problem, jobs) for leaf in leaves]
    return min((bound for bound in bounds if bound is not None), default=None)


def tree_bound(tree: object, problem: Problem) -> Fraction | None:
    """What a tree proves for all schedules; None: there are none."""
    return least_bound(read_leaves(tree, problem), problem, JobsAtHand(problem))


def certificate_bound(problem_doc: Any, tree: Any) -> Fraction | None:
    """The lower bound on the cost of every schedule that a certificate's ``tree`` proves.

    It is not rounded up, and exact but for what :func:`.cheapest_option` and
    :func:`dearest_filling` say; None if the tree proves that there is no schedule. A tree that
    proves nothing is a Fault.
    """
    return tree_bound(tree, read_problem(problem_doc))
