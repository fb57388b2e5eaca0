"""Offline work beside online services on a GPU: the plan, what it is worth, and what proves it.

**The problem.** An online class has so many GPUs, alike in what their services leave; an offline
class has so many workloads. A GPU takes at most one workload, and its share of the SMs: 100 less
the online activity, rounded up, less the margin; nobody, if that is below the lowest share. A pair
of classes has a weight, what one workload is worth there, or none: then it is forbidden. It is
where no share is left, or where the memory does not suffice. A plan says how many GPUs of each
online class take a workload of each offline class; it is worth the weights of its pairs in sum.

**The certificate.** Prices u of the online and v of the offline classes, whole and not negative,
with u + v >= weight on every pair that is allowed. A plan is then worth at most what all GPUs and
all workloads cost: every pair in use is worth no more than its two prices, and no class is in use
more often than it counts.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .reading import (
    Fault,
    as_a,
    check_head,
    integer,
    new_name,
    number,
    optional,
    record,
    refuse_no_time,
    sentences,
    show,
    table_over,
)

_ONLINE = (
    "name count device sm_activity memory_mib memory_total_mib model slowdown_limit running weights"
)
_SOLUTION = (
    "format schema problem_sha256 status proof stop_reason method seconds value upper_bound gap "
    "plan certificate history"
)
_STOP_REASONS = ("proved", "finished", "gap", "time_limit", "interrupted")
#: Of a workload of priority 1 that runs as fast as alone.
_FULL = 10**6


@dataclass(frozen=True)
class Colocation:
    """The classes with their counts, the shares, and the weights of the pairs that are allowed."""

    online: dict[str, int]
    offline: dict[str, int]
    shares: dict[str, int]
    weights: dict[tuple[str, str], int]
    sha256: str


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _percent(value: object, what: str) -> int:
    found = integer(value, what)
    if found > 100:
        raise Fault(f"{what} is {show(found)}, more than 100 per cent")
    return found


def _fresh(value: object, what: str, known: dict[str, Any]) -> str:
    name = new_name(value, f"the name of an {what} class")
    if name in known:
        raise Fault(f"there are two {what} classes {show(name)}")
    return name


@dataclass(frozen=True)
class _Room:
    """What weighs a pair: what GPUs have left, and what workloads need and are worth at most."""

    name: str
    share: int
    memory: Fraction | None


@dataclass(frozen=True)
class _Work:
    name: str
    memory: Fraction
    most: int


def _read_offline(entry: object, known: dict[str, Any]) -> _Work:
    """Read an offline class, and note what the digest has of it."""
    one = record(entry, "an offline class", "name count memory_mib model priority")
    name = _fresh(one["name"], "offline", known)
    priority = number(one["priority"], "the priority of", name)
    if not 0 < priority <= 10**6:
        raise Fault(f"the priority of {show(name)} is {show(priority)}, not in (0, 10^6]")
    memory = number(one["memory_mib"], "the memory of", name)
    known[name] = {
        "name": name, "count": integer(one["count"], "the count of", name),
        "memory_mib": str(memory), "model": new_name(one["model"], "a model"),
        "priority": str(priority),
    }  # fmt: skip
    return _Work(name, memory, int(_FULL * priority))


def _read_online(one: dict[str, Any], known: dict[str, Any], margin: int, lowest: int) -> _Room:
    """Read an online class but for its weights, and note what the digest has of it."""
    name = _fresh(one["name"], "online", known)
    activity = number(one["sm_activity"], "the activity of", name)
    used = number(one["memory_mib"], "the memory of", name)
    total = optional(one["memory_total_mib"], "the memory_total_mib of", name)
    limit = optional(one["slowdown_limit"], "the slowdown_limit of", name)
    model = as_a(str, one["model"], "a model")
    if activity > 100 or 0 < activity < 1:
        raise Fault(f"the activity of {show(name)} is {show(activity)}, which is no per cent")
    if total is not None and used > total:
        raise Fault(f"{show(name)} uses {show(used)} MiB of {show(total)}")
    if limit is not None and limit < 1:
        raise Fault(f"the slowdown_limit of {show(name)} is {show(limit)}, less than 1")
    known[name] = {
        "name": name, "count": integer(one["count"], "the count of", name),
        "device": new_name(one["device"], "a device"), "sm_activity": str(activity),
        "memory_mib": str(used), "memory_total_mib": _text(total),
        "model": new_name(model, "a model") if model else "", "slowdown_limit": _text(limit),
        "running": one["running"],
    }  # fmt: skip
    left = 100 - (-(-activity.numerator // activity.denominator)) - margin
    share = max(left, 0) if left >= lowest else 0
    return _Room(name, share, None if total is None else total - used)


def _read_weight(value: object, room: _Room, work: _Work) -> int:
    """Read the weight of a pair; -1 if it is forbidden."""
    pair = f"{show(work.name)} on {show(room.name)}"
    if work.memory and room.memory is None:
        raise Fault(f"{show(room.name)} has no memory_total_mib, and {show(work.name)} needs it")
    weight = -1 if value is None else integer(value, f"the weight of {pair}")
    if weight > work.most:
        raise Fault(f"the weight of {pair} is {show(weight)}, more than {work.most}")
    fits = room.memory is None or work.memory <= room.memory or not work.memory
    if weight >= 0 and not (fits and room.share):
        raise Fault(f"{pair} has a weight, and no room")
    return weight


def read_colocation(document: object) -> Colocation:
    """Read a co-location problem, and compute its digest."""
    check_head(document, "colocation-problem")
    fields = record(document, "the problem", "format schema margin lowest_share offline online")
    margin = _percent(fields["margin"], "the margin")
    lowest = _percent(fields["lowest_share"], "the lowest share")
    offline: dict[str, dict[str, Any]] = {}
    online: dict[str, dict[str, Any]] = {}
    works = [_read_offline(entry, offline) for entry in as_a(list, fields["offline"], "offline")]
    rooms: dict[str, int] = {}
    weights: dict[tuple[str, str], int] = {}
    numbers: list[int] = []
    for entry in as_a(list, fields["online"], "online"):
        one = record(entry, "an online class", _ONLINE)
        room = _read_online(one, online, margin, lowest)
        running, row = one["running"], as_a(list, one["weights"], "the weights of", room.name)
        if running is not None and (not isinstance(running, str) or running not in offline):
            raise Fault(f"{show(room.name)} runs {show(running)}, which is no offline class")
        if len(row) != len(works):
            raise Fault(f"{show(room.name)} has {len(row)} weights, not {len(works)}")
        found = [_read_weight(each, room, work) for each, work in zip(row, works, strict=True)]
        rooms[room.name] = room.share
        pairs = zip(works, found, strict=True)
        weights |= {(room.name, work.name): weight for work, weight in pairs if weight >= 0}
        numbers += found
    head = {
        "online": list(online.values()), "offline": list(offline.values()),
        "margin": margin, "lowest_share": lowest,
    }  # fmt: skip
    text = json.dumps(head, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
    data = b"".join(each.to_bytes(8, "little", signed=True) for each in numbers)
    digest = hashlib.sha256(f"cms-sharing-problem-1\n{text}\n".encode() + data).hexdigest()
    counts = [{name: each["count"] for name, each in side.items()} for side in (online, offline)]
    return Colocation(counts[0], counts[1], rooms, weights, digest)


def _plan_faults(problem: Colocation, value: object) -> tuple[list[str], int, int]:
    """What is wrong with a plan; what it is worth; how many workloads it places."""
    faults, worth = [], 0
    used: dict[str, int] = {}
    placed: dict[str, int] = {}
    seen = set()
    for entry in as_a(list, value, "the plan"):
        one = record(entry, "an entry of the plan", "online offline count share")
        pair = as_a(str, one["online"], "online"), as_a(str, one["offline"], "offline")
        said = f"{show(pair[1])} on {show(pair[0])}"
        count = integer(one["count"], "the count of", said, least=1)
        if pair in seen:
            faults.append(f"{said} is there twice")
        seen.add(pair)
        if pair not in problem.weights:
            faults.append(f"{said} is not allowed")
            continue
        if integer(one["share"], "the share of", said) != problem.shares[pair[0]]:
            faults.append(f"{said} has another share than {problem.shares[pair[0]]}")
        used[pair[0]] = used.get(pair[0], 0) + count
        placed[pair[1]] = placed.get(pair[1], 0) + count
        worth += problem.weights[pair] * count
    for counts, known in ((used, problem.online), (placed, problem.offline)):
        for name, count in counts.items():
            if count > known[name]:
                what = f"{show(name)} is in use {show(count)} times"
                faults.append(f"{what}; it counts {known[name]}")
    return faults, worth, sum(placed.values())


def _prices(known: dict[str, int], value: object, side: str) -> dict[str, int]:
    table = table_over(known, value, side)
    return {name: integer(price, "the price of", name) for name, price in table.items()}


def _proved(problem: Colocation, certificate: dict[str, Any]) -> int:
    """Return the bound that the prices prove."""
    u = _prices(problem.online, certificate["online"], "the prices of online classes")
    v = _prices(problem.offline, certificate["offline"], "the prices of offline classes")
    for (gpus, work), weight in problem.weights.items():
        if u.get(gpus, 0) + v.get(work, 0) < weight:
            raise Fault(
                f"the prices of {show(gpus)} and {show(work)} are {show(u.get(gpus, 0))} and "
                f"{show(v.get(work, 0))}, less than the weight {weight}"
            )
    sides = (u, problem.online), (v, problem.offline)
    return sum(price * counts[name] for side, counts in sides for name, price in side.items())


def examine_colocation(problem: Colocation, document: object) -> tuple[list[str], str]:
    """List what is wrong with a solution, and say what it establishes otherwise."""
    check_head(document, "colocation-solution")
    fields = record(document, "the solution", _SOLUTION)
    certificate = record(fields["certificate"], "certificate", "problem_sha256 online offline")
    status, proof, reason, _ = (
        as_a(str, fields[key], key) for key in ("status", "proof", "stop_reason", "method")
    )
    refuse_no_time(fields["seconds"], "seconds")
    value, bound, gap = (integer(fields[key], key) for key in ("value", "upper_bound", "gap"))
    faults, worth, placed = _plan_faults(problem, fields["plan"])
    proved = _proved(problem, certificate)
    values, bounds = [], []
    for line in as_a(list, fields["history"], "history"):
        one = record(line, "a line of the history", "seconds value upper_bound source")
        refuse_no_time(one["seconds"], "a time")
        as_a(str, one["source"], "a source")
        values.append(integer(one["value"], "a value of the history"))
        bounds.append(integer(one["upper_bound"], "an upper bound of the history"))
    claim = "the status is", show(status), "with the proof", show(proof), "at a gap of", show(gap)
    earned = ("feasible", "none") if gap else ("optimal", "checked")
    values, bounds, own = [*values, value], [*bounds, bound], certificate["problem_sha256"]
    rules = [
        (fields["problem_sha256"] == problem.sha256, "the problem_sha256 is not this problem's"),
        (own == problem.sha256, "the certificate's problem_sha256 is not this problem's"),
        (value == worth, f"the value is {show(value)}; the plan is worth {show(worth)}"),
        (bound >= proved, f"the upper_bound is {show(bound)}; {show(proved)} is proved"),
        (gap == bound - value, f"the gap is {show(gap)}, not {show(bound - value)}"),
        ((status, proof) == earned, " ".join(claim)),
        (reason in _STOP_REASONS, f"the stop_reason {show(reason)} is unknown"),
        (reason != "proved" or proof == "checked", "the stop_reason is proved, but nothing is"),
        (values == sorted(values), "the history's values fall"),
        (bounds == sorted(bounds, reverse=True), "the history's upper bounds rise"),
    ]
    faults += [sentence for holds, sentence in rules if not holds]
    words = (
        f"the plan is valid: {show(placed)} workloads, worth {show(value)}; the certificate proves "
        f"that no plan is worth more than {show(bound)}"
    )
    return faults, words


def check_colocation(problem_doc: Any, solution_doc: Any) -> list[str]:
    """Check what a solution document says about a co-location problem; return sentences.

    Checked are the plan, its shares and its value, the prices and the bound drawn from them, gap,
    status and proof, and the history's order; not times and names.
    """
    return sentences(lambda: examine_colocation(read_colocation(problem_doc), solution_doc)[0])
