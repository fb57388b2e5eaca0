"""Whether the GPUs of a plan can be cut as the configurations of its problem say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .devices import read_devices
from .fleet import CLIENTS, Card, Instance, layout_faults, share_of
from .problem import Bounded, Listed, Problem
from .reading import Fault, show


def cut_faults(plan: Mapping[str, Any], problem: Problem) -> Iterator[str]:
    """Say which configurations no GPU of their type can be cut into.

    A machine type is called as its GPU, and a block as a profile or a share of MPS: perhaps with
    the GPU's key before it, and with classes after it.
    """
    if "devices" not in plan:  # a problem and its solution in a plan's place, of any machines
        return
    devices = read_devices(plan["devices"])
    if list(devices) != list(problem.machine_types):
        raise Fault("the devices of the plan are not the machine types of its problem")
    for index, c in enumerate(problem.configurations):
        device, what = devices[c.machine], f"configurations[{index}]"
        names = c.blocks if isinstance(c, Listed) else c.sizes
        profiles = {i: i.removeprefix(f"{device.key}:").partition(" (")[0] for i in names}
        shares = {i: share_of(profile) for i, profile in profiles.items()}
        if isinstance(c, Bounded):
            yield from _share_faults(c, shares, what)
            continue
        mode = "mig" if None in shares.values() else "mps"
        held = [
            Instance(profiles[i], None, None, None, "running")
            for i, n in c.blocks.items()
            for _ in range(min(n, 101))  # more of them fit on no GPU
        ]
        yield from layout_faults(Card(what, device, None, mode, tuple(held), None, is_known=False))


def _share_faults(c: Bounded, shares: Mapping[str, int | None], what: str) -> Iterator[str]:
    """A set of multisets is of shares: at most 100 % together, and no more than MPS serves."""
    for i, share in shares.items():
        if share is None or share * c.capacity > 100 * c.sizes[i]:
            yield f"{what} bounds {show(i)} by its size, and not as a share of MPS"
    most = c.capacity // min(c.sizes.values())
    if min(most, most if c.max_blocks is None else c.max_blocks) > CLIENTS:
        yield f"{what} allows more than {CLIENTS} shares"
