"""Random deployments for the tests of what is done with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

from hypothesis import strategies as st

from cms import load_instance, solve
from cms.fleet import Gpu, OperatingPoint, Plan, Service, get_gpu
from cms.fleet.deployment import (
    WHOLE,
    Deployment,
    DesiredState,
    FleetGpu,
    FleetNode,
    Instance,
    Kind,
    Mode,
    Observation,
    StartSource,
    State,
    Work,
    desired_state,
)
from cms.fleet.hardware import Layout
from cms.fleet.placement import PlacementResult, place
from cms.fleet.serving import RULES, PlanGroup, Scenario
from cms.values.frozen import FrozenMap

SERVICES = tuple(Service(name, name, 10, 1000) for name in ("chat", "code", "sum"))
_RULE = RULES["half"]


def point(service: str, device: str, profile: str, processes: int = 1, batch: int = 4) -> Work:
    """What an instance of a profile does for a service: more memory, more throughput."""
    if profile == WHOLE:  # measured on the profile that is all of the GPU
        card = get_gpu(device)
        profile = next(p.name for p in card.profiles if p.memory == card.memory_slices)
    size = int(profile.removeprefix("mps:")) if profile.startswith("mps:") else int(profile[0])
    speed = Fraction(7 * size + processes + len(service))
    measured = OperatingPoint(service, device, profile, processes, batch, speed, 100)
    return Work(service, measured, speed)


def kind(service: str, profile: str, key: str = "a100-80gb") -> Kind:
    return Kind(key, profile, point(service, key, profile))


@cache
def layouts(key: str) -> tuple[Layout, ...]:
    """All layouts of a GPU's base profiles, the empty one first."""
    return ((), *get_gpu(key).layouts())


@st.composite
def cards(draw: st.DrawFn, node: str, index: int, keys: Sequence[str]) -> FleetGpu:
    """One GPU: cut by MIG most of the time, else shared under MPS or whole; parts another's."""
    card: Gpu = get_gpu(draw(st.sampled_from(keys)))
    uuid = f"GPU-{node}-{index}"
    how = draw(st.integers(0, 5))
    if how == 1:
        held = draw(st.sampled_from(((), (WHOLE,))))
        whole = tuple(draw(_instance(card.key, each, None)) for each in held)
        return FleetGpu(node, index, card, Mode.WHOLE, whole, uuid)
    if how == 0:
        shares = draw(st.lists(st.sampled_from((10, 20, 50)), max_size=3).filter(_fits))
        instances = [draw(_instance(card.key, f"mps:{share}", None)) for share in shares]
        return FleetGpu(node, index, card, Mode.MPS, tuple(instances), uuid)
    layout = draw(st.sampled_from(layouts(card.key)))
    placed = [draw(_instance(card.key, *place)) for place in layout]
    return FleetGpu(node, index, card, Mode.MIG, tuple(placed), uuid)


def _fits(shares: list[int]) -> bool:
    return sum(shares) <= 100


@st.composite
def _instance(draw: st.DrawFn, key: str, profile: str, start: int | None) -> Instance:
    doing = draw(st.integers(0, 7))
    if doing == 0:
        return Instance(profile, start, owner=draw(st.sampled_from(("pod team-x/a", "unknown"))))
    if doing == 1:
        return Instance(profile, start)
    state = State.RUNNING if doing < 6 else draw(st.sampled_from(list(State)))
    if state is State.NO_COMPUTE_INSTANCE:
        return Instance(profile, start, state=state)
    service = draw(st.sampled_from(SERVICES)).name
    batch = draw(st.sampled_from((4, 8)))
    return Instance(profile, start, point(service, key, profile, batch=batch), state=state)


@st.composite
def deployments(
    draw: st.DrawFn,
    most_nodes: int = 3,
    most_gpus: int = 3,
    keys: Sequence[str] = ("a100-80gb", "a30-24gb"),
) -> Deployment:
    """A legal deployment with pinned, idle, starting and hollow instances."""
    nodes = []
    for number in range(draw(st.integers(0, most_nodes))):
        name = f"node-{chr(ord('a') + number)}"
        held = tuple(
            draw(cards(name, index, keys)) for index in range(draw(st.integers(0, most_gpus)))
        )
        labels = FrozenMap({"zone": draw(st.sampled_from(("east", "west")))})
        seen = draw(st.sampled_from((None, Observation("2026-11-23T10:00:00Z", ("lgi.txt",)))))
        driver = draw(st.sampled_from((None, "550.54.15")))
        nodes.append(FleetNode(name, held, labels, driver, seen))
    return Deployment(tuple(nodes), SERVICES, _RULE)


def wanted_for(counts: Mapping[Kind, int], gpus: Mapping[str, int]) -> DesiredState:
    """A promise of so many instances; its services ask for no rate."""
    return DesiredState(
        {kind: counts[kind] for kind in sorted(counts, key=lambda kind: kind.order)},
        gpus,
        {key: get_gpu(key) for key in gpus},
        tuple(Service(each.name, each.name, 0, 1000) for each in SERVICES),
        _RULE,
    )


@st.composite
def promises(draw: st.DrawFn, fleet: Deployment) -> DesiredState:
    """Some of what runs on a fleet, and some that does not; it need not have a place."""
    counts = Counter({kind: draw(st.integers(0, n + 1)) for kind, n in fleet.kinds().items()})
    keys = sorted(fleet.devices) or ["a30-24gb"]
    for _ in range(draw(st.integers(0, 2))):
        key = draw(st.sampled_from(keys))
        profiles = [*get_gpu(key).base_profiles[:3], "mps:20", "mps:50", WHOLE]
        profile = draw(st.sampled_from(profiles))
        service = draw(st.sampled_from(SERVICES)).name
        counts[Kind(key, profile, point(service, key, profile))] += draw(st.integers(1, 2))
    counts = +counts
    return wanted_for(counts, {key: draw(st.integers(0, 2)) for key in keys})


def placed(wanted: DesiredState, now: Deployment, **how: Any) -> PlacementResult:
    found = place(wanted, now, **how)
    assert isinstance(found, PlacementResult), found
    return found


SCENARIOS = ("S1", "S2", "S3", "S4", "S5", "S6")


@cache
def plan_of(name: str) -> Plan:
    loaded = load_instance(name)
    assert isinstance(loaded, Scenario)
    serving = loaded.build_problem()
    return Plan(serving, solve(serving.problem))


def published(name: str) -> DesiredState:
    return desired_state(plan_of(name))


def node_of(
    *cards: tuple[Instance, ...], mode: Mode = Mode.MIG, key: str = "a100-80gb",
    driver: str | None = None,
) -> Deployment:  # fmt: skip
    """Node a, with instances on each of its GPUs; where one has no start, none was seen."""
    held = []
    for index, instances in enumerate(cards):
        is_seen = mode is not Mode.MIG or all(each.start is not None for each in instances)
        source = StartSource.OBSERVED if is_seen else StartSource.UNKNOWN
        held.append(FleetGpu("a", index, get_gpu(key), mode, instances, start_source=source))
    return Deployment((FleetNode("a", tuple(held), driver=driver),), SERVICES, _RULE)


def fleet(**counts: int) -> Deployment:
    """Empty GPUs of one type: `fleet(a=2, b=1)`; an underscore in a name stands for a dash."""
    a100 = get_gpu("a100-80gb")
    nodes = []
    for name, count in counts.items():
        node = name.replace("_", "-")
        cards = tuple(FleetGpu(node, index, a100) for index in range(count))
        nodes.append(FleetNode(node, cards))
    return Deployment(tuple(nodes))


def scenario(name: str, now: Deployment) -> Deployment:
    return put(plan_of(name), now)


def put(plan: Plan, now: Deployment) -> Deployment:
    """The GPUs of a plan on the first GPUs that can hold them beside what is not ours."""
    left = [(group, number) for group in plan.groups for number in range(group.count)]
    cards = {}
    for card in now.gpus():
        pinned = tuple((each.profile, each.start) for each in card.foreign)
        around = [(profile, start) for profile, start in pinned if start is not None]
        held = list(card.foreign)
        for group, number in left:
            work = _work(group)
            counts = {profile: len(each) for profile, each in work.items()}
            layout = card.gpu.place(counts, around=around)
            if group.gpu == card.gpu.key and layout is not None:
                held += [Instance(*place, work[place.profile].pop()) for place in layout]
                left.remove((group, number))
                break
        mode = Mode.MIG if held else card.mode
        cards[card.node, card.index] = card.with_instances(held, mode)
    assert not left, "there are too few GPUs"
    nodes = tuple(
        replace(node, gpus=tuple(cards[node.name, card.index] for card in node.gpus))
        for node in now.nodes
    )
    return Deployment(nodes, plan.serving.services, plan.unshared("a deployment").rule, plan)


def _work(group: PlanGroup) -> dict[str, list[Work | None]]:
    """What each instance of a GPU does, by profile."""
    found: dict[str, list[Work | None]] = {}
    for each in group.instances:
        work = None
        if each.serves:
            served = each.serves[0]
            work = Work(served.service, served.point, served.rate_rps)
        found.setdefault(each.profile, []).extend([work] * each.count)
    return found
