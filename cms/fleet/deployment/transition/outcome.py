"""How a search ends: a transition that has passed its check and has a way back, or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ....errors import AlgorithmError
from ....solving.solution import Proof
from ...placement.program import Limits
from ..instance import State
from ..model import Deployment
from ..recounting import outdated
from .checking import check_transition
from .model import Action, Floor, Frozen, Kept, Spare, Transition, What, count_kept, most_gpus
from .necessity import in_common, prove_spare
from .waits import find_end, list_uses, most_in_use, ordered, temporaries

_INVERSE = {What.CREATE: What.DELETE, What.DELETE: What.CREATE}


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


def reversal(transition: Transition) -> Transition:
    """Return the transition back, which has passed `check_transition` as well.

    Every action is undone, in reverse order. It visits the same states, so it keeps the same floors
    with the same spare GPUs; what waits for what is worked out anew.

    Returns
    -------
    Transition
        Its target is the start again, but that nothing lacks a compute instance, starting or
        draining there: what was so and has gone is not brought back. A service asks for no more
        than it had.

    Examples
    --------
    >>> from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment.transition import transition
    >>> card = FleetGpu("a", 0, get_gpu("a100-80gb"), instances=(Instance("3g.40gb", 0),))
    >>> now = Deployment((FleetNode("a", (card,)),))
    >>> then = now.with_gpus({("a", 0): card.with_instances([Instance("4g.40gb", 0)])})
    >>> print(*reversal(transition(now, then)).actions, sep="\\n")
    delete on a/0: 4g.40gb@0 idle
    create on a/0: 3g.40gb@0 idle
    """
    modes = {(card.node, card.index): card.mode for card in transition.start.gpus()}
    back: list[Action] = []
    for action in transition.actions:
        mode = modes[action.gpu] if action.mode is not None else None
        modes[action.gpu] = action.mode or modes[action.gpu]
        adds = tuple(
            replace(each, gpu_instance=None, uuid=None)
            for each in action.removes
            if each.state is State.RUNNING
        )
        if action.removes and not (adds or action.adds or mode):
            continue
        what = _INVERSE.get(action.what, action.what)
        if action.removes and not adds and what is not What.REPARTITION:
            what = What.DELETE
        back.append(replace(action, what=what, removes=action.adds, adds=adds, after=(), mode=mode))
    back.reverse()
    start = transition.target
    target = _as_it_was(transition).with_gpus(find_end(start, back))
    most = most_in_use(list_uses(start, back))
    actions = ordered(start, back, transition.floors, most)
    both = in_common(start, target, places=True)
    kept = Kept(count_kept(start, back), both, Proof.CHECKED, places=True)
    return check_result(start, target, transition.floors, actions, most, kept)


def _as_it_was(transition: Transition) -> Deployment:
    """Ask for no more than there was: a way back need not lead to what had been asked for.

    Nor within the limits that had been: what comes on the way was counted by the new ones. Only
    where these do not admit what is to run again, it is the old ones that do.
    """
    start = transition.start
    new = {each.name: each for each in transition.target.services}
    old = {work.service for work in outdated(start, transition.target)}
    services = tuple(
        replace(
            each if each.name in old else new.get(each.name, each),
            rate_rps=min(each.rate_rps, start.capacity(each.name)),
        )
        for each in start.services
    )
    return replace(start, services=services)
