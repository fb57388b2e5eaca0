"""The way back: every action undone, in reverse order.

It visits the same states, so it keeps the same floors with the same spare GPUs; what waits for what
is worked out anew from the reversed sequence.
"""

from __future__ import annotations

from dataclasses import replace

from ....solving.solution import Proof
from ..instance import State
from ..model import Deployment
from ..recounting import outdated
from .kept import in_common
from .model import Action, Kept, Transition, What, count_kept
from .order import most_in_use, ordered
from .outcome import check_result, find_end

__all__ = ["reversal"]

_INVERSE = {What.CREATE: What.DELETE, What.DELETE: What.CREATE}


def reversal(transition: Transition) -> Transition:
    """Return the transition back, which has passed `check_transition` as well.

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
    target = find_end(start, _as_it_was(transition), back)
    most = most_in_use(start, back)
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
