"""Which GPU is to have which contents of a plan whose services share GPUs in time.

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

from ....errors import UnsupportedProblem
from ....solving.solution import Proof
from ...placement.program import best_transport
from ..instance import Instance, Mode
from ..model import Deployment
from ..turns import Content, takes_turns
from .outcome import Impossible

__all__ = ["assign_contents"]

_Place = tuple[str, int]


def assign_contents(
    now: Deployment, contents: Mapping[Content, int]
) -> dict[_Place, tuple[Instance, ...]] | Impossible:
    """Say what each GPU that switches can change is to have, so that least is prepared.

    `contents`: See `contents_of`.

    UnsupportedProblem if what runs is ours and is none of shares that services take turns in.
    """
    free = [card for card in now.gpus() if not card.foreign]
    cards = {(c.node, c.index): c for c in free if c.mode is Mode.MPS or not c.is_empty}
    olds: dict[Content, list[_Place]] = {}
    for place, card in cards.items():
        for each in card.instances:
            if not takes_turns(card, each):
                raise UnsupportedProblem(
                    f"{card.name} has {each.place}, which is no share that services take turns in; "
                    "expected GPUs that are empty or were shared in time"
                )
        olds.setdefault((card.gpu.key, card.instances), []).append(place)
    sides = list(olds), list(contents)
    worth = {
        (i, j): _worth(old, new)
        for i, old in enumerate(sides[0])
        for j, new in enumerate(sides[1])
        if old[0] == new[0]
    }
    carried = best_transport([len(places) for places in olds.values()], [*contents.values()], worth)
    if sum(carried.values()) < sum(contents.values()):
        need, have = sum(contents.values()), len(cards)
        why = f"GPUs that the plan takes: {need}; that are there for it: {have}"
        if more := len(free) - have:
            why += f", and {more} empty and not under MPS, which no switch changes"
        return Impossible((why,), Proof.CHECKED)
    after: dict[_Place, tuple[Instance, ...]] = dict.fromkeys(cards, ())
    left = {at: list(olds[old]) for at, old in enumerate(sides[0])}
    for (i, j), number in sorted(carried.items()):
        for _ in range(number):
            after[left[i].pop(0)] = sides[1][j][1]
    return after


def _worth(old: Content, new: Content) -> int:
    """What is loaded and stays in use, then whether nothing changes at all."""
    shared = _processes(old[1]) & _processes(new[1])
    return 2 * shared.total() + (old[1] == new[1])


def _processes(held: Sequence[Instance]) -> Counter[tuple[str, str]]:
    return Counter((each.profile, each.work.service) for each in held if each.work is not None)
