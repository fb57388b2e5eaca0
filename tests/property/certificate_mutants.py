"""Mutants of certificates, as documents; some are invalid by construction, many may still hold."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from cms import Certificate, Problem
from cms.files import number_to_json, problem_to_json
from tests.oracle import given, limit_rows, useful
from tests.property.schedules import Document, Mutant

NO_NUMBERS = ["-1/3", -1, "abc", "", "1/0", None, True, [1], {}, "NaN", "inf", float("nan")]
LITTLE = Fraction(1, 10**25)


class Case:
    """What a mutation works on: copies of both documents, and where to cut."""

    def __init__(self, rng: random.Random, problem: Problem, certificate: Certificate) -> None:
        self.rng, self.original = rng, problem
        self.problem = problem_to_json(problem)
        self.tree: Document = copy.deepcopy(certificate.to_json())

    def nodes(self) -> Iterator[tuple[Document, int]]:
        """Every node with the number of branches above it."""
        waiting = [(self.tree, 0)]
        while waiting:
            node, depth = waiting.pop()
            yield node, depth
            if "branch" in node:
                waiting += [(node["below"], depth + 1), (node["above"], depth + 1)]

    def leaf(self) -> Document:
        return self.rng.choice([node for node, _ in self.nodes() if "branch" not in node])

    def branch(self) -> Document:
        return self.rng.choice([node for node, _ in self.nodes() if "branch" in node])

    def some(self, table: Document) -> str:
        return self.rng.choice(sorted(table))

    def changed(self, value: Any) -> Any:
        """A number near another one, or far away; never negative."""
        number = Fraction(value)
        near = [number + LITTLE, max(Fraction(0), number - LITTLE), number + 1]
        far = [number * 2, number / 2, Fraction(0), number * Fraction(self.rng.randint(1, 30), 20)]
        return number_to_json(self.rng.choice(near + far))


_OF_A_CASE = {"case": "Case", "return": "bool"}


# Each returns whether the mutant is invalid for certain; LookupError where it does not apply.
Mutation = Callable[[Case], bool]


def raise_a_price_by_far(case: Case) -> bool:
    leaf, block = case.leaf(), case.rng.choice(case.original.blocks)
    leaf["prices"][block] = 10**9
    # On a branch's side a multiplier might make up for it; here nothing can.
    held = any(
        block in c.get("blocks", ())
        for c in case.problem["configurations"]
        if not case.original.weights[c["machine"]]
    )
    return "branch" not in case.tree and held


def change_a_price(case: Case) -> bool:
    prices, block = case.leaf()["prices"], case.rng.choice(case.original.blocks)
    prices[block] = case.changed(prices.get(block, 0))
    if case.rng.random() < 0.3:
        del prices[block]
    return False


def scale_a_leaf(case: Case) -> bool:
    leaf, factor = case.leaf(), case.rng.choice([1 + LITTLE, Fraction(1, 2), Fraction(2)])
    for table in (leaf["prices"], leaf["limit_prices"]):
        for name in table:
            table[name] = number_to_json(Fraction(table[name]) * factor)
    if case.rng.random() < 0.5:
        leaf["multipliers"] = [number_to_json(Fraction(m) * factor) for m in leaf["multipliers"]]
    return False


def change_a_limit_price(case: Case) -> bool:
    rows = limit_rows(case.original)
    table, name = case.leaf()["limit_prices"], case.rng.choice([*case.original.weights, *rows])
    table[name] = case.changed(table.get(name, 0))
    return name not in rows and Fraction(table[name]) > 0


def too_small_a_proper_count(case: Case) -> bool:
    """Count on fewer blocks than all jobs can use, if only by one, or by a job's."""
    problem, counts = case.original, case.leaf().setdefault("proper", {})
    used = [block for block in problem.blocks if useful(problem, block)]
    block = case.rng.choice(used)
    own = [-(-job.demand // f) for job in problem.jobs if (f := given(job, block))]
    counts[block] = useful(problem, block) - case.rng.choice([1, *(int(n) for n in own if n)])
    return True


def change_the_proper_counts(case: Case) -> bool:
    """More of some, for prices that hold for fewer; or none at all."""
    leaf = case.leaf()
    counts = leaf["proper"]
    if case.rng.random() < 0.3:
        del leaf["proper"]
    else:
        counts[case.some(counts)] += case.rng.choice([1, 2, 10**20])
    return False


def change_a_multiplier(case: Case) -> bool:
    multipliers = case.leaf()["multipliers"]
    at = case.rng.randrange(len(multipliers)) if multipliers else _nothing()
    multipliers[at] = case.changed(multipliers[at])
    return False


def one_multiplier_more_or_less(case: Case) -> bool:
    multipliers = case.leaf()["multipliers"]
    if multipliers and case.rng.random() < 0.5:
        multipliers.pop(case.rng.randrange(len(multipliers)))
    else:
        multipliers.insert(case.rng.randint(0, len(multipliers)), case.rng.choice([0, 1]))
    return True


def a_number_that_is_none(case: Case) -> bool:
    leaf, junk = case.leaf(), case.rng.choice(NO_NUMBERS)
    where = case.rng.randrange(4)
    if where == 0:
        leaf["prices"][case.rng.choice(case.original.blocks)] = junk
    elif where == 1:
        leaf["limit_prices"][case.rng.choice(case.original.machine_types).name] = junk
    elif where == 2:
        leaf["multipliers"][:1] = [junk]
    else:
        counts = leaf.setdefault("proper", {})
        counts[case.rng.choice(case.original.blocks)] = case.rng.choice([junk, "9", 99.5])
    return True


def an_unknown_name(case: Case) -> bool:
    name, machine = case.rng.choice(["nobody", "", "B0"]), case.original.machine_types[0].name
    kind = case.rng.choice(["prices", "limit_prices", "proper", "branch"])
    if kind != "branch":
        case.leaf().setdefault(kind, {})[name] = case.rng.choice([0, 1])
        return True
    block, job = case.rng.choice(case.original.blocks), case.rng.choice(case.original.job_names)
    contents = [{"machine": name, "blocks": {block: 1}}, {"machine": machine, "blocks": {name: 1}}]
    quantities: list[Document] = [
        {"machines_of_type": name},
        {"machines_of_type": {machine: 1, name: 1}},
        *({kind: content} for kind in ("machines_of", "machines_with") for content in contents),
        {"blocks_of": name},
        {"blocks_of_job": {"block": name, "job": job}},
        {"blocks_of_job": {"block": block, "job": name}},
    ]
    case.branch()["branch"] = case.rng.choice(quantities)
    return True


def a_malformed_branch(case: Case) -> bool:
    node, block = case.branch(), case.rng.choice(case.original.blocks)
    machine = case.original.machine_types[0].name
    if case.rng.random() < 0.3:
        del node[case.rng.choice(["at_most", "below", "above"])]
        return True
    contents: list[Any] = [{"machine": None, "blocks": {}}, block]
    contents += [{"blocks": {block: count}} for count in (0, -1, "1")]
    weights: list[Any] = [{}, [machine], *({machine: n} for n in (0, -1, 1.5, "1"))]
    quantities: list[Any] = [
        *({}, None, block, {"blocks_of": 1}, {"machines": 3}),
        *({"machines_of_type": weight} for weight in weights),
        {"blocks_of": block, "machines_of_type": machine},
        *({"blocks_of_job": pair} for pair in ({"block": block}, [block])),
        *({kind: content} for kind in ("machines_of", "machines_with") for content in contents),
    ]
    node["branch"] = case.rng.choice(quantities)
    return True


def an_unknown_entry(case: Case) -> bool:
    case.rng.choice([node for node, _ in case.nodes()])["price"] = 1
    return True


def keep_one_side_only(case: Case) -> bool:
    """Claim for all schedules what holds for those on one side of a branch."""
    node, depth = case.rng.choice([(n, d) for n, d in case.nodes() if "branch" in n])
    side = node[case.rng.choice(["below", "above"])]
    forget = case.rng.random() < 0.7
    node.clear()
    node.update(side)
    if forget:
        for leaf in _leaves_below(node):
            leaf["multipliers"].pop(depth)
    return not forget


def other_sides(case: Case) -> bool:
    """The sides of a branch exchanged, or one of them twice."""
    node = case.branch()
    sides = node["above"], case.rng.choice([node["below"], copy.deepcopy(node["above"])])
    node["below"], node["above"] = sides
    return False


def change_a_threshold(case: Case) -> bool:
    node = case.branch()
    node["at_most"] += case.rng.choice([-1, 1, 5, -7, 10**20, -(10**20)])
    return False


def no_whole_threshold(case: Case) -> bool:
    case.branch()["at_most"] = case.rng.choice(["1", 1.5, None, True, "x", [0]])
    return True


def count_machines_otherwise(case: Case) -> bool:
    """Another weight of a machine type in a branch, or a type more or less."""
    branches = [node["branch"] for node, _ in case.nodes() if "branch" in node]
    some = [branch for branch in branches if "machines_of_type" in branch]
    branch = case.rng.choice(some) if some else _nothing()
    counted = branch["machines_of_type"]
    weights = {counted: 1} if isinstance(counted, str) else dict(counted)
    name = case.rng.choice(case.original.machine_types).name
    weights[name] = weights.get(name, 0) + case.rng.choice([-1, 1, 1, 10**20])
    if weights[name] <= 0:
        del weights[name]
    branch["machines_of_type"] = weights
    return not weights


def branch_on_something_else(case: Case) -> bool:
    """Any quantity of the right form, listed or not, on any machine type."""
    problem, rng = case.original, case.rng
    block = rng.choice(problem.blocks)
    shape = rng.choice(case.problem["configurations"])
    blocks = dict(shape.get("blocks", {block: rng.randint(1, 3)}))
    if rng.random() < 0.3:
        blocks[block] = blocks.get(block, 0) + rng.randint(0, 2)
    machine = rng.choice([*(m.name for m in problem.machine_types), None])
    quantities: list[Document] = [
        {"blocks_of": block},
        {"machines_of_type": rng.choice(problem.machine_types).name},
        {"machines_of_type": {m.name: rng.randint(1, 3) for m in problem.machine_types}},
        {"machines_of": {"machine": machine, "blocks": blocks}},
        {"machines_with": {"machine": machine, "blocks": blocks}},
        {"machines_of": {"machine": shape["machine"], "blocks": blocks}},
        {"blocks_of_job": {"block": block, "job": rng.choice(problem.job_names)}},
    ]
    case.branch()["branch"] = rng.choice(quantities)
    return False


def another_spelling(case: Case) -> bool:
    """The same numbers, not reduced; the certificate stays what it was."""
    for leaf in _leaves_below(case.tree):
        for table in (leaf["prices"], leaf["limit_prices"]):
            for name, value in table.items():
                number, factor = Fraction(value), case.rng.randint(1, 9)
                table[name] = f" {number.numerator * factor}/{number.denominator * factor} "
        leaf["multipliers"] = [str(Fraction(m)) for m in leaf["multipliers"]]
    return False


def a_missing_entry(case: Case) -> bool:
    """Only the prices have to be there, and as many multipliers as branches."""
    leaf, entry = case.leaf(), case.rng.choice(["prices", "limit_prices", "multipliers"])
    left_out = leaf.pop(entry)
    return entry == "prices" or (entry == "multipliers" and bool(left_out))


def another_machine_type(case: Case) -> bool:
    machine = case.rng.choice(case.problem["machine_types"])
    if case.rng.random() < 0.5:
        machine["cost"] = case.changed(machine["cost"])
    else:
        machine["limit"] = case.rng.choice([None, 0, 1, (machine["limit"] or 0) + 1])
    return False


def another_group(case: Case) -> bool:
    """Another weight or limit, a type more, or no such group."""
    groups, kind = case.problem.get("group_limits", []), case.rng.randrange(3)
    group = case.rng.choice(groups)
    weights, name = group["weights"], case.rng.choice(case.original.machine_types).name
    if kind == 0:
        groups.remove(group)
    elif kind == 1:
        weights[name] = case.rng.choice(["1/2", 1, "1.5", 3])
    else:
        more = case.rng.choice([Fraction(1), LITTLE])
        group["at_most"] = number_to_json(Fraction(group["at_most"]) + more)
    return False


def another_job(case: Case) -> bool:
    job = case.rng.choice(case.problem["jobs"])
    table, key = case.rng.choice([(job, "demand"), (job["demand_function"], "")])
    factors = [Fraction(0), Fraction(1, 2), 1 - LITTLE, 1 + LITTLE, Fraction(4, 3), Fraction(2)]
    key = key or case.some(table)
    table[key] = number_to_json(Fraction(table[key]) * case.rng.choice(factors))
    return False


def one_job_less(case: Case) -> bool:
    case.problem["jobs"].remove(case.rng.choice(case.problem["jobs"]))
    return False


def other_configurations(case: Case) -> bool:
    """One less, one more, or a set with more room."""
    shapes, kind = case.problem["configurations"], case.rng.randrange(3)
    if kind == 0:
        shapes.remove(case.rng.choice(shapes))
    elif kind == 1:
        counts = {case.rng.choice(case.original.blocks): case.rng.randint(1, 5)}
        machine = case.rng.choice(case.original.machine_types).name
        shapes.append({"machine": machine, "blocks": counts})
    else:
        shape = case.rng.choice([c for c in shapes if "sizes" in c])
        shape["max_blocks"] = None
        shape["capacity"] = number_to_json(Fraction(shape["capacity"]) * Fraction(5, 4))
    return False


def _leaves_below(node: Document) -> Iterator[Document]:
    if "branch" in node:
        yield from _leaves_below(node["below"])
        yield from _leaves_below(node["above"])
    else:
        yield node


def _nothing() -> Any:
    raise LookupError


MUTATIONS: tuple[Mutation, ...] = tuple(
    thing
    for thing in list(globals().values())
    if getattr(thing, "__annotations__", {}) == _OF_A_CASE
)


def mutant(
    rng: random.Random, problem: Problem, certificate: Certificate, mutation: Mutation
) -> Mutant | None:
    """One mutant, or None where the mutation does not apply."""
    case = Case(rng, problem, certificate)
    try:
        wrong = mutation(case)
    except LookupError:
        return None
    return Mutant(mutation.__name__, case.problem, case.tree, wrong)
