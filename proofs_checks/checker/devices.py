"""Devices as documents describe them, which may not contradict the catalogue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from .reading import Fault, as_a, integer, new_name, record, show
from .tables import catalogue

_DEVICE = (
    "schema version key architecture compute_slices memory_slices mode_change_needs_reset profiles "
    "sources"
)
_NAMES = "aliases pci_device_ids geometry"
_PROFILE = "id name family compute memory starts max sms memory_mib attributes"
#: No device has more slices of a kind, or more profiles.
_MOST_SLICES, _MOST_PROFILES = 16, 50
#: A GPU has one set of JPEG and OFA engines.
_MEDIA = {"me", "me.all"}


class Profile(NamedTuple):
    """Where an instance of it can start, and what it takes."""

    name: str
    compute: int
    memory: int
    starts: frozenset[int]
    most: int
    attributes: tuple[str, ...]
    since: int | None

    @property
    def media(self) -> bool:
        """Whether it has media engines."""
        return not _MEDIA.isdisjoint(self.attributes)


class Device(NamedTuple):
    """A kind of GPU, by its names as `spelt`; other names of a profile lead to it, too."""

    key: str
    names: frozenset[str]
    compute: int
    memory: int
    profiles: dict[str, Profile]

    def is_called(self, name: str) -> bool:
        """Whether this is its key or a product name, in whatever case and with whatever blanks."""
        return spelt(name) in self.names

    def name_of(self, profile: str) -> str:
        """Return a profile's own name; what is no profile has the name it has."""
        found = self.profiles.get(profile)
        return profile if found is None else found.name


def read_devices(value: object) -> dict[str, Device]:
    """Read the devices by key."""
    devices: dict[str, Device] = {}
    for at, entry in enumerate(as_a(list, value, "devices")):
        device = _device(entry, f"devices[{at}]")
        if device.key in devices:
            raise Fault(f"the device {show(device.key)} is there twice")
        devices[device.key] = _with_catalogue(device)
    return devices


def _device(value: object, what: str) -> Device:
    fields = record(value, what, _DEVICE, _NAMES)
    key = new_name(fields["key"], f"the key of {what}")
    if integer(fields["schema"], f"the schema of {what}") != 1:
        raise Fault(f"the schema of {what} is {show(fields['schema'])}, not 1")
    if fields.get("geometry", "own") != "own":
        raise Fault(f"the geometry of {what} is {show(fields['geometry'])}, not 'own'")
    compute, memory = (
        integer(fields[f"{kind}_slices"], f"the {kind} slices of", key, least=1)
        for kind in ("compute", "memory")
    )
    entries = as_a(list, fields["profiles"], "the profiles of", key)
    if max(compute, memory) > _MOST_SLICES or len(entries) > _MOST_PROFILES:
        raise Fault(
            f"the device {show(key)} has {compute} compute and {memory} memory slices and "
            f"{len(entries)} profiles, at most {_MOST_SLICES} and {_MOST_PROFILES} may be"
        )
    profiles: dict[str, Profile] = {}
    for one in entries:
        profile, names = _profile(one, key)
        _fit(profile, compute, memory, key)
        for name in names:
            if profiles.setdefault(name, profile) is not profile:
                raise Fault(f"device {show(key)} has the profile {show(name)} twice")
    names_of = [
        as_a(str, each, "a name of", key)
        for kind in ("aliases", "pci_device_ids")
        for each in as_a(list, fields.get(kind, []), f"the {kind} of", key)
    ]
    return Device(key, frozenset(map(spelt, [key, *names_of])), compute, memory, profiles)


@cache
def _shipped() -> dict[str, Device]:
    """The catalogue's devices, and all names that it has for each."""
    return {key: _device(fields, key) for key, fields in catalogue().items()}


def _with_catalogue(device: Device) -> Device:
    """Refuse what contradicts the catalogue; take up the names that it has beside the file's.

    Profiles may be left out, and what may differ is who says so, and under which names a card or a
    profile is known besides: all that grows from version to version. A profile that the card does
    not have is a contradiction, and so is a name of another one.
    """
    own = _shipped().get(device.key)
    if own is None:
        return device
    what = f"the device {show(device.key)} is not the catalogue's"
    if (device.compute, device.memory) != (own.compute, own.memory):
        raise Fault(f"{what}, which has {own.compute} compute and {own.memory} memory slices")
    for name in sorted({each.name for each in device.profiles.values()}):
        if device.profiles[name] != own.profiles.get(name):
            raise Fault(f"{what}: they differ in the profile {show(name)}")
    for name, profile in device.profiles.items():
        if own.profiles.get(name, profile) != profile:
            raise Fault(f"{what}: {show(name)} is another profile")
    for other in _shipped().values():
        if other.key != device.key and (wrong := device.names & other.names):
            raise Fault(f"{what}: {show(min(wrong))} is a name of {other.key}")
    return device._replace(names=device.names | own.names)


def spelt(name: str) -> str:
    """Return a GPU's name in one of the ways in which drivers, labels and tables spell it."""
    return re.sub(r"[\s_-]+", "-", name.strip().casefold()).removeprefix("nvidia-")


def _profile(value: object, key: str) -> tuple[Profile, list[str]]:
    what = f"a profile of {show(key)}"
    fields = record(value, what, _PROFILE, "since_driver other_names named_since")
    name = new_name(fields["name"], f"the name of {what}")
    what = f"profile {show(name)} of {show(key)}"
    starts = [integer(each, f"a start of {what}") for each in _list(fields, "starts", what)]
    if not starts or any(low >= high for low, high in pairwise(starts)):
        raise Fault(f"the starts of {what} are none, or not ascending")
    attributes = [
        as_a(str, e, f"an attribute of {what}") for e in _list(fields, "attributes", what)
    ]
    others = [as_a(str, e, f"a name of {what}") for e in as_a(list, fields.get("other_names", []))]
    if fields.get("named_since") is not None:
        as_a(str, fields["named_since"], f"named_since of {what}")
    since = fields.get("since_driver")
    profile = Profile(
        name,
        integer(fields["compute"], f"the compute slices of {what}", least=1),
        integer(fields["memory"], f"the memory slices of {what}", least=1),
        frozenset(starts),
        integer(fields["max"], f"the largest number of {what}", least=1),
        tuple(attributes),
        None if since is None else branch_of(since, f"the first driver of {what}"),
    )
    return profile, [name, *others]


def _fit(profile: Profile, compute: int, memory: int, key: str) -> None:
    """Refuse a profile that the slices of its device do not hold, so often as it says."""
    free = fits = 0
    for start in sorted(profile.starts):
        if start >= free:
            fits, free = fits + 1, start + profile.memory
    fits = min(fits, compute // profile.compute, 1 if profile.media else fits)
    if max(profile.starts) + profile.memory > memory or profile.most > fits:
        raise Fault(
            f"profile {show(profile.name)} of {show(key)} ends beyond the last of {memory} memory "
            f"slices, or {profile.most} of it do not fit at once"
        )


def _list(fields: Mapping[str, Any], name: str, what: str) -> list[Any]:
    return as_a(list, fields[name], f"{name} of {what}")


def branch_of(value: object, what: str) -> int:
    """Return the branch of a driver: 550 of ``550.54`` and of ``R550``."""
    driver = as_a(str, value, what)
    branch = driver.removeprefix("R").partition(".")[0]
    if not (branch.isascii() and branch.isdigit() and len(branch) < 9):
        raise Fault(f"{what} is {show(driver)}, which is no version of a driver")
    return int(branch)
