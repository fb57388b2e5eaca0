"""Instances that are not ours become ours, because the user says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ....errors import InvalidOption
from ....files.numerals import is_whole
from ....values.names import nearest
from ...hardware.catalogue import is_called
from ..instance import Instance, Mode, Work
from ..labels import point_label
from ..model import Deployment, FleetGpu

__all__ = ["adopt", "release"]


def adopt(deployment: Deployment, place: str, doing: str, works: Iterable[Work]) -> Deployment:
    """Say that an instance is ours, and what it does.

    Parameters
    ----------
    deployment : Deployment
    place : str
        ``NODE/GPU:START``; ``NODE/GPU`` where something without a start is alone on the GPU.
    doing : str
        ``SERVICE@POINT``: a point is ``2x8`` (processes x batch) or its whole label,
        ``3g.40gb-2x8``. ``SERVICE`` alone does where only one point fits.
    works : iterable of Work
        What a plan or a deployment knows.

    Raises
    ------
    InvalidOption
        If there is no such place, service or point.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cms.fleet import OperatingPoint, Service, gpu
    >>> from cms.fleet.deployment import FleetNode
    >>> held = Instance("3g.40gb", 4, owner="unknown")
    >>> card = FleetGpu("a", 0, gpu("a100-80gb"), instances=(held,))
    >>> now = Deployment((FleetNode("a", (card,)),), (Service("chat", "bert", 10, 400),))
    >>> work = Work("chat", OperatingPoint("bert", "a100-80gb", "3g.40gb", 2, 8, 100, 20), 80)
    >>> print(*adopt(now, "a/0:4", "chat@2x8", [work]).gpus())
    a/0 a100-80gb: 3g.40gb@4 chat (2p b8, 80 items/s)
    """

    def ours(card: FleetGpu, instance: Instance) -> Instance:
        work = _work(card, instance, doing, works)
        return replace(instance, owner=None, work=work, is_guessed=False)

    return _changed(deployment, place, ours)


def release(deployment: Deployment, place: str) -> Deployment:
    """Say that an instance may go: it is ours, and does nothing that is wanted.

    Raises
    ------
    InvalidOption
        If there is no such place.
    """
    return _changed(
        deployment, place, lambda _, each: replace(each, owner=None, work=None, is_guessed=False)
    )


def _changed(
    deployment: Deployment, place: str, change: Callable[[FleetGpu, Instance], Instance]
) -> Deployment:
    card, at = _find(deployment, place)
    if card.mode is Mode.FIXED:
        raise InvalidOption(f"{place!r}: nothing is planned on {card.name}, whoever uses it")
    instances = list(card.instances)
    instances[at] = change(card, instances[at])
    replaced = replace(card, instances=tuple(instances))
    return deployment.with_gpus({(card.node, card.index): replaced})


def _find(deployment: Deployment, place: str) -> tuple[FleetGpu, int]:
    name, colon, written = place.rpartition(":")
    if not colon:
        name, written = place, ""
    _, slash, index = name.rpartition("/")
    numbers = [index, *([written] if colon else [])]
    if not slash or not all(map(is_whole, numbers)):
        raise InvalidOption(f"{place!r}: expected NODE/GPU:START, for example node-a/3:4")
    cards = {card.name: card for card in deployment.gpus()}
    if name not in cards:
        raise InvalidOption(f"{place!r}: there is no GPU {name!r}{nearest(name, cards)}")
    card = cards[name]
    start = int(written) if colon else None
    found = [at for at, each in enumerate(card.instances) if each.start == start]
    if len(found) != 1:
        there = ", ".join(each.place for each in card.instances) or "nothing"
        what = "nothing" if not found else f"{len(found)} instances without a start"
        raise InvalidOption(f"{place!r}: {what} there; {name} has {there}")
    return card, found[0]


def _work(card: FleetGpu, instance: Instance, doing: str, works: Iterable[Work]) -> Work:
    service, _, point = doing.rpartition("@") if "@" in doing else (doing, "", "")
    every = sorted({*works}, key=lambda work: (work.service, point_label(work)))
    fits = [
        work
        for work in every
        if work.service == service
        and is_called(card.gpu, work.point.device)
        and _profile(card, work.point.profile) == instance.profile
    ]
    where = f"{card.name} {instance.place}"
    if not fits:
        known = sorted({work.service for work in every})
        if service in known:
            raise InvalidOption(f"{doing!r}: no point of {service!r} is of {where}")
        raise InvalidOption(
            f"{doing!r}: no service {service!r} is known{nearest(service, known)}; "
            "give the plan or deployment that has it with --plan"
        )
    labels = {point_label(work): work for work in fits}
    short = {f"{work.point.processes}x{work.point.batch}": work for work in fits}
    chosen = labels.get(point) or short.get(point) or (fits[0] if not point else None)
    if chosen is None or (not point and len(fits) > 1):
        raise InvalidOption(
            f"{doing!r}: expected a point of {where}: "
            f"{', '.join(f'{service}@{each}' for each in short)}"
        )
    return chosen


def _profile(card: FleetGpu, name: str) -> str:
    """The GPU's own name of a profile; shares under MPS have no other."""
    every = [each.name for each in card.gpu.profiles if name in (each.name, *each.other_names)]
    return every[0] if every else name
