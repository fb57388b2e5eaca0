"""Whether a deployment can be as it is written, and gives every service what it asks for.

Placement is judged by the numbers of the profiles themselves (starts, slices, maxima), not by the
enumeration that plans are made from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations

from ...errors import InvalidOption, InvalidProblem
from ...schedule.faults import Violation
from ...values.numbers import shown
from ..hardware import MPS_CLIENTS, Profile
from ..serving.measurements import is_measured_on
from ..serving.operating_point import mps_share
from ..serving.service import Service
from .instance import WHOLE, Instance, Mode, StartSource
from .model import Deployment, FleetGpu, FleetNode
from .turns import turn_faults
from .wanted import DesiredState


def check_deployment(
    deployment: Deployment, wanted: DesiredState | None = None
) -> tuple[Violation, ...]:
    """Say all that is wrong with a deployment, exactly.

    `wanted`: What it is to realise; its counts are then compared, and its number of GPUs.

    Returns
    -------
    tuple of Violation
        In the order of nodes, GPUs and services; empty if it is valid. The kinds are "profile",
        "start", "overlap", "maximum", "compute", "media", "share", "turn", "mode", "driver",
        "index", "uuid", "point", "capacity", "count" and "gpus".

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import FleetGpu, FleetNode, Instance
    >>> two = (Instance("3g.40gb", 0), Instance("4g.40gb", 0))
    >>> card = FleetGpu("node-a", 0, get_gpu("a100-80gb"), instances=two)
    >>> print(*check_deployment(Deployment((FleetNode("node-a", (card,)),))), sep="\\n")
    node-a/0 has 3g.40gb@0 and 4g.40gb@0 on memory slice 0, needs a slice for each
    """
    found: list[Violation] = []
    for node in deployment.nodes:
        for index, n in Counter(card.index for card in node.gpus).items():
            if n > 1:
                found.append(Violation("index", node.name, f"{n} GPUs {index}", "one of a number"))
        for card in node.gpus:
            found += check_gpu(card)
            found += unable_to_run(node.driver, card, deployment.services)
            found += turn_faults(card, deployment.services)
    found += _uuids(deployment)
    found += _capacities(deployment)
    if wanted is not None:
        found += _counts(deployment, wanted)
    return tuple(found)


def find_impossible(fleet: Deployment) -> str:
    """Say why a deployment cannot be as it is written, whatever it supplies; empty if it can."""
    faults = [str(fault) for fault in check_deployment(fleet) if fault.kind != "capacity"]
    more = f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""
    return "".join(faults[:1]) + more


def require_possible(fleet: Deployment) -> None:
    """Refuse a deployment that cannot be as it is written, whatever it supplies."""
    if why := find_impossible(fleet):
        raise InvalidProblem(f"the fleet cannot be as it is written: {why}")


def check_gpu(card: FleetGpu) -> tuple[Violation, ...]:
    """Say what is wrong with one GPU; see `check_deployment`."""
    checks = {Mode.MIG: _mig, Mode.FIXED: _fixed, Mode.MPS: _shares, Mode.WHOLE: _whole}
    return tuple(checks[card.mode](card))


def _mig(card: FleetGpu) -> Iterator[Violation]:
    known: list[tuple[Instance, Profile]] = []
    for each in card.instances:
        try:
            known.append((each, card.gpu.profile(each.profile)))
        except InvalidOption as fault:
            yield Violation("profile", card.name, each.place, f"a profile of the GPU: {fault}")
    unknown: Counter[str] = Counter()
    layout: list[tuple[str, int]] = []
    taken: list[tuple[Instance, set[int]]] = []
    for each, profile in known:
        if each.start is None:
            unknown[profile.name] += 1
            if card.start_source is not StartSource.UNKNOWN:
                yield Violation("start", card.name, f"{each.place} without a start", "its start")
            continue
        layout.append((profile.name, each.start))
        taken.append((each, {*range(each.start, each.start + profile.memory)}))
        end = each.start + profile.memory
        if each.start not in profile.starts or end > card.gpu.memory_slices:
            starts = ", ".join(map(str, profile.starts))
            yield Violation("start", card.name, each.place, f"a start among {starts}")
    for (one, its), (other, theirs) in combinations(taken, 2):
        if shared := its & theirs:
            has = f"{one.place} and {other.place} on memory slice {min(shared)}"
            yield Violation("overlap", card.name, has, "a slice for each")
    sums = list(_sums(card, [profile for _, profile in known]))
    yield from sums
    beside = unknown and not sums and card.gpu.is_layout(layout)
    if beside and (why := card.gpu.why_not(unknown, around=layout)):
        yield Violation("start", card.name, why, "starts that go together")


def _sums(card: FleetGpu, profiles: list[Profile]) -> Iterator[Violation]:
    gpu = card.gpu
    for name, count in Counter(profile.name for profile in profiles).items():
        if count > (most := gpu.profile(name).max):
            yield Violation("maximum", card.name, f"{count} x {name}", f"at most {most}")
    # memory says something only where starts are not known
    for kind, most in (("compute", gpu.compute_slices), ("memory", gpu.memory_slices)):
        if (used := sum(getattr(profile, kind) for profile in profiles)) > most:
            yield Violation(kind, card.name, f"{used} {kind} slices in use", f"at most {most}")
    media = [profile.name for profile in profiles if profile.has_media_engines]
    if len(media) > 1:
        has = f"media engines in {' and '.join(media)}"
        yield Violation("media", card.name, has, "at most one instance with them")


def _shares(card: FleetGpu) -> Iterator[Violation]:
    total = 0
    places: dict[tuple[int, int], str] = {}
    for each in card.instances:
        share = mps_share(each.profile)
        if share is None:
            yield Violation("mode", card.name, f"{each.place} under MPS", "a share: mps:40")
        elif each.start is None:
            total += share
        else:  # all that take turns in a share are one
            places[each.start, share] = each.place
    total += sum(share for _, share in places)
    ends = [(start + share, name) for (start, share), name in sorted(places.items())]
    for (end, name), ((start, _), other) in zip(ends, sorted(places.items())[1:], strict=False):
        if end > start:
            has = f"{name} and {other} on per cent {start}"
            yield Violation("overlap", card.name, has, "per cents of their own")
    if ends and (last := max(ends))[0] > 100:
        yield Violation("start", card.name, last[1], "a share that ends at 100 % or before")
    if total > 100:
        yield Violation("share", card.name, f"{total} % in use", "at most 100 %")
    if len(card.instances) > MPS_CLIENTS:
        has = f"{len(card.instances)} clients under MPS"
        yield Violation("share", card.name, has, f"at most {MPS_CLIENTS}")


def _whole(card: FleetGpu) -> Iterator[Violation]:
    for each in card.instances:
        if each.profile != WHOLE or each.start is not None:
            needs = f"{WHOLE!r}, or MIG on"
            yield Violation("mode", card.name, f"{each.place} on a GPU with MIG off", needs)
    if len(card.instances) > 1:
        has = f"{' and '.join(map(str, card.instances))} on a whole GPU"
        yield Violation("mode", card.name, has, "one instance, or MIG or MPS on")


def _fixed(card: FleetGpu) -> Iterator[Violation]:
    """Say which instances on a fixed GPU are managed: all on it must be foreign."""
    for each in card.instances:
        if each.is_managed:
            has = f"{each} on a fixed GPU"
            yield Violation("mode", card.name, has, "an owner, or another mode")
    if not card.instances:
        yield Violation("mode", card.name, "nothing on a fixed GPU", f"{WHOLE!r} of an owner")


def unable_to_run(
    driver: str | None, card: FleetGpu, services: Iterable[Service]
) -> Iterator[Violation]:
    """Say what a GPU's driver does not offer, or cannot run its work.

    An instance runs what was measured on instances like it, of its service's model.
    """
    node = FleetNode(card.node, driver=driver)
    models = {service.name: service.model for service in services}
    for each in card.instances:
        profile = _called(card, each.profile)
        fixed = card.mode is Mode.FIXED  # its instances are not managed, whatever they are
        if profile is not None and not node.offers(profile) and not fixed:
            has = f"{each.place} under driver {driver}"
            yield Violation("driver", card.name, has, f"a driver since {profile.since_driver}")
        if each.work is None:
            continue
        point = each.work.point
        if not is_measured_on(point, card.gpu):
            has = f"{each.place} at a point of {point.device}"
            yield Violation("point", card.name, has, f"a point of {card.gpu.key}")
        if not _is_measured_as(card, each, point.profile):
            has = f"{each.place} at a point of {point.profile}"
            yield Violation("point", card.name, has, f"a point of {each.profile}")
        if point.model != models[each.work.service]:
            needs = f"a point of {models[each.work.service]}, which {each.work.service} is"
            yield Violation("point", card.name, f"{each.place} at a point of {point.model}", needs)


def _called(card: FleetGpu, name: str) -> Profile | None:
    """Return the profile of a name, whatever driver calls it so."""
    return next((p for p in card.gpu.profiles if name in (p.name, *p.other_names)), None)


def _is_measured_as(card: FleetGpu, instance: Instance, name: str) -> bool:
    """Whether an instance may run points of a profile."""
    if name == instance.profile:
        return True
    profile = _called(card, name)
    if instance.profile == WHOLE:  # the one that is all of the GPU
        return profile is not None and profile.memory == card.gpu.memory_slices
    return profile is not None and profile == _called(card, instance.profile)


def _uuids(deployment: Deployment) -> Iterator[Violation]:
    seen: dict[str, str] = {}
    for card in deployment.gpus():
        parts = ((each.uuid, f"{card.name} {each.place}") for each in card.instances)
        for uuid, where in ((card.uuid, card.name), *parts):
            if uuid is not None and uuid in seen:
                yield Violation("uuid", where, f"the UUID {uuid} of {seen[uuid]}", "its own")
            elif uuid is not None:
                seen[uuid] = where


def _capacities(deployment: Deployment) -> Iterator[Violation]:
    for service in deployment.services:
        if (capacity := deployment.capacity(service.name)) < service.rate_rps:
            rates = (f"{shown(rate)} requests/s" for rate in (capacity, service.rate_rps))
            yield Violation("capacity", f"service {service.name}", *rates)


def _counts(deployment: Deployment, wanted: DesiredState) -> Iterator[Violation]:
    found = deployment.kinds()
    for kind in sorted({*found, *wanted.counts}, key=lambda kind: kind.order):
        there, needs = found.get(kind, 0), wanted.counts.get(kind, 0)
        if there != needs:
            yield Violation("count", "the deployment", f"{there} x {kind}", f"{needs}")
    used = Counter(card.gpu.key for card in deployment.gpus() if has_our_work(card))
    for key, count in sorted(used.items()):
        if count > (most := min(wanted.gpus.get(key, 0), wanted.max_gpus.get(key, count))):
            says = f"{count} x {key} in use", f"at most {most}"
            yield Violation("gpus", "the deployment", *says)


def has_our_work(card: FleetGpu) -> bool:
    """Whether a managed instance works on it."""
    return any(each.is_managed and each.work is not None for each in card.instances)
