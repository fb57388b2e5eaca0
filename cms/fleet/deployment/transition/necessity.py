"""Why fewer spare GPUs will not do: looked for, put into words, and checked.

First instances that can never stop; on few GPUs then all that can be reached, which may also show
that there is a way after all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from ....values.numbers import shown
from ..instance import Instance
from ..model import Deployment
from ..programs import Limits
from .covering import Covering
from .exhaustion import GPUS, Step, exhausted_fault, reached
from .first_repartition import first_repartition_fault
from .frozen import Case, find_frozen, frozen_fault, missing
from .ground import Ground, ground_of, works_of
from .model import Action, Exhausted, FirstCut, Fixed, Floor, Frozen, Spare, Transition, What

__all__ = ["Necessity", "spare_fault"]

#: Prices that are named in words.
_NAMED = 4


def spare_fault(transition: Transition, most: int) -> str:
    """Say why the proof that so many GPUs in use at once will not do, is none; nothing if it is.

    Parameters
    ----------
    transition : Transition
        Its `spare` has a proof.
    most : int
    """
    proof = transition.spare.proof
    if isinstance(proof, FirstCut):
        return first_repartition_fault(transition, most, proof)
    start, target = transition.start, transition.target
    ground = ground_of(start, target, transition.floors, works_of(transition))
    if ground is None:
        return "nothing is proved of GPUs that are not cut by MIG, or whose starts are not known"
    if isinstance(proof, Exhausted):
        return exhausted_fault(ground, most, proof)
    return "" if proof is None else frozen_fault(ground, most, proof)


class Necessity:
    """What was proved of how many GPUs are needed on the way.

    Parameters
    ----------
    start, target : Deployment
    floors : Mapping[str, Floor]
    before : int
        The larger of the numbers of GPUs in use before and after.
    places : bool
        Whether the target is to be reached as it stands.

    Attributes
    ----------
    proofs : dict
        By numbers of spare GPUs that will not do.
    """

    def __init__(
        self,
        start: Deployment,
        target: Deployment,
        floors: Mapping[str, Floor],
        before: int,
        *,
        places: bool,
    ) -> None:
        self.start, self.target, self.floors = start, target, floors
        self.before, self.places = before, places
        self.proofs: dict[int, Frozen | Exhausted] = {}

    @cached_property
    def ground(self) -> Ground | None:
        """What the proofs speak of, None where nothing is proved."""
        sides = (*self.start.instances(), *self.target.instances())
        works = {each.work for _, each in sides if each.work is not None}
        return ground_of(self.start, self.target, self.floors, works)

    def look(self, count: int, limits: Limits) -> tuple[Action, ...] | None:
        """Try to prove that so many spare GPUs will not do; return a way if there is one."""
        ground, most = self.ground, self.before + count
        if ground is None:
            return None
        frozen = find_frozen(ground, most, limits, places=self.places)
        if frozen is not None:
            self.proofs[count] = frozen
            return None
        found = reached(ground, most, places=self.places, limits=limits) if most <= GPUS else None
        if found is None:
            return None
        if found.steps is None:
            self.proofs[count] = Exhausted(found.states, self.places)
            return None
        return _as_actions(self.start, self.target, ground, found.steps)

    def spare(self, count: int) -> Spare:
        """Say how many of so many spare GPUs are proved necessary."""
        least = max((each for each in self.proofs if each < count), default=-1) + 1
        if not least:
            return Spare(count)
        return Spare(count, least, self.words(least - 1), (), self.proofs[least - 1])

    def words(self, count: int) -> str:
        """Say why so many spare GPUs will not do."""
        proof, ground = self.proofs[count], self.ground
        assert ground is not None
        if isinstance(proof, Frozen):
            why = _frozen_words(ground, self.before + count, proof)
        else:
            states = f"{sum(proof.states):,}"
            why = f"none of the {states} states that can be reached within the floors is the target"
        return f"with {count} spare GPU{'s' * (count != 1)}: {why}"


def _frozen_words(ground: Ground, most: int, proof: Frozen) -> str:
    """Say what can never begin, or else which instance can never stop, and why."""
    number = {use.work: at for at, use in enumerate(ground.uses)}
    stays, never = (
        frozenset(number[each.work] for each in part) for part in (proof.stays, proof.never)
    )
    wanted = [each for each in proof.never if ground.wanted.get(number[each.work], 0)]
    if wanted:
        chosen = min(wanted, key=_simplicity)
        use = number[chosen.work]
        why = _why(missing(ground, most, Case(use, True, stays, never)), chosen)
        others = _others(len(wanted) - 1, "kind of work", "kinds of work")
        what = f"no {ground.uses[use].profile} of {chosen.work.service} can ever begin"
        return f"{what}: with the first, {why}{others}"
    held = [(site.name, each) for site in ground.sites for each in site.held if each.use in stays]
    goes = {e.use for site in ground.sites for e in site.held - site.wanted}
    first = [each for each in proof.stays if number[each.work] in goes] or proof.stays
    chosen = min(first, key=_simplicity)
    use = number[chosen.work]
    why = _why(missing(ground, most, Case(use, False, stays, never)), chosen)
    name, place = min(each for each in held if each[1].use == use)
    others = _others(len(held) - 1, "instance", "instances")
    return (
        f"{chosen.work.service} on {name} {place.profile}@{place.start} can never stop: without "
        f"it, {why}{others}; beside what stays there is no room for the target"
    )


def _simplicity(said: Fixed) -> tuple[bool, int]:
    return said.prices is None, len(said.prices or ())


def _others(count: int, one: str, several: str) -> str:
    return f", nor can {count} other {one if count == 1 else several}" if count else ""


def _why(covering: Covering | None, said: Fixed) -> str:
    """Say that there is too little room."""
    slots = "every slot that could become free"
    if covering is None or said.prices is None:
        return f"not all floors hold even with {slots}"
    asked = covering.asked(said.prices)
    if not said.prices or asked is None:
        return "nothing could give what is missing of the floors"
    more = f"more than the {shown(covering.worth(said.prices))} that {slots} can hold"
    worth = [f"{name} = {shown(price)}" for (_, name), price in sorted(said.prices.items())]
    if len(worth) == 1 and next(iter(said.prices.values())) == 1:
        (name,) = (name for _, name in said.prices)
        return f"{shown(asked)} x {name} are needed, {more}"
    if len(worth) > _NAMED:
        worth = [*worth[:_NAMED], "..."]
    return f"what is needed comes to {shown(asked)}, {more}, counted as {', '.join(worth)}"


def _as_actions(
    start: Deployment, target: Deployment, ground: Ground, steps: Sequence[Step]
) -> tuple[Action, ...] | None:
    """Write steps as actions, after what does not matter has gone; None if some of that is wanted.

    What is wanted and in no proof (idle instances) stays where it is and would be in the way.
    """
    held: list[dict[tuple[str, int], Instance]] = []
    actions: list[Action] = []
    cards = list(zip(start.gpus(), target.gpus(), strict=True))
    for (card, end), site in zip(cards, ground.sites, strict=True):
        matters = {(place.profile, place.start): place.use for place in site.held}
        mine = {
            (card.gpu.profile(each.profile).name, each.start or 0): each
            for each in card.instances
            if each.is_managed
        }
        wanted = [each for each in end.instances if each.is_managed]
        if any(each.work is None for each in wanted):
            return None
        for place in [place for place in mine if place not in matters]:
            gone = mine.pop(place)
            actions.append(Action(What.DELETE, card.node, card.index, (gone,)))
        held.append(mine)
    for at, (profile, first, use), comes in steps:
        card, end = cards[at]
        if comes:
            work = ground.uses[use].work
            made = Instance(profile, first, work)
            named = (e for e in end.instances if (e.start, e.work) == (first, work))
            made = replace(next(named, made), gpu_instance=None, uuid=None)
            held[at][profile, first] = made
            actions.append(Action(What.CREATE, card.node, card.index, (), (made,)))
        else:
            gone = held[at].pop((profile, first))
            actions.append(Action(What.DELETE, card.node, card.index, (gone,)))
    return tuple(actions)
