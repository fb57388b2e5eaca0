"""The solution: whether what it says follows from its schedule and its certificate."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

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
    record,
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


def _optional(value: object, what: str) -> Fraction | None:
    return None if value is None else number(value, what, signed=True)


def _seconds(value: object, what: str) -> None:
    """Times prove nothing; they may even be binary floats, and must fit into one."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction) or not value >= 0:
        raise Fault(f"{what} is {show(value)}, not a number >= 0")
    if value > sys.float_info.max:
        raise Fault(f"{what} is {show(value)}, which is no time")


def _history_faults(
    value: object, cost: Fraction | None, lower_bound: Fraction | None
) -> list[str]:
    """The best cost and the best bound must approach each other, towards those of the solution."""
    costs, bounds = [], []
    for index, row in enumerate(as_a(list, value, "history")):
        what = f"history[{index}]"
        fields = record(row, what, "seconds cost lower_bound claimed_bound source")
        _seconds(fields["seconds"], f"the time of {what}")
        as_a(str, fields["source"], f"the source of {what}")
        _optional(fields["claimed_bound"], f"the claimed_bound of {what}")
        costs.append(_optional(fields["cost"], f"the cost of {what}"))
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
    _seconds(fields["seconds"], "the time of the shortage")
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


class Proved(NamedTuple):
    """What a schedule and a certificate prove."""

    faults: list[str]  # of the schedule; the rest counts only where there are none
    cost: Fraction | None  # of the schedule
    least: Fraction | None  # no schedule costs less; None: there is no schedule
    bound: Fraction | None  # the same before it was rounded up


#: What proves: from the problem, the groups of the schedule (None: there is none) and the tree.
Prover = Callable[[Problem, Sequence[Group] | None, object], Proved]


def recomputed(problem: Problem, groups: Sequence[Group] | None, tree: object) -> Proved:
    """What this checker finds."""
    cost = None
    if groups is not None:
        faults = schedule_faults(problem, groups)
        if faults:
            return Proved(faults, None, None, None)
        cost = sum((problem.machine_types[g.machine].cost * g.count for g in groups), ZERO)
    bound = tree_bound(tree, problem)
    return Proved([], cost, None if bound is None else round_up(problem, bound), bound)


def examine(
    problem: Problem, document: object, prove: Prover = recomputed
) -> tuple[list[str], str]:
    """List what is wrong with a solution document, and say what it establishes otherwise."""
    check_head(document, "solution")
    fields = record(document, "the solution", _SOLUTION, "shortage")
    certificate = record(fields["certificate"], "the certificate", "problem_sha256 tree")
    status, proof, reason, _ = (
        as_a(str, fields[key], key) for key in ("status", "proof", "stop_reason", "method")
    )
    _seconds(fields["seconds"], "seconds")
    if status not in _PROOFS:
        raise Fault(f"the status is {show(status)}, not one of {', '.join(_PROOFS)}")
    machine_count = fields["machine_count"]
    if machine_count is not None:
        integer(machine_count, "machine_count")
    cost, gap, claimed = (_optional(fields[key], key) for key in ("cost", "gap", "claimed_bound"))
    lower_bound = number(fields["lower_bound"], "lower_bound", signed=True)

    groups = read_schedule(fields["schedule"], problem)
    has_schedule = status in ("optimal", "feasible")
    if groups and not has_schedule:
        return [f"the status is {status}, but there is a schedule"], ""
    faults, true_cost, proven, bound = prove(
        problem, groups if has_schedule else None, certificate["tree"]
    )
    if faults:
        return faults, ""
    # machines, cost, gap
    found: tuple[Fraction | int | None, ...] = (None, None, None)
    if true_cost is not None:
        found = (sum(g.count for g in groups), true_cost, true_cost - lower_bound)
    sha256 = fingerprint(problem)
    rules = [
        (fields["problem_sha256"] == sha256, f"the problem_sha256 is not this problem's, {sha256}"),
        (
            certificate["problem_sha256"] == sha256,
            f"the certificate's problem_sha256 is not this problem's, {sha256}",
        ),
        (
            (machine_count, cost, gap) == found,
            f"machine_count, cost and gap are {show(machine_count)}, {show(cost)} and "
            f"{show(gap)}; recomputed, they are {', '.join(map(show, found))}",
        ),
        (
            proven is None or lower_bound <= proven,
            f"the lower_bound is {show(lower_bound)}; the certificate proves {show(bound)}, "
            f"rounded up to the costs' step: {show(proven)}",
        ),
        (
            claimed is None or cost is None or claimed <= cost,
            f"the claimed_bound {show(claimed)} exceeds the cost {show(cost)} of a schedule",
        ),
        (
            proof in _PROOFS[status],
            f"the status {status} has the proof {show(proof)}, not {' or '.join(_PROOFS[status])}",
        ),
        (reason in _STOP_REASONS, f"the stop_reason {show(reason)} is unknown"),
        (
            reason != "proved" or proof == "checked",
            f"the stop_reason is proved, but the proof is {show(proof)}",
        ),
        (
            not has_schedule or proven is not None,
            "the certificate proves that there is no schedule, but there is one",
        ),
        (
            (status, proof) != ("infeasible", "checked") or proven is None,
            "the certificate does not prove that there is no schedule",
        ),
        (
            (status, proof) != ("optimal", "checked") or lower_bound == cost,
            f"the lower_bound {show(lower_bound)} is not the cost {show(cost)}",
        ),
        (
            (status, proof) != ("optimal", "solver")
            or (claimed is not None and round_up(problem, claimed) == cost),
            f"the claimed_bound {show(claimed)} is not the cost {show(cost)}",
        ),
    ]
    faults = [sentence for holds, sentence in rules if not holds]
    faults += _guarantee_faults(fields["guarantee"], cost, lower_bound)
    if "shortage" in fields:
        faults += _shortage_faults(fields["shortage"], problem, status)
    # Where there is no schedule, every bound holds, and the last need not be the highest.
    faults += _history_faults(fields["history"], cost, None if proven is None else lower_bound)

    at_least = f"the certificate proves that every schedule costs at least {show(proven)}"
    if status == "infeasible" and proof == "checked":
        words = "there is no schedule: the certificate proves it"
    elif status == "infeasible":
        words = "that there is no schedule rests on a solver's word"
    elif status == "no_schedule":
        words = f"no schedule was found; {at_least}"
    else:
        words = (
            f"the schedule is valid: {show(machine_count)} machines, cost {show(cost)}; {at_least}"
        )
        if proof == "solver":
            words += "; that none costs less than this one rests on a solver's word"
    return faults, words


def check_solution(problem_doc: Any, solution_doc: Any) -> list[str]:
    """Check what a solution document says about a problem.

    Checked are the schedule, its machines and cost, the certificate and the bound drawn from it,
    the gap, status and proof, a guarantee's verdict, and the history's order. Not checked are
    times, names, the theorem behind a guarantee, what rests on a solver's word, and whether what a
    shortage says would do.

    Parameters
    ----------
    problem_doc, solution_doc : object
        The documents as :func:`parse_document` gives them.

    Returns
    -------
    list of str
        Empty if everything holds; otherwise sentences.

    Examples
    --------
    >>> check_solution({}, {})
    ["the format is None, not 'cms-problem'"]
    """
    try:
        return examine(read_problem(problem_doc), solution_doc)[0]
    except ValueError as fault:
        return [str(fault)]
