"""Transitions drawn: every action once, legible at every size."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from cms.errors import InvalidOption
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance
from cms.fleet.deployment.transition import (
    Action,
    Durations,
    Transition,
    What,
    schedule,
    transition,
)
from cms.fleet.deployment.transition.curves import capacity_curve
from cms.fleet.report.transition_gantt import Gantt, in_lanes, longest_chain
from cms.fleet.report.transition_words import clock, ticks
from cms.fleet.report.transitions import MOST_ROWS, transition_lines, transition_svg
from tests.fleet.deployments import deployments, promises
from tests.fleet.plans import NASTY, printed
from tests.fleet.transition.cases import A30, leg
from tests.fleet.transitions import NOTHING, every_kind, fleet, growth, made, work
from tests.property.problems import share

SVG = "{http://www.w3.org/2000/svg}"
WIDTH, EDGE = 960, 24
SIZES = {"title": 20, "verdict": 15, "small": 11, "tiny": 9}


def texts(picture: str) -> list[tuple[float, float, float, float, str]]:
    """Left, top, right, bottom of each text, as wide as a wide typeface makes it."""
    found = []
    for each in ElementTree.fromstring(picture).iter(f"{SVG}text"):
        style = (each.get("class") or "").split()
        size = next((SIZES[name] for name in style if name in SIZES), 13)
        words = each.text or "".join(child.tail or "" for child in each)
        wide = 0.61 * size * len(words)
        x, y = float(each.get("x") or 0), float(each.get("y") or 0)
        middle = each.get("text-anchor") == "middle" or "key" in style
        ends = each.get("text-anchor") == "end" or "right" in style
        x -= wide / 2 if middle else wide if ends else 0
        found.append((x, y - 0.75 * size, x + wide, y + 0.2 * size, words))
    return found


def assert_legible(picture: str) -> None:
    boxes = sorted(texts(picture))
    height = float(ElementTree.fromstring(picture).get("height") or 0)
    for at, (left, top, right, bottom, words) in enumerate(boxes):
        assert 0 <= left, words
        assert right <= WIDTH, words
        assert 0 <= top < bottom <= height, words
        for other in boxes[at + 1 :]:
            if other[0] >= right:
                break
            apart = other[1] >= bottom or other[3] <= top
            assert apart, f"{words!r} lies on {other[4]!r}"


def drawn_actions(picture: str) -> int:
    root = ElementTree.fromstring(picture)
    return sum(each.get("class") == "action" for each in root.iter(f"{SVG}g"))


def lines(found: Transition, width: int = 100, **more: object) -> list[str]:
    report = transition_lines(found, width=width, **more)  # type: ignore[arg-type]
    said = printed(report, width).splitlines()
    assert all(cell_len(line) <= width for line in said)
    return said


# --- rows -----------------------------------------------------------------------------------------


@share(6)
@given(st.data())
def test_every_action_is_drawn_exactly_once(data: st.DataObject) -> None:
    now = data.draw(deployments(most_nodes=2, most_gpus=2, keys=("a30-24gb",)))
    spare = FleetNode("spare", (FleetGpu("spare", 0, A30),))
    now = replace(now, nodes=(*now.nodes, spare))
    found = transition(now, data.draw(promises(now)), floor="0.5")
    if not isinstance(found, Transition):
        return
    plan = schedule(found)
    gantt = Gantt.of(found, plan)
    shown = [span.position for row in gantt.rows for own in row.spans for span in own]
    assert sorted(shown) == list(range(len(found.actions)))
    gpus = [card.name for row in gantt.rows for card in row.gpus]
    gpus += [card.name for card in gantt.untouched]
    assert sorted(gpus) == sorted(card.name for card in found.start.gpus())
    for row in gantt.rows:
        assert len({tuple(span.look for span in own) for own in row.spans}) == 1
    picture = transition_svg(found)
    assert drawn_actions(picture) == sum(len(row.drawn) for row in gantt.rows)
    assert picture == transition_svg(found)
    assert_legible(picture)
    lines(found, data.draw(st.integers(60, 200)))


def signs(said: list[str]) -> list[str]:
    """What begins with a sign in the rows of GPUs."""
    rows = [line.partition("│")[2] for line in said if "│" in line and "capacity" not in line]
    return [sign for row in rows for sign in re.findall(r"[-+~*]t?(?=[0-9])", row)]


def test_kinds_are_told_apart_by_letters() -> None:
    found = every_kind()
    said = lines(found, 120)
    assert signs(said) == ["+t", "-t", "~", "*"]
    assert any("1 GPU untouched (1 empty): a/3" in line for line in said)
    picture = transition_svg(found)
    labels = " ".join(words for *_, words in texts(picture))
    assert {"+t", "-t", "~", "*"} <= set(labels.split())
    assert "url(#leaving)" in picture
    assert "stays: 2g.12gb@0 chat" in picture
    assert "lowest 20 at" in picture
    assert_legible(picture)


def test_what_comes_is_drawn_where_it_is_barely_above_the_capacity() -> None:
    """Both are on one line of the chart then."""
    found = every_kind()
    curve = capacity_curve(found, schedule(found), "chat")
    short = curve.highest + Fraction(1, 100)
    said = lines(found, 100, rates={"chat": [(Fraction(0), short)]})
    assert "above it for" in " ".join(map(str.strip, said))
    assert any("×××" in line for line in said)
    said = lines(found, 100, rates={"chat": [(Fraction(0), curve.lowest)]})
    assert "above it for" not in " ".join(map(str.strip, said))
    assert not any("××" in line for line in said)


def test_what_comes_is_drawn_beside_capacities() -> None:
    found = every_kind()
    (name,) = {each for action in found.actions for each in action.services} & {"chat"}
    rates = {name: [(Fraction(30), Fraction(10)), (Fraction(60), Fraction(1000))]}
    said = lines(found, 100, rates=rates)
    assert any("floor (┄) and what comes (·, × above it)" in line for line in said)
    assert "at most 1,000 items/s come, above it for " in " ".join(map(str.strip, said))
    assert sum(line.rstrip().endswith("×") for line in said) == 1
    assert not any("·" in line.partition("│")[2] for line in lines(found, 100))
    with pytest.raises(InvalidOption, match="rates are given for the service 'chatt'; nearest"):
        transition_lines(found, rates={"chatt": rates[name]})


def test_arrows_are_the_waits_that_decide() -> None:
    picture = transition_svg(every_kind())
    assert picture.count('marker-end="url(#tip)"') == 3
    found, plan = growth(), schedule(growth())
    last = longest_chain(found, plan)
    assert plan.end_s[last[-1]] == plan.makespan_s
    assert plan.begin_s[last[0]] == 0
    assert all(plan.end_s[one] == plan.begin_s[other] for one, other in pairwise(last))


def test_waits_end_where_nothing_takes_time() -> None:
    found = growth()
    assert schedule(found, NOTHING).makespan_s == 0
    picture = transition_svg(found, durations=NOTHING)
    assert drawn_actions(picture) == sum(
        len(row.drawn) for row in Gantt.of(found, schedule(found, NOTHING)).rows
    )
    assert_legible(picture)
    assert "as given" in picture
    assert len(longest_chain(found, schedule(found, NOTHING))) == 1
    lines(found, 60, durations=NOTHING)


def test_no_action_at_all() -> None:
    held = Instance("2g.12gb", 0, work("chat"))
    found = made([], ["chat"], fleet(2, "a", held), {"chat": 20})
    picture = transition_svg(found)
    assert "nothing to do" in picture
    assert "Durations" not in picture
    assert_legible(picture)
    said = lines(found, 80)
    assert said[0] == "nothing to do: 2 GPUs stay as they are"
    assert any("1 service keeps its capacity all the time: chat" in line for line in said)
    nobody = made([], [], Deployment(()))
    assert_legible(transition_svg(nobody))
    assert lines(nobody) == ["nothing to do: 0 GPUs stay as they are"]


def test_one_action_on_one_gpu_and_a_floor_of_zero() -> None:
    held = Instance("2g.12gb", 0, work("chat"))
    found = made([Action(What.CREATE, "a", 0, adds=(held,))], ["chat"], fleet(1), {"chat": 0})
    said = lines(found, 60)
    assert signs(said) == ["+"]
    assert any("0 -> 10 items/s; lowest 0 at 0 s, no floor" in line for line in said)
    assert_legible(transition_svg(found))


def test_two_hundred_gpus() -> None:
    held, other = (Instance("2g.12gb", 0, work(name)) for name in ("chat", "code"))
    actions = [
        Action(What.RESTART, "a", at, (held,), (other,), after=(at - 4,) if at >= 4 else ())
        for at in range(18)
    ]
    found = made(actions, ["chat", "code"], fleet(200, "a", held), {"chat": 1820, "code": 0})
    for width in (60, 80, 160, 200):
        said = lines(found, width)
        assert len(said) < 40
        assert any("182 GPUs untouched (182 in use): a/18-199" in line for line in said)
        assert "1,820 items/s; lowest 1,820 at" in " ".join(said)
    assert "4 × a/0-3" in "\n".join(lines(found, 80))
    assert drawn_actions(transition_svg(found)) == 5
    assert_legible(transition_svg(found))


def test_more_rows_and_services_than_can_be_read_are_counted() -> None:
    names = [f"s{number:03}" for number in range(170)]
    actions = [
        Action(What.CREATE, "a", at, adds=(Instance("2g.12gb", 0, work(name)),))
        for at, name in enumerate(names)
    ]
    found = made(actions, names, fleet(170))
    said = lines(found, 100)
    assert f"... and {170 - MOST_ROWS} more actions on {170 - MOST_ROWS} GPUs" in said
    assert "... and 118 more services" in said
    picture = transition_svg(found)
    assert drawn_actions(picture) == 160
    assert "... and 10 more actions on 10 GPUs" in picture
    assert "... and 110 more services, further from their floors" in picture
    assert_legible(picture)


def test_names_of_any_kind() -> None:
    long = "gpu-node-eu-west-1a-production-cluster-0017"
    found = every_kind(NASTY, "x" * 90, long)
    picture = transition_svg(found)
    assert_legible(picture)
    assert "<b>" not in picture
    labels = [words for *_, words in texts(picture)]
    assert f"{long}/2" in labels, "it stands above its row where there is no room beside it"
    for width in (60, 200):
        said = lines(found, width)
        assert any("0017/2" in line for line in said)
    assert_legible(transition_svg(every_kind("]]>", "&amp;", "--><script>")))


# --- words ----------------------------------------------------------------------------------------


def test_rates_are_drawn_and_what_is_missing_is_said() -> None:
    found = every_kind()
    rates = {"chat": [(Fraction(0), Fraction(15)), (Fraction(300), Fraction(30))]}
    picture = transition_svg(found, rates=rates)
    assert "rate dotted" in picture
    assert "rate above it for" in picture
    assert_legible(picture)
    with pytest.raises(InvalidOption, match="'chatt'"):
        transition_svg(found, rates={"chatt": []})
    with pytest.raises(InvalidOption, match="ascending moments"):
        transition_svg(
            found, rates={"chat": [(Fraction(9), Fraction(1)), (Fraction(9), Fraction(2))]}
        )
    with pytest.raises(InvalidOption, match="a rate of chat"):
        transition_svg(found, rates={"chat": [(Fraction(0), Fraction(-1))]})


def test_durations_are_said_to_be_assumed() -> None:
    found = growth()
    said = " ".join(lines(found, 100))
    assert "Durations are assumed, not measured: create 1 min 20 s" in said
    said = " ".join(lines(found, 100, durations=Durations(start_s=Fraction(20)), max_parallel=3))
    assert "Durations are as given: create 25 s" in said
    assert "at most 3 actions at once" in said


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
    lanes = in_lanes(range(len(edges)), edges)
    assert sorted(at for lane in lanes for at, *_ in lane) == list(range(len(edges)))
    for lane in lanes:
        assert all(one[2] <= other[1] for one, other in pairwise(lane))
    most = max((sum(b <= t < e for b, e in edges) for t in range(40)), default=0)
    assert len(lanes) == most


@pytest.mark.long
@pytest.mark.parametrize("step", range(4))
def test_the_published_chain_is_legible(step: int) -> None:
    for found in leg(step):
        assert_legible(transition_svg(found))
