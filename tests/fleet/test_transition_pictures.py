"""Transitions drawn: every action once, alike GPUs together, what waits and what is low."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import InvalidOption
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance
from cms.fleet.deployment.transition import Action, Durations, Transition, What, schedule
from cms.fleet.deployment.transition import transition as planned
from cms.fleet.report.figure import drawing
from cms.fleet.report.transitions import clock, in_lanes, rows_of, ticks, transition_page
from tests.fleet.deployments import deployments, promises
from tests.fleet.plans import printed, words_of
from tests.fleet.transition.cases import A30, leg
from tests.fleet.transitions import NOTHING, every_kind, fleet, growth, made, work
from tests.property.problems import share


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
    rows, untouched = rows_of(found, schedule(found))
    assert sum(len(row.spans) * len(row.gpus) for row in rows) == len(found.actions)
    gpus = [card.name for row in rows for card in row.gpus] + [card.name for card in untouched]
    assert sorted(gpus) == sorted(card.name for card in found.start.gpus())
    picture = drawing(transition_page(found))
    assert picture == drawing(transition_page(found))
    said = said_of(found)
    assert all(str(action).split()[0] in said for action in found.actions)


def test_kinds_are_told_apart_by_letters_and_hatching() -> None:
    picture = drawing(transition_page(every_kind()))
    words = words_of(picture)
    assert {"+t", "-t", "~", "*"} <= set(words.split())
    assert "#1 → 2" in words
    assert not re.search(r"(^| )[+~*-]t?[0-9]+( |$)", words), "a bare number says nothing"
    assert "an action begins when those that it waits for have ended" in words
    assert "<pattern" in picture
    said = said_of(every_kind())
    assert "1 GPU untouched (1 empty): a/3" in said
    assert ", temporary" in said
    assert "+ create; - delete; ~ restart; * rewrite; t temporary" in said


def test_what_comes_is_told_beside_the_capacity() -> None:
    found = every_kind()
    rates = {"chat": ((Fraction(30), Fraction(10)), (Fraction(60), Fraction(1000)))}
    said = said_of(found, 120, rates=rates)
    assert "most come/s short for" in said
    assert re.search(r"1 chat .* 1,000 [1-9]", said)
    with pytest.raises(InvalidOption, match="rates are given for the service 'chatt'; nearest"):
        transition_page(found, rates={"chatt": rates["chat"]})


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (made([], ["chat"], fleet(2, "a", Instance("2g.12gb", 0, work("chat"))), {"chat": 20}),
         "nothing to do"),
        (made([], [], Deployment(())), "0 -> 0 GPUs"),
        (made([Action(What.CREATE, "a", 0, adds=(Instance("2g.12gb", 0, work("chat")),))], ["chat"],
              fleet(1), {"chat": 0}), "0 -> 1 GPU"),
    ],
)  # fmt: skip
def test_little_or_nothing_to_do_is_a_page(found: Transition, words: str) -> None:
    assert words in said_of(found)
    assert words in words_of(drawing(transition_page(found, durations=NOTHING)))


def test_two_hundred_gpus_that_are_alike_are_a_few_rows() -> None:
    held, other = (Instance("2g.12gb", 0, work(name)) for name in ("chat", "code"))
    actions = [
        Action(What.RESTART, "a", at, (held,), (other,), after=(at - 4,) if at >= 4 else ())
        for at in range(18)
    ]
    found = made(actions, ["chat", "code"], fleet(200, "a", held), {"chat": 1820, "code": 0})
    rows, untouched = rows_of(found, schedule(found))
    assert (len(rows), len(untouched)) == (5, 182)
    assert "4 × a/0-3" in words_of(drawing(transition_page(found)))
    assert "182 GPUs untouched (182 in use): a/18-199" in said_of(found)


def test_more_rows_and_services_than_can_be_read_are_counted() -> None:
    names = [f"s{number:03}" for number in range(170)]
    actions = [
        Action(What.CREATE, "a", at, adds=(Instance("2g.12gb", 0, work(name)),))
        for at, name in enumerate(names)
    ]
    found = made(actions, names, fleet(170))
    said = said_of(found)
    assert "... and 130 more actions" in said
    assert "... and 130 more services, further from their floors" in said
    assert "... and 10 more actions on 10 GPUs" in words_of(drawing(transition_page(found)))


def test_durations_are_said_to_be_assumed() -> None:
    assert "Durations are assumed, not measured: create 1 min 20 s" in said_of(growth())
    own = Durations(start_s=Fraction(20))
    assert "Durations are as given: create 25 s" in said_of(growth(), durations=own)


@given(st.integers(0, 10**7), st.integers(1, 12))
def test_ticks_are_few_and_cover_the_axis(end: int, most: int) -> None:
    found = ticks(Fraction(end), most)
    assert found[0] == 0
    assert len(found) <= most + 1
    assert found[-1] <= end
    step = found[1] if len(found) > 1 else end + 1
    assert found[-1] + step > end
    assert all(clock(tick) for tick in found)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=12))
def test_lanes_hold_everything_once_without_overlap(spans: list[tuple[int, int]]) -> None:
    edges = sorted((begin, begin + wide) for begin, wide in spans)
    lanes = in_lanes((at, begin, end) for at, (begin, end) in enumerate(edges))
    assert sorted(at for lane in lanes for at in lane) == list(range(len(edges)))
    for lane in lanes:
        assert all(edges[one][1] <= edges[other][0] for one, other in pairwise(lane))
    assert len(lanes) == max((sum(b <= t < e for b, e in edges) for t in range(40)), default=0)


@pytest.mark.long
@pytest.mark.parametrize("step", range(4))
def test_the_published_chain_is_drawn(step: int) -> None:
    for found in leg(step):
        ElementTree.fromstring(drawing(transition_page(found)))
