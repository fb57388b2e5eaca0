"""What a MIG GPU can hold: the stand-ins' own table and their own rules.

Typed in from the tables of NVIDIA's documents and the published output of drivers; nothing of the
package is read here, so that an agreement of the two says something.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

Layout = tuple[tuple[str, int], ...]


class Profile(NamedTuple):
    """What `nvidia-smi mig -lgip` and `-lgipp` print of one profile."""

    number: int
    name: str
    compute: int
    size: int
    starts: tuple[int, ...]
    most: int

    @property
    def default_ci(self) -> int:
        """Compute instances of 1, 2, 3, 4, 7 slices have the profiles 0, 1, 2, 3, 4."""
        return (1, 2, 3, 4, 7).index(self.compute)

    @property
    def media(self) -> bool:
        """Whether it takes the engines that exist once: `+me` or `+me.all`."""
        return "+me" in self.name


class Model(NamedTuple):
    """A kind of GPU; `sms` are the multiprocessors of its profiles."""

    product: str
    architecture: str
    compute_slices: int
    memory_slices: int
    device_id: int
    sms: tuple[int, ...]
    profiles: tuple[Profile, ...]

    @property
    def by_name(self) -> dict[str, Profile]:
        return {profile.name: profile for profile in self.profiles}

    @property
    def resets(self) -> bool:
        """Whether MIG mode changes by a reset only: so it is on Ampere."""
        return self.architecture == "ampere"


def _seven(product: str, arch: str, pci: int, sms: tuple[int, ...], memories: str) -> Model:
    """A data-centre part of 7 compute and 8 memory slices, all of which have one geometry."""
    compute = (1, 1, 2, 3, 4, 7)
    one, *others = (f"{c}g.{m}gb" for c, m in zip(compute, memories.split(), strict=True))
    double, two, three, four, seven = others
    ones = Profile(19, one, 1, 1, (0, 1, 2, 3, 4, 5, 6), 7)
    return Model(product, arch, 7, 8, pci, sms, (
        ones, ones._replace(number=20, name=f"{one}+me", most=1),
        Profile(15, double, 1, 2, (0, 2, 4, 6), 4), Profile(14, two, 2, 2, (0, 2, 4), 3),
        Profile(9, three, 3, 4, (0, 4), 2), Profile(5, four, 4, 4, (0,), 1),
        Profile(0, seven, 7, 8, (0,), 1),
    ))  # fmt: skip


_A100 = (14, 14, 14, 28, 42, 56, 98)
_H100 = (16, 16, 26, 32, 60, 64, 132)
_B200 = (18, 18, 30, 36, 70, 72, 148)
_GB200 = (18, 18, 32, 38, 70, 72, 148)
_A, _H, _B = "ampere", "hopper", "blackwell"

MODELS = {
    "a100-40gb": _seven("NVIDIA A100-SXM4-40GB", _A, 0x20B0, _A100, "5 10 10 20 20 40"),
    "a100-80gb": _seven("NVIDIA A100-SXM4-80GB", _A, 0x20B2, _A100, "10 20 20 40 40 80"),
    "h100-80gb": _seven("NVIDIA H100 80GB HBM3", _H, 0x2330, _H100, "10 20 20 40 40 80"),
    "h100-94gb": _seven("NVIDIA H100 NVL", _H, 0x2321, _H100, "12 24 24 47 47 94"),
    "h100-96gb": _seven("NVIDIA GH200 480GB", _H, 0x2342, _H100, "12 24 24 48 48 96"),
    "h200-141gb": _seven("NVIDIA H200", _H, 0x2335, _H100, "18 35 35 71 71 141"),
    "gh200-144gb": _seven("NVIDIA GH200 144G HBM3e", _H, 0x2348, _H100, "18 36 36 72 72 144"),
    "b200-180gb": _seven("NVIDIA B200", _B, 0x2901, _B200, "23 45 45 90 90 180"),
    "gb200-186gb": _seven("NVIDIA GB200", _B, 0x2941, _GB200, "23 47 47 93 93 186"),
    "b300": _seven("NVIDIA B300 SXM6 AC", _B, 0x3182, _B200, "34 67 67 135 135 269"),
    "gb300": _seven("NVIDIA GB300", _B, 0x31C2, _B200, "35 70 70 139 139 278"),
    "a30-24gb": Model("NVIDIA A30", _A, 4, 4, 0x20B7, (14, 14, 28, 28, 56), (
        Profile(14, "1g.6gb", 1, 1, (0, 1, 2, 3), 4),
        Profile(21, "1g.6gb+me", 1, 1, (0, 1, 2, 3), 1),
        Profile(5, "2g.12gb", 2, 2, (0, 2), 2),
        Profile(6, "2g.12gb+me", 2, 2, (0, 2), 1),
        Profile(0, "4g.24gb", 4, 4, (0,), 1),
    )),
    # As a published driver listing shows it: four slices on a scale of twelve.
    "rtx-pro-6000-96gb": Model(
        "NVIDIA RTX PRO 6000 Blackwell Server Edition", _B, 4, 12, 0x2BB5,
        (46, 46, 46, 46, 46, 94, 94, 94, 94, 188, 188),
        (
            Profile(14, "1g.24gb", 1, 3, (0, 3, 6, 9), 4),
            Profile(21, "1g.24gb+me", 1, 3, (0, 3, 6, 9), 1),
            Profile(47, "1g.24gb+gfx", 1, 3, (0, 3, 6, 9), 4),
            Profile(65, "1g.24gb+me.all", 1, 3, (0, 3, 6, 9), 1),
            Profile(67, "1g.24gb-me", 1, 3, (0, 3, 6, 9), 4),
            Profile(5, "2g.48gb", 2, 6, (0, 6), 2),
            Profile(35, "2g.48gb+gfx", 2, 6, (0, 6), 2),
            Profile(64, "2g.48gb+me.all", 2, 6, (0, 6), 1),
            Profile(66, "2g.48gb-me", 2, 6, (0, 6), 2),
            Profile(0, "4g.96gb", 4, 12, (0,), 1),
            Profile(32, "4g.96gb+gfx", 4, 12, (0,), 1),
        ),
    ),
}  # fmt: skip


def is_legal(model: Model, placed: Iterable[tuple[Profile, int]]) -> bool:
    """Whether these instances can be together on one GPU."""
    held = [*placed]
    slices = [at for profile, start in held for at in range(start, start + profile.size)]
    return (
        all(start in profile.starts for profile, start in held)
        and len({*slices}) == len(slices)
        and max(slices, default=0) < model.memory_slices
        and all(n <= profile.most for profile, n in Counter(p for p, _ in held).items())
        and sum(profile.compute for profile, _ in held) <= model.compute_slices
        and sum(profile.media for profile, _ in held) <= 1
    )


def layouts(model: Model, names: Iterable[str]) -> Iterator[Layout]:
    """Every non-empty layout of the named profiles, by trying."""
    known = model.by_name
    places = [(known[name], start) for name in names for start in known[name].starts]
    stack: list[tuple[int, list[tuple[Profile, int]]]] = [(0, [])]
    while stack:
        at, placed = stack.pop()
        if placed:
            yield tuple(sorted((profile.name, start) for profile, start in placed))
        for index in range(at, len(places)):
            more = [*placed, places[index]]
            if is_legal(model, more):
                stack.append((index + 1, more))
