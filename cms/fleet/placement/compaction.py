"""Compaction: what runs, on fewer GPUs or nodes, with a limit on the instances that move."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, replace
from typing import Literal

from ...errors import CmsError, InvalidOption, InvalidProblem
from ...solving.solution import Proof
from ...values.words import count
from ..deployment.checking import has_our_work, require_possible
from ..deployment.model import Deployment
from ..deployment.wanted import DesiredState
from .constraint_rows import build_demand, build_model
from .constraints import PlacementConstraints, placement_constraints
from .placement import TOO_LATE
from .placement_result import check_placement
from .program import Limits
from .realisation import realise


@dataclass(frozen=True)
class Compacted:
    """What runs, put together."""

    deployment: Deployment  #: the same instances on fewer GPUs; a transition leads there
    restarts: int  #: instances that start elsewhere; the others go on where they are
    gpus: int  #: GPUs with managed work and nothing foreign, which would never be free
    least_gpus: int  #: with so few restarts no fewer will do
    nodes: int  #: nodes with managed work and nothing foreign
    free: Literal["gpus", "nodes"]  #: of what there were to be the fewest
    #: Of `gpus`, or of `nodes` where these come first, being the least: ``CHECKED`` where prices
    #: prove it, ``SOLVER`` where a solver says so, ``NONE`` where time was up.
    proof: Proof
    freed_gpus: tuple[str, ...]  #: empty now, and not before
    freed_nodes: tuple[str, ...]

    def __str__(self) -> str:
        is_gpus = self.free == "gpus"
        least = f", at least {self.least_gpus}" if is_gpus else ""
        word = {
            Proof.CHECKED: "the fewest, checked",
            Proof.SOLVER: f"the best on a solver's word{least}",
            Proof.NONE: least.removeprefix(", ") or "not proved the fewest",
        }[self.proof]
        gpus, nodes = count(self.gpus, "GPU"), count(self.nodes, "node")
        what = f"{gpus} ({word})" if is_gpus else f"{nodes} ({word}), {gpus}"
        freed = f"{count(len(self.freed_gpus), 'GPU')} and "
        freed += count(len(self.freed_nodes), "node")
        return f"{what} after {count(self.restarts, 'restart')}; {freed} come free"


def compact(
    now: Deployment,
    *,
    max_restarts: int | None = None,
    free: Literal["gpus", "nodes"] = "gpus",
    constraints: PlacementConstraints | None = None,
    time_limit: float | None = None,
    cancel: threading.Event | None = None,
) -> Compacted:
    """Put what runs on as few GPUs as possible.

    `max_restarts`: Number of instances that may move; None: any. `free`: What is to come free
    first: then the other, then the fewest restarts. `constraints`: None: those in the columns of
    the services. `time_limit`: Seconds.

    InvalidOption if `max_restarts` is negative, or `free` is neither. InvalidProblem if the
    deployment is inconsistent, or what runs cannot satisfy the constraints. CmsError if time was up
    before anything was found.

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
    limits = Limits(time_limit, cancel)
    constraints = placement_constraints(now.services) if constraints is None else constraints
    require_possible(now)
    kinds = dict(sorted(now.kinds().items(), key=lambda item: item[0].order))
    if not kinds:
        return Compacted(now, 0, 0, 0, 0, free, Proof.CHECKED, (), ())
    gpus = dict(sorted(Counter(card.gpu.key for card in now.gpus()).items()))
    wanted = DesiredState(kinds, gpus, now.devices, now.services, now.rule, routing=now.routing)
    demand = build_demand(wanted, constraints)
    same = tuple(group._replace(can_grow=False) for group in demand.groups)
    running = sum(kinds.values())
    model = build_model(replace(demand, groups=same), now, constraints)
    model.program.at_least(model.kept, 0 if max_restarts is None else running - max_restarts)
    held = {card.node for card in now.gpus() if card.foreign}  # never free
    is_free = [not group.members[0].foreign for group in model.groups]
    aims = [
        ("free gpus", {v: -1 for y in model.y for (s, _), v in y.items() if is_free[s]}),
        ("free nodes", {v: -1 for name, v in model.nodes[0].items() if name not in held}),
    ]
    best: list[int] | None = None
    for name, terms in (*(aims if free == "gpus" else aims[::-1]), ("kept", model.kept)):
        best = model.pursue(name, terms, limits, best)
        if best is None and model.has_ended:
            what = "what runs cannot satisfy the constraints for so few restarts"
            raise InvalidProblem(f"{what}; expected more, or fewer constraints")
    if best is None:
        raise CmsError(TOO_LATE)
    bound, proof = model.prove(f"free {free}", limits)
    decision = model.finish(limits, best)
    done, kept = now.with_gpus(realise(now, model, decision)), model.kept_in(decision.values)
    check_placement(done, wanted, now, constraints, kept, running, is_enough=False)
    pairs = list(zip(now.gpus(), done.gpus(), strict=True))
    freed = tuple(after.name for b, after in pairs if after.is_empty and not b.is_empty)
    busy, left = ({card.node for card in side.used_gpus()} for side in (now, done))
    at_work = [card for card in done.gpus() if has_our_work(card)]
    return Compacted(
        done, running - kept, sum(not card.foreign for card in at_work),
        -bound if free == "gpus" else 0, len({card.node for card in at_work} - held), free, proof,
        freed, tuple(node.name for node in now.nodes if node.name in busy - left),
    )  # fmt: skip
