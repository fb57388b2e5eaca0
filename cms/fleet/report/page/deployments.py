"""A deployment as a page: what runs on which GPU, what each service has, and the plan behind it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ....solving.words import verdict
from ....values.words import count, decimal, percent
from ..canvas import Canvas
from ..deployments import legend
from ..fleet_pictures import draw_deployment
from .parts import Cell, Column, Fact, Grid, Page, Picture, Section
from .plans import plan_sections
from .proofs import recheck

if TYPE_CHECKING:
    from ...deployment.model import Deployment
    from ...serving.rate_curve import RatePoint

__all__ = ["deployment_page", "fleet_section"]

_HATCHED = "grey, finely hatched: free", "hatched: idle", "crossed: another's"


def deployment_page(
    deployment: Deployment, title: str, source: str = "", curve: Sequence[RatePoint] | str = ()
) -> Page:
    """Put a deployment on a page.

    Parameters
    ----------
    deployment : Deployment
        Rechecked.
    title, source, curve
        As of :func:`plan_page`; the curve is of the plan that it realises.
    """
    sections = [fleet_section(deployment, "fleet", "The GPUs")]
    if deployment.services:
        sections.append(_services(deployment))
    if deployment.plan is not None:
        sections += plan_sections(deployment.plan, source, curve)
    else:
        commands = recheck(source or "deployment.json")
        sections.append(Section("proof", "How to recheck it", [commands]))
    return Page(title, str(deployment), list(_facts(deployment)), sections, source)


def fleet_section(deployment: Deployment, name: str, title: str) -> Section:
    """Draw the GPUs of a deployment."""
    canvas = Canvas()
    folded = draw_deployment(canvas, deployment)
    note = legend(folded, *_HATCHED)
    rechecked = (
        "Rechecked before they were drawn: each GPU can be cut so, and each instance stands where "
        "it may."
    )
    drawn = Picture(canvas, f"{title}: {deployment}")
    return Section(name, title, [f"{note[:1].upper()}{note[1:]}. {rechecked}", drawn])


def _facts(deployment: Deployment) -> Iterator[Fact]:
    cards = list(deployment.gpus())
    used = sum(not card.is_empty for card in cards)
    yield Fact("GPUs in use", decimal(used), f"of {decimal(len(cards))} on {_nodes(deployment)}")
    ours = sum(each.work is not None for _, each in deployment.instances())
    every = sum(1 for _ in deployment.instances())
    note = "all serve" if ours == every else f"{decimal(every - ours)} idle or another's"
    yield Fact("Instances", decimal(every), note)
    if deployment.services:
        met = sum(deployment.capacity(s.name) >= s.rate_rps for s in deployment.services)
        every = len(deployment.services)
        said = f"{decimal(met)} of {decimal(every)}"
        yield Fact("Rates met", said, "of the services", "good" if met == every else "bad")
    if deployment.plan is not None:
        answer = deployment.plan.answer
        proved = answer.status == "optimal" and answer.proof == "checked"
        said = verdict(answer, "GPU")
        yield Fact("Its plan", answer.status.replace("_", " "), said, "good" if proved else "fair")


def _nodes(deployment: Deployment) -> str:
    return count(sum(bool(node.gpus) for node in deployment.nodes), "node")


def _services(deployment: Deployment) -> Section:
    counts: dict[str, Counter[str]] = {}
    for _, each in deployment.instances():
        if each.work is not None:
            counts.setdefault(each.work.service, Counter())[each.profile] += 1
    columns = (
        Column("#", number=True), Column("service"), Column("wanted/s", number=True),
        Column("capacity/s", number=True), Column("may grow", number=True),
        Column("limit", number=True), Column("instances", number=True), Column("which", long=True),
    )  # fmt: skip
    rows = []
    for place, service in enumerate(deployment.services):
        capacity, rate = deployment.capacity(service.name), service.rate_rps
        grows = capacity / rate - 1 if rate else None
        own, limit = counts.get(service.name, Counter()), service.latency_limit_ms
        rows.append(
            [
                Cell("", place + 1, place),
                Cell(service.name),
                Cell(decimal(rate), rate),
                Cell(decimal(capacity), capacity, tone="" if capacity >= rate else "bad"),
                Cell(
                    "-" if grows is None else percent(grows), math.nan if grows is None else grows
                ),
                Cell("none", math.nan) if limit is None else Cell(f"{decimal(limit)} ms", limit),
                Cell(decimal(own.total()), own.total()),
                Cell(", ".join(f"{n} x {name}" for name, n in sorted(own.items())) or "none"),
            ]
        )
    return Section("services", "Services", [Grid("Services", columns, rows)])
