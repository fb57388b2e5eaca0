"""Device files become GPUs: those of the package, found by any of their names, and a user's own.

Shape of a file (``devices/`` has examples): one object with the fields of `Gpu`, an entry of
``profiles`` for each `Profile`, and ``sources``: where this is stated. Unknown values are null. An
error names the file, the line and the field.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from ...errors import FileError, InvalidOption
from ...files import fields as f
from ...files import model as m
from ...files.json_text import parse_json
from ...files.parsed import Parsed
from ...files.source import StrPath, quoted, read_source, shortened
from .device import Evidence, Gpu, Profile
from .enumeration import MOST_SETS, LayoutCounts
from .yaml_text import read_yaml

_DEVICES = Path(__file__).parent / "devices"
#: Of the format of device files that this version reads.
SCHEMA = 1

#: Layouts grow exponentially with the slices: a mistyped number must not hang. Cards have 4 or 8
#: slices, and 7 profiles.
MOST_SLICES, MOST_PROFILES = 16, 50
_KEY = re.compile(r"[a-z0-9]+([.-][a-z0-9]+)*", re.ASCII)
_PCI = re.compile(r"0x[0-9A-Fa-f]{8}(:0x[0-9A-Fa-f]{8})?", re.ASCII)
_DRIVER = re.compile(r"R?[0-9]{1,8}(\..*)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NAME = re.compile(
    r"(?:(?P<c>[1-9]\d*)c\.)?(?P<g>[1-9]\d*)g\.[1-9]\d*gb"
    r"(?P<suffix>[+-](?P<attributes>[a-z]+(?:\.[a-z]+)*(?:,[a-z]+(?:\.[a-z]+)*)*))?",
    re.ASCII,
)
_NAME_FORM = '[<C>c.]<G>g.<M>gb[+attribute,...|-attribute], such as "3g.40gb" or "1g.10gb+me"'
#: What the base profiles must allow where a device has the slices and families of known cards.
KNOWN_COUNTS = {
    (7, 8, frozenset({"1g", "2g", "3g", "4g", "7g"})): LayoutCounts(297, 19, 37, 14, 12),
    (4, 4, frozenset({"1g", "2g", "4g"})): LayoutCounts(25, 5, 9, 4, 4),
}


def is_device_file(name: str) -> bool:
    """Whether a GPU is given as the path of a device file."""
    return name.lower().endswith((".yaml", ".yml", ".json"))


def _filled(value: Any) -> str:
    if not isinstance(value, str):
        raise f.refusal("a text")
    if not value.strip():
        raise f.refusal("a text", what="{} is empty")
    return value


_Filled = Annotated[str, f.Value(_filled, type="string", minLength=1)]
_Key = Annotated[str, f.matching(_KEY, 'a key in lower case, such as "a100-80gb"')]
_Name = Annotated[str, f.matching(_NAME, _NAME_FORM)]


class EvidencePart(m.Part):
    """Who says what of a device."""

    MAKES: ClassVar[Any] = Evidence
    fields: tuple[_Filled, ...]
    evidence: Literal["page", "code", "capture", "measured"]
    source: _Filled
    driver: _Filled | None = None
    date: Annotated[str, f.matching(_DATE, "a date such as 2026-11-01")] | None = None


class ProfilePart(m.Part):
    """A profile of a device."""

    MAKES: ClassVar[Any] = Profile
    id: f.Count | None
    name: _Name
    family: f.Text
    compute: f.AtLeastOne
    memory: f.AtLeastOne
    starts: tuple[f.Count, ...]
    max: f.AtLeastOne
    sms: f.AtLeastOne | None
    memory_mib: f.AtLeastOne | None
    attributes: tuple[_Filled, ...]
    since_driver: Annotated[str, f.matching(_DRIVER, 'a driver, such as "R525"')] | None = None
    other_names: tuple[_Name, ...] = ()
    named_since: _Filled | None = None

    def build(self) -> Any:
        """Build the profile; its name, family, attributes and starts must agree."""
        match, compute, starts = _NAME.fullmatch(self.name), self.compute, self.starts
        assert match is not None
        if not starts:
            raise f.refusal("at least one entry", "starts", what="{} is empty")
        for index, (before, start) in enumerate(pairwise(starts), 1):
            if start <= before:
                expected = f"more than the start before it, {before}"
                raise f.refusal(expected, "starts", index, fix="sort the starts")
        if match["g"] != str(compute):
            what = f"{{}} says {shortened(match['g'])} compute slices, but compute is {compute}"
            raise f.refusal("the same number", "name", what=what)
        if match["c"] and match["c"] not in map(str, range(1, compute + 1)):
            raise f.refusal(f"at most {compute}c, as many as there are compute slices", "name")
        suffix = match["suffix"] or ""
        sign = "-" if suffix.startswith("-") else ""
        named = [sign + each for each in match["attributes"].split(",")] if suffix else []
        if tuple(named) != self.attributes:
            expected = f"attributes [{', '.join(map(quoted, named))}], as the name says"
            what = f"{{}} and its attributes {list(self.attributes)} disagree"
            raise f.refusal(expected, "name", what=what)
        plain, double = f"{compute}g{suffix}", f"{compute}g.double{suffix}"
        if self.family not in (plain, double):
            raise f.refusal(f'"{plain}", or "{double}" for the one with double memory', "family")
        if self.named_since is not None and not self.other_names:
            said = "what drivers before it call the profile is not said"
            what = f"{{}} is {self.named_since!r}, and {said}"
            raise f.refusal("their name for it first in other_names", "named_since", what=what)
        return super().build()


class DevicePart(m.Part):
    """A device, in its own file or in a plan, which so explains itself."""

    schema_: Literal[1] = Field(alias="schema")
    version: f.AtLeastOne
    key: _Key
    aliases: tuple[_Filled, ...] = ()
    pci_device_ids: tuple[
        Annotated[str, f.matching(_PCI, '"0xDDDDVVVV" or "0xDDDDVVVV:0xSSSSWWWW"')], ...
    ] = ()
    architecture: Annotated[str, f.matching(_KEY, 'a word such as "hopper"')]
    compute_slices: Annotated[int, f.whole(1, MOST_SLICES)]
    memory_slices: Annotated[int, f.whole(1, MOST_SLICES)]
    mode_change_needs_reset: f.Flag | None
    geometry: Literal["own"] = f.left_out()
    profiles: tuple[Annotated[Profile, m.Built(ProfilePart)], ...]
    sources: tuple[Annotated[Evidence, m.Built(EvidencePart)], ...]

    def build(self, *, whole: bool = False, shipped: bool = False) -> Gpu:
        """Build and check the device; one with a key of the catalogue is that one.

        That of a deployment may have no profiles: nothing is known of such a GPU (`uncut_gpu`). A
        `whole` one has some. A `shipped` one is the catalogue's own.
        """
        for key in ("profiles", "sources") if whole else ("sources",):
            if not getattr(self, key):
                raise f.refusal("at least one entry", key, what="{} is empty")
        if len(self.profiles) > MOST_PROFILES:
            what = f"{{}} has {len(self.profiles)} entries"
            raise f.refusal(f"at most {MOST_PROFILES} profiles", "profiles", what=what)
        for index, profile in enumerate(self.profiles):
            for key, most in (("compute", self.compute_slices), ("memory", self.memory_slices)):
                if getattr(profile, key) > most:
                    raise f.refusal(f"at most {most}", "profiles", index, key)
            last = self.memory_slices - profile.memory
            for at, start in enumerate(profile.starts):
                if start > last:
                    raise f.refusal(
                        f"a start of at most {last}", "profiles", index, "starts", at,
                        what=f"{{}}: an instance of {profile.memory} memory slices from slice "
                        f"{start} ends beyond the last of {self.memory_slices}",
                    )  # fmt: skip
        _refuse_duplicates(self.profiles)
        gpu = Gpu(**{key: getattr(self, key) for key in Gpu.__match_args__})
        # counted before anything is listed; with fewer of the profiles there are fewer sets
        if (sets := gpu.sets_without_overlap([one.name for one in gpu.profiles])) > MOST_SETS:
            raise f.refusal(
                f"at most {MOST_SETS}, since configurations are found by listing them", "profiles",
                what=f"{{}}: these starts and sizes allow {sets} sets of instances that do not "
                "overlap",
                fix="leave out profiles or starts that no plan needs",
            )  # fmt: skip
        for index, profile in enumerate(gpu.profiles):
            (fits,) = gpu.multisets([profile.name])[0].values()
            if profile.max > fits:
                what = f"{{}} is {profile.max}, but only {fits} of {profile.name!r} fit at once"
                raise f.refusal(f"at most {fits}", "profiles", index, "max", what=what)
        if "geometry" not in self.model_fields_set:
            _check_geometry(gpu)
        if not shipped and (wrong := contradiction(gpu)):
            raise f.refusal(
                "the card of that name",
                what=f"{{}} has the key {gpu.key!r} of the catalogue, and {wrong}",
                fix="give another card a key of its own",
            )
        return gpu

    @classmethod
    def from_object(cls, value: Gpu, **other: Any) -> Self:
        """Describe a device; its geometry was judged when it was read."""
        return super().from_object(value, schema_=SCHEMA, geometry="own")


def _refuse_duplicates(profiles: tuple[Profile, ...]) -> None:
    for field, fix in (
        ("name", "names tell profiles apart"),
        ("id", "write null for an id that is not known"),
        ("family", 'the one with double memory is a "<G>g.double"'),
    ):
        seen: dict[object, str] = {}
        for index, profile in enumerate(profiles):
            value = getattr(profile, field)
            if value is not None and value in seen:
                what = f"{{}} is {value!r}, as in profile {seen[value]!r}"
                raise f.refusal(f"another {field}", "profiles", index, field, what=what, fix=fix)
            seen[value] = profile.name
    names = {profile.name for profile in profiles}
    for index, profile in enumerate(profiles):
        for position, other in enumerate(profile.other_names):
            if other in names:
                raise f.refusal(
                    "a name that no profile of this device has, under any driver",
                    "profiles", index, "other_names", position,
                )  # fmt: skip
            names.add(other)


def _check_geometry(gpu: Gpu) -> None:
    """Compare the layouts with those of the known cards that have these slices and families."""
    slices = (gpu.compute_slices, gpu.memory_slices)
    families = frozenset(profile.family for profile in gpu.profiles if profile.is_base)
    known = KNOWN_COUNTS.get((*slices, families))
    if known is not None and (found := gpu.layout_counts()) != known:
        raise f.refusal(
            f"{known}, as every known card with {slices[0]} compute and {slices[1]} memory slices",
            "profiles",
            what=f"{{}}: these starts, sizes and maxima allow {found}",
            fix="compare them with `nvidia-smi mig -lgipp`; if a driver does print this table, add "
            "the field geometry with the value own",
        )


def get_gpu(name: str) -> Gpu:
    """Return a device of the catalogue; the same object for the same device.

    `name` is its key (``a100-80gb``), a product name as drivers and node labels print it (``NVIDIA
    A100-SXM4-80GB``) or its PCI device id (``0x234810DE``). Upper and lower case count as equal,
    and so do blanks, hyphens and underscores. InvalidOption has the keys, the likely ones first, if
    there is none; :func:`read_gpu` reads a device file of your own.

    Examples
    --------
    >>> get_gpu("NVIDIA A100-SXM4-80GB").key
    'a100-80gb'
    """
    if not isinstance(name, str):
        raise InvalidOption(f"GPU name is {name!r}; expected a text such as 'a100-80gb'")
    if (found := find_gpu(name)) is not None:
        return found
    guess = likely_gpus(name)
    raise InvalidOption(
        f"unknown GPU {name!r}; {guess + ' Known' if guess else 'known'}: {', '.join(_keys())}. "
        "For another card, read_gpu reads a device file of your own"
    )


def find_gpu(name: str) -> Gpu | None:
    """Return a device of the catalogue, as `get_gpu` does; None if there is none."""
    folded = _fold(name)
    key = folded if folded in _keys() else _other_names().get(folded)
    return None if key is None else _load(key)


def gpu_called(name: str, own: Iterable[Gpu] = ()) -> Gpu:
    """Return a device by any of its names: one of the caller's own, or of the catalogue."""
    found = (each for each in own if each.profiles and is_called(each, name))
    return next(found, None) or get_gpu(name)


def is_called(one: Gpu, name: str) -> bool:
    """Whether this is a GPU's key, product name or PCI device id, spelt as `get_gpu` takes them."""
    folded = _fold(name)
    return any(folded == _fold(each) for each in (one.key, *one.aliases, *one.pci_device_ids))


def uncut_gpu(name: str) -> Gpu:
    """Return a device of which nothing is known but its name: no profile of MIG is its."""
    key = re.sub(r"[^a-z0-9]+", "-", _fold(name)).strip("-") or "unknown"
    said = Evidence(("key",), "capture", "the name of a GPU that no device file describes")
    return Gpu(key, (), (), "unknown", 1, 1, None, (), (said,), 1)


def list_gpus() -> tuple[Gpu, ...]:
    """Return all devices of the catalogue, in the order of their keys.

    Examples
    --------
    >>> [device.key for device in list_gpus()][:3]
    ['a100-40gb', 'a100-80gb', 'a30-24gb']
    """
    return tuple(_load(key) for key in _keys())


@cache
def _load(key: str) -> Gpu:
    source = read_source(_DEVICES / f"{key}.json", holds="a device")
    document = Parsed(parse_json(source), source)
    found: Gpu = m.build(DevicePart, document, whole=True, shipped=True)
    return found


@cache
def _keys() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _DEVICES.glob("*.json")))


@cache
def _other_names() -> dict[str, str]:
    """Aliases and PCI device ids of all devices: parsed, but not checked or enumerated."""
    names: dict[str, str] = {}
    for key in _keys():
        device = parse_json(read_source(_DEVICES / f"{key}.json"))
        for name in (*device["aliases"], *device["pci_device_ids"]):
            names[_fold(name)] = key
    return names


def read_gpu(path: StrPath) -> Gpu:
    """Read a device file of your own: JSON (``.json``) or YAML (``.yaml``, ``.yml``).

    The GPU can be used wherever a name of the catalogue is. A FileError has file, line and column,
    if a field is missing, unknown or of the wrong kind, the file contradicts itself, the table has
    the slices of the known cards and other layouts than theirs (unless it says ``geometry: own``),
    or there are more than 16 slices, 50 profiles or 20,000 sets of instances that do not overlap.

    Examples
    --------
    >>> from importlib.resources import files
    >>> path = files("cms.fleet.hardware") / "devices/a30-24gb.json"  # a file to start from
    >>> read_gpu(path) == get_gpu("a30-24gb")
    True
    """
    suffix = Path(os.fspath(path)).suffix.lower()
    if suffix not in (".json", ".yaml", ".yml"):
        raise FileError(
            os.fspath(path),
            f"the name ends with {suffix!r}" if suffix else "the name has no ending",
            expected="a device file: .json, .yaml or .yml",
        )
    source = read_source(path, holds="a device")
    if suffix == ".json":
        document = Parsed(parse_json(source), source)
    else:
        document = read_yaml(source, holds="a device")
    found: Gpu = m.build(DevicePart, document, whole=True)
    return found


#: A device in a document.
Device = Annotated[Gpu, m.Built(DevicePart)]


def contradiction(device: Gpu) -> str:
    """Say in what a device has the key of one of the catalogue, and is another; empty if it is not.

    Profiles may be left out; sources and further names may differ, since they grow from version to
    version. What decides which instances fit may not, nor may two GPUs share a name.
    """
    if device.key not in _keys():
        return ""
    own = _load(device.key)
    sizes, slices = ((each.compute_slices, each.memory_slices) for each in (device, own))
    if sizes != slices:
        return f"{sizes[0]} compute and {sizes[1]} memory slices, not {slices[0]} and {slices[1]}"
    known = {each.name: _rules(each) for each in own.profiles}
    of = {other: each.name for each in own.profiles for other in (each.name, *each.other_names)}
    for each in device.profiles:
        if _rules(each) != known.get(each.name):
            return f"another profile {each.name!r}"
        for other in each.other_names:
            if of.get(other, each.name) != each.name:
                return f"the name {other!r} of {of[other]} for {each.name}"
    for name in device.aliases:
        if (key := _other_names().get(_fold(name), device.key)) != device.key:
            return f"the name {name!r}, which is {key}"
    return ""


def _rules(profile: Profile) -> tuple[object, ...]:
    """What decides where it fits."""
    since = profile.since_driver
    branch = None if since is None else int(since.removeprefix("R").partition(".")[0])
    sizes = profile.compute, profile.memory, profile.starts, profile.max
    return *sizes, profile.attributes, branch


def _fold(name: str) -> str:
    return re.sub(r"[\s_-]+", "-", name.strip().casefold()).removeprefix("nvidia-")


def likely_gpus(name: str) -> str:
    """Word which devices may be meant by an unknown name, told apart; empty if that is unclear."""
    folded, keys = _fold(name), _keys()
    likely = [key for key in keys if folded and key.startswith(folded)]
    if len(likely) > 1:
        likely = [f"{key} ({', '.join(_load(key).aliases)})" for key in likely]
    if not likely:
        from difflib import get_close_matches  # only ever needed on the way to an error

        names = dict(zip(keys, keys, strict=True)) | _other_names()
        likely = [*dict.fromkeys(names[each] for each in get_close_matches(folded, names, n=3))]
    if not likely:
        return ""
    *others, last = likely
    before = f"{', '.join(others)} or " if others else ""
    return f"did you mean {before}{last}?"
