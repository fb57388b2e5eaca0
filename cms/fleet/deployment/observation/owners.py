"""Foreign instances become managed ones, because the user says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from ....errors import InvalidOption
from ....values.names import nearest
from ...hardware.catalogue import is_called
from ..instance import Instance, Mode, Work
from ..labels import point_label
from ..model import Deployment, FleetGpu

_PLACE = re.compile(r"(.+/[0-9]{1,9})(?::([0-9]{1,9}))?", re.ASCII)


def adopt(deployment: Deployment, place: str, doing: str, works: Iterable[Work]) -> Deployment:
    """Say that an instance is managed, and which of the works that are known it does.

    A place is ``NODE/GPU:START``, or ``NODE/GPU`` where something without a start is alone on the
    GPU. `doing` is ``SERVICE@POINT``, where a point is ``2x8`` (processes x batch) or its whole
    label, ``3g.40gb-2x8``; ``SERVICE`` alone does where only one point fits.
    """
    return _changed(deployment, place, lambda card, each: _find_work(card, each, doing, works))


def release(deployment: Deployment, place: str) -> Deployment:
    """Say that an instance may be deleted; InvalidOption if there is no such place."""
    return _changed(deployment, place, lambda card, each: None)


def _changed(
    deployment: Deployment, place: str, work_of: Callable[[FleetGpu, Instance], Work | None]
) -> Deployment:
    match = _PLACE.fullmatch(place)
    if match is None:
        raise InvalidOption(f"{place!r}: expected NODE/GPU:START, for example node-a/3:4")
    cards = {card.name: card for card in deployment.gpus()}
    if match[1] not in cards:
        raise InvalidOption(f"{place!r}: there is no GPU {match[1]!r}{nearest(match[1], cards)}")
    card = cards[match[1]]
    start = None if match[2] is None else int(match[2])
    found = [at for at, each in enumerate(card.instances) if each.start == start]
    if len(found) != 1:
        there = ", ".join(each.place for each in card.instances) or "nothing"
        what = "nothing" if not found else f"{len(found)} instances without a start"
        raise InvalidOption(f"{place!r}: {what} there; {card.name} has {there}")
    if card.mode is Mode.FIXED:
        raise InvalidOption(f"{place!r}: nothing is planned on {card.name}, whoever uses it")
    held = list(card.instances)
    work = work_of(card, held[found[0]])
    held[found[0]] = replace(held[found[0]], owner=None, work=work, is_guessed=False)
    replaced = replace(card, instances=tuple(held))
    return deployment.with_gpus({(card.node, card.index): replaced})


def _find_work(card: FleetGpu, instance: Instance, doing: str, works: Iterable[Work]) -> Work:
    service, _, point = doing.rpartition("@") if "@" in doing else (doing, "", "")
    every = sorted({*works}, key=lambda work: (work.service, point_label(work)))
    # shares under MPS have no other name
    names = {other: p.name for p in card.gpu.profiles for other in (p.name, *p.other_names)}
    fits = [
        work
        for work in every
        if work.service == service
        and is_called(card.gpu, work.point.device)
        and names.get(work.point.profile, work.point.profile) == instance.profile
    ]
    where = f"{card.name} {instance.place}"
    known = sorted({work.service for work in every})
    if service not in known:
        raise InvalidOption(
            f"{doing!r}: no service {service!r} is known{nearest(service, known)}; "
            "give the plan or deployment that has it with --plan"
        )
    if not fits:
        raise InvalidOption(f"{doing!r}: no point of {service!r} is of {where}")
    short = {f"{work.point.processes}x{work.point.batch}": work for work in fits}
    labels = {point_label(work): work for work in fits} | short
    if point not in labels and (point or len(fits) > 1):
        points = ", ".join(f"{service}@{each}" for each in short)
        raise InvalidOption(f"{doing!r}: expected a point of {where}: {points}")
    return labels[point] if point else fits[0]
