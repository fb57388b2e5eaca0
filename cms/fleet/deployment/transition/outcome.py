"""How a search ends: a transition that has passed its check, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ....errors import AlgorithmError
from ....solving.solution import Proof
from ...placement.program import Limits
from ..instance import StartSource, State
from ..model import Deployment
from .checking import check_transition
from .model import Action, Floor, Frozen, Kept, Spare, Transition, What, most_gpus
from .necessity import prove_spare
from .order import temporaries

__all__ = ["Impossible", "check_result", "find_end"]


@dataclass(frozen=True)
class Impossible:
    """There is no transition, or none was found.

    `proof`: ``CHECKED``: the reasons prove it. ``SOLVER``: a solver says so. ``NONE``: none was
    found, and there may be one. `necessity`: What proves that the GPUs that may be used are too
    few, if that is why.
    """

    reasons: tuple[str, ...]
    proof: Proof
    necessity: Frozen | None = None

    def __str__(self) -> str:
        what = "no transition was found" if self.proof is Proof.NONE else "there is no transition"
        return f"{what}: {'; '.join(self.reasons)}"


def check_result(
    start: Deployment,
    target: Deployment,
    floors: Mapping[str, Floor],
    actions: Sequence[Action],
    gpus: int,
    kept: Kept,
    limits: Limits | None = None,
) -> Transition:
    """Return a transition that has passed the check; one that has not is a defect.

    `gpus`: In use at some moment, and no more at any. Within `limits`, if there are any, a proof is
    looked for that fewer spare GPUs will not do.
    """
    both = {c.name for c in (*start.used_gpus(), *target.used_gpus())}
    borrowed = tuple(sorted({action.name for action in actions if action.adds} - both))
    temporary, _ = temporaries(start, actions)
    actions = tuple(replace(a, is_temporary=at in temporary) for at, a in enumerate(actions))
    lent = Spare(gpus - most_gpus(start, target), borrowed=borrowed)
    done = Transition(start, target, floors, actions, lent, kept)
    if limits is not None:
        done = replace(done, spare=prove_spare(done, limits))
    faults = check_transition(done)
    if faults:
        raise AlgorithmError("transition", f"it is refused: {'; '.join(map(str, faults[:5]))}")
    return done


def find_end(start: Deployment, target: Deployment, actions: Sequence[Action]) -> Deployment:
    """Return what is there in the end."""
    cards = {(card.node, card.index): card for card in start.gpus()}
    held = {place: list(card.instances) for place, card in cards.items()}
    for action in actions:
        place = action.gpu
        for each in action.removes:
            held[place].remove(each)
        held[place].extend(action.adds)
        cards[place] = replace(cards[place], mode=action.mode or cards[place].mode)
        if action.what is What.REPARTITION:
            cards[place] = replace(cards[place], start_source=StartSource.OBSERVED)
    for place, own in held.items():
        runs = (
            replace(each, state=State.RUNNING) if each.state is State.STARTING else each
            for each in own
        )
        cards[place] = replace(cards[place], instances=tuple(runs))
    return target.with_gpus(cards)
