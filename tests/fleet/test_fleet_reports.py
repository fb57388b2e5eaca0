"""Deployments and transitions drawn: true to the hardware, equal GPUs once, of every size."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import accumulate

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cms.errors import InvalidOption
from cms.fleet import get_gpu, list_gpus
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Mode,
    Observation,
    StartSource,
    State,
    difference,
)
from cms.fleet.deployment.observation.age import StaleObservation, age_of, format_age, refuse_stale
from cms.fleet.deployment.room import fragmentation, room_of
from cms.fleet.deployment.transition import Action, Transition, What, schedule
from cms.fleet.deployment.transition import transition as planned
from cms.fleet.deployment.transition.curves import service_names
from cms.fleet.report.bars import draw_gpu, fold, format_gpus
from cms.fleet.report.deployments import deployment_page, difference_page, format_room
from cms.fleet.report.figure import drawing
from cms.fleet.report.terminal import draw_line
from cms.fleet.report.transitions import count_moves, draw_rows, transition_page
from cms.fleet.report.web import html
from tests.fleet.deployments import SERVICES, cards, deployments, point, promises
from tests.fleet.plans import printed, words_of
from tests.fleet.transition.cases import A30
from tests.fleet.transitions import NOTHING, every_kind, fleet, made, work
from tests.property.problems import share

A100 = get_gpu("a100-80gb")
PLACES = {service.name: place for place, service in enumerate(SERVICES)}


def one(*instances: Instance, **more: object) -> Deployment:
    card = FleetGpu("a", 0, A100, instances=instances, **more)  # type: ignore[arg-type]
    return Deployment((FleetNode("a", (card,)),), SERVICES)


@given(cards("a", 0, ("a100-80gb", "a30-24gb")))
@example(FleetGpu("a", 0, A100, Mode.MPS, (Instance("mps:50", 0), Instance("mps:50", 0))))
def test_a_bar_covers_its_gpu_and_has_each_instance_where_it_is(card: FleetGpu) -> None:
    bar = draw_gpu(card, PLACES)
    ends = accumulate(cell.width for cell in bar.boxes)
    assert [0, *ends] == [*(cell.start for cell in bar.boxes), bar.slices]
    drawn = [(cell.start, cell.profile) for cell in bar.boxes if cell.profile]
    if card.mode is Mode.MIG:
        assert drawn == [(each.start, each.profile) for each in card.instances]
        assert bar.slices == card.gpu.memory_slices
    else:
        assert sorted(p for _, p in drawn) == sorted(each.profile for each in card.instances)
        used = sum(cell.width for cell in bar.boxes if cell.profile)
        assert card.mode is Mode.WHOLE or format_room(card) == f"MPS, {used} % used"


@given(deployments())
def test_folded_gpus_are_all_there_once(deployment: Deployment) -> None:
    folded = fold(deployment.gpus(), PLACES)
    every = sorted(place for each in folded for place in each.places)
    assert every == sorted((card.node, card.index) for card in deployment.gpus())
    assert all(each.bars[0].count == len(each.gpus) for each in folded)
    assert [len(each.gpus) for each in folded] == sorted(
        (len(each.gpus) for each in folded), reverse=True
    )


def test_pods_of_a_namespace_are_one_and_names_are_short() -> None:
    held = [
        (Instance("3g.40gb", 4, owner=owner),)
        for owner in ("pod x/a-1", "pod x/a-2", "pod y/b", "unknown")
    ]
    alike = fold((FleetGpu("a", n, A100, instances=own) for n, own in enumerate(held)), PLACES)
    assert [(each.bars[0].boxes[1].owner, len(each.gpus)) for each in alike] == [
        ("pod x/*", 2), ("pod y/b", 1), ("unknown", 1),
    ]  # fmt: skip
    for places, said in (
        ([], ""),
        ([("b", 3), ("a", 1), ("a", 0), ("a", 2), ("a", 9)], "a/0-2,9, b/3"),
        ([("n9", 0), ("n10", 0), ("n11", 0)], "n9...n11/0"),
        ([("n1", 0), ("n2", 0)], "n1,n2/0"),
        ([("n01", 0), ("n1", 0), ("n2", 1)], "n01/0, n1/0, n2/1"),
        ([("n1", 0), ("n3", 0)], "n1/0, n3/0"),
    ):
        assert format_gpus(places) == said
    assert format_gpus([("x" + "9" * 5000, 0), ("x1" + "0" * 5000, 0)])


@share(4)
@given(deployments(), deployments())
def test_a_difference_is_drawn_whatever_it_is(now: Deployment, then: Deployment) -> None:
    types = {card.name: card.gpu.key for card in now.gpus()}
    if any(types.get(card.name, card.gpu.key) != card.gpu.key for card in then.gpus()):
        return
    found = difference(now, then)
    said = printed(difference_page(found, then, "x")).splitlines()
    assert said[1].rstrip() == str(found)
    marks = {each for each in ("created", "deleted", "restarted") if found.counts.get(each)}
    assert marks <= set(re.findall("created|deleted|restarted", " ".join(said[3:])))


def test_states_are_told_apart_without_colours_and_narrow_cells_have_a_sign() -> None:
    work = point("chat", "a100-80gb", "1g.10gb")
    states = (State.RUNNING, State.STARTING, State.DRAINING)
    held = [Instance("1g.10gb", at, work, state=state) for at, state in enumerate(states)]
    more = Instance("1g.10gb", 3, state=State.NO_COMPUTE_INSTANCE), Instance("1g.10gb", 4)
    text = printed(deployment_page(one(*held, *more), "x"))
    assert all(sign in text for sign in ("^│", "v│", "!│", "! no", "idle", "^ starting"))
    few = replace(held[1], start=0)
    line = draw_line(draw_gpu(next(one(few, Instance("1g.10gb", 2, owner="x")).gpus()), PLACES), 40)
    assert line.plain == "│ 1^│///│###│///////////////////│"


def test_empty_gpus_lose_nothing_to_fragmentation_and_unknown_ones_are_not_judged() -> None:
    for card in (each for each in list_gpus() if each.profiles):
        held = tuple(FleetGpu("a", index, card) for index in range(3))
        assert fragmentation(FleetNode("a", held)) == ()
    unknown = one(Instance("1g.10gb"), start_source=StartSource.UNKNOWN)
    assert fragmentation(unknown.nodes[0]) == ()
    assert "Lost" not in printed(deployment_page(unknown, "x", lost=True))


@given(cards("a", 0, ("a100-80gb", "a30-24gb")))
def test_the_largest_that_fits_can_be_put_there(card: FleetGpu) -> None:
    room = room_of(card)
    if card.mode is not Mode.MIG:
        assert room is None
        return
    assert room is not None
    taken = sum(card.gpu.profile(each.profile).memory for each in card.instances)
    assert room.memory == card.gpu.memory_slices - taken
    fits = [p for p in card.gpu.base_profiles if card.gpu.room(card.layout, p)]
    if room.largest is None:
        assert not fits
        return
    sizes = {p: (card.gpu.profile(p).memory, card.gpu.profile(p).compute) for p in fits}
    assert sizes[room.largest] == max(sizes.values())


NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def seen_at(**moments: str) -> Deployment:
    seen = ((name, Observation(at, (f"{name}.txt",))) for name, at in moments.items())
    return Deployment(tuple(FleetNode(name, observed=each) for name, each in seen))


def test_ages_are_judged_and_said_in_words() -> None:
    fleet = seen_at(a="2026-11-23T11:50:00Z", b="2026-11-23T10:00:00Z", c="2026-11-23T11:00:00Z")
    with pytest.raises(StaleObservation, match=r"2 h ago.* \(1 more nodes likewise\)"):
        refuse_stale(fleet, NOW)
    assert refuse_stale(fleet, NOW, None) == refuse_stale(fleet, NOW, timedelta(hours=2)) == ()
    for moment in ("2026-11-23T20:00:00Z", "noon"):  # ahead, and no moment at all
        with pytest.raises(StaleObservation):
            refuse_stale(seen_at(a=moment), NOW)
    assert refuse_stale(Deployment((FleetNode("a"),)), NOW) == ("a",)
    assert age_of(seen_at(a="2026-11-23T13:00:00+02:00").nodes[0], NOW) == timedelta(hours=1)
    said = {0: "0 s", 61: "1 min 1 s", 90061: "1 day 1 h", 172800: "2 days"}
    assert {seconds: format_age(timedelta(seconds=seconds)) for seconds in said} == said


HELD = Instance("2g.12gb", 0, work("chat"))


def said_of(found: Transition, width: int = 100, **more: object) -> str:
    return " ".join(printed(transition_page(found, **more), width).split())  # type: ignore[arg-type]


@share(6)
@given(st.data())
def test_rows_hold_every_action_once_and_every_gpu(data: st.DataObject) -> None:
    now = data.draw(deployments(most_nodes=2, most_gpus=2, keys=("a30-24gb",)))
    spare = FleetNode("spare", (FleetGpu("spare", 0, A30),))
    now = replace(now, nodes=(*now.nodes, spare))
    found = planned(now, data.draw(promises(now)), floor="0.5")
    if not isinstance(found, Transition):
        return
    plan = schedule(found)
    rows, untouched = draw_rows(found, plan, dict.fromkeys(service_names(found), 0))
    marked = [box for row in rows for bar in row.bars for box in bar.boxes * bar.count if box.mark]
    assert len(marked) == len(found.actions)
    gpus = [card.name for row in rows for card in row.gpus] + [card.name for card in untouched]
    assert sorted(gpus) == sorted(card.name for card in found.start.gpus())
    picture = drawing(transition_page(found))
    assert picture == drawing(transition_page(found))
    said = said_of(found)
    assert all(str(action).split()[0] in said for action in found.actions)
    every = [count_moves(found, name) for name in service_names(found)]
    kept, started, _ = (sum(column) for column in zip(*every, (0, 0, 0), strict=True))
    assert (kept, started) == (found.kept.count, sum(len(each.adds) for each in found.actions))


def test_kinds_and_rates_are_told_apart() -> None:
    found = every_kind()
    said = said_of(found)
    for sign in ("│ 1+t │", "│1-t │", "~│ │ a/0 (1 kept)", "│ 1 chat, 2 code *│ │ a/1"):
        assert sign in said
    assert "1 GPU untouched (1 empty): a/3" in said
    assert "2 code for 1 chat" in html(transition_page(found))
    rates = {"chat": ((Fraction(30), Fraction(10)), (Fraction(60), Fraction(1000)))}
    assert re.search(r"short for.* 1 chat .* 1,000 [1-9]", said_of(found, 120, rates=rates))
    with pytest.raises(InvalidOption, match="rates are given for the service 'chatt'; nearest"):
        transition_page(found, rates={"chatt": rates["chat"]})


@pytest.mark.parametrize(
    "found",
    [
        made([], ["chat"], fleet(2, "a", HELD), {"chat": 20}),
        made([], [], Deployment(())),
        made([Action(What.CREATE, "a", 0, adds=(HELD,))], ["chat"], fleet(1), {"chat": 0}),
    ],
)
def test_little_or_nothing_to_do_is_a_page(found: Transition) -> None:
    assert said_of(found)
    assert words_of(drawing(transition_page(found, durations=NOTHING)))


def test_alike_gpus_are_a_few_rows_and_what_cannot_be_read_is_counted() -> None:
    other = Instance("2g.12gb", 0, work("code"))
    actions = [
        Action(What.RESTART, "a", at, (HELD,), (other,), after=(at - 4,) if at >= 4 else ())
        for at in range(18)
    ]
    found = made(actions, ["chat", "code"], fleet(200, "a", HELD), {"chat": 1820, "code": 0})
    rows, untouched = draw_rows(found, schedule(found), {"chat": 0, "code": 1})
    assert (len(rows), len(untouched)) == (5, 182)
    assert "182 GPUs untouched (182 in use): a/18-199" in said_of(found)
    names = [f"s{number:03}" for number in range(170)]
    actions = [
        Action(What.CREATE, "a", at, adds=(Instance("2g.12gb", 0, work(name)),))
        for at, name in enumerate(names)
    ]
    found = made(actions, names, fleet(170))
    assert said_of(found).count("... and 130 more ") == 3  # actions, services and rows
    assert "a/169" in words_of(drawing(transition_page(found)))
