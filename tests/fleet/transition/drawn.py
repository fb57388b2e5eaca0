"""Random changes of small fleets by every tool, and what their transitions come to.

``python -m tests.fleet.transition.drawn COUNT`` prints a row of JSON a change; with the rows of
another commit as a second argument it also says on how many of them each figure differs.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from cms.errors import InvalidProblem
from cms.fleet import Service, get_gpu
from cms.fleet.deployment import Deployment, DesiredState, FleetGpu, FleetNode, Instance
from cms.fleet.deployment.transition import (
    Impossible,
    PartitioningTool,
    Transition,
    reorganise,
    schedule,
    transition,
)
from cms.fleet.serving import RULES
from tests.fleet.deployments import SCENARIOS, placed, point, published

from .cases import on_nodes

DEVICES = ("a30-24gb", "a100-80gb", "h100-80gb")
#: What is compared; 1 where more of it is better.
FIGURES = {"found": 1, "kept": 1, "spare": -1, "actions": -1, "makespan_s": -1, "cpu_s": -1}


def draw(seed: int) -> tuple[PartitioningTool | None, Callable[[], Transition | Impossible]]:
    """Return a tool, None for shares of GPUs that are switched, and what plans the change."""
    rng = random.Random(seed)
    floor = rng.choice((Fraction(0), Fraction(1, 2), Fraction(1), Fraction(1)))
    if seed % 10 == 9:
        from .test_reorganising import pairs

        now, plan = pairs(seed)
        return None, lambda: reorganise(now, plan)
    tool = rng.choice([*PartitioningTool][1:]) if seed % 3 == 2 else PartitioningTool.NVIDIA_SMI
    start, to = _published(rng) if seed % 10 == 8 else _sides(rng)
    return tool, lambda: transition(start, to, tool=tool, floor=floor)


def _published(rng: random.Random) -> tuple[Deployment, DesiredState]:
    first, second = rng.sample(SCENARIOS, 2)
    device = get_gpu("a100-80gb")
    foreign = Instance("1g.10gb", 0, owner="pod x/y")
    held = [(foreign,) * (rng.random() < 0.1) for _ in range(rng.randint(20, 28))]
    cards = [FleetGpu("n", at, device, instances=own) for at, own in enumerate(held)]
    empty = on_nodes(Deployment((FleetNode("n", tuple(cards)),)), rng.choice((4, 8, 30)))
    return placed(published(first), empty, as_grouped=True).deployment, published(second)


def _sides(rng: random.Random) -> tuple[Deployment, DesiredState | Deployment]:
    """Layouts drawn GPU by GPU; of those of the target only the instances are wanted, mostly."""
    names = "abcd"[: rng.randint(2, 4)]
    keys = rng.choices(DEVICES, k=rng.choice((1, 1, 2)))
    foreign, same = rng.choice((0.0, 0.0, 0.05)), rng.choice((0.2, 0.5, 0.8))
    cards, ends = [], []
    for at in range(rng.randint(1, 12)):
        device = get_gpu(rng.choice(keys))
        old: list[Instance] = []
        for profile, start in rng.choice(device.maximal_layouts()):
            work, chance = point(rng.choice(names), device.key, profile), rng.random()
            if chance < foreign:
                old.append(Instance(profile, start, owner="pod x/y"))
            elif chance < 0.9:
                old.append(Instance(profile, start, work if chance > 0.05 else None))
        new = [each for each in old if not each.is_managed]
        if rng.random() < same:
            new = [each for each in old if rng.random() < 0.9 or not each.is_managed]
        else:
            around = [(each.profile, each.start or 0) for each in new]
            for profile, start in rng.choice(device.maximal_layouts_around(around)):
                if (profile, start) not in around and rng.random() < 0.9:
                    work = point(rng.choice(names), device.key, profile)
                    new.append(Instance(profile, start, work))
        cards.append(FleetGpu("n", at, device, instances=tuple(old)))
        ends.append(replace(cards[-1], instances=tuple(new)))
    spare = [
        FleetGpu("n", len(cards) + at, get_gpu(rng.choice(keys))) for at in range(rng.randint(0, 4))
    ]
    size, sides = rng.randint(1, 4), list[Deployment]()
    for own in (cards, ends):
        works = [each.work for card in own for each in card.instances if each.work is not None]
        services = tuple(
            Service(name, name, sum(w.supply_rps for w in works if w.service == name), 1000)
            for name in names
        )
        node = FleetNode("n", (*own, *spare))
        sides.append(on_nodes(Deployment((node,), services, RULES["half"]), size))
    now, target = sides
    if rng.random() < 0.2:
        return now, target
    kinds = target.kinds()
    used = Counter(card.gpu.key for card in target.used_gpus())
    counts = {kind: kinds[kind] for kind in sorted(kinds, key=lambda kind: kind.order)}
    devices = {key: get_gpu(key) for key in {*keys, *used}}
    return now, DesiredState(counts, used, devices, target.services, RULES["half"])


def measure(seed: int) -> tuple[dict[str, Any], Transition | None]:
    """Return the figures of a change, and its transition if one is found."""
    tool, plan = draw(seed)
    begin = time.process_time()
    try:
        found = plan()
    except InvalidProblem:  # a foreign instance is on a node that is drained
        return {"seed": seed, "found": None}, None
    cpu = time.process_time() - begin
    row: dict[str, Any] = {"seed": seed, "tool": tool, "cpu_s": round(cpu, 4)}
    if isinstance(found, Impossible):
        return row | {"found": 0}, None
    makespan = float(schedule(found, by_node=tool is not None and tool.drains_nodes).makespan_s)
    return row | {
        "found": 1, "kept": found.kept.count, "spare": found.spare.count,
        "actions": len(found.actions), "makespan_s": makespan,
    }, found  # fmt: skip


if __name__ == "__main__":
    made = []
    for number in range(int(sys.argv[1])):
        made.append(measure(number)[0])
        print(json.dumps(made[-1]), flush=True)
    for path in sys.argv[2:]:
        old = {row["seed"]: row for row in map(json.loads, Path(path).read_text().splitlines())}
        for name, sign in FIGURES.items():
            both = [(row.get(name), old.get(row["seed"], {}).get(name)) for row in made]
            pairs = [(new, was) for new, was in both if None not in (new, was)]
            gains = [sign * (new - was) for new, was in pairs]
            better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
            print(f"{name}: {better} better, {worse} worse of {len(pairs)}", *map(sum, zip(*pairs)))  # noqa: B905
