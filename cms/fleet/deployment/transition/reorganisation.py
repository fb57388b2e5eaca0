"""From what runs to a plan whose services share GPUs in time.

A GPU under MPS holds processes: one for each share and service. Which batches they run, in which
cycle and with whom they take turns may change at any moment. A share of another size, or a service
that the share does not have yet, is a new process. It is prepared beside those that serve, where
it idles (MPS limits what runs, not what is loaded), and takes over at the end of a cycle: a
`switch` (see `Action`).

Contents are carried to GPUs so that as few processes as possible are prepared, and of these
assignments as many GPUs as possible keep all; a transport problem, exact for the contents as they
are.

References
----------
S. Choi et al., USENIX ATC '22 (arXiv:2109.01611): new partitions are prepared in the background
while the old ones serve. Rebuilt from its description.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ....errors import UnsupportedProblem
from ....solving.solution import Proof
from ...placement.program import Limits, best_transport
from ...serving.plan import Plan
from ..instance import Instance, Mode
from ..model import Deployment
from ..turns import Content, contents_of, takes_turns
from .floors import floors_of
from .goal import TransitionGoal
from .model import Kept, Transition, most_gpus, process_of
from .order_search import SearchOptions
from .planner import Impossible, find_order, finish

_Place = tuple[str, int]


def reorganise(now: Deployment, plan: Plan) -> Transition | Impossible:
    """Find the way from what runs to a plan whose services share GPUs in time.

    Every service keeps the smaller of its old and its new rate at every moment; what a request
    that waits while a GPU switches finds is not promised: its turn may come a cycle later. All
    orders of switches are tried, the most promising first, up to a limit. Where none does, contents
    go to empty GPUs instead, with as few of these as are found to do.

    `now`: Of shares that services take turns in, or empty GPUs. What is another's stays where it
    is, and nothing is put beside it. No switch starts MPS: empty GPUs without it stay empty.

    Returns
    -------
    Transition or Impossible
        A transition has passed `check_transition`. Which GPU has which of the plan's contents at
        its end is decided on the way.

    UnsupportedProblem if what runs is ours and is none of shares that services take turns in; or as
    `contents_of`.

    Examples
    --------
    >>> from cms import solve
    >>> from cms.fleet import OperatingPoint, Service, build_problem, get_gpu
    >>> from cms.fleet.deployment import FleetGpu, FleetNode, Mode
    >>> points = [OperatingPoint("bert", "a100-80gb", "mps:60", 1, b, 100 * b, 10) for b in (4, 8)]
    >>> def plan(rate):
    ...     services = [Service("chat", "bert", rate, 60), Service("search", "bert", 100, 60)]
    ...     serving = build_problem(services, points, sharing="time")
    ...     return Plan(serving, solve(serving.problem, method="mix_first_fit"))
    >>> cards = tuple(FleetGpu("a", index, get_gpu("a100-80gb"), Mode.MPS) for index in range(2))
    >>> fleet = Deployment((FleetNode("a", cards),))
    >>> first = reorganise(fleet, plan(150))
    >>> [len(action.prepared) for action in first.actions]
    [2]
    >>> [len(action.prepared) for action in reorganise(first.target, plan(500)).actions]
    [1]
    """
    contents = contents_of(plan)
    after = assign_contents(now, contents)
    if isinstance(after, Impossible):
        return after
    cards = {(card.node, card.index): card for card in now.gpus()}
    target = replace(now, services=plan.serving.services, rule=None, plan=None).with_gpus(
        {place: cards[place].with_instances(held) for place, held in after.items()}
    )
    floors = floors_of(now, target)
    goal = TransitionGoal(now, target, floors, is_late=False, tool=None)
    room = sum(cards[place].is_empty for place in after) + len(now.used_gpus())
    for allowed in range(most_gpus(now, target), room + 1):
        if best := find_order(goal, allowed, SearchOptions(Limits(), restarts=0)):
            return finish(goal, best, Kept(0, 0, Proof.CHECKED), Limits())
    return Impossible((f"no order of switches keeps the floors on {room} GPUs",), Proof.NONE)


def assign_contents(
    now: Deployment, contents: Mapping[Content, int]
) -> dict[_Place, tuple[Instance, ...]] | Impossible:
    """Say what each GPU that switches can change is to have, so that least is prepared.

    `contents`: See `contents_of`.

    UnsupportedProblem if what runs is ours and is none of shares that services take turns in.
    """
    free = [card for card in now.gpus() if not card.foreign]
    cards = {(c.node, c.index): c for c in free if c.mode is Mode.MPS or not c.is_empty}
    for card in cards.values():
        for each in card.instances:
            if not takes_turns(card, each):
                raise UnsupportedProblem(
                    f"{card.name} has {each.place}, which is no share that services take turns in; "
                    "expected GPUs that are empty or were shared in time"
                )
    worth = {
        (i, j): _worth(card.instances, new)
        for i, card in enumerate(cards.values())
        for j, (gpu, new) in enumerate(contents)
        if card.gpu.key == gpu
    }
    carried = best_transport([1] * len(cards), [*contents.values()], worth)
    if len(carried) < (need := sum(contents.values())):
        why = f"GPUs that the plan takes: {need}; that are there for it: {len(cards)}"
        if more := len(free) - len(cards):
            why += f", and {more} empty and not under MPS, which no switch changes"
        return Impossible((why,), Proof.CHECKED)
    after: dict[_Place, tuple[Instance, ...]] = dict.fromkeys(cards, ())
    places, news = list(cards), [held for _, held in contents]
    return after | {places[i]: news[j] for i, j in carried}


def _worth(old: Sequence[Instance], new: Sequence[Instance]) -> int:
    """What is loaded and stays in use, then whether nothing changes at all."""
    shared = Counter(map(process_of, old)) & Counter(map(process_of, new))
    return 2 * shared.total() + (old == new)
