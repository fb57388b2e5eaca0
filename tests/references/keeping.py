"""What stays, by CP-SAT on places: one truth value for each place of each GPU, no layouts.

Written from the rules alone, on fleets whose GPUs are cut by MIG and hold nothing foreign.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from ortools.sat.python import cp_model

from cms.fleet.deployment import Deployment, DesiredState, Kind

__all__ = ["most_kept_by_cp_sat"]

#: Deterministic time: where it does not end by then, it has bounds on both sides.
_EFFORT = 10.0


def most_kept_by_cp_sat(now: Deployment, wanted: DesiredState) -> tuple[int, int]:
    """The most instances that go on, on the GPUs that are allowed: found, and no more than.

    Raises
    ------
    ValueError
        If it finds no way at all, or none exists: then it is no judge.
    """
    model = cp_model.CpModel()
    needed: Counter[tuple[str, str]] = Counter()
    for kind, n in wanted.counts.items():
        needed[kind.gpu, kind.profile] += n
    rooms: dict[tuple[str, str], list[Any]] = defaultdict(list)
    used: dict[str, list[Any]] = defaultdict(list)
    stays: dict[Kind, list[Any]] = defaultdict(list)
    for card in now.gpus():
        device = card.gpu
        is_used = model.new_bool_var("")
        used[device.key].append(is_used)
        taken: dict[int, list[Any]] = defaultdict(list)
        compute: list[Any] = []
        places: dict[tuple[str, int | None], Any] = {}
        for name in sorted(profile for key, profile in needed if key == device.key):
            profile = device.profile(name)
            own = [model.new_bool_var("") for _ in profile.starts]
            model.add(sum(own) <= profile.max)
            for start, there in zip(profile.starts, own, strict=True):
                model.add_implication(there, is_used)
                compute.append(profile.compute * there)
                places[name, start] = there
                for slot in range(start, start + profile.memory):
                    taken[slot].append(there)
            rooms[device.key, name] += own
        for several in taken.values():
            model.add_at_most_one(several)
        model.add(sum(compute) <= device.compute_slices)
        for each in card.instances:
            if each.work is not None and (each.profile, each.start) in places:
                goes_on = model.new_bool_var("")
                model.add_implication(goes_on, places[each.profile, each.start])
                stays[Kind(device.key, each.profile, each.work)].append(goes_on)
    for kind, several in stays.items():
        model.add(sum(several) <= wanted.counts.get(kind, 0))
    for place, n in needed.items():
        model.add(sum(rooms[place]) >= n)
    for key, n in wanted.gpus.items():
        model.add(sum(used[key]) <= n)
    every = [one for several in stays.values() for one in several]
    model.maximize(sum(every))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = _EFFORT
    if (status := solver.solve(model)) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise ValueError(f"CP-SAT says {solver.status_name(status)}")
    return sum(solver.value(one) for one in every), round(solver.best_objective_bound)
