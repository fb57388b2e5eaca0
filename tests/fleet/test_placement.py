"""Placing: against every placement there is, and what must hold of any."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import CmsError, InvalidProblem
from cms.fleet import get_gpu
from cms.fleet.deployment import (
    WHOLE,
    Deployment,
    DesiredState,
    FleetGpu,
    FleetNode,
    Instance,
    Mode,
    StartSource,
    check_deployment,
)
from cms.fleet.placement import (
    PlacementConstraints,
    PlacementInfeasible,
    PlacementResult,
    place,
)
from cms.fleet.placement.program import Found, Limits, Program
from cms.solving.solution import Proof
from tests.property.problems import share
from tests.references.placements import best_placement, worth

from .deployments import deployments, kind, node_of, placed, promises, published, wanted_for

A30, A100 = "a30-24gb", "a100-80gb"


def other(profile: str, start: int | None) -> Instance:
    return Instance(profile, start, owner="pod team-x/trainer")


def empty(nodes: int, each: int, key: str = A100) -> Deployment:
    return Deployment(
        tuple(
            FleetNode(
                name := f"node-{i:04d}", tuple(FleetGpu(name, k, get_gpu(key)) for k in range(each))
            )
            for i in range(nodes)
        )
    )


def agrees_with_all_there_is(
    data: st.DataObject,
    keys: tuple[str, ...],
    known: Callable[[st.DataObject, Deployment], Deployment] | None,
) -> None:
    now = data.draw(deployments(most_nodes=2, most_gpus=2, keys=keys))
    if known is not None:
        now = known(data, now)
    prices = {key: Fraction(data.draw(st.sampled_from(("0", "1", "7/3")))) for key in keys}
    caps = {key: data.draw(st.integers(0, 3)) for key in data.draw(st.sets(st.sampled_from(keys)))}
    wanted = replace(data.draw(promises(now)), prices=prices, max_gpus=caps)
    found, best = place(wanted, now), best_placement(now, wanted)
    if isinstance(found, PlacementInfeasible):
        assert best is None
        return
    assert best is not None
    assert worth(now, found.deployment, wanted) == best
    assert check_deployment(found.deployment, found.wanted) == ()
    assert (-found.spent.cost, -found.spent.gpus, found.kept) == best[:3]
    assert found.kept <= found.most_kept
    assert found.cost_proof is not Proof.NONE
    assert (found.kept == found.most_kept) == (found.proof is Proof.CHECKED)
    for before, after in zip(now.gpus(), found.deployment.gpus(), strict=True):
        assert after.foreign == before.foreign  # what is another's stays as it is
        assert not before.foreign or after.mode is before.mode


def guesses_in(data: st.DataObject, now: Deployment) -> Deployment:
    """The same, where of some profiles nobody knows which instance of a node does what."""
    names = data.draw(st.sets(st.sampled_from(("1g.6gb", "2g.12gb", "1g.10gb", "3g.40gb", WHOLE))))
    cards = {
        (c.node, c.index): replace(
            c, instances=tuple(replace(e, is_guessed=e.profile in names) for e in c.instances)
        )
        for c in now.gpus()
    }
    return now.with_gpus(cards)


def less_known(data: st.DataObject, now: Deployment) -> Deployment:
    """The same with whole GPUs in doubt, and some GPUs of which only counts were read."""
    cards = {}
    for card in guesses_in(data, now).gpus():
        if card.mode is Mode.WHOLE:
            theirs = Instance(WHOLE, owner="pod team-x/a", is_guessed=True)
            ours = tuple(replace(each, is_guessed=True) for each in card.instances)
            idle = Instance(WHOLE, is_guessed=True)
            card = replace(card, instances=data.draw(st.sampled_from((ours, (theirs,), (idle,)))))
        elif card.mode is Mode.MIG and card.instances and not data.draw(st.integers(0, 3)):
            unseen = tuple(replace(each, start=None) for each in card.instances)
            card = replace(card, instances=unseen, start_source=StartSource.UNKNOWN)
        cards[card.node, card.index] = card
    return now.with_gpus(cards)


@pytest.mark.parametrize("known", [None, guesses_in, less_known])
@share(4)
@given(st.data())
def test_a_placement_is_as_good_as_any(
    known: Callable[[st.DataObject, Deployment], Deployment] | None, data: st.DataObject
) -> None:
    """Also where of some instances nobody knows which does what: what may be another's stays."""
    agrees_with_all_there_is(data, (A30,), known)


@share(6)
@given(st.data())
def test_names_of_nodes_decide_among_equals_alone(data: st.DataObject) -> None:
    now = data.draw(deployments(most_nodes=3, most_gpus=2, keys=(A30, A100)))
    wanted = data.draw(promises(now))
    names = [node.name for node in now.nodes]
    new = dict(zip(names, data.draw(st.permutations(names)), strict=True))
    nodes = tuple(
        replace(n, name=new[n.name], gpus=tuple(replace(c, node=new[n.name]) for c in n.gpus))
        for n in now.nodes
    )
    renamed = replace(now, nodes=nodes)
    found, again = place(wanted, now), place(wanted, renamed)
    assert isinstance(found, PlacementResult) == isinstance(again, PlacementResult)
    if isinstance(found, PlacementResult) and isinstance(again, PlacementResult):
        value = worth(now, found.deployment, wanted)
        assert worth(renamed, again.deployment, wanted) == value
        assert place(wanted, now) == found  # the same again, to the last start


def test_a_plan_fills_node_after_node_whatever_else_its_device_knows() -> None:
    wanted = published("S6")
    found = placed(wanted, empty(4, 8))
    assert found.gpus == wanted.gpus == {A100: 16}
    assert found.nodes == ("node-0000", "node-0001")
    assert found.deployment.plan is wanted.plan
    assert (found.kept, found.running, len(found.changed)) == (0, 0, 16)
    assert str(found) == "16 x a100-80gb on 2 nodes, 16 changed"
    for as_grouped in (False, True):
        again = placed(wanted, found.deployment, as_grouped=as_grouped)
        assert again.deployment == found.deployment
        assert again.kept == again.running == sum(wanted.counts.values())
    wanted, now = published("S1"), empty(1, 2)
    (node,) = now.nodes
    older = replace(get_gpu(A100), aliases=(), pci_device_ids=(), version=1)
    cards = {(c.node, c.index): replace(c, gpu=older) for c in node.gpus}
    assert placed(wanted, now.with_gpus(cards)).gpus == {A100: 2}
    odd = replace(older, profiles=tuple(replace(p, starts=(0,)) for p in older.profiles))
    cards = {place: replace(card, gpu=odd) for place, card in cards.items()}
    with pytest.raises(InvalidProblem, match="cut by other rules than the fleet's"):
        place(wanted, now.with_gpus(cards))
    # A fleet where nothing runs is as large as its plan has groups.
    wanted = published("S6")
    counts = {kind: 150 * n for kind, n in wanted.counts.items()}
    many = replace(wanted, counts=counts, gpus={A100: 2400}, plan=None)
    found = placed(many, empty(375, 8))
    assert found.gpus[A100] <= 2400  # larger plans of the same kinds waste less
    assert len(found.nodes) == -(-found.gpus[A100] // 8)


def test_regrouped_keeps_at_least_what_the_plans_groups_keep() -> None:
    def contents(deployment: Deployment) -> Counter[tuple[str, ...]]:
        held = ([f"{e.profile}={e.work}" for e in card.instances if e.work]
                for card in deployment.gpus() if not card.is_empty)  # fmt: skip
        return Counter(tuple(sorted(each)) for each in held)

    now, wanted = placed(published("S5"), empty(2, 8)).deployment, published("S6")
    found, grouped = placed(wanted, now), placed(wanted, now, as_grouped=True)
    assert found.kept >= grouped.kept
    assert (found.proof, grouped.proof) == (Proof.CHECKED, Proof.CHECKED)
    assert contents(grouped.deployment) == contents(placed(wanted, empty(4, 8)).deployment)


def test_others_instances_may_ask_for_more_gpus_or_leave_no_room_for_groups() -> None:
    wanted = wanted_for({kind("chat", "3g.40gb"): 2}, {A100: 1})
    found = placed(wanted, node_of((other("1g.10gb", 0),), (other("1g.10gb", 6),)))
    assert found.more_gpus == {A100: 1}
    assert (found.cost, found.cost_proof) == (0, Proof.CHECKED)  # beside what is there anyway
    more = "1 x a100-80gb more than planned (least for the plan's instances, proof checked)"
    assert more in str(found)
    wanted = published("S6")
    cards = [(other("1g.10gb", 0),)] * 10 + [()] * 10
    none = place(wanted, node_of(*cards), as_grouped=True)
    assert isinstance(none, PlacementInfeasible)
    assert none.proof is Proof.CHECKED
    assert none.reasons == ("the groups of the plan have too few GPUs for all of them at once",)
    assert isinstance(place(wanted, node_of(*cards)), PlacementResult)


def unplaceable(now: Deployment, wanted: DesiredState) -> PlacementInfeasible:
    found = place(wanted, now)
    assert isinstance(found, PlacementInfeasible)
    assert found.proof is Proof.CHECKED
    return found


def test_a_mixture_that_does_not_fit_is_refused_with_what_does() -> None:
    cards = [(other("1g.10gb", 6),)] * 6 + [()] * 5
    few = unplaceable(node_of(*cards), wanted_for({kind("chat", "3g.40gb"): 20}, {A100: 10}))
    assert str(few) == (
        "unplaceable, proof checked: 4 more 3g.40gb are needed than 11 x a100-80gb hold beside 6 "
        "foreign instances"
    )
    counts = {kind("chat", "4g.40gb"): 2, kind("code", "2g.20gb"): 3}
    mixed = unplaceable(node_of((), ()), wanted_for(counts, {A100: 2}))
    assert str(mixed) == (
        "unplaceable, proof checked: no layouts of the fleet's GPUs hold the instances wanted: at "
        "most 4 of 5 at once"
    )


@pytest.mark.parametrize(
    ("now", "profile", "says"),
    [
        (node_of((), key=A30), "3g.40gb",
         "1 x 3g.40gb of a100-80gb are wanted, and the fleet has no a100-80gb"),
        (node_of((), driver="470.82"), "1g.20gb", "1g.20gb fits on no a100-80gb: the driver 470.82 "
         "of a does not offer it, it is there since R525"),
        (node_of((other("1g.10gb", 1), other("1g.10gb", 6))), "3g.40gb",
         "3g.40gb fits on no a100-80gb: a/0: "),
        (node_of((other("1g.10gb", 1),)), "mps:20",
         "mps:20 fits on no a100-80gb: a/0 has pod team-x/trainer on it"),
    ],
)  # fmt: skip
def test_profiles_that_fit_nowhere(now: Deployment, profile: str, says: str) -> None:
    found = unplaceable(now, wanted_for({kind("chat", profile): 1}, {A100: 1}))
    assert found.reasons[0].startswith(says)


def test_what_cannot_be_meant_is_refused() -> None:
    now = node_of((other("3g.40gb", 0), other("4g.40gb", 0)))
    wanted = wanted_for({kind("chat", "1g.10gb"): 1}, {A100: 1})
    with pytest.raises(InvalidProblem, match="cannot be as it is written: a/0 has 3g.40gb@0 and"):
        place(wanted, now)
    with pytest.raises(InvalidProblem, match="no plan whose groups"):
        place(wanted, empty(1, 1), as_grouped=True)
    some = PlacementConstraints(survive=1)
    with pytest.raises(InvalidProblem, match="constraints decide which instances share a GPU"):
        place(published("S1"), empty(1, 4), as_grouped=True, constraints=some)


@pytest.mark.parametrize("solved", [1, 2, 3])
def test_time_may_be_up_midway(solved: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was found is an answer like any other, whose bound says how good it may not be."""
    left = solved
    whole = Program.maximise
    now = placed(published("S5"), empty(2, 8), as_grouped=True).deployment

    def some(
        program: Program, terms: dict[int, int], limits: Limits, hint: list[int] | None = None,
        nodes: int | None = None,
    ) -> Found:  # fmt: skip
        nonlocal left
        left -= 1
        return whole(program, terms, limits, hint, nodes) if left >= 0 else Found(hint, False)

    monkeypatch.setattr(Program, "maximise", some)
    monkeypatch.setattr(Program, "find_prices", lambda *_: None)
    found = placed(published("S6"), now)
    assert found.proof is Proof.CHECKED if found.kept == found.most_kept else Proof.NONE
    assert found.kept <= found.most_kept


def test_time_may_be_up_and_a_search_without_end_ended() -> None:
    wanted = wanted_for({kind("chat", "1g.10gb"): 1}, {A100: 1})
    cancel = threading.Event()
    cancel.set()
    for over in ({"time_limit": 0.0}, {"cancel": cancel}):
        with pytest.raises(CmsError, match="no placement was found in time"):
            place(wanted, empty(1, 1), **over)
    # A market split of 50 articles, which takes a solver hours.
    numbers = random.Random(1)
    program = Program()
    articles = [program.variable(1) for _ in range(50)]
    for _ in range(6):
        row = {article: numbers.randrange(100) for article in articles}
        program.equal(row, sum(row.values()) // 2)
    cancel = threading.Event()
    timer = threading.Timer(0.1, cancel.set)
    timer.start()
    assert program.maximise({}, Limits(cancel=cancel)) == Found(None, False)
    timer.join()
