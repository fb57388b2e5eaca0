"""What may not get worse: rows of an old tree and of this one, judged side by side."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import fmean, median
from typing import Any, NamedTuple

from bench.row import Outcome, RunRow

#: Most that costs and figures may get worse in the mean: of all pairs, of a family, of a variant
#: of the theory; that time and memory may grow; seconds beyond a time limit, and after Ctrl-C.
ALL, FAMILY, VARIANT, TIMES, OVERSHOOT, ANSWER = 0.001, 0.005, 0.002, 1.25, 0.5, 1.0
#: Most proofs and schedules lost, less those won: a share of the pairs, and so many standard
#: deviations of what chance makes of as many pairs that differ, as where a tree meets itself.
LOST, DEVIATIONS = 0.01, 1.96
#: Processor time below which a run says little: such runs are judged together, not by family.
TINY, FEW = 0.05, 3
#: Figures of single suites that should not rise (1), or not fall (-1).
FIGURES = {
    **dict.fromkeys(("spare", "makespan_s", "gpu_hours", "worst_spare_gpus", "shortage_s"), 1),
    **dict.fromkeys(("kept", "value", "random", "shortest"), -1),
}


class Pair(NamedTuple):
    """What both trees made of one task."""

    old: RunRow
    new: RunRow


class Line(NamedTuple):
    """A line of the table; ``broken`` says which gates are, if any."""

    section: str
    what: str
    pairs: int
    old: str
    new: str
    change: str
    broken: str


def rank(row: RunRow) -> tuple[int, float, float]:
    """Say how good an answer is: by its proof (checked, a solver's word, none), cost and CPU."""
    proofs = row.proved + (row.proved and row.proof == "checked")
    return proofs + (row.cost is not None or row.proved), -float(row.cost or 0), -_cpu(row)


def judge(section: str, pairs: Sequence[Pair]) -> Iterator[Line]:
    """Judge all pairs of a section, then each family, or each variant in the theory."""
    yield _judged(section, "all", pairs)
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        words = (pair.new.algorithm, *map(str, pair.new.options.values()))
        name = " ".join(words) if section == "theory" else pair.new.family
        groups.setdefault(name, []).append(pair)
    for name, part in groups.items():
        yield _judged(section, name, part)


def _judged(section: str, what: str, pairs: Sequence[Pair]) -> Line:
    pooled = what == "all"
    broken = [fault for pair in pairs if (fault := _fault(*pair))] if pooled else []
    turns = [rank(pair.old)[0] - rank(pair.new)[0] for pair in pairs]
    lost, won = sum(turn > 0 for turn in turns), sum(turn < 0 for turn in turns)
    change = [f"-{lost} +{won}"] if lost or won else []
    if pooled and lost - won > min(DEVIATIONS * sqrt(lost + won), max(LOST * len(pairs), 1)):
        broken.append("proofs")
    most = ALL if pooled else VARIANT if section == "theory" else FAMILY
    for name, worse in _worse(pairs).items():
        change += [f"{name} {worse:+.2%}"] if worse else []
        broken += [name] if worse > most and (pooled or len(pairs) >= FEW) else []
    for name, grown in _grown(section, pairs, pooled=pooled).items():
        change.append(f"{name} {grown:.2f}x")
        broken += [name] if grown > TIMES else []
    sides = [pair.old for pair in pairs], [pair.new for pair in pairs]
    late = [max((row.seconds or 0) - row.time_limit for row in side) for side in sides]
    if section == "time":
        change.append(f"{late[0]:.2f} | {late[1]:.2f} s late")
        broken += ["time limit"] if pooled and late[1] > max(OVERSHOOT, TIMES * late[0]) else []
    old, new = (_told(section, side) for side in sides)
    return Line(section, what, len(pairs), old, new, ", ".join(change), "; ".join(broken[:3]))


def _fault(old: RunRow, new: RunRow) -> str:
    """Say what no answer may be, whatever the others are."""
    promised = [{**row.guarantee, "verdict": ""} for row in (old, new) if row.guarantee]
    if old.instance_sha256 and new.instance_sha256 not in (None, old.instance_sha256):
        fault = "not comparable"
    elif new.outcome is Outcome.FAILED or new.outcome is not old.outcome is Outcome.ANSWERED:
        fault = f"{new.outcome} ({new.error})"
    elif len(promised) == 2 and promised[0] != promised[1]:
        fault = "another guarantee"
    else:
        return ""
    return f"{new.instance} {new.algorithm}: {fault}"


def _worse(pairs: Sequence[Pair]) -> dict[str, float]:
    """By how much costs and figures got worse in the mean, and bounds in the middle, as shares."""
    found: dict[str, list[float]] = {}
    for old, new in pairs:
        if old.cost and new.cost is not None:
            found.setdefault("cost", []).append(float(new.cost / old.cost - 1))
            if not (old.proved and new.proved):
                fell = (old.lower_bound or 0) - (new.lower_bound or 0)
                found.setdefault("bound", []).append(float(fell / old.cost))
        for name in FIGURES.keys() & old.measurements.keys() & new.measurements.keys():
            values = [row.measurements[name] for row in (old, new)]
            a, b = (float(value[0] if isinstance(value, list) else value) for value in values)
            change = FIGURES[name] * (b - a) / max(abs(a), abs(b), 1e-9)
            found.setdefault(name, []).append(change)
    return {name: (median if name == "bound" else fmean)(each) for name, each in found.items()}


def _grown(section: str, pairs: Sequence[Pair], *, pooled: bool) -> dict[str, float]:
    """How many times what it was the processor time is, and the memory, in the middle."""
    cpu = [(o, n) for o, n in ((_cpu(pair.old), _cpu(pair.new)) for pair in pairs) if o]
    timed = [n / o for o, n in cpu if (max(o, n) < TINY) == pooled or section == "scale"]
    peaks = [
        pair.new.peak_memory / pair.old.peak_memory
        for pair in pairs
        if pair.new.fresh and pair.new.peak_memory and pair.old.peak_memory
    ]
    found = {"CPU": timed if len(timed) >= FEW or section == "scale" else [], "memory": peaks}
    return {name: median(ratios) for name, ratios in found.items() if ratios}


def _cpu(row: RunRow) -> float:
    return float(row.measurements.get("cpu_seconds", 0))


def _told(section: str, rows: Sequence[RunRow]) -> str:
    ratios = [float(r.cost / r.lower_bound) for r in rows if r.cost and r.lower_bound]
    told = f"{sum(row.proved for row in rows)} proved, {sum(map(_cpu, rows)):.3g} s"
    shown = section == "theory" and ratios
    return f"{told}, {fmean(ratios):.3f} ({max(ratios):.2f})" if shown else told


def stages(pairs: Sequence[Pair]) -> Iterator[Line]:
    """Count which part of the method gave the last schedule and the last bound; no gate."""
    for what, at in (("schedule", 1), ("bound", 2)):
        old = Counter(_last(pair.old.history, at) for pair in pairs)
        new = Counter(_last(pair.new.history, at) for pair in pairs)
        for name in sorted({*old, *new}, key=lambda name: (-old[name], name)):
            told = str(old[name]), str(new[name])
            yield Line("stages", f"{what}: {name}", len(pairs), *told, "", "")


def _last(history: Sequence[tuple[Any, ...]], at: int) -> str:
    """Name the source of the last line that changed a figure, numbers left out."""
    source, value = "none", None
    for entry in history:
        if entry[at] != value:
            source, value = re.sub(r"\d+ (pass)?(es)?", r"N \1", entry[3]), entry[at]
    return source


def programs(section: str, found: Sequence[list[Any]]) -> Iterator[Line]:
    """Compare figures that may not grow: counts not at all, times and their ratios by `TIMES`."""
    figures: dict[str, list[tuple[Any, Any]]] = {}
    for old, new in found:
        if isinstance(new, str):
            yield Line(section, "a program", 1, "", new.strip()[-80:], "", "ended with an error")
        for name, value in new.items() if isinstance(new, dict) else ():
            before = old.get(name, value) if isinstance(old, dict) else value
            figures.setdefault(name, []).append((before, value))
    for name, pairs in figures.items():
        old, new = max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)
        most = max(TIMES * old, ANSWER * ("answer" in name)) if isinstance(new, float) else old
        yield Line(
            section, name, len(pairs), f"{old:.5g}", f"{new:.5g}", "", "grown" * (new > most)
        )
