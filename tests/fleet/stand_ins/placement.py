"""What a MIG GPU can hold: the stand-ins' own table and their own rules.

Typed in from the tables of NVIDIA's documents and the published output of drivers; nothing of the
package is read here, so that an agreement of the two says something.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple


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
        return {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}[self.compute]

    @property
    def media(self) -> bool:
        """Whether it takes the engines that exist once: `+me` or `+me.all`."""
        return "+" in self.name and self.name.partition("+")[2].startswith("me")


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


def _seven(
    product: str,
    architecture: str,
    names: str,
    device_id: int,
    sms: tuple[int, ...],
) -> Model:
    """A data-centre part of 7 compute and 8 memory slices, all of which have one geometry."""
    one, double, two, three, four, seven = names.split()
    return Model(
        product,
        architecture,
        7,
        8,
        device_id,
        sms,
        (
            Profile(19, one, 1, 1, (0, 1, 2, 3, 4, 5, 6), 7),
            Profile(20, f"{one}+me", 1, 1, (0, 1, 2, 3, 4, 5, 6), 1),
            Profile(15, double, 1, 2, (0, 2, 4, 6), 4),
            Profile(14, two, 2, 2, (0, 2, 4), 3),
            Profile(9, three, 3, 4, (0, 4), 2),
            Profile(5, four, 4, 4, (0,), 1),
            Profile(0, seven, 7, 8, (0,), 1),
        ),
    )  # fmt: skip


_A100 = (14, 14, 14, 28, 42, 56, 98)
_H100 = (16, 16, 26, 32, 60, 64, 132)
_B200 = (18, 18, 30, 36, 70, 72, 148)

MODELS = {
    "a100-40gb": _seven(
        "NVIDIA A100-SXM4-40GB", "ampere", "1g.5gb 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb",
        0x20B0, _A100,
    ),
    "a100-80gb": _seven(
        "NVIDIA A100-SXM4-80GB", "ampere", "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
        0x20B2, _A100,
    ),
    "h100-80gb": _seven(
        "NVIDIA H100 80GB HBM3", "hopper", "1g.10gb 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
        0x2330, _H100,
    ),
    "h100-94gb": _seven(
        "NVIDIA H100 NVL", "hopper", "1g.12gb 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb",
        0x2321, _H100,
    ),
    "h100-96gb": _seven(
        "NVIDIA GH200 480GB", "hopper", "1g.12gb 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb",
        0x2342, _H100,
    ),
    "h200-141gb": _seven(
        "NVIDIA H200", "hopper", "1g.18gb 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
        0x2335, _H100,
    ),
    "gh200-144gb": _seven(
        "NVIDIA GH200 144G HBM3e", "hopper", "1g.18gb 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb",
        0x2348, _H100,
    ),
    "b200-180gb": _seven(
        "NVIDIA B200", "blackwell", "1g.23gb 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb",
        0x2901, _B200,
    ),
    "gb200-186gb": _seven(
        "NVIDIA GB200", "blackwell", "1g.23gb 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb",
        0x2941, (18, 18, 32, 38, 70, 72, 148),
    ),
    "b300": _seven(
        "NVIDIA B300 SXM6 AC", "blackwell", "1g.34gb 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
        0x3182, _B200,
    ),
    "gb300": _seven(
        "NVIDIA GB300", "blackwell", "1g.35gb 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb",
        0x31C2, _B200,
    ),
    "a30-24gb": Model(
        "NVIDIA A30", "ampere", 4, 4, 0x20B7, (14, 14, 28, 28, 56),
        (
            Profile(14, "1g.6gb", 1, 1, (0, 1, 2, 3), 4),
            Profile(21, "1g.6gb+me", 1, 1, (0, 1, 2, 3), 1),
            Profile(5, "2g.12gb", 2, 2, (0, 2), 2),
            Profile(6, "2g.12gb+me", 2, 2, (0, 2), 1),
            Profile(0, "4g.24gb", 4, 4, (0,), 1),
        ),
    ),
    # As a published driver listing shows it: four slices on a scale of twelve.
    "rtx-pro-6000-96gb": Model(
        "NVIDIA RTX PRO 6000 Blackwell Server Edition", "blackwell", 4, 12, 0x2BB5,
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


def trouble(model: Model, placed: Iterable[tuple[Profile, int]]) -> str:
    """Why these instances cannot be together on one GPU, or nothing."""
    taken: set[int] = set()
    count: dict[int, int] = {}
    media = compute = 0
    for profile, start in placed:
        if start not in profile.starts:
            return f"{profile.name} does not start at {start}"
        slices = set(range(start, start + profile.size))
        if max(slices) >= model.memory_slices or slices & taken:
            return f"{profile.name} at {start} has no room"
        taken |= slices
        count[profile.number] = count.get(profile.number, 0) + 1
        if count[profile.number] > profile.most:
            return f"more than {profile.most} of {profile.name}"
        compute += profile.compute
        media += profile.media
    if compute > model.compute_slices:
        return f"{compute} compute slices"
    if media > 1:
        return "the media engines exist once"
    return ""


def room(model: Model, placed: list[tuple[Profile, int]], profile: Profile) -> list[int]:
    """The starts at which one more of a profile fits."""
    return [start for start in profile.starts if not trouble(model, [*placed, (profile, start)])]


def layouts(model: Model, names: Iterable[str]) -> Iterator[tuple[tuple[str, int], ...]]:
    """Every non-empty layout of the named profiles, by trying."""
    wanted = set(names)
    places = [
        (profile, start)
        for profile in model.profiles
        if profile.name in wanted
        for start in profile.starts
    ]
    stack: list[tuple[int, list[tuple[Profile, int]]]] = [(0, [])]
    while stack:
        at, placed = stack.pop()
        if placed:
            yield tuple(sorted((profile.name, start) for profile, start in placed))
        for index in range(at, len(places)):
            more = [*placed, places[index]]
            if not trouble(model, more):
                stack.append((index + 1, more))


Layout = tuple[tuple[str, int], ...]


def place(key: str, counts: Mapping[str, int]) -> Layout | None:
    """The first layout with these counts, larger profiles first; None if there is none."""
    return _place(key, tuple(sorted((name, count) for name, count in counts.items() if count)))


@cache
def _place(key: str, counts: tuple[tuple[str, int], ...]) -> Layout | None:
    known = MODELS[key].by_name
    if any(name not in known or count > known[name].most for name, count in counts):
        return None
    larger = sorted(counts, key=lambda item: (-known[item[0]].size, item[0]))
    names = [name for name, count in larger for _ in range(count)]

    def grow(layout: Layout) -> Layout | None:
        if len(layout) == len(names):
            return layout
        name = names[len(layout)]
        # Instances of one profile are alike: their starts grow.
        least = layout[-1][1] + 1 if layout and layout[-1][0] == name else 0
        for start in (start for start in known[name].starts if start >= least):
            longer = (*layout, (name, start))
            legal = not trouble(MODELS[key], [(known[one], at) for one, at in longer])
            if legal and (found := grow(longer)) is not None:
                return found
        return None

    return grow(())
