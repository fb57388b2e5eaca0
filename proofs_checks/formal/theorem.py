"""A plan as a theorem: Coq computes the verdict itself, and nothing is extracted or compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, TypeVar

from .grammar import Branch, Group, Job, Leaf, Listed, MachineType, Node, Words
from .program import EFFORT

T = TypeVar("T")

_FILE = """From CMS Require Import Recheck.
Open Scope Z_scope.

Definition the_problem : problem := {problem}.
Definition the_schedule : option (list group) := {schedule}.
Definition the_tree : qtree := {tree}.
Definition effort : nat := Z.to_nat {effort}.

Theorem verdict : recheck effort the_problem the_schedule the_tree = {verdict}.
Proof. vm_cast_no_check (eq_refl ({verdict})). Qed.

Theorem plan_holds : {claim}.
Proof.
  pose proof (recheck_sound effort the_problem the_schedule the_tree) as H.
  rewrite verdict in H. exact H.
Qed.

(* The schedule is the one above, written out as machines. *)
Theorem schedule_holds : shown the_problem the_schedule ({verdict}).
Proof.
  pose proof (recheck_shows effort the_problem the_schedule the_tree) as H.
  rewrite verdict in H. exact H.
Qed.

Definition both := conj plan_holds schedule_holds.
Print Assumptions both.
"""
_CLAIMS = {
    "infeasible": "forall s, ~ valid the_problem s",
    "optimal": "attained the_problem {0} /\\ at_least the_problem {0}",
    "between": "attained the_problem {1} /\\ at_least the_problem {0}",
    "at least": "at_least the_problem {0}",
}
_VERDICTS = {
    "infeasible": "Infeasible",
    "optimal": "Optimal {0}",
    "between": "Between {0} {1}",
    "at least": "AtLeast {0}",
}


def theorem(read: Words, verdict: str) -> str:
    """Write a file for Coq that states what a plan proves, and proves it.

    The verdict is what the program says of it, other than ``rejected``. Compile the file where the
    files of ``coq/`` were compiled.
    """
    kind, *numbers = verdict.replace("at least", "at-least").split()
    kind = kind.replace("-", " ")
    shown = [_rational(Fraction(text)) for text in numbers]
    groups = "None" if read.groups is None else f"Some {_many(_group, read.groups)}"
    return _FILE.format(
        problem=_problem(read),
        schedule=groups,
        tree=_tree(read.tree),
        effort=EFFORT,
        verdict=_VERDICTS[kind].format(*shown),
        claim=_CLAIMS[kind].format(*shown),
    )


def _integer(value: int) -> str:
    return f"({value})"


def _natural(value: int) -> str:
    return f"{value}%nat"


def _rational(value: Fraction) -> str:
    return f"(Qmake ({value.numerator}) {value.denominator})"


def _maybe(value: int | None) -> str:
    return "None" if value is None else f"(Some ({value}))"


def _many(write: Callable[[T], str], values: Iterable[T]) -> str:
    return f"[{'; '.join(map(write, values))}]"


def _record(**fields: str) -> str:
    return "{| " + "; ".join(f"{name} := {text}" for name, text in fields.items()) + " |}"


def _problem(read: Words) -> str:
    return _record(
        machine_types=_many(_machine_type, read.machine_types),
        block_types=_natural(read.block_types),
        configurations=_many(_configuration, read.configurations),
        jobs=_many(_job, read.jobs),
    )


def _machine_type(machine: MachineType) -> str:
    return _record(cost_of=_rational(machine.cost), limit_of=_maybe(machine.limit))


def _configuration(c: Any) -> str:
    machine = _natural(c.machine)
    if isinstance(c, Listed):
        return f"Listed {machine} {_many(_integer, c.counts)}"
    sizes = f"{_many(_rational, c.sizes)} {_rational(c.capacity)}"
    return f"SizeBounded {machine} {sizes} {_maybe(c.max_blocks)}"


def _job(job: Job) -> str:
    return _record(demand=_rational(job.demand), supply=_many(_rational, job.supply))


def _served(entry: tuple[int, int, int]) -> str:
    block, job, number = entry
    return f"({_natural(block)}, {_natural(job)}, {_integer(number)})"


def _group(group: Group) -> str:
    return _record(
        group_type=_natural(group.machine),
        group_counts=_many(_integer, group.counts),
        group_machines=_integer(group.machines),
        group_assignment=_many(_served, group.assignment),
    )


def _tree(node: Node) -> str:
    if isinstance(node, Branch):
        sides = f"{_tree(node.below)} {_tree(node.above)}"
        return f"(QBranch {_quantity(node.quantity)} {_integer(node.at_most)} {sides})"
    return f"(QLeaf {_leaf(node)})"


def _leaf(leaf: Leaf) -> str:
    return _record(
        qprices=_many(_rational, leaf.prices),
        qlimit_prices=_many(_rational, leaf.limit_prices),
        qmultipliers=_many(_rational, leaf.multipliers),
        qproper=_many(_maybe, leaf.proper),
    )


def _quantity(quantity: tuple[Any, ...]) -> str:
    word, *what = quantity
    if word == "types":
        return f"(MachinesOfType {_many(_integer, what[0])})"
    if word == "blocks":
        return f"(BlocksOfType {_natural(what[0])})"
    if word == "job":
        return f"(BlocksOfJob {_natural(what[0])} {_natural(what[1])})"
    name = {"of": "MachinesOfConfiguration", "with": "MachinesWithBlocks"}[word]
    return f"({name} {_natural(what[0])} {_many(_integer, what[1])})"
