"""Whether the GPUs of a plan can be cut as the configurations of its problem say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .available import read_available
from .devices import read_devices
from .fleet import Card, layout_faults, share_of
from .problem import Bounded, Listed, Problem
from .reading import show


def cut_faults(plan: Mapping[str, Any], problem: Problem) -> Iterator[str]:
    """Say which configurations no GPU of their type can be cut into, beside what stays on it.

    A machine type is called as its GPU, or as the plan calls the GPUs that are there, and a block
    as a profile or a share of MPS: perhaps with the GPU's key before it, and with classes after it.
    """
    if "devices" not in plan:  # a problem and its solution in a plan's place, of any machines
        return
    machines = read_available(plan, read_devices(plan["devices"]), problem)
    for index, c in enumerate(problem.configurations):
        it, what = machines[c.machine], f"configurations[{index}]"
        names = c.blocks if isinstance(c, Listed) else c.sizes
        profiles = {i: i.removeprefix(f"{it.device.key}:").partition(" (")[0] for i in names}
        shares = {i: share_of(profile) for i, profile in profiles.items()}
        if (None in shares.values() and it.is_shared) or (
            None not in shares.values() and it.is_held and not it.is_shared
        ):
            yield f"{what} is of a GPU that is shared in another way"
        elif isinstance(c, Bounded):
            yield from _share_faults(c, shares, it.room, what)
        else:
            mode = "mig" if None in shares.values() else "mps"
            # more of them fit on no GPU
            held = it.extend({profiles[i]: min(n, 101) for i, n in c.blocks.items()})
            if held is None:
                yield f"{what} is of GPUs that stay as cut, or lack a profile"
                continue
            card = Card(what, it.device, None, mode, tuple(held), None, is_known=False)
            yield from layout_faults(card)


def _share_faults(
    c: Bounded, shares: Mapping[str, int | None], room: tuple[int, int], what: str
) -> Iterator[str]:
    """A set of multisets is of shares: of what is left, and no more than MPS serves."""
    left, clients = room
    for i, share in shares.items():
        if share is None or share * c.capacity > left * c.sizes[i]:
            yield f"{what} bounds {show(i)} by its size, and not as a share of MPS"
    most = c.capacity // min(c.sizes.values())
    if min(most, most if c.max_blocks is None else c.max_blocks) > clients:
        yield f"{what} allows more than {clients} shares"
