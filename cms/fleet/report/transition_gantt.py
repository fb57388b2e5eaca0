"""What is drawn of a transition: a row a GPU, equal rows once, and what waits for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeVar

from ..deployment.transition.model import What

if TYPE_CHECKING:
    from ..deployment.instance import Instance
    from ..deployment.model import FleetGpu
    from ..deployment.transition.durations import Schedule
    from ..deployment.transition.model import Action, Transition

__all__ = ["Gantt", "Row", "Span", "in_lanes", "longest_chain"]

_Drawn = TypeVar("_Drawn")

#: What stands on an action, beside which no colour is needed.
SIGNS = {What.CREATE: "+", What.DELETE: "-", What.RESTART: "~", What.REWRITE: "*",
    What.SWITCH: ">",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """An action in time.

    Parameters
    ----------
    position : int
        In the transition's sequence.
    action : Action
    begin, end : Fraction
        In seconds.
    """

    position: int
    action: Action
    begin: Fraction
    end: Fraction

    @property
    def sign(self) -> str:
        """What is done, as a letter: ``+``; with ``t`` where it is temporary."""
        return SIGNS[self.action.what] + "t" * self.action.is_temporary

    @property
    def gone(self) -> tuple[str, ...]:
        """The services of what is removed, each once."""
        return _services(self.action.removes)

    @property
    def come(self) -> tuple[str, ...]:
        """The services of what is added, each once."""
        return _services(self.action.adds)

    @property
    def look(self) -> tuple[object, ...]:
        """What is seen of it: equal for actions that are drawn alike."""
        parts = tuple((each.profile, each.work) for each in self.action.removes)
        more = tuple((each.profile, each.work) for each in self.action.adds)
        return self.sign, parts, more, self.begin, self.end


def _services(instances: Iterable[Instance]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.work.service for each in instances if each.work is not None))


@dataclass(frozen=True, slots=True)
class Row:
    """GPUs on which the same is done at the same time.

    Parameters
    ----------
    gpus : tuple of FleetGpu
        As they are at the start, by node and index.
    spans : tuple of tuple of Span
        The actions on each of them, by their beginning.
    kept : tuple of Instance
        What stays on the first of them.
    """

    gpus: tuple[FleetGpu, ...]
    spans: tuple[tuple[Span, ...], ...]
    kept: tuple[Instance, ...]

    @property
    def drawn(self) -> tuple[Span, ...]:
        """The actions on the first GPU, which stand for those on all."""
        return self.spans[0]

    @property
    def places(self) -> list[tuple[str, int]]:
        """Nodes and indices."""
        return [(card.node, card.index) for card in self.gpus]


@dataclass(frozen=True, slots=True)
class Gantt:
    """A transition as rows.

    Parameters
    ----------
    rows : tuple of Row
        What begins first is first; then by node and index.
    untouched : tuple of FleetGpu
        GPUs on which nothing is done.
    end : Fraction
        When all is done, in seconds.
    """

    rows: tuple[Row, ...]
    untouched: tuple[FleetGpu, ...]
    end: Fraction

    @classmethod
    def of(cls, transition: Transition, plan: Schedule) -> Gantt:
        """Sort the actions of a transition by GPU, and put equal rows together."""
        by_gpu: dict[tuple[str, int], list[Span]] = {}
        times = zip(plan.begin_s, plan.end_s, strict=True)
        for at, (action, (begin, end)) in enumerate(zip(transition.actions, times, strict=True)):
            by_gpu.setdefault(action.gpu, []).append(Span(at, action, begin, end))
        alike: dict[object, list[tuple[FleetGpu, tuple[Span, ...], tuple[Instance, ...]]]] = {}
        untouched = []
        for card in transition.start.gpus():
            own = by_gpu.get((card.node, card.index))
            if own is None:
                untouched.append(card)
                continue
            spans = tuple(sorted(own, key=lambda each: (each.begin, each.end, each.position)))
            kept = _kept(card, own)
            stay = tuple((each.profile, each.work, each.owner) for each in kept)
            look = card.gpu.key, tuple(each.look for each in spans), stay
            alike.setdefault(look, []).append((card, spans, kept))
        rows = [
            Row(tuple(one[0] for one in each), tuple(one[1] for one in each), each[0][2])
            for each in alike.values()
        ]
        rows.sort(key=lambda row: (row.drawn[0].begin, row.drawn[-1].end, row.places[0]))
        return cls(tuple(rows), tuple(untouched), plan.makespan_s)


def _kept(card: FleetGpu, spans: Iterable[Span]) -> tuple[Instance, ...]:
    """What was on a GPU and is never removed."""
    gone = Counter(each for span in spans for each in span.action.removes)
    kept = []
    for each in card.instances:
        if gone[each]:
            gone[each] -= 1
        else:
            kept.append(each)
    return tuple(kept)


def in_lanes(
    spans: Sequence[_Drawn], edges: Sequence[tuple[int, int]]
) -> list[list[tuple[_Drawn, int, int]]]:
    """Put what is drawn side by side below each other.

    Parameters
    ----------
    spans : sequence
        By their beginning.
    edges : sequence of (int, int)
        Where each is drawn: its first column and the one after its last.

    Returns
    -------
    list of list of (span, begin, end)
        In each lane nothing overlaps.

    Examples
    --------
    >>> in_lanes("abc", [(0, 4), (2, 6), (4, 5)])
    [[('a', 0, 4), ('c', 4, 5)], [('b', 2, 6)]]
    """
    lanes: list[list[tuple[_Drawn, int, int]]] = []
    for span, (begin, end) in zip(spans, edges, strict=True):
        for lane in lanes:
            if lane[-1][2] <= begin:
                lane.append((span, begin, end))
                break
        else:
            lanes.append([(span, begin, end)])
    return lanes


def longest_chain(transition: Transition, plan: Schedule) -> tuple[int, ...]:
    """Return the actions that make it take as long as it does, each begun as another ended.

    Backwards from what ends last: what it waited for, or else what its GPU, or one of those that
    may run at once, was busy with until then.
    """
    if not transition.actions:
        return ()
    actions, end = transition.actions, plan.end_s
    at = max(range(len(actions)), key=lambda each: (end[each], -each))
    chain = [at]
    while plan.begin_s[at]:
        ended = [each for each, when in enumerate(end) if when == plan.begin_s[at]]
        ended = [each for each in ended if plan.begin_s[each] < end[each]]
        if not ended:
            break
        waited = [each for each in ended if each in actions[at].after]
        beside = [each for each in ended if actions[each].gpu == actions[at].gpu]
        at = (waited or beside or ended)[0]
        chain.append(at)
    return tuple(reversed(chain))
