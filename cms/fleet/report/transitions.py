"""Transitions: what happens when on each GPU, and how low each service's capacity gets."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from ...errors import InvalidOption
from ...values.names import nearest
from ...values.words import count, decimal
from ..deployment import Deployment, DesiredState, FleetGpu, Instance
from ..deployment.observation.age import format_time
from ..deployment.transition import Action, Durations, Schedule, Transition, What, schedule
from ..deployment.transition.checking import RECHECKED, lowest_capacity
from ..deployment.transition.curves import Curve, capacity_curves, seconds_below, service_names
from .bars import Folded, fill_gaps, fold_alike, format_gpus, list_bars
from .deployments import fleet_section
from .page import Bar, Box, Fact, Page, Part, Section, Words
from .proofs import list_rechecks
from .tables import MOST_ROWS, Grid, key_cell, number, table

#: What is said of an action's box: what becomes of its instance, where that is one word.
_MARKS = {What.CREATE: "created", What.DELETE: "deleted", What.RESTART: "restarted"}
_PARTS = 1000  # that the time is divided into
_LEAST = 31  # of them for an action, which is then seen on 33 columns
_NAMED = 5  # instances that are named
_TIME = (
    "across: time; colours and keys: the services; an action begins when those that it waits for "
    "have ended"
)


def transition_page(
    transition: Transition,
    title: str = "",
    source: str = "",
    *,
    durations: Durations | None = None,
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
    plan = schedule(transition, durations, by_node=by_node)
    alone = schedule(transition, durations, 1, by_node=by_node).makespan_s
    places = {name: place for place, name in enumerate(service_names(transition))}
    for name in rates or {}:
        if name not in places:
            expected = f"expected one of {', '.join(places) or 'none'}"
            said = f"rates are given for the service {name!r}{nearest(name, places)}; {expected}"
            raise InvalidOption(said)
    rows, untouched = draw_rows(transition, plan, places)
    named = ((each, f"{each.times}{format_gpus(each.places)}{each.note}") for each in rows)
    lines = [
        replace(bar, label="", caption=" " if at else name)
        for each, name in named
        for at, bar in enumerate(each.bars)
    ]
    head = f"0 s to {format_time(plan.makespan_s)}"
    drawn = list_bars(lines, head, large=False, what="more row") if lines else ()
    time: list[Part] = [replace(part, key=_TIME) for part in drawn]
    if transition.actions:
        takes, table_rows = dict[What, list[Fraction]](), []
        every = zip(transition.actions, plan.begin_s, plan.end_s, strict=True)
        for nth, (action, begin, over) in enumerate(every, start=1):
            takes.setdefault(action.what, []).append(over - begin)
            table_rows.append([
                number(nth), f"{action}{', temporary' * action.is_temporary}",
                number(begin, format_time), number(over, format_time),
                ", ".join(str(before + 1) for before in action.after) or "-",
            ])  # fmt: skip
        name, heads = "Every action, and what it waits for", ">#|action*|>begins|>ends|after"
        spans = (
            f"{what} {f'{format_time(min(own))} to ' * (min(own) < max(own))}"
            f"{format_time(max(own))}"
            for what in What
            if (own := takes.get(what))
        )
        given = "assumed, not measured" if durations is None else "as given"
        time += [
            table(name, heads, table_rows, "more action", folded=True),
            _soft(f"Durations are {given}: {', '.join(spans)}."),
        ]
    else:
        time.append("Nothing is to be done.")
    if untouched:
        empty = sum(card.is_empty for card in untouched)
        numbers = (len(untouched) - empty, "in use"), (empty, "empty")
        held = ", ".join(f"{decimal(number)} {how}" for number, how in numbers if number)
        at = format_gpus(((card.node, card.index) for card in untouched), 400)
        time.append(_soft(f"{count(len(untouched), 'GPU')} untouched ({held}): {at}"))
    way: list[Part] = [*notes]
    if curves := capacity_curves(transition, plan):
        way.append(_services(transition, curves, plan, places, rates or {}, timeline))
        way.append(_soft(
            "Capacities in requests/s; lowest: at no moment of any parallel execution less. The "
            "floors hold in every execution, whatever the durations are."
        ))  # fmt: skip
    way.append(_soft(
        f"Times are assumed, not measured: {format_time(plan.makespan_s)} with all that may side "
        f"by side, {format_time(alone)} one after the other."
    ))  # fmt: skip
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
    proof.append(list_rechecks(source or "transition.json"))
    sections = [
        Section("time", "What happens when", time, "" if timeline else "web", drawn=True),
        Section("services", "Services on the way", way, drawn=True),
        *fleets,
        Section("proof", "The proof", proof, "web"),
    ]
    facts, said = _sum_up(transition, floor, plan)
    end = [Words(said, "head"), *([Words(where)] if where else [])]
    return Page(title, "", facts, sections, source, end)


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


#: A floor is rounded up, a capacity down, so that neither flatters.
_floor, _capacity = partial(decimal, rounding=math.ceil), partial(decimal, rounding=math.floor)


def draw_rows(
    transition: Transition, plan: Schedule, places: Mapping[str, int]
) -> tuple[list[Folded], list[FleetGpu]]:
    """Draw what happens on each GPU, alike ones once, as bars on which nothing overlaps.

    What begins first is first. Also returns the GPUs without an action.
    """
    boxes: dict[tuple[str, int], list[Box]] = {}
    gone: dict[tuple[str, int], Counter[Instance]] = {}
    times = sorted(zip(plan.begin_s, plan.end_s, range(len(transition.actions)), strict=True))
    for begin, end, at in times:
        action = transition.actions[at]
        box = _box(action, begin, end, plan.makespan_s or Fraction(1), places)
        boxes.setdefault(action.gpu, []).append(box)
        gone.setdefault(action.gpu, Counter()).update(action.removes)
    drawn, untouched = [], []
    for card in transition.start.gpus():
        if (at_gpu := (card.node, card.index)) not in boxes:
            untouched.append(card)
            continue
        lanes: list[list[Box]] = []
        for box in boxes[at_gpu]:
            free = (lane for lane in lanes if lane[-1].start + lane[-1].width <= box.start)
            if (lane := next(free, None)) is None:
                lanes.append(lane := [])
            lane.append(box)
        kept = len(card.instances) - (Counter(card.instances) & gone[at_gpu]).total()
        bars = tuple(Bar(card.gpu.key, _PARTS, fill_gaps(lane, _PARTS, "blank")) for lane in lanes)
        drawn.append((card, bars, f" ({kept} kept)" * bool(kept)))
    began = {(card.node, card.index): boxes[card.node, card.index][0].start for card, *_ in drawn}
    return sorted(
        fold_alike(drawn), key=lambda row: (began[row.places[0]], row.places[0])
    ), untouched


def _box(
    action: Action, begin: Fraction, end: Fraction, last: Fraction, places: Mapping[str, int]
) -> Box:
    """Draw an action: the service that comes or goes, and for which other one, if for any."""
    start = min(int(begin * _PARTS / last), _PARTS - _LEAST)
    width = max(int(end * _PARTS / last) - start, _LEAST)
    gone, come = (
        list(dict.fromkeys(each.work.service for each in own if each.work is not None))
        for own in (action.removes, action.adds)
    )
    what, state = _MARKS.get(action.what, str(action.what)), "temporary" * action.is_temporary
    profile = ", ".join(each.profile for each in action.adds or action.removes)
    if not (own := come or gone):
        return Box(start, width, profile, mark=what, state=state)
    keyed = [f"{places[name] + 1} {name}" for name in own[1:]]
    before = [f"{places[name] + 1} {name}" for name in gone if name not in own]
    service = ", ".join([own[0], *keyed]) + f" for {', '.join(before)}" * bool(before)
    return Box(start, width, profile, service, places[own[0]], mark=what, state=state)


def _services(
    transition: Transition, curves: Sequence[Curve], plan: Schedule, places: Mapping[str, int],
    rates: Mapping[str, Sequence[tuple[Fraction, Fraction]]], timeline: bool,
) -> Grid:  # fmt: skip
    end, rows = plan.makespan_s, []
    if len(curves) > MOST_ROWS:  # those that come nearest to their floors first
        tiny = Fraction(1, 10**9)
        curves = sorted(curves, key=lambda each: each.lowest / (each.floor or tiny))
    for each in curves:
        floor, coming = transition.floors.get(each.service), rates.get(each.service, ())
        low = min(each.lowest, lowest_capacity(transition, each.service))
        most = max((rate for when, rate in coming if when <= end), default=None)
        over = None if most is None else Fraction(seconds_below(each, coming, end))
        rows.append([
            key_cell(places[each.service]), each.service,
            *map(number, count_moves(transition, each.service)), number(each.before, _capacity),
            number(low, _capacity, "bad" if low < each.floor else ""),
            number(each.lowest_s, format_time), number(each.floor if floor else None, _floor),
            number(each.after, _capacity),
            floor.reason.replace(" requests/s", "") if floor else "none: it comes or goes",
            *([number(most, _floor), number(over, format_time)] if rates else []),
        ])  # fmt: skip
    # a terminal shows when, or only what becomes of each service
    heads = (
        ">#|service|>kept|>started|>stopped|>before/s:T|>lowest/s|>at:T|>floor/s|>after/s:T|"
        f"floor is{'|>most come/s|>short for' * bool(rates)}"
    ).replace(":T", ":1" if timeline else ":9")
    rest = "more service|, further from their floors"
    return table("Each service on the way", heads, rows, rest)


def count_moves(transition: Transition, service: str) -> tuple[int, int, int]:
    """Count a service's instances that are kept, started and stopped; temporary ones are both."""

    def own(instances: Iterable[Instance]) -> int:
        return sum(each.work is not None and each.work.service == service for each in instances)

    before = own(each for _, each in transition.start.instances() if each.is_managed)
    lasting = sum(own(each.removes) for each in transition.actions if not each.is_temporary)
    started = sum(own(each.adds) for each in transition.actions)
    return before - lasting, started, sum(own(each.removes) for each in transition.actions)


def _sum_up(transition: Transition, floor: str, plan: Schedule) -> tuple[list[Fact], str]:
    """Say it all in facts, and in a line: ``2 -> 16 GPUs, floor 100 %: 52 actions ...``."""
    before, after = (len(side.used_gpus()) for side in (transition.start, transition.target))
    done, kept, spare = len(transition.actions), transition.kept, transition.spare
    took = f"in {count(len(transition.steps), 'step')}, {format_time(plan.makespan_s)}"
    best = kept.count >= kept.most
    most = "maximum" if best else f"at most {decimal(kept.most)}"
    word = {"solver": ", claimed by the solver", "checked": ", proof checked"}.get(kept.proof, "")
    least = "proved: fewer do not suffice" if spare.is_least else f"at least {spare.least}"
    facts = [
        Fact("GPUs", f"{decimal(before)} → {decimal(after)}", "in use before and after"),
        Fact("Actions", decimal(done), took),
        Fact("Kept", count(kept.count, "instance"), most + word, "good" if best else ""),
        Fact("Spare GPUs", decimal(spare.count), least if spare.count else "none is needed",
             "good" if spare.is_least else "fair"),
    ]  # fmt: skip
    said = f"{before} -> {count(after, 'GPU')}, floor {floor}: "
    if not done:
        return facts, said + "nothing to do"
    running = count(sum(transition.start.kinds().values()), "instance")
    most = f"{most}{word}" if best and word else f"at most {kept.most}"
    said += f"{count(done, 'action')} {took} (assumed); {spare}; {kept.count} of {running} kept"
    return facts, f"{said} ({most})"
