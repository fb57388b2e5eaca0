"""What an export says beside its files: how to use them, what they cannot express, and how to undo.

The sentences are templates in ``templates/notes``; here is what they are about.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ....values.frozen import FrozenMap
from ....values.numbers import shown
from ..instance import Mode, State, Work
from ..model import Deployment
from ..turns import shares_of
from .export import END, HEAD, Export, ExportOptions, render
from .workloads import list_working, offered_profiles

_TOO_LITTLE = "which is too little"


def assemble(
    target: str, deployment: Deployment, options: ExportOptions, files: Mapping[str, str],
    **facts: object,
) -> Export:  # fmt: skip
    """Put what the files cannot express at the head of each, and add the README.

    The sentences are those of ``notes/TARGET.txt``, which `facts` are also about. Files take
    comments with ``#``; shell scripts, ``*.sh``, come without their first line.
    """
    said = render(f"notes/{target}.txt", d=_describe(deployment), options=options, **facts)
    # a comment ends with its line, whatever names contain
    what, order, losses, back = (
        tuple(" ".join(line.split()) for line in part.split("\n") if line.strip())
        for part in re.split(r"^\[\w+\]$", said, flags=re.M)
    )
    head = [f"{HEAD}{target}. {what[0]}", *(f"# Not said here: {each}" for each in losses), END]
    executables = sorted(path for path in files if path.endswith(".sh"))
    written = {
        path: "\n".join([*(["#!/bin/sh"] if path in executables else []), *head, text])
        for path, text in files.items()
    }
    written["README.md"] = render(
        "readme.md", target=target, what=what[0], order=order, losses=losses, back=back[0]
    )
    return Export(FrozenMap(written), losses, order, tuple(executables))


def _describe(deployment: Deployment) -> dict[str, Any]:
    """Gather what files of tools may not be able to express."""
    cards, instances = [*deployment.gpus()], [*deployment.instances()]
    managed = [(card, each) for card, each in instances if each.is_managed]
    working = [each.work for _, each in instances if each.work is not None]
    supplies = {name: {w.supply_rps for w in working if w.service == name}
                for name in {work.service for work in working}}  # fmt: skip
    shared = [card for card in cards if card.mode is Mode.MPS]
    asked = list_working(deployment)
    traffic = _traffic(deployment, [work for *_, work in asked])
    return {
        "asked": asked,
        "fixed": [card.name for card in cards if card.mode is Mode.FIXED],
        "foreign": [f"{card.name} {each}" for card, each in instances
                    if not each.is_managed and card.mode is not Mode.FIXED],
        "has_nodes": bool(deployment.nodes),
        "has_plan": deployment.plan is not None,
        "idle": sum(each.work is None for _, each in managed),
        "is_cut": any(card.mode is Mode.MIG for card in cards),
        "mixed": _mixed(deployment),
        "moved": [f"{c.name} {i}" for c, i in managed if i.work and i.state is not State.RUNNING],
        "nameless": any(card.uuid is None for card in cards),
        "overrun": [name for name, told in traffic if told["verdict"] == _TOO_LITTLE],
        "not_running": [f"{c.name} {i}" for c, i in instances if i.state is not State.RUNNING],
        "services": [service.name for service in deployment.services],
        "shared": [card.name for card in shared],
        "supplies": supplies,
        "traffic": traffic,
        "turns": [f"{card.name} {place}" for card in shared
                  for place, held in shares_of(card).items() if len(held) > 1],
        "unclear": [card.name for card in cards
                    if card.mode is Mode.MIG and len(card.gpu.layouts_of(card.counts)) > 1],
        "unequal": [card.name for card in shared if len(card.counts) > 1],
        "uneven": [name for name, found in supplies.items() if len(found) > 1],
        "working": working,
    }  # fmt: skip


def _mixed(deployment: Deployment) -> list[str]:
    """Nodes with types of GPU that pods cannot tell apart."""
    kinds = {(card.node, name, card.gpu.key) for card in deployment.gpus()
             for name in offered_profiles(card)}  # fmt: skip
    types = Counter((node, name) for node, name, _ in kinds)
    return sorted({node for (node, _), n in types.items() if n > 1})


def _traffic(deployment: Deployment, works: Sequence[Work]) -> list[tuple[str, dict[str, object]]]:
    """What is lost where a Service spreads requests evenly over uneven pods."""
    found = []
    rates = {service.name: service.rate_rps for service in deployment.services}
    for name in sorted({work.service for work in works}):
        own = [work.supply_rps for work in works if work.service == name]
        even = len(own) * min(own)
        said = "which is still enough" if even >= rates[name] else _TOO_LITTLE
        if len({*own}) > 1:
            found.append((name, {
                "supplies": ", ".join(shown(each) for each in sorted({*own})),
                "even": shown(even), "total": shown(sum(own)), "pods": len(own),
                "verdict": said, "rate": shown(rates[name]),
            }))  # fmt: skip
    return found
