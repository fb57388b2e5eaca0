"""The solution: whether what it says follows from its schedule and its certificate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .certificate import tree_bound
from .problem import Problem, fingerprint, read_problem
from .reading import (
    ZERO,
    Fault,
    as_a,
    check_head,
    integer,
    known_name,
    number,
    optional,
    record,
    refuse_no_time,
    sentences,
    show,
    table_over,
)
from .schedule import Group, read_schedule, schedule_faults
from .usable import round_up

_SOLUTION = (
    "format schema problem_sha256 status proof stop_reason method seconds machine_count cost "
    "lower_bound claimed_bound gap schedule certificate guarantee history"
)
_SHORTAGE = (
    "unservable more_machines machines_at_least machines_proof less_demand too_much_demand "
    "demand_proof seconds"
)
_STOP_REASONS = ("proved", "finished", "gap", "time_limit", "interrupted")
_PROOFS = {  # of each status
    "optimal": ("checked", "solver"),
    "infeasible": ("checked", "solver"),
    "feasible": ("none",),
    "no_schedule": ("none",),
}
_WORDS = {  # of a guarantee
    "against": ("OPT", "LP_AGG", "LP_STAR", "MILP_C", "LP_DW"),
    "verdict": ("verified", "breached", "open"),
}


def _history_faults(
    value: object, cost: Fraction | None, lower_bound: Fraction | None
) -> list[str]:
    """The best cost and the best bound must approach each other, towards those of the solution."""
    costs, bounds = [], []
    for index, row in enumerate(as_a(list, value, "history")):
        what = f"history[{index}]"
        fields = record(row, what, "seconds cost lower_bound claimed_bound source")
        refuse_no_time(fields["seconds"], f"the time of {what}")
        as_a(str, fields["source"], f"the source of {what}")
        optional(fields["claimed_bound"], f"the claimed_bound of {what}", signed=True)
        costs.append(optional(fields["cost"], f"the cost of {what}", signed=True))
        bounds.append(number(fields["lower_bound"], f"the lower_bound of {what}", signed=True))
    known = [c for c in [*costs, cost] if c is not None]
    bounds += [] if lower_bound is None else [lower_bound]
    rules = [
        (cost is not None or not known, "the history has a cost, the solution has none"),
        (known == sorted(known, reverse=True), "the history's costs do not fall to the solution's"),
        (bounds == sorted(bounds), "the history's lower bounds do not rise to the solution's"),
    ]
    return [sentence for holds, sentence in rules if not holds]


def _guarantee_faults(value: object, cost: Fraction | None, lower_bound: Fraction) -> list[str]:
    """A verified guarantee must hold with the lower bound in the optimum's place."""
    if value is None:
        return []
    fields = record(value, "the guarantee", "factor additive against theorem verdict")
    factor, additive = (number(fields[key], key) for key in ("factor", "additive"))
    for key in ("against", "theorem", "verdict"):
        text = as_a(str, fields[key], f"{key} of the guarantee")
        if key in _WORDS and text not in _WORDS[key]:
            known = ", ".join(_WORDS[key])
            raise Fault(f"the guarantee's {key} is {show(text)}, not one of {known}")
    if cost is None:
        return ["there is a verdict on a guarantee, but no schedule"]
    if fields["verdict"] == "verified" and cost > factor * lower_bound + additive:
        return ["the guarantee is verified, but the cost exceeds factor x lower_bound + additive"]
    return []


def _shortage_faults(value: object, problem: Problem, status: str) -> list[str]:
    """What would do is not proved by the document; but it must be about this problem."""
    fields = record(value, "the shortage", _SHORTAGE)
    for job, blocks in table_over(problem.jobs, fields["unservable"], "unservable").items():
        for block in as_a(list, blocks, f"what job {show(job)} needs"):
            known_name(problem.blocks, block, f"a block that job {show(job)} needs")
    at_least = integer(fields["machines_at_least"], "machines_at_least")
    more, found = fields["more_machines"], None
    if more is not None:
        table = table_over(problem.machine_types, more, "more_machines")
        found = sum(integer(n, "more machines", m, least=1) for m, n in table.items())
    share, too_much = number(fields["less_demand"], "less_demand"), fields["too_much_demand"]
    for key in ("machines_proof", "demand_proof"):
        if fields[key] not in ("checked", "solver", "none"):
            raise Fault(f"{key} is {show(fields[key])}, not one of checked, solver, none")
    refuse_no_time(fields["seconds"], "the time of the shortage")
    rules = [
        (status == "infeasible", f"there is a shortage, but the status is {status}"),
        (
            found is None or at_least <= found,
            f"{show(found)} more machines would do, and at least {show(at_least)} are needed",
        ),
        (share <= 1, f"less_demand is {show(share)}, more than all of the demand"),
        (
            too_much is None or number(too_much, "too_much_demand") > share,
            f"the share {show(too_much)} is too much, and {show(share)} would do",
        ),
    ]
    return [sentence for holds, sentence in rules if not holds]


@dataclass(frozen=True)
class Claims:
    """What a solution document says, but for its schedule and its certificate's tree."""

    fields: dict[str, Any]
    certificate: dict[str, Any]
    status: str
    proof: str
    reason: str
    machine_count: int | None
    cost: Fraction | None
    gap: Fraction | None
    claimed: Fraction | None
    lower_bound: Fraction

    @property
    def has_schedule(self) -> bool:
        """Whether the status says so."""
        return self.status in ("optimal", "feasible")

    def found(self, problem: Problem, machines: Sequence[Group]) -> tuple[Fraction | int, ...]:
        """The machine count, cost and gap of these machines."""
        cost = sum((problem.machine_types[g.machine].cost * g.count for g in machines), ZERO)
        return sum(g.count for g in machines), cost, cost - self.lower_bound


def read_claims(document: object, kind: str) -> Claims:
    """Read all but schedule and tree."""
    check_head(document, kind)
    fields = record(document, "the solution", _SOLUTION, "shortage")
    certificate = record(fields["certificate"], "the certificate", "problem_sha256 tree")
    status, proof, reason, _ = (
        as_a(str, fields[key], key) for key in ("status", "proof", "stop_reason", "method")
    )
    refuse_no_time(fields["seconds"], "seconds")
    if status not in _PROOFS:
        raise Fault(f"the status is {show(status)}, not one of {', '.join(_PROOFS)}")
    count = fields["machine_count"]
    machine_count = None if count is None else integer(count, "machine_count")
    cost, gap, claimed = (
        optional(fields[key], key, signed=True) for key in ("cost", "gap", "claimed_bound")
    )
    lower_bound = number(fields["lower_bound"], "lower_bound", signed=True)
    return Claims(
        fields, certificate, status, proof, reason, machine_count, cost, gap, claimed, lower_bound
    )


def claim_faults(
    claims: Claims, sha256: str, found: tuple[Fraction | int | None, ...]
) -> list[str]:
    """List what is wrong whatever the certificate proves; ``found``: machines, cost and gap."""
    status, proof = claims.status, claims.proof
    machine_count, cost, gap, claimed = (
        claims.machine_count,
        claims.cost,
        claims.gap,
        claims.claimed,
    )
    rules = [
        (
            claims.fields["problem_sha256"] == sha256,
            f"the problem_sha256 is not this problem's, {sha256}",
        ),
        (
            claims.certificate["problem_sha256"] == sha256,
            f"the certificate's problem_sha256 is not this problem's, {sha256}",
        ),
        (
            (machine_count, cost, gap) == found,
            f"machine_count, cost and gap are {show(machine_count)}, {show(cost)} and "
            f"{show(gap)}; recomputed, they are {', '.join(map(show, found))}",
        ),
        (
            claimed is None or cost is None or claimed <= cost,
            f"the claimed_bound {show(claimed)} exceeds the cost {show(cost)} of a schedule",
        ),
        (
            proof in _PROOFS[status],
            f"the status {status} has the proof {show(proof)}, not {' or '.join(_PROOFS[status])}",
        ),
        (claims.reason in _STOP_REASONS, f"the stop_reason {show(claims.reason)} is unknown"),
        (
            claims.reason != "proved" or proof == "checked",
            f"the stop_reason is proved, but the proof is {show(proof)}",
        ),
        (
            (status, proof) != ("optimal", "checked") or claims.lower_bound == cost,
            f"the lower_bound {show(claims.lower_bound)} is not the cost {show(cost)}",
        ),
    ]
    return [sentence for holds, sentence in rules if not holds]


def bound_faults(
    claims: Claims, bound: Fraction | None, up: Callable[[Fraction], Fraction]
) -> list[str]:
    """List what the certificate does not prove; ``up`` rounds to what an optimum can be."""
    status, proof, cost, claimed = claims.status, claims.proof, claims.cost, claims.claimed
    proven = None if bound is None else up(bound)
    rules = [
        (
            proven is None or claims.lower_bound <= proven,
            f"the lower_bound is {show(claims.lower_bound)}; the certificate proves {show(bound)}, "
            f"rounded up to the costs' step: {show(proven)}",
        ),
        (
            not claims.has_schedule or bound is not None,
            "the certificate proves that there is no schedule, but there is one",
        ),
        (
            (status, proof) != ("infeasible", "checked") or bound is None,
            "the certificate does not prove that there is no schedule",
        ),
        (
            (status, proof) != ("optimal", "solver")
            or (claimed is not None and up(claimed) == cost),
            f"the claimed_bound {show(claimed)} is not the cost {show(cost)}",
        ),
    ]
    return [sentence for holds, sentence in rules if not holds]


def story_faults(claims: Claims, problem: Problem, *, bounded: bool) -> list[str]:
    """List what is wrong with the guarantee, the shortage and the history."""
    faults = _guarantee_faults(claims.fields["guarantee"], claims.cost, claims.lower_bound)
    if "shortage" in claims.fields:
        faults += _shortage_faults(claims.fields["shortage"], problem, claims.status)
    # Where there is no schedule, every bound holds, and the last need not be the highest.
    lower_bound = claims.lower_bound if bounded else None
    return faults + _history_faults(claims.fields["history"], claims.cost, lower_bound)


def established(claims: Claims, proven: Fraction | None) -> str:
    """Say what a solution without faults establishes."""
    at_least = f"the certificate proves that every schedule costs at least {show(proven)}"
    if claims.status == "infeasible" and claims.proof == "checked":
        return "there is no schedule: the certificate proves it"
    if claims.status == "infeasible":
        return "that there is no schedule rests on a solver's word"
    if claims.status == "no_schedule":
        return f"no schedule was found; {at_least}"
    words = (
        f"the schedule is valid: {show(claims.machine_count)} machines, cost {show(claims.cost)}; "
        f"{at_least}"
    )
    if claims.proof == "solver":
        words += "; that none costs less than this one rests on a solver's word"
    return words


def judged(
    claims: Claims,
    problem: Problem,
    machines: Sequence[Group],
    sha256: str,
    bound: Fraction | None,
    wanted: set[str] | None = None,
) -> tuple[list[str], str]:
    """List what is wrong with all but the schedule, and say what is established otherwise."""

    def up(value: Fraction) -> Fraction:
        return round_up(problem, value, wanted)

    found = claims.found(problem, machines) if claims.has_schedule else (None, None, None)
    faults = [
        *bound_faults(claims, bound, up),
        *claim_faults(claims, sha256, found),
        *story_faults(claims, problem, bounded=bound is not None),
    ]
    return faults, established(claims, None if bound is None else up(bound))


#: From the problem, the groups of its schedule (None: there is none) and the tree: the schedule's
#: faults, and what the tree proves if there are none (None: that there is no schedule).
Prover = Callable[[Problem, Sequence[Group] | None, object], tuple[Sequence[str], Fraction | None]]


def recomputed(
    problem: Problem, groups: Sequence[Group] | None, tree: object
) -> tuple[Sequence[str], Fraction | None]:
    """What this checker finds."""
    faults = [] if groups is None else schedule_faults(problem, groups)
    return faults, None if faults else tree_bound(tree, problem)


def examine(
    problem: Problem, document: object, prove: Prover = recomputed
) -> tuple[list[str], str]:
    """List what is wrong with a solution document, and say what it establishes otherwise."""
    claims = read_claims(document, "solution")
    groups = read_schedule(claims.fields["schedule"], problem)
    if groups and not claims.has_schedule:
        return [f"the status is {claims.status}, but there is a schedule"], ""
    there = groups if claims.has_schedule else None
    faults, bound = prove(problem, there, claims.certificate["tree"])
    if faults:
        return list(faults), ""
    return judged(claims, problem, groups, fingerprint(problem), bound)


def check_solution(problem_doc: Any, solution_doc: Any) -> list[str]:
    """Check what a solution document says about a problem; return sentences, none if all holds.

    Checked are the schedule, its machines and cost, the certificate and the bound drawn from it,
    the gap, status and proof, a guarantee's verdict, and the history's order. Not checked are
    times, names, the theorem behind a guarantee, what rests on a solver's word, and whether what a
    shortage says would do.
    """
    return sentences(lambda: examine(read_problem(problem_doc), solution_doc)[0])
