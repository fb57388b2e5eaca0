"""What runs on fewer GPUs: against everything there is on three small ones."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import inf
from typing import Literal

import pytest

from cms import solve
from cms.errors import CmsError, InvalidOption, InvalidProblem
from cms.fleet import Plan, Service, build_problem, get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, check_deployment
from cms.fleet.deployment.transition import check_transition
from cms.fleet.placement import Compacted, PlacementConstraints, compact
from cms.fleet.placement.program import Found, Limits, Program
from cms.fleet.serving import RULES
from cms.solving.solution import Proof
from tests.fleet.transition.cases import reached
from tests.samples import few, so_many

from ..deployments import point

A30 = get_gpu("a30-24gb")
SERVICES = ("chat", "code")

#: Whether a fleet will do, by the profiles on each of its GPUs.
Test = Callable[[list[list[str]]], bool]


def fleet(rng: random.Random, nodes: Sequence[int] = (3,), foreign: float = 0.0) -> Deployment:
    """GPUs of which some instances have gone."""
    made = []
    for number, size in enumerate(nodes):
        cards = []
        for index in range(size):
            left = [place for place in rng.choice(A30.layouts()) if rng.random() < 0.6]
            held = tuple(_instance(rng, profile, start, foreign) for profile, start in left)
            cards.append(FleetGpu(f"n{number}", index, A30, instances=held))
        made.append(FleetNode(f"n{number}", tuple(cards)))
    return deployment(*made)


def _instance(rng: random.Random, profile: str, start: int, foreign: float) -> Instance:
    if rng.random() < foreign:
        return Instance(profile, start, owner="pod x/y")
    return Instance(profile, start, point(rng.choice(SERVICES), A30.key, profile))


def deployment(*nodes: FleetNode) -> Deployment:
    services = tuple(Service(name, name, 0, 1000) for name in SERVICES)
    return Deployment(nodes, services, RULES["half"])


def fewest(now: Deployment, most: int, will_do: Test = lambda _: True) -> tuple[float, float]:
    """GPUs, and nodes, that are needed if at most so many move, by trying everything."""
    cards = list(now.gpus())
    ours = [(c, e) for c, card in enumerate(cards) for e in card.instances if e.is_managed]
    best = [inf, inf]
    for moved in (m for n in range(most + 1) for m in combinations(range(len(ours)), n)):
        kept: list[list[tuple[str, int]]] = [
            [(e.profile, e.start or 0) for e in card.foreign] for card in cards
        ]
        for number, (c, each) in enumerate(ours):
            if number not in moved:
                kept[c].append((each.profile, each.start or 0))
        away = Counter(ours[number][1].profile for number in moved)
        for used in _ways(cards, kept, away, will_do):
            best = [*map(min, best, used)]
    return best[0], best[1]


def _ways(
    cards: list[FleetGpu], kept: list[list[tuple[str, int]]], away: Counter[str], will_do: Test
) -> Iterator[tuple[int, int]]:
    """How many GPUs and nodes have our work, for each way to put what moves somewhere."""
    held = {card.node for card in cards if card.foreign}
    items = list(away.elements())
    for where in product(range(len(cards)), repeat=len(items)):
        new = [Counter(p for p, at in zip(items, where, strict=True) if at == c)
               for c in range(len(cards))]  # fmt: skip
        held_by = [[*n.elements(), *(p for p, _ in k)] for n, k in zip(new, kept, strict=True)]
        if will_do(held_by) and all(
            card.gpu.place(n, around=k) is not None
            for card, n, k in zip(cards, new, kept, strict=True)
        ):
            used = [card for card, n, k in zip(cards, new, kept, strict=True) if n or k]
            nodes = {card.node for card in used} - held
            yield sum(not card.foreign for card in used), len(nodes)


@pytest.mark.parametrize("seed", few(2, range(12)))
def test_no_fewer_gpus_and_no_fewer_nodes_do(seed: int) -> None:
    rng, foreign = random.Random(seed), 0.2 if seed % 3 == 0 else 0.0
    now, other = fleet(rng, foreign=foreign), fleet(rng, (1, 2, 1) if seed % 2 else (2, 1), foreign)
    chat, code = now.services
    now = replace(now, services=(replace(chat, rate_rps=Fraction(10**6)), code))  # too little runs
    last = None
    for most in range(3):
        found = compact(now, max_restarts=most)
        assert found.restarts <= most
        assert found.gpus == fewest(now, most)[0]
        assert found.least_gpus <= found.gpus
        assert (found.proof is Proof.CHECKED) == (found.least_gpus == found.gpus)
        assert found.deployment.kinds() == now.kinds()
        assert [f for f in check_deployment(found.deployment) if f.kind != "capacity"] == []
        assert last is None or found.gpus <= last
        last = found.gpus
        found = compact(other, max_restarts=most, free="nodes")
        assert found.restarts <= most
        assert found.nodes == fewest(other, most)[1]
        assert found.proof in (Proof.CHECKED, Proof.SOLVER)


@pytest.mark.parametrize("seed", few(6, range(60)))
def test_what_a_lost_node_leaves_counts_in_equal_shares_where_the_plan_says_so(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.SERVICES", ("chat",))
    rng, is_equal = random.Random(seed), seed % 2 == 0
    now = fleet(rng, rng.choice([(2, 2), (1, 2, 1), (1, 1, 1)]))
    rate = max(Fraction(1), now.capacity("chat") * rng.randint(4, 7) / 12)
    works = {each.name: point("chat", A30.key, each.name) for each in A30.profiles}
    chat, points = Service("chat", "chat", rate, 1000), [work.point for work in works.values()]
    routing = "equal" if is_equal else "weighted"
    posed = build_problem([chat], points, [A30], rule="half", routing=routing)
    now = replace(now, services=(chat,), plan=Plan(posed, solve(posed.problem)))

    def survives(held: list[list[str]]) -> bool:
        own = [
            (card.node, works[p].supply_rps)
            for card, e in zip(now.gpus(), held, strict=True)
            for p in e
        ]
        left = [[n for at, n in own if at != lost.name] for lost in now.nodes]
        return all((len(e) * min(e, default=0) if is_equal else sum(e)) >= rate for e in left)

    survive = PlacementConstraints(survive="1")
    for most in range(3):
        gpus = inf
        with suppress(InvalidProblem):
            gpus = compact(now, max_restarts=most, constraints=survive).gpus
        assert gpus == fewest(now, most, survives)[0]


def test_most_fewest_nodes_are_proved_by_prices() -> None:
    proofs = Counter(
        compact(fleet(random.Random(seed), (2, 2, 2)), max_restarts=most, free="nodes").proof
        for seed in range(so_many(4, 8))
        for most in (1, 4)
    )
    assert proofs[Proof.CHECKED] >= so_many(6, 12)
    assert proofs.keys() <= {Proof.CHECKED, Proof.SOLVER}


def test_without_a_restart_nothing_moves() -> None:
    for seed in range(5):
        now = fleet(random.Random(seed), (3, 2))
        found = compact(now, max_restarts=0)
        assert found.deployment == now
        assert (found.restarts, found.freed_gpus, found.freed_nodes) == (0, (), ())


def test_a_transition_leads_there_and_frees_what_is_said() -> None:
    now = fleet(random.Random(2), (2, 2, 2))
    found = compact(now)
    assert found.freed_gpus
    way = reached(now, found.deployment)
    assert check_transition(way) == ()
    empty = {card.name for card in way.target.gpus() if card.is_empty}
    assert set(found.freed_gpus) <= empty
    assert way.kept.count == sum(now.kinds().values()) - found.restarts


def _spread() -> Deployment:
    """Two nodes: of one, two GPUs with a quarter each; of the other, three with a half each."""
    small, half = (point("chat", A30.key, p) for p in ("1g.6gb", "2g.12gb"))
    one = [FleetGpu("a", i, A30, instances=(Instance("1g.6gb", 0, small),)) for i in range(2)]
    two = [FleetGpu("b", i, A30, instances=(Instance("2g.12gb", 0, half),)) for i in range(3)]
    return deployment(FleetNode("a", tuple(one)), FleetNode("b", tuple(two)))


def test_nodes_or_gpus_first() -> None:
    gpus = compact(_spread(), max_restarts=2)
    nodes = compact(_spread(), max_restarts=2, free="nodes")
    assert nodes.freed_nodes == ("a",)
    assert gpus.gpus <= nodes.gpus == 3
    assert compact(_spread(), max_restarts=1, free="nodes").freed_nodes == ()
    assert str(nodes) == (
        "1 node (the fewest, checked), 3 GPUs after 2 restarts; 2 GPUs and 1 node come free"
    )


def test_a_node_with_something_foreign_on_a_gpu_of_another_type_is_never_free() -> None:
    half = Instance("2g.12gb", 0, point("chat", A30.key, "2g.12gb"))
    theirs = Instance("1g.10gb", 0, owner="pod x/y")
    other = FleetGpu("b", 1, get_gpu("a100-80gb"), instances=(theirs,))
    one, two = (FleetGpu(name, 0, A30, instances=(half,)) for name in "ab")
    found = compact(deployment(FleetNode("a", (one,)), FleetNode("b", (two, other))), free="nodes")
    assert (found.nodes, found.restarts, found.freed_nodes) == (0, 1, ("a",))


@pytest.mark.parametrize("most_pairs", [0, 1500])
@pytest.mark.parametrize("solved", range(6))
def test_so_few_are_reached_of_any_number_of_nodes_and_when_time_is_up_midway(
    solved: int, most_pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two nodes with a GPU of one type each, and one with both, where all has a place."""
    a30, a100 = (A30, "2g.12gb"), (get_gpu("a100-80gb"), "3g.40gb")
    now = deployment(*(
        FleetNode(name, tuple(
            FleetGpu(name, index, gpu, instances=(Instance(p, 0, point("chat", gpu.key, p)),))
            for index, (gpu, p) in enumerate(held)
        ))
        for name, held in {"a": [a30], "b": [a100], "c": [a30, a100]}.items()
    ))  # fmt: skip
    whole, left = Program.maximise, 0

    def some(program: Program, terms: Mapping[int, int], limits: Limits,
             hint: list[int] | None = None, nodes: int | None = None) -> Found:  # fmt: skip
        nonlocal left
        left -= 1
        return whole(program, terms, limits, hint, nodes) if left >= 0 else Found(hint, False)

    monkeypatch.setattr("cms.fleet.placement.placement_model._MOST_PAIRS", most_pairs)
    monkeypatch.setattr(Program, "maximise", some)
    numbers: dict[Literal["nodes", "gpus"], int] = {"nodes": 1, "gpus": 2}
    for free, number in numbers.items():
        left = solved
        if not solved:
            with pytest.raises(CmsError, match="no placement was found in time"):
                compact(now, free=free)
            continue
        found = compact(now, free=free)
        assert (getattr(found, free), found.proof) == (number, Proof.CHECKED)
        assert found.nodes == 1 or solved == 1


def test_empty_fleets_and_wrong_options() -> None:
    empty = Deployment((FleetNode("a", (FleetGpu("a", 0, A30),)),))
    assert compact(empty) == Compacted(empty, 0, 0, 0, 0, "gpus", Proof.CHECKED, (), ())
    with pytest.raises(InvalidOption, match="max_restarts is -1"):
        compact(empty, max_restarts=-1)
    twice = Instance("2g.12gb", 0, point("chat", A30.key, "2g.12gb"))
    card = FleetGpu("a", 0, A30, instances=(twice, replace(twice, start=0)))
    with pytest.raises(InvalidProblem, match="cannot be as it is written"):
        compact(deployment(FleetNode("a", (card,))))
