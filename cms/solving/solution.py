"""The answer of :func:`cms.solve`: a checked schedule, a checked bound, and how they came about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ..problem.parts import DEFAULT_MACHINE
from ..schedule.schedule import MachineGroup, Schedule
from ..values.numbers import shown

if TYPE_CHECKING:
    from ..certificate.certificate import Certificate
    from ..plugin.guarantee import GuaranteeVerdict

#: Groups of machines that a printed solution lists before it says how many more there are.
GROUPS_SHOWN = 20


class Status(StrEnum):
    """What is known in the end."""

    OPTIMAL = "optimal"
    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    NO_SCHEDULE = "no_schedule"


class Proof(StrEnum):
    """Who says so: a certificate that was checked exactly, a solver, or nobody."""

    CHECKED = "checked"
    SOLVER = "solver"
    NONE = "none"


class StopReason(StrEnum):
    """Why the run ended.

    ``PROVED``: a checked bound met the best schedule, or a checked certificate showed that there is
    none. ``FINISHED``: the algorithm ended by itself. ``GAP``: the wanted gap was reached.
    ``TIME_LIMIT``. ``INTERRUPTED``: by Ctrl-C or the caller's ``cancel``.
    """

    PROVED = "proved"
    FINISHED = "finished"
    GAP = "gap"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"


class Incumbent(NamedTuple):
    """A line of the history: what was known after a claim that improved something.

    ``source`` is the algorithm or the solver whose word it is, mostly with the part of the run it
    comes from ("price_and_branch: block prices, 7 passes"); or "start", or "trivial" for what needs
    no algorithm. Costs never rise along a history, bounds never fall.
    """

    seconds: float
    cost: Fraction | None
    lower_bound: Fraction
    claimed_bound: Fraction | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """A schedule, a lower bound with its certificate, and how the run went; immutable, picklable.

    Attributes
    ----------
    status : Status
    proof : Proof
        For ``OPTIMAL`` and ``INFEASIBLE``: whether a checked certificate or a solver's word shows
        it; otherwise ``NONE``.
    stop_reason : StopReason
    method : str
        The algorithm's name.
    seconds : float
        Wall-clock time of the whole call.
    schedule : Schedule
        Checked exactly; empty for ``NO_SCHEDULE`` and ``INFEASIBLE``.
    cost : Fraction or None
        The schedule's; None if there is none.
    certificate : Certificate
        Proves ``lower_bound``; at worst the trivial one, of bound 0.
    lower_bound : Fraction
        The certificate's bound, rounded up to the problem's ``cost_step``.
    claimed_bound : Fraction or None
        The highest bound a solver gave its word for, rounded up likewise.
    guarantee : GuaranteeVerdict or None
        What the algorithm promised and whether it kept it, after a run that was not cut short.
    history : tuple of Incumbent
    problem_sha256 : str
        The problem all this is about.
    """

    status: Status
    proof: Proof
    stop_reason: StopReason
    method: str
    seconds: float
    schedule: Schedule
    cost: Fraction | None
    certificate: Certificate
    lower_bound: Fraction
    claimed_bound: Fraction | None
    guarantee: GuaranteeVerdict | None
    history: tuple[Incumbent, ...]
    problem_sha256: str

    @property
    def machine_count(self) -> int | None:
        """Number of machines; None if there is no schedule."""
        return None if self.cost is None else self.schedule.machine_count

    @property
    def gap(self) -> Fraction | None:
        """``cost - lower_bound``; None if there is no schedule."""
        return None if self.cost is None else self.cost - self.lower_bound

    @property
    def relative_gap(self) -> Fraction | None:
        """``gap / cost``, 0 for a cost of 0; None if there is no schedule."""
        if self.cost is None or self.gap is None:
            return None
        return self.gap / self.cost if self.cost else Fraction(0)

    def __str__(self) -> str:
        facts = list(_facts(self))
        width = max(len(name) for name, _ in facts)
        lines = [f"{name:<{width}}  {value}" for name, value in facts]
        if self.schedule.machine_count:
            rows = [("machines", "configuration", "blocks given to jobs"), *_rows(self.schedule)]
            first = max(len(row[0]) for row in rows)
            second = max(len(row[1]) for row in rows)
            lines += ["", *(f"{a:>{first}}  {b:<{second}}  {c}".rstrip() for a, b, c in rows)]
            lines += _not_shown(self.schedule)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape  # only a notebook asks

        facts = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in _facts(self)
        )
        html = f"<table>{facts}</table>"
        if self.schedule.machine_count:
            head = "<tr><th>machines</th><th>configuration</th><th>blocks given to jobs</th></tr>"
            cells = ("".join(f"<td>{escape(x)}</td>" for x in row) for row in _rows(self.schedule))
            body = "".join(f"<tr>{row}</tr>" for row in cells)
            html += f"<table>{head}{body}</table>"
            html += "".join(f"<p>{escape(line)}</p>" for line in _not_shown(self.schedule))
        return html


def _facts(solution: Solution) -> Iterator[tuple[str, str]]:
    proof = {
        Proof.CHECKED: " (checked proof)",
        Proof.SOLVER: " (on a solver's word)",
        Proof.NONE: "",
    }[solution.proof]
    yield "status", f"{solution.status.replace('_', ' ')}{proof}"
    if solution.cost is not None:
        yield "machines", shown(solution.machine_count or 0)
        yield "cost", shown(solution.cost)
    yield "lower bound", shown(solution.lower_bound)
    if solution.claimed_bound is not None:
        yield "claimed bound", f"{shown(solution.claimed_bound)} (a solver's word)"
    if solution.gap is not None and solution.relative_gap is not None:
        percent = f" ({_percent(solution.relative_gap)})" if solution.gap else ""
        yield "gap", f"{shown(solution.gap)}{percent}"
    if solution.guarantee is not None:
        yield "guarantee", str(solution.guarantee)
    why = solution.stop_reason.replace("_", " ")
    yield "method", f"{solution.method}, {solution.seconds:.2f} s, ended: {why}"


def _percent(share: Fraction) -> str:
    # A bound read from a file may be far below 0, where no float reaches.
    return f"{float(share):.2%}" if abs(share) < 10**6 else f"{shown(round(100 * share))}%"


def _rows(schedule: Schedule) -> Iterator[tuple[str, str, str]]:
    for group in schedule.groups[:GROUPS_SHOWN]:
        machine = group.configuration.machine
        on = "" if machine in (None, DEFAULT_MACHINE) else f" on {machine}"
        yield shown(group.count), f"{group.configuration}{on}", _given(group)


def _given(group: MachineGroup) -> str:
    parts = (
        f"{f'{shown(count)} x ' if count > 1 else ''}{block} -> {job}"
        for (block, job), count in sorted(group.assignment.items())
    )
    return ", ".join(parts) or "(idle)"


def _not_shown(schedule: Schedule) -> list[str]:
    more = len(schedule.groups) - GROUPS_SHOWN
    return [f"... and {more} more groups of machines"] if more > 0 else []
