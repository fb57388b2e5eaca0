"""Transitions: what happens when on each GPU, and how low each service's capacity gets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import InvalidOption
from ...values.names import nearest
from ...values.words import count, decimal, printable
from ..deployment.observation.age import format_age
from ..deployment.transition.checking import RECHECKED
from ..deployment.transition.curves import capacity_curves, seconds_below, service_names
from ..deployment.transition.durations import schedule
from ..deployment.transition.model import What
from .bars import names
from .colours import COLOURS, TONES
from .deployments import fleet_section
from .page import Fact, Page, Part, Picture, Section, Words
from .proofs import recheck
from .tables import MOST_ROWS, Grid, key_of, number, table
from .transition_summary import summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..deployment import Deployment, DesiredState
    from ..deployment.model import FleetGpu
    from ..deployment.transition.curves import Curve
    from ..deployment.transition.durations import Durations, Schedule
    from ..deployment.transition.model import Action, Transition
    from .transition_summary import Summary

#: The signs of actions, which need no colour.
SIGNS = {What.CREATE: "+", What.DELETE: "-", What.RESTART: "~", What.REPARTITION: "*",
    What.SWITCH: ">",
}  # fmt: skip
#: Rows of GPUs that are drawn.
MOST_LANES = 160
_MANY = 40  # rows, beyond which they are lower
_NAMED = 5  # instances that are named
#: Seconds between two ticks of the time axis.
_TICKS = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 86400)


def transition_page(
    transition: Transition,
    title: str = "",
    source: str = "",
    *,
    durations: Durations | None = None,
    max_parallel: int | None = None,
    by_node: bool = False,
    rates: Mapping[str, Sequence[tuple[Fraction, Fraction]]] | None = None,
    floor: str = "as listed",
    timeline: bool = True,
    notes: Iterable[str] = (),
    where: str = "",
) -> Page:
    """Describe when each action happens, by the durations.

    `rates`: by service, requests per second, each from a second on. `floor`: as it was asked for.
    `timeline`: whether a terminal shows times. `notes`, `where`: further lines.
    """
    timed: Any = {"durations": durations, "max_parallel": max_parallel, "by_node": by_node}
    plan, told = schedule(transition, **timed), summary(transition, floor=floor, **timed)
    places = {name: place for place, name in enumerate(service_names(transition))}
    for name in rates or {}:
        if name not in places:
            expected = f"expected one of {', '.join(places) or 'none'}"
            said = f"rates are given for the service {name!r}{nearest(name, places)}; {expected}"
            raise InvalidOption(said)
    rows, untouched = rows_of(transition, plan)
    time: list[Part] = [_gantt(plan, rows, places, told.headline)] if rows else []
    if transition.actions:
        time += [_actions(transition, plan), *map(_soft, _timing(transition, plan, durations))]
    else:
        time.append("Nothing is to be done.")
    if untouched:
        empty = sum(card.is_empty for card in untouched)
        numbers = (len(untouched) - empty, "in use"), (empty, "empty")
        held = ", ".join(f"{decimal(number)} {how}" for number, how in numbers if number)
        at = names(((card.node, card.index) for card in untouched), 400)
        time.append(_soft(f"{count(len(untouched), 'GPU')} untouched ({held}): {at}"))
    way: list[Part] = [*notes]
    if curves := capacity_curves(transition, plan):
        way.append(_services(transition, curves, told, places, rates or {}, timeline))
        way.append(_soft(
            "Capacities in requests/s; lowest: at no moment of any parallel execution less. The "
            "floors hold in every execution, whatever the durations are."
        ))  # fmt: skip
    way.append(_soft(told.assumed))
    fleets = [
        replace(fleet_section(side, name, f"The GPUs {name}"), only="web", drawn=False)
        for side, name in ((transition.start, "before"), (transition.target, "after"))
    ]
    said = f"Rechecked exactly from the file before this page was made: {'; '.join(RECHECKED)}."
    proof: list[Part] = [said]
    if transition.spare.least:
        needed = count(transition.spare.least, "spare GPU")
        proof.append(f"At least {needed}: {transition.spare.reason}.")
    if borrowed := ", ".join(transition.spare.borrowed):
        proof.append(f"Spare meanwhile: {borrowed}.")
    proof.append(recheck(source or "transition.json"))
    sections = [
        Section("time", "What happens when", time, "" if timeline else "web", drawn=True),
        Section("services", "Services on the way", way, drawn=True),
        *fleets,
        Section("proof", "The proof", proof, "web"),
    ]
    end = [Words(told.headline, "head"), *([Words(where)] if where else [])]
    return Page(title, "", list(_facts(transition, plan)), sections, source, end)


def whole_gpus_words(found: Transition, to: DesiredState | Deployment, tool: str) -> Iterator[str]:
    """Yield the price of repartitioning whole GPUs instead of parts of them."""
    from ..deployment.transition import saved_by_parts

    if found.spare.least:
        needed = count(found.spare.least, "spare GPU")
        yield f"{tool} needs {needed} at least: {found.spare.reason}"
    if saved := saved_by_parts(found, to):
        named = ", ".join(f"{card.name} {each}" for card, each in saved[:_NAMED])
        more = f" and {len(saved) - _NAMED} more" if len(saved) > _NAMED else ""
        yield (
            f"{count(len(saved), 'instance')} that only --tool nvidia-smi would keep, as it "
            f"changes parts of GPUs: {named}{more}"
        )


_soft = partial(Words, tone="soft")


def clock(seconds: Fraction) -> str:
    """Write seconds for reading."""
    if seconds < 60:
        return f"{decimal(seconds)} s"
    return format_age(timedelta(seconds=round(seconds)))


#: A floor is rounded up, a capacity down, so that neither flatters.
_floor, _capacity = partial(decimal, rounding=math.ceil), partial(decimal, rounding=math.floor)


def _timing(transition: Transition, plan: Schedule, durations: Durations | None) -> Iterator[str]:
    takes: dict[What, set[Fraction]] = {}
    for action, begin, end in zip(transition.actions, plan.begin_s, plan.end_s, strict=True):
        takes.setdefault(action.what, set()).add(end - begin)
    signs = [f"{sign} {what}" for what, sign in SIGNS.items() if what in takes]
    signs += ["t temporary"] * any(action.is_temporary for action in transition.actions)
    said = "# and colours: the services; an action begins when those that it waits for have ended"
    yield f"{'; '.join(signs)}; {said}"
    parts = []
    for what in (each for each in What if each in takes):
        least, most = min(takes[what]), max(takes[what])
        parts.append(f"{what} {f'{clock(least)} to ' if least < most else ''}{clock(most)}")
    given = "assumed, not measured" if durations is None else "as given"
    yield f"Durations are {given}: {', '.join(parts)}."


@dataclass(frozen=True, slots=True)
class Span:
    """An action in time."""

    action: Action
    begin: Fraction
    end: Fraction

    @property
    def sign(self) -> str:
        """The action as a letter: ``+``; with ``t`` where it is temporary."""
        return SIGNS[self.action.what] + "t" * self.action.is_temporary

    @property
    def look(self) -> tuple[object, ...]:
        """Equal for actions that are drawn alike."""
        sides = (self.action.removes, self.action.adds)
        parts = tuple(tuple((each.profile, each.work) for each in side) for side in sides)
        return self.sign, parts, self.begin, self.end


@dataclass(frozen=True, slots=True)
class Row:
    """GPUs with the same actions at the same time, and how many instances stay on each."""

    gpus: list[FleetGpu]
    spans: list[Span]
    kept: int

    @property
    def name(self) -> str:
        """The GPUs in short."""
        times = f"{len(self.gpus)} × " if len(self.gpus) > 1 else ""
        return times + names((card.node, card.index) for card in self.gpus)


def rows_of(transition: Transition, plan: Schedule) -> tuple[list[Row], list[FleetGpu]]:
    """Sort the actions by GPU, equal rows together; and return the GPUs without an action.

    What begins first is first.
    """
    by_gpu: dict[tuple[str, int], list[Span]] = {}
    for action, begin, end in zip(transition.actions, plan.begin_s, plan.end_s, strict=True):
        by_gpu.setdefault(action.gpu, []).append(Span(action, begin, end))
    alike: dict[object, Row] = {}
    untouched = []
    for card in transition.start.gpus():
        spans = by_gpu.get((card.node, card.index))
        if spans is None:
            untouched.append(card)
            continue
        spans.sort(key=lambda each: (each.begin, each.end))
        gone = Counter(each for span in spans for each in span.action.removes)
        kept = len(card.instances) - (Counter(card.instances) & gone).total()
        look = card.gpu.key, tuple(each.look for each in spans), kept
        alike.setdefault(look, Row([], spans, kept)).gpus.append(card)
    rows = sorted(alike.values(), key=lambda row: (row.spans[0].begin, row.spans[-1].end, row.name))
    return rows, untouched


def _in_lanes(spans: Iterable[Span]) -> list[list[Span]]:
    """Put actions, by their beginning, into lanes without overlap."""
    lanes: list[list[Span]] = []
    for span in spans:
        free = next((lane for lane in lanes if lane[-1].end <= span.begin), None)
        if free is None:
            lanes.append([span])
        else:
            free.append(span)
    return lanes


def _actions(transition: Transition, plan: Schedule) -> Grid:
    times = zip(transition.actions, plan.begin_s, plan.end_s, strict=True)
    rows = [
        [number(at), f"{action}{', temporary' * action.is_temporary}", number(begin, clock),
         number(end, clock), ", ".join(str(before + 1) for before in action.after) or "-"]
        for at, (action, begin, end) in enumerate(times, start=1)
    ]  # fmt: skip
    heads = ">#|action*|>begins|>ends|after"
    return table("Every action, and what it waits for", heads, rows, "more action", folded=True)


def _services(
    transition: Transition, curves: Sequence[Curve], told: Summary, places: Mapping[str, int],
    rates: Mapping[str, Sequence[tuple[Fraction, Fraction]]], timeline: bool,
) -> Grid:  # fmt: skip
    moves, end, rows = {each.service: each for each in told.services}, told.schedule.makespan_s, []
    if len(curves) > MOST_ROWS:  # those that come nearest to their floors first
        tiny = Fraction(1, 10**9)
        curves = sorted(curves, key=lambda each: each.lowest / (each.floor or tiny))
    for each in curves:
        floor, own = transition.floors.get(each.service), moves[each.service]
        low, coming = min(each.lowest, own.lowest_rps), rates.get(each.service, ())
        most = max((rate for when, rate in coming if when <= end), default=None)
        over = None if most is None else Fraction(seconds_below(each, coming, end))
        rows.append([
            key_of(places[each.service]), each.service,
            *map(number, (own.kept, own.started, own.stopped)), number(each.before, _capacity),
            number(low, _capacity, "bad" if low < each.floor else ""), number(each.lowest_s, clock),
            number(each.floor if floor else None, _floor), number(each.after, _capacity),
            floor.reason.replace(" requests/s", "") if floor else "none: it comes or goes",
            *([number(most, _floor), number(over, clock)] if rates else []),
        ])  # fmt: skip
    # a terminal shows when, or only what becomes of each service
    heads = (
        ">#|service|>kept|>started|>stopped|>before/s:T|>lowest/s|>at:T|>floor/s|>after/s:T|"
        f"floor is{'|>most come/s|>short for' * bool(rates)}"
    ).replace(":T", ":1" if timeline else ":9")
    rest = "more service|, further from their floors"
    return table("Each service on the way", heads, rows, rest)


def _facts(transition: Transition, plan: Schedule) -> Iterator[Fact]:
    before, after = (len(side.used_gpus()) for side in (transition.start, transition.target))
    yield Fact("GPUs", f"{decimal(before)} → {decimal(after)}", "in use before and after")
    took = f"in {count(len(transition.steps), 'step')}, {clock(plan.makespan_s)}"
    yield Fact("Actions", decimal(len(transition.actions)), took)
    kept, spare = transition.kept, transition.spare
    best = kept.count >= kept.most
    most = "maximum" if best else f"at most {decimal(kept.most)}"
    word = {"solver": ", claimed by the solver", "checked": ", proof checked"}.get(kept.proof, "")
    yield Fact("Kept", count(kept.count, "instance"), most + word, "good" if best else "")
    least = "proved: fewer do not suffice" if spare.is_least else f"at least {spare.least}"
    note = least if spare.count else "none is needed"
    yield Fact("Spare GPUs", decimal(spare.count), note, "good" if spare.is_least else "fair")


def _gantt(plan: Schedule, rows: Sequence[Row], places: Mapping[str, int], said: str) -> Picture:
    lanes = [(row, lane) for row in rows[:MOST_LANES] for lane in _in_lanes(row.spans)]
    pitch = 0.27 if len(lanes) <= _MANY else 0.2
    bottom = 0.35 if len(rows) > MOST_LANES else 0.1
    high = 0.4 + bottom + pitch * len(lanes)

    def draw(sheet: Figure) -> None:
        wide, left = float(sheet.bbox.width / sheet.dpi), 2.2
        place = left / wide, bottom / high, 0.94 - left / wide, 1 - (0.4 + bottom) / high
        axes = sheet.add_axes(place)
        end = float(plan.makespan_s) or 1.0
        axes.set(xlim=(0, end), ylim=(len(lanes) - 0.5, -0.5), yticks=[])
        axes.xaxis.tick_top()
        last = _TICKS[-1] * -(-plan.makespan_s // (_TICKS[-1] * 8))
        step = next((each for each in _TICKS if plan.makespan_s <= each * 8), last)
        marks = [Fraction(at * step) for at in range(int(plan.makespan_s // step) + 1)]
        axes.set_xticks([float(tick) for tick in marks], [clock(tick) for tick in marks])
        axes.grid(axis="x")
        for y, (row, lane) in enumerate(lanes):
            if not y or row is not lanes[y - 1][0]:
                _draw_name(axes, row, y, left - 0.1)
            for span in lane:
                _draw_span(axes, span, y, (0.94 * wide - left) / end, pitch, places)
        if left_out := rows[MOST_LANES:]:
            gpus = sum(len(row.gpus) for row in left_out)
            actions = sum(len(row.spans) * len(row.gpus) for row in left_out)
            axes.set_xlabel(f"... and {count(actions, 'more action')} on {count(gpus, 'GPU')}")

    return Picture(said, draw, high, wide=True)


def _draw_name(axes: Axes, row: Row, y: float, room: float) -> None:
    """Write the name of a row, cut in the middle: of names with numbers the end says most."""
    from .figure import width_of

    shown = name = printable(row.name) + (f" ({row.kept} kept)" if row.kept else "")
    while len(shown) > 3 and width_of(shown, 8) > room:
        half = (len(shown) - 2) // 2
        shown = f"{name[:half]}…{name[-half:]}"
    axes.annotate(shown, (0, y), (-4, 0), textcoords="offset points", ha="right", va="center",
                  fontsize=8)  # fmt: skip


def _draw_span(
    axes: Axes, span: Span, y: float, inches: float, pitch: float, places: Mapping[str, int]
) -> None:
    """Draw an action: its colour, its hatching, its sign, and the words that fit."""
    from .figure import width_of

    begin, wide = float(span.begin), max(float(span.end - span.begin), 0.12 / inches)
    what, removes, adds = span.action.what, span.action.removes, span.action.adds
    gone, come = (
        list(dict.fromkeys(each.work.service for each in own if each.work is not None))
        for own in (removes, adds)
    )
    new, old = (
        COLOURS[places[own[0]] % len(COLOURS)] if own else "#e6e8eb" for own in (come or gone, gone)
    )
    replaces = bool(removes) and what in (What.RESTART, What.REPARTITION)
    leaving = wide if what is What.DELETE else wide / 3 * replaces
    axes.barh(y, wide, 0.84, begin, color=new, edgecolor=TONES["ink"],
              lw=1.8 if what is What.REPARTITION else 0.7,
              ls="--" if span.action.is_temporary else "-")  # fmt: skip
    axes.barh(y, leaving, 0.84, begin, color=old, hatch="////", edgecolor="#ffffff", lw=0)
    keys = ",".join(str(places[name] + 1) for name in come or gone)
    if what is What.RESTART and gone and come:
        keys = f"{places[gone[0]] + 1} → {places[come[0]] + 1}"
    parts = adds or removes
    named = f"{span.sign} #{keys} {(come or gone)[0]} {parts[0].profile}" if come or gone else ""
    size = 8 if pitch > 0.2 else 6.5
    ground = {"fc": "#ffffff", "alpha": 0.7, "ec": "none", "pad": 0.6} if leaving else None
    words = (named * (len(parts) == 1), f"{span.sign} #{keys}", span.sign)
    for label in words:
        if label and width_of(printable(label), size) < wide * inches - 0.06:
            axes.text(begin + 0.04 / inches, y, printable(label), fontsize=size, va="center",
                      color="#1b1f25", bbox=ground)  # fmt: skip
            break
