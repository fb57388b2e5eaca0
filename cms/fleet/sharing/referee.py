"""The referee of sharing: what is lost against the most that is conceivable is its cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from ...referee.kinds import First
from ...running.stopping import never
from ...schedule.faults import Violation
from ...solving.rough_prices import rough_certificates
from ...values.names import nearest
from ...values.numbers import shown
from .certificate import AssignmentPrices
from .plan import SharingPlan
from .problem import SharingProblem

if TYPE_CHECKING:
    from ...plugin.registry import NamedProblem


class SharingReferee:
    """Judges what is claimed about a :class:`cms.fleet.SharingProblem`."""

    schedules = SharingPlan
    certificates = (AssignmentPrices,)
    step = Fraction(1)
    limited = False  # to share nothing is a plan

    def __init__(self, problem: SharingProblem) -> None:
        self._problem, self._most = problem, problem.most

    def first(self) -> First:
        """Return a price of every workload at its best GPU; the empty plan if that is 0."""
        problem = self._problem
        best = problem.weights.max(axis=0, initial=0).tolist()
        named = {each.name: w for each, w in zip(problem.offline, best, strict=True) if w}
        if not self._most:
            return First(AssignmentPrices({}, named), Fraction(0), schedule=SharingPlan())
        by_gpus = AssignmentPrices.of_offline(problem, [0] * len(best))
        if not by_gpus.upper_bound(problem):  # no GPU that takes anybody
            return First(by_gpus, Fraction(self._most), schedule=SharingPlan())
        return First(AssignmentPrices({}, named), Fraction(0))

    def cost(self, schedule: SharingPlan) -> Fraction:
        """Return what a plan is worth less than if every workload were where it is worth most."""
        return Fraction(self._most - self._problem.value(schedule))

    def faults(self, schedule: SharingPlan) -> Iterator[Violation]:
        """Iterate over unknown classes, forbidden pairs, and classes that are used too often."""
        problem = self._problem
        used: tuple[dict[str, int], dict[str, int]] = ({}, {})
        for pair in schedule:
            where = f"the pair {pair.online!r} and {pair.offline!r}"
            known = True
            for name, places, kind in (
                (pair.online, problem.online_index, "online class"),
                (pair.offline, problem.offline_index, "offline class"),
            ):
                if name not in places:
                    known = False
                    has = f"the {kind} {name!r}, which the problem does not have"
                    yield Violation(kind, where, has, f"a known one{nearest(name, places)}")
            if known and problem.weight(pair.online, pair.offline) is None:
                yield Violation("pair", where, f"{shown(pair.count)} workloads", "0: forbidden")
            for name, count in zip((pair.online, pair.offline), used, strict=True):
                count[name] = count.get(name, 0) + pair.count
        for gpus in problem.online:
            if (n := used[0].get(gpus.name, 0)) > gpus.count:
                needs = f"at most {shown(gpus.count)}: one a GPU"
                where = f"online class {gpus.name!r}"
                yield Violation("online", where, f"{shown(n)} workloads", needs)
        for work in problem.offline:
            if (n := used[1].get(work.name, 0)) > work.count:
                needs = f"at most {shown(work.count)}"
                where = f"offline class {work.name!r}"
                yield Violation("offline", where, f"{shown(n)} workloads placed", needs)

    @staticmethod
    def edge_problems() -> tuple[tuple[NamedProblem, ...], tuple[NamedProblem, ...]]:
        """Return what the conformance suite tries algorithms on: small problems, and large ones."""
        from .edge_problems import SHARING_CROWDS, SHARING_EDGE_PROBLEMS

        return SHARING_EDGE_PROBLEMS, SHARING_CROWDS


@rough_certificates.register(SharingProblem)
def rough_sharing(
    problem: SharingProblem, stopped: Callable[[], bool] = never
) -> tuple[AssignmentPrices]:
    """Price every GPU at its best workload: what is known first prices the workloads."""
    return (AssignmentPrices.of_offline(problem, [0] * len(problem.offline)),)
