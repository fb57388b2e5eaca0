"""What deployments say and files of tools do not: sentences, and none where nothing is lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ....values.numbers import shown
from ..instance import Instance, Mode, State
from ..model import Deployment, FleetGpu
from ..turns import shares_of

__all__ = [
    "about_fixed",
    "about_mps",
    "about_nodes",
    "about_others",
    "about_starts",
    "about_states",
    "about_work",
    "some",
]


def some(names: Collection[str]) -> str:
    """List a few names, and say how many more there are.

    Examples
    --------
    >>> some(["a", "b", "c", "d", "e", "f", "g"])
    'a, b, c, d, e and 2 more'
    """
    first = list(names)[:5]
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(first) + more


def _named(found: Iterable[tuple[FleetGpu, Instance]]) -> list[str]:
    return [f"{card.name} {each}" for card, each in found]


def about_starts(deployment: Deployment) -> Iterator[str]:
    """Starts, where counts leave a choice."""
    open_ones = [
        card.name
        for card in deployment.gpus()
        if card.mode is Mode.MIG and len(card.gpu.layouts_of(card.counts)) > 1
    ]
    if open_ones:
        gpus = "1 GPU" if len(open_ones) == 1 else f"{len(open_ones)} GPUs"
        yield (
            f"Starts: the driver chooses them; {gpus} can be cut in several ways with these "
            f"counts: {some(open_ones)}."
        )


def about_work(deployment: Deployment) -> Iterator[str]:
    """What instances do, and how much of a service's traffic each should get."""
    working = [(card, each) for card, each in deployment.instances() if each.work is not None]
    supplies: dict[str, set[str]] = {}
    for _, each in working:
        if each.work is not None:
            supplies.setdefault(each.work.service, set()).add(shown(each.work.supply_rps))
    if working:
        yield (
            f"Services: what {len(working)} of the instances do ({some(sorted(supplies))}): "
            "models, processes, batches, capacities and the queueing rule."
        )
    uneven = sorted(name for name, found in supplies.items() if len(found) > 1)
    if uneven:
        yield (
            "Traffic: how much of it each instance is to get; instances of different capacity "
            f"serve {some(uneven)}."
        )
    if deployment.services and not working:
        yield f"Services: {some([service.name for service in deployment.services])}."
    if deployment.plan is not None:
        yield "The plan that this realises, and its proof."


def about_mps(deployment: Deployment, instead: str) -> Iterator[str]:
    """Shares under MPS; `instead` says what there is in their place. And turns, which none has."""
    shared = [card for card in deployment.gpus() if card.mode is Mode.MPS]
    if shared:
        unequal = [card.name for card in shared if len(set(card.counts)) > 1]
        sizes = f" (they are unequal on {some(unequal)})" if unequal else ""
        yield f"Shares under MPS of {some([card.name for card in shared])}{sizes}: {instead}"
    turns = [
        f"{card.name} {place}"
        for card in shared
        for place, held in shares_of(card).items()
        if len(held) > 1
    ]
    if turns:
        shares = "1 share" if len(turns) == 1 else f"{len(turns)} shares"
        yield (
            f"Turns: that services run in turn in {shares} ({some(turns)}), a batch of each a "
            "frame; here each of them has all of its share to itself, at the same time as the "
            "others, and what they promise does not hold unless a server of yours has them take "
            "turns."
        )


def about_others(deployment: Deployment, what: str) -> Iterator[str]:
    """Instances that are not ours, but for fixed GPUs'; `what` says what happens to them."""
    others = [
        (card, each)
        for card, each in deployment.instances()
        if not each.is_ours and card.mode is not Mode.FIXED
    ]
    if others:
        yield f"Owners: whose the instances are that are not ours; {what}: {some(_named(others))}."


def about_fixed(deployment: Deployment, what: str) -> Iterator[str]:
    """GPUs on which nothing is planned; `what` says what that means for them."""
    fixed = [card.name for card in deployment.gpus() if card.mode is Mode.FIXED]
    if fixed:
        yield f"Fixed GPUs, on which nothing is planned ({some(fixed)}): {what}."


def about_states(deployment: Deployment) -> Iterator[str]:
    """States other than running."""
    found = [(card, each) for card, each in deployment.instances() if each.state != State.RUNNING]
    if found:
        yield (
            "States: every instance is written as a whole one that runs, also "
            f"{some(_named(found))}."
        )


def about_nodes(deployment: Deployment) -> Iterator[str]:
    """Facts about nodes that no file of a tool repeats."""
    if deployment.nodes:
        yield (
            "Nodes: their types of GPU, drivers, labels, when and from what they were observed, "
            "and the numbers of instances; reading these files back takes a table of nodes."
        )
