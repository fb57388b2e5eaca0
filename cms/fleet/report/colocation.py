"""Co-location: which workload runs where, which are left over, the worth of one more."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from ...values.words import count, decimal, percent
from ..colocation import ColocationSolution, PredictedWeights, TableWeights
from ..colocation.problem import FORBIDDEN, FULL_WEIGHT, ColocationProblem, misfit
from .bars import list_bars
from .charts import history_table
from .page import PER_CENT, Bar, Box, Fact, Page, Part, Section, Words
from .proofs import RECHECK_HEAD, list_rechecks
from .tables import Cell, Grid, key_cell, number, table

#: Uses of GPUs that are drawn with words in them.
MOST_BARS = 24
_MEANT = (
    "A bar is 100 % of a GPU's SMs: the online service, the margin (finely hatched), in colour the "
    "share of the offline workload, and what is idle (hatched)."
)


def colocation_page(
    problem: ColocationProblem,
    solution: ColocationSolution,
    title: str = "",
    sources: tuple[str, ...] = (),
    known: TableWeights | None = None,
    bucketing: str = "",
    reasons: TableWeights | PredictedWeights | None = None,
    more: Sequence[Part] = (),
) -> Page:
    """Describe a solution of a co-location problem.

    `sources`: the two files. `known`: slowdowns of pairs. `bucketing`: the price of rounding
    activities, in words. `reasons`: why pairs are forbidden. `more`: further parts.
    """
    fleet, per_cent = list[Part](), lambda value: f"{decimal(value)} %"
    taken, placed = Counter[str](), Counter[str]()
    for pair in solution.plan:
        taken[pair.online] += pair.count
        placed[pair.offline] += pair.count
    if problem.online:
        rows = [
            [gpus.name, gpus.device, number(gpus.count), number(gpus.sm_activity, per_cent),
             number(share or None, per_cent), number(taken[gpus.name]),
             _worth(solution.certificate.online.get(gpus.name, 0))]
            for gpus, share in zip(problem.online, problem.shares, strict=True)
        ]  # fmt: skip
        heads = "online class|device:9|>GPUs|>activity|>share|>taken|>one more GPU"
        classes = table("Online classes", heads, rows, "more online class")
        fleet += [*_bars(problem, solution), classes]
    if solution.plan.counts:
        fleet.append(_pairs(problem, solution, known))
    rows = [
        [key_cell(place), work.name, number(work.count), number(placed[work.name]),
         number(work.count - placed[work.name]), number(work.priority),
         _worth(solution.certificate.offline.get(work.name, 0))]
        for place, work in enumerate(problem.offline)
    ]  # fmt: skip
    heads = ">#:9|offline class|>workloads|>placed|>left over|>priority:9|>one more workload"
    classes = table("Offline classes", heads, rows, "more offline class")
    offline: list[Part] = [classes] if problem.offline else []
    if found := count_forbidden(problem, reasons):
        parts = ", ".join(f"{decimal(n)} {why}" for why, n in found.items())
        offline += ["", f"forbidden pairs of classes: {parts}"]
    offline += ["", bucketing] if bucketing else []
    sections = [
        Section("fleet", "The GPUs", fleet, drawn=True),
        Section("offline", "Offline classes", [*offline, *more], drawn=True),
    ]  # fmt: skip
    why = solution.stop_reason.replace("_", " ")
    ran = f"({solution.method}, {solution.seconds:.2f} s, ended: {why})"
    if solution.history:
        full = FULL_WEIGHT
        bounds = history_table(
            ((at.seconds, Fraction(at.value, full), Fraction(at.upper_bound, full), at.source)
             for at in solution.history), "worth in GPU-equivalents", up=False,
        )  # fmt: skip
        sections.append(Section("bounds", "Both bounds over time", [ran, bounds], "web"))
    proof: list[Part] = [
        "The proof prices every class, so that no allowed pair is worth more than its two prices. "
        f"All prices together are {_equivalents(solution.upper_bound, up=True)} GPU-equivalents. "
        "A price is the most that one more of its class is worth.",
        RECHECK_HEAD,
        list_rechecks(*(sources or ("problem.json", "share.json"))),
        f"SHA-256 of the problem: {problem.sha256}",
    ]
    sections.append(Section("proof", "The proof", proof, "web"))
    wanted, gpus = sum(f.count for f in problem.offline), sum(o.count for o in problem.online)
    done, on = decimal(solution.plan.placed), count(gpus, "GPU")
    value = _equivalents(solution.value, up=False)
    bound = _equivalents(solution.upper_bound, up=True)
    most = bound if solution.gap else value  # rounded apart they would not look the same
    proof_fact, checked = ("optimal", "the proof was checked exactly", "good"), ", proof checked"
    if solution.proof != "checked":
        more = f"at most {percent(solution.relative_gap, up=True)} more is possible"
        proof_fact, checked = ("of the bound", more, "fair"), ""
    facts = [
        Fact("Workloads placed", done, f"of {decimal(wanted)}, on {on}"),
        Fact("Worth", value, "GPUs that offline work would need alone"),
        Fact("Upper bound", f"≤ {bound}", "no plan is worth more"),
        Fact("Proof", *proof_fact),
    ]
    lead = (
        f"{done} of {count(wanted, 'offline workload')} on {on}, {value} of at most {most} "
        f"GPU-equivalents: {solution.status}{checked}"
    )
    return Page(title, lead, facts, sections, " and ".join(sources), [Words(ran, "soft")])


def format_bucketing(value: int, upper_bound: int) -> str:
    """Say what rounding activities up to whole per cent costs at most."""
    if upper_bound <= value:
        return "price of bucketing: none; with activities as they are no plan is worth more"
    more = f", {percent(Fraction(upper_bound - value, value), up=True)} more" if value else ""
    bound = _equivalents(upper_bound, up=True)
    return f"price of bucketing: with activities as they are at most {bound} could be had{more}"


def count_forbidden(
    problem: ColocationProblem, reasons: TableWeights | PredictedWeights | None = None
) -> dict[str, int]:
    """Count forbidden pairs of classes by the reason."""
    found = Counter[str]()
    for gpus, share, row in zip(problem.online, problem.shares, problem.weights, strict=True):
        for work, weight in zip(problem.offline, row.tolist(), strict=True):
            if weight == FORBIDDEN:
                why = "by their weights"
                if not share:
                    why = "for want of a share"
                elif misfit(gpus, work):
                    why = "for want of memory"
                elif reasons is not None:
                    why = reasons.why(gpus, work) or why
                found[why] += 1
    return found


def _equivalents(value: int, *, up: bool) -> str:
    return decimal(Fraction(value, FULL_WEIGHT), rounding=math.ceil if up else math.floor)


def _bars(problem: ColocationProblem, solution: ColocationSolution) -> Iterator[Part]:
    """Draw what online services, margin and workloads take, the uses of most GPUs first."""
    placed: dict[str, list[tuple[int, int]]] = {}
    for pair in solution.plan:
        place = problem.offline_index[pair.offline]
        placed.setdefault(pair.online, []).append((pair.count, place))
    bars = []
    for gpus, share in zip(problem.online, problem.shares, strict=True):
        own = placed.get(gpus.name, [])
        bars += [_use(problem, n, place, gpus.sm_activity, share, gpus.name) for n, place in own]
        if left := gpus.count - sum(number for number, _ in own):
            bars.append(_use(problem, left, None, gpus.sm_activity, 0, gpus.name))
    if len(bars) > MOST_BARS:
        bars.sort(key=lambda bar: -bar.count)
    for part in list_bars(bars, "", large=True, most=MOST_BARS, what="more use"):
        yield replace(part, key=_MEANT, only="web")


def _use(
    problem: ColocationProblem, gpus: int, place: int | None, activity: Fraction, share: int,
    says: str
) -> Bar:  # fmt: skip
    margin = min(Fraction(problem.margin), 100 - activity)
    idle = max(100 - activity - margin - share, Fraction(0))
    name = None if place is None else problem.offline[place].name
    kinds: tuple[tuple[Fraction, dict[str, Any]], ...] = (
        (activity, {"owner": "online"}), (margin, {"state": "margin"}),
        (Fraction(share), {"service": name, "place": place or 0}), (idle, {}),
    )  # fmt: skip
    boxes, past = [], Fraction(0)
    for wide, look in kinds:
        start, past = round(past), past + wide
        if round(past) > start:
            boxes.append(Box(start, round(past) - start, f"{float(wide):.3g} %", **look))
    return Bar("", PER_CENT, tuple(boxes), gpus, caption=says)


def _pairs(
    problem: ColocationProblem, solution: ColocationSolution, known: TableWeights | None
) -> Grid:
    places, rows = problem.online_index, []
    for pair in sorted(
        solution.plan, key=lambda own: (places[own.online], -own.count, own.offline)
    ):
        gpus = problem.online[places[pair.online]]
        work = problem.offline[problem.offline_index[pair.offline]]
        speed = Fraction(problem.weight(gpus.name, work.name) or 0, FULL_WEIGHT) / work.priority
        slower = (None, None) if known is None else known.slowdown(gpus, work) or (None, None)
        rows.append(
            [pair.online, pair.offline, number(pair.count),
             number(speed, partial(decimal, rounding=math.floor)),
             *(number(end, partial(decimal, rounding=math.ceil)) for end in slower if known)]
        )  # fmt: skip
    heads = "online class|runs|>GPUs|>speed" + ("" if known is None else "|>slowdown|>at most")
    return table("What runs where", heads, rows, "more pair| of classes")


def _worth(price: int) -> Cell:
    """Write the most that one more of a class is worth, in GPU-equivalents."""
    return Cell(f"+ {_equivalents(price, up=True)}" if price else "nothing", price)
