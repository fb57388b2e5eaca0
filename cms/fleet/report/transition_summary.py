"""A transition in a few words: what becomes of each service, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from ...solving.solution import Proof
from ...values.numbers import shown
from ..deployment.instance import Instance
from ..deployment.transition import (
    Durations,
    Floor,
    Schedule,
    Transition,
    lowest_capacity,
    schedule,
)
from ..deployment.transition.curves import service_names

__all__ = ["ServiceMoves", "Summary", "summary"]


@dataclass(frozen=True)
class ServiceMoves:
    """What becomes of a service on the way."""

    service: str
    kept: int  # instances; those that come and go on the way count as both started and stopped
    started: int
    stopped: int
    #: No execution takes it lower, whatever runs side by side (`lowest_capacity`).
    lowest_rps: Fraction
    floor: Floor | None


@dataclass(frozen=True)
class Summary:
    """A transition in a few words."""

    headline: str  # ``2 -> 16 GPUs, floor 100 %: 52 actions in 9 steps, 6 min (assumed); ...``
    assumed: str  # what the times rest on
    services: tuple[ServiceMoves, ...]
    schedule: Schedule  # with the maximum number of actions at once
    alone_s: Fraction  # seconds if one action is done after the other


def summary(
    transition: Transition,
    *,
    floor: str = "100 %",
    durations: Durations | None = None,
    max_parallel: int | None = None,
    by_node: bool = False,
) -> Summary:
    """Sum a transition up."""
    timed = schedule(transition, durations, max_parallel, by_node=by_node)
    alone = schedule(transition, durations, 1, by_node=by_node).makespan_s
    side_by_side = "all that may" if max_parallel is None else f"at most {max_parallel}"
    assumed = (
        f"Times are assumed, not measured: {in_words(timed.makespan_s)} with {side_by_side} side "
        f"by side, {in_words(alone)} one after the other."
    )
    services = tuple(_moves(transition))
    return Summary(_headline(transition, floor, timed), assumed, services, timed, alone)


def _headline(transition: Transition, floor: str, timed: Schedule) -> str:
    sides = (transition.start, transition.target)
    before, after = (len(side.used_gpus()) for side in sides)
    said = f"{before} -> {after} GPU{'s' * (after != 1)}, floor {floor}: "
    moves, steps = len(transition.actions), len(transition.steps)
    if not moves:
        return said + "nothing to do"
    kept, spare = transition.kept, transition.spare
    running = sum(transition.start.kinds().values())
    most = f"at most {kept.most}"
    if kept.count == kept.most and kept.proof is not Proof.NONE:
        word = {Proof.CHECKED: "proof checked", Proof.SOLVER: "claimed by a solver"}[kept.proof]
        most = f"maximum, {word}"
    return (
        f"{said}{moves} action{'s' * (moves != 1)} in {steps} step{'s' * (steps != 1)}, "
        f"{in_words(timed.makespan_s)} (assumed); {spare}; {kept.count} of "
        f"{running} instance{'s' * (running != 1)} kept ({most})"
    )


def _moves(transition: Transition) -> Iterator[ServiceMoves]:
    for name in service_names(transition):
        started = _count(name, (each for a in transition.actions for each in a.adds))
        stopped = _count(name, (each for a in transition.actions for each in a.removes))
        before = _count(name, (each for _, each in transition.start.instances() if each.is_managed))
        lasting = (a for a in transition.actions if not a.is_temporary)
        gone = _count(name, (each for a in lasting for each in a.removes))
        yield ServiceMoves(
            name, before - gone, started, stopped, lowest_capacity(transition, name),
            transition.floors.get(name),
        )  # fmt: skip


def _count(service: str, instances: Iterable[Instance]) -> int:
    return sum(each.work is not None and each.work.service == service for each in instances)


def in_words(seconds: Fraction) -> str:
    """Write a time.

    Examples
    --------
    >>> in_words(Fraction(78)), in_words(Fraction(360)), in_words(Fraction(30))
    ('1.3 min', '6 min', '30 s')
    """
    if seconds < 60:
        return f"{shown(Fraction(round(seconds)))} s"
    tenths = Fraction(round(seconds / 6), 10)
    return f"{shown(tenths if tenths < 10 else Fraction(round(tenths)))} min"
