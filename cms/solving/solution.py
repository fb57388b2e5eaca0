"""The answer of :func:`cms.solve`: a checked schedule, a checked bound, and how they came about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ..schedule.schedule import Excerpt, Schedule
from ..values.numbers import shown
from ..values.views import Record, Tabular, Viewed

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
    """The evidence: a certificate that was checked exactly, a solver's word, or none."""

    CHECKED = "checked"
    SOLVER = "solver"
    NONE = "none"


class StopReason(StrEnum):
    """Why the run ended: with a proof, or by itself, or cut short by one of the caller's terms."""

    PROVED = "proved"
    FINISHED = "finished"
    GAP = "gap"
    TIME_LIMIT = "time_limit"
    INTERRUPTED = "interrupted"


class Incumbent(NamedTuple):
    """A line of the history: what was known after a claim that improved something.

    ``source`` is the algorithm or solver whose word it is, mostly with the part of the run it comes
    from ("branch_and_price: block prices, 7 passes"); or "start", "trivial" or "rough prices".
    """

    seconds: float
    cost: Fraction | None
    lower_bound: Fraction
    claimed_bound: Fraction | None
    source: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Solution(Viewed, Tabular):
    """A schedule, a lower bound with its certificate, and how the run went; immutable, picklable.

    Attributes
    ----------
    status : Status
    proof : Proof
        For ``OPTIMAL`` and ``INFEASIBLE``: whether a checked certificate or a solver's word shows
        it; otherwise ``NONE``.
    stop_reason : StopReason
    method : str
    seconds : float
        Wall-clock time of the whole call.
    schedule : Schedule
        Checked exactly; empty for ``NO_SCHEDULE`` and ``INFEASIBLE``.
    cost : Fraction or None
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
        """Number of machines; None if there is no schedule, or where there are no machines."""
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

    def __repr__(self) -> str:
        found = "no schedule" if self.cost is None else f"cost {shown(self.cost)}"
        bound = f"lower bound {shown(self.lower_bound)}"
        return f"Solution({self.status.value}: {found}, {bound}, proof {self.proof.value})"

    def __str__(self) -> str:
        return printed(_facts(self), self.schedule.excerpt(GROUPS_SHOWN))

    def _tables(self) -> Mapping[str, Iterable[Record]]:
        tables = {"history": (line._asdict() for line in self.history)}
        has_machines = self.cost is None or self.machine_count is not None
        return {**tables, "schedule": self._groups()} if has_machines else tables

    def _groups(self) -> Iterator[Record]:
        for number, group in enumerate(self.schedule.groups):
            machine = group.configuration.machine
            own = {"group": number, "machines": group.count, "machine": machine}
            for (block, content), blocks in group.assignment.items():
                yield {**own, "block": block, "job": str(content), "blocks": blocks}


def printed(facts: Iterable[tuple[str, str]], excerpt: Excerpt) -> str:
    """Lay out what a run found, line by line, and the first rows of its schedule below."""
    facts, (head, rows, rest) = list(facts), excerpt
    width = max(len(name) for name, _ in facts)
    lines = [f"{name:<{width}}  {value}" for name, value in facts]
    if rows:
        lines.append("")
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        for first, *others in (head, *rows):
            cells = first.rjust(widths[0]), *map(str.ljust, others, widths[1:])
            lines.append("  ".join(cells).rstrip())
        lines += [rest] if rest else []
    return "\n".join(lines)


def _facts(solution: Solution) -> Iterator[tuple[str, str]]:
    proof = {"checked": " (checked proof)", "solver": " (on a solver's word)", "none": ""}
    yield "status", solution.status.replace("_", " ") + proof[solution.proof]
    if solution.cost is not None:
        if solution.machine_count is not None:
            yield "machines", shown(solution.machine_count)
        yield "cost", shown(solution.cost)
    yield "lower bound", shown(solution.lower_bound)
    if solution.claimed_bound is not None:
        yield "claimed bound", f"{shown(solution.claimed_bound)} (a solver's word)"
    if solution.gap is not None and solution.relative_gap is not None:
        share = solution.relative_gap
        # A bound read from a file may be far below 0, where no float reaches.
        near = abs(share) < 10**6
        percent = f"{float(share):.2%}" if near else f"{shown(round(100 * share))}%"
        yield "gap", shown(solution.gap) + (f" ({percent})" if solution.gap else "")
    if solution.guarantee is not None:
        yield "guarantee", str(solution.guarantee)
    why = solution.stop_reason.replace("_", " ")
    yield "method", f"{solution.method}, {solution.seconds:.2f} s, ended: {why}"
