"""What the configurations of a mig-parted file ask of a GPU, and what goes wrong later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.fleet.stand_ins.kubernetes import geometry
from tests.fleet.stand_ins.kubernetes.rules import label_value
from tests.fleet.stand_ins.mig_parted_file import Entry, Failure, specification
from tests.fleet.stand_ins.placement import MODELS

Configs = dict[str, list[Entry]]


class Wanted(NamedTuple):
    """What one GPU shall be: MIG or not, and the counts as written, zeros too."""

    mig: bool
    counts: Mapping[str, int]


def parse(text: str) -> tuple[Configs, list[str]]:
    """The named configurations, or why mig-parted refuses the file."""
    try:
        return specification(text), []
    except Failure as failure:
        return {}, [str(failure)]


def wanted(entries: Sequence[Entry], index: int, model: str) -> Wanted | None:
    """What the GPU at `index` shall be; None where no entry names it. The last entry wins."""
    for entry in reversed(entries):
        if entry.matches(index, MODELS[model].device_id):
            return Wanted(entry.enabled, dict(entry.wanted or {}))
    return None


def traps(configs: Configs, gpus: Mapping[str, Sequence[str]] | Sequence[str]) -> list[str]:
    """Whatever goes wrong later: zero counts, indices left out or twice, counts nothing holds.

    `gpus` are the models of a node's GPUs by index, the same for every configuration or by name.
    """
    said = []
    for name, entries in configs.items():
        if not label_value(name) or not name:
            said.append(f"{name!r} cannot be a label's value (at most 63 of A-Za-z0-9_.-)")
        models = gpus.get(name, ()) if isinstance(gpus, Mapping) else gpus
        for index, model in enumerate(models):
            listed = sum(entry.matches(index, MODELS[model].device_id) for entry in entries)
            if listed != 1:
                said.append(f"{name}: GPU {index} is listed {listed} times")
            shall = wanted(entries, index, model)
            if shall and geometry.place(model, shall.counts) is None:
                said.append(f"{name}: no layout of {model} holds {dict(shall.counts)}")
        for entry in entries:
            for index in () if entry.devices == "all" else entry.devices:
                if models and index >= len(models):
                    said.append(f"{name}: there is no GPU {index}")
            for profile, count in (entry.wanted or {}).items():
                if count == 0:
                    said.append(f"{name}: {profile} has count 0")
    return said
