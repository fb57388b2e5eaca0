"""Compaction: what runs, on fewer GPUs or nodes, with a limit on the instances that move."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

from ...errors import CmsError, InvalidOption, InvalidProblem
from ...solving.solution import Proof
from ..serving.queueing import DEFAULT_RULE, queueing_rule
from .checking import has_our_work, require_possible
from .keeping import Demand, KeepingProgram
from .keeping_bound import best_prices
from .model import Deployment
from .node_bound import nodes_are_too_few
from .placed import checked_placement
from .programs import Limits
from .realising import realise
from .spots import Spot
from .wanted import DesiredState
from .wishes import PlacementConstraints, demand_of, keeping_program, placement_constraints

__all__ = ["Compacted", "compact"]


@dataclass(frozen=True)
class Compacted:
    """What runs, put together.

    Attributes
    ----------
    deployment : Deployment
        The same instances on fewer GPUs; a transition leads there.
    restarts : int
        Instances that start elsewhere; the others go on where they are.
    gpus : int
        GPUs with managed work; GPUs with foreign instances, never free, are left out.
    least_gpus : int
        With so few restarts no fewer will do.
    nodes : int
        Nodes with managed work and without foreign instances.
    free : "gpus" or "nodes"
        Of what there were to be the fewest.
    proof : Proof
        Of `gpus`, or of `nodes` where these come first, being the least: ``CHECKED`` where prices
        prove it, ``SOLVER`` where a solver says so, ``NONE`` where time was up.
    freed_gpus, freed_nodes : tuple of str
        Empty now, and not before.
    """

    deployment: Deployment
    restarts: int
    gpus: int
    least_gpus: int
    nodes: int
    free: Literal["gpus", "nodes"]
    proof: Proof
    freed_gpus: tuple[str, ...]
    freed_nodes: tuple[str, ...]

    def __str__(self) -> str:
        is_gpus = self.free == "gpus"
        least = f", at least {self.least_gpus}" if is_gpus else ""
        word = {
            Proof.CHECKED: "the fewest, checked",
            Proof.SOLVER: f"the best on a solver's word{least}",
            Proof.NONE: least.removeprefix(", ") or "not proved the fewest",
        }[self.proof]
        gpus, nodes = _counted(self.gpus, "GPU"), _counted(self.nodes, "node")
        what = f"{gpus} ({word})" if is_gpus else f"{nodes} ({word}), {gpus}"
        freed = f"{_counted(len(self.freed_gpus), 'GPU')} and "
        freed += _counted(len(self.freed_nodes), "node")
        return f"{what} after {_counted(self.restarts, 'restart')}; {freed} come free"


def compact(
    now: Deployment,
    *,
    max_restarts: int | None = None,
    free: Literal["gpus", "nodes"] = "gpus",
    wishes: PlacementConstraints | None = None,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
) -> Compacted:
    """Put what runs on as few GPUs as possible.

    `max_restarts`: Number of instances that may move; None: any. `free`: What is to come free
    first: then the other, then the fewest restarts. `wishes`: None: those in the columns of the
    services. `time_limit`: Seconds.

    InvalidOption if `max_restarts` is negative, or `free` is neither. InvalidProblem if the
    deployment cannot be as it is written, or what runs cannot keep the wishes. CmsError if time was
    up before anything was found.

    Examples
    --------
    >>> from cms.fleet import OperatingPoint, Service, get_gpu
    >>> from cms.fleet.deployment import FleetGpu, FleetNode, Instance, Work
    >>> from cms.fleet.serving import RULES
    >>> point = OperatingPoint("bert", "a30-24gb", "2g.12gb", 1, 4, 10, 100)
    >>> half = Instance("2g.12gb", 0, Work("chat", point, 10))
    >>> cards = tuple(FleetGpu("a", i, get_gpu("a30-24gb"), instances=(half,)) for i in range(4))
    >>> services = (Service("chat", "bert", 40, 1000),)
    >>> now = Deployment((FleetNode("a", cards),), services, RULES["half"])
    >>> for most in range(3):
    ...     print(compact(now, max_restarts=most))
    4 GPUs (the fewest, checked) after 0 restarts; 0 GPUs and 0 nodes come free
    3 GPUs (the fewest, checked) after 1 restart; 1 GPU and 0 nodes come free
    2 GPUs (the fewest, checked) after 2 restarts; 2 GPUs and 0 nodes come free
    """
    if max_restarts is not None and max_restarts < 0:
        raise InvalidOption(f"max_restarts is {max_restarts}; expected 0 or more")
    if free not in ("gpus", "nodes"):
        raise InvalidOption(f"free is {free!r}; expected 'gpus' or 'nodes'")
    limits = Limits(inf if time_limit is None else time_limit, cancel)
    wishes = placement_constraints(now.services) if wishes is None else wishes
    wanted = _promised(now)
    demand = demand_of(wanted, wishes)
    if not wanted.counts:
        return Compacted(now, 0, 0, 0, 0, free, Proof.CHECKED, (), ())
    running = sum(wanted.counts.values())
    least_kept = 0 if max_restarts is None else max(0, running - max_restarts)
    keeping = keeping_program(wanted, now, wishes, demand)
    spots = keeping.spots
    keeping.program.at_least({v: 1 for k in keeping.k for v in k.values()}, least_kept)
    ended = True
    for aim in (_gpus, _nodes) if free == "gpus" else (_nodes, _gpus):
        ended &= _fewest(keeping, aim(keeping), limits)
    chosen, _ = keeping.solve(limits)
    if chosen is None:
        raise CmsError("no placement was found in time; expected a longer time limit")
    done = now.with_gpus(realise(now, spots, demand, chosen))
    kept = chosen.most_kept
    placed = checked_placement(
        done, now, wanted, kept, (running, Proof.NONE), {}, Proof.NONE, {}, wishes
    )
    told = _told(now, placed.deployment, running - kept)
    least, is_proved = _least(spots, demand, least_kept, told.gpus, limits)
    if free == "nodes":
        is_proved = not told.nodes or nodes_are_too_few(
            spots, demand, least_kept, told.nodes - 1, limits
        )
    proof = Proof.CHECKED if is_proved else Proof.SOLVER if ended else Proof.NONE
    return replace(told, least_gpus=least, free=free, proof=proof)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _promised(now: Deployment) -> DesiredState:
    """Ask for what runs, no more."""
    require_possible(now)
    counts = dict(sorted(now.kinds().items(), key=lambda item: item[0].order))
    there = Counter(card.gpu.key for card in now.gpus())
    # supplies are counted already: whatever the rule, it is not asked again
    rule = now.rule or queueing_rule(DEFAULT_RULE)
    return DesiredState(counts, dict(sorted(there.items())), now.devices, now.services, rule)


def _fewest(keeping: KeepingProgram, terms: dict[int, int], limits: Limits) -> bool:
    """Make a sum least and hold it; returns whether the solver came to its end."""
    if not terms:
        return True
    found = keeping.program.maximise({v: -n for v, n in terms.items()}, limits)
    if found.values is None and found.ended:
        raise InvalidProblem(
            "what runs cannot keep the wishes for so few restarts; expected more, or fewer wishes"
        )
    if found.values is None:
        raise CmsError("no placement was found in time; expected a longer time limit")
    keeping.program.at_most(terms, sum(n * found.values[v] for v, n in terms.items()))
    return found.ended


def _gpus(keeping: KeepingProgram) -> dict[int, int]:
    """Count the GPUs that would be free without our work."""
    return {v: 1 for y in keeping.y for (s, _), v in y.items() if not _is_pinned(keeping.spots[s])}


def _nodes(keeping: KeepingProgram) -> dict[int, int]:
    """Count the nodes that would be."""
    held = {card.node for spot in keeping.spots if _is_pinned(spot) for card in spot.cards}
    used, _ = keeping.count_nodes()
    return {v: 1 for name, v in used.items() if name not in held}


def _is_pinned(spot: Spot) -> bool:
    return bool(spot.cards[0].foreign)


def _told(now: Deployment, done: Deployment, restarts: int) -> Compacted:
    pairs = list(zip(now.gpus(), done.gpus(), strict=True))
    used = [after for _, after in pairs if has_our_work(after) and not after.foreign]
    freed = tuple(b.name for b, after in pairs if after.is_empty and not b.is_empty)
    nodes = tuple(
        after.name
        for before, after in zip(now.nodes, done.nodes, strict=True)
        if all(card.is_empty for card in after.gpus) and not all(c.is_empty for c in before.gpus)
    )
    held = {card.node for _, card in pairs if card.foreign}
    own = {card.node for _, card in pairs if has_our_work(card)} - held
    return Compacted(
        done, restarts, len(used), 0, len(own), "gpus", Proof.NONE, freed, nodes
    )  # fmt: skip


def _least(
    spots: Sequence[Spot], demand: Demand, least_kept: int, used: int, limits: Limits
) -> tuple[int, bool]:
    """Return GPUs that are needed by prices, and whether these are all that are used."""
    keys = {spot.gpu.key for spot in spots}
    if used == 0:
        return 0, True
    needed = 0
    for key in sorted(keys):  # whatever may move
        found = best_prices(spots, demand, limits, gpus=key)
        mine = sum(len(spot.cards) for spot in spots if _is_pinned(spot) and spot.gpu.key == key)
        needed += 0 if found is None else max(0, found[1] - mine)
    if needed < used and len(keys) == 1:
        (key,) = keys
        pinned = sum(len(spot.cards) for spot in spots if _is_pinned(spot))
        fewer = replace(demand, gpus={key: used - 1 + pinned})
        found = best_prices(spots, fewer, limits)
        if found is not None and found[1] < least_kept:
            needed = used
    return needed, needed == used
