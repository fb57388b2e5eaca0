"""How a search ends: a transition that has passed its check, or why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ....errors import AlgorithmError
from ....solving.solution import Proof
from ...placement.program import Limits
from ..instance import Instance, StartSource, State
from ..model import Deployment, FleetGpu
from .checking import check_transition
from .model import Action, Floor, Frozen, Kept, Spare, Transition, What
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
    spare: int,
    kept: Kept,
    limits: Limits | None = None,
) -> Transition:
    """Return a transition that has passed the check; one that has not is a defect.

    Within `limits`, if there are any, a proof is looked for that fewer spare GPUs will not do.
    """
    both = {c.name for c in (*start.used_gpus(), *target.used_gpus())}
    borrowed = tuple(sorted({action.name for action in actions if action.adds} - both))
    temporary, _ = temporaries(start, actions)
    done = Transition(
        start,
        target,
        floors,
        tuple(replace(a, is_temporary=at in temporary) for at, a in enumerate(actions)),
        Spare(spare, borrowed=borrowed),
        kept,
    )
    if limits is not None:
        done = replace(done, spare=prove_spare(done, limits))
    faults = check_transition(done)
    if faults:
        raise AlgorithmError("transition", f"it is refused: {'; '.join(map(str, faults[:5]))}")
    return done


def find_end(
    start: Deployment, target: Deployment, actions: Sequence[Action]
) -> tuple[Deployment, int]:
    """Return what is there in the end, and how many instances with work were never interrupted."""
    held = {(c.node, c.index): list(c.instances) for c in start.gpus()}
    modes = {(c.node, c.index): c.mode for c in start.gpus()}
    gone: Counter[tuple[tuple[str, int], Instance]] = Counter()
    for action in actions:
        for each in action.removes:
            held[action.gpu].remove(each)
            gone[action.gpu, each] += 1
        held[action.gpu].extend(action.adds)
        modes[action.gpu] = action.mode or modes[action.gpu]
    kept, cut = 0, {action.gpu for action in actions if action.what is What.REPARTITION}
    cards: dict[tuple[str, int], FleetGpu] = {}
    for card in start.gpus():
        place = card.node, card.index
        for each in card.instances:
            if gone[place, each]:
                gone[place, each] -= 1
            elif each.is_managed and each.work is not None:
                kept += 1
        runs = tuple(
            replace(each, state=State.RUNNING) if each.state is State.STARTING else each
            for each in held[place]
        )
        source = StartSource.OBSERVED if place in cut else card.start_source
        cards[place] = replace(card, instances=runs, mode=modes[place], start_source=source)
    return target.with_gpus(cards), kept
