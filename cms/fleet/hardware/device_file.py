"""A device file becomes a `Gpu`, or an error that names the file, the line and the field.

Shape of a file (``devices/`` has examples): one object with the fields of `Gpu`, an entry of
``profiles`` for each `Profile`, and ``sources``: where this is stated. Unknown values are null.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from ...files import fields as f
from ...files import model as m
from ...files.source import quoted, shortened
from .device import Gpu
from .enumeration import MOST_SETS, LayoutCounts
from .profile import Evidence, Profile

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

    def check(self, compute_slices: int, memory_slices: int) -> None:
        """Refuse a profile that contradicts itself, or the slices of its device."""
        for key, most in (("compute", compute_slices), ("memory", memory_slices)):
            if getattr(self, key) > most:
                raise f.refusal(f"at most {most}", key)
        self._check_starts(memory_slices)
        self._check_name()
        if self.named_since is not None and not self.other_names:
            raise f.refusal(
                "their name for it first in other_names", "named_since",
                what=f"{{}} is {self.named_since!r}, and what drivers before it call the profile "
                "is not said",
            )  # fmt: skip

    def _check_starts(self, memory_slices: int) -> None:
        if not self.starts:
            raise f.refusal("at least one entry", "starts", what="{} is empty")
        for index, start in enumerate(self.starts):
            if start + self.memory > memory_slices:
                raise f.refusal(
                    f"a start of at most {memory_slices - self.memory}", "starts", index,
                    what=f"{{}}: an instance of {self.memory} memory slices from slice {start} "
                    f"ends beyond the last of {memory_slices}",
                )  # fmt: skip
            if index and start <= self.starts[index - 1]:
                raise f.refusal(
                    f"more than the start before it, {self.starts[index - 1]}", "starts", index,
                    fix="sort the starts",
                )  # fmt: skip

    def _check_name(self) -> None:
        match, compute = _NAME.fullmatch(self.name), self.compute
        assert match is not None
        if match["g"] != str(compute):
            raise f.refusal(
                "the same number", "name",
                what=f"{{}} says {shortened(match['g'])} compute slices, but compute is {compute}",
            )  # fmt: skip
        if match["c"] and match["c"] not in map(str, range(1, compute + 1)):
            raise f.refusal(f"at most {compute}c, as many as there are compute slices", "name")
        suffix = match["suffix"] or ""
        sign = "-" if suffix.startswith("-") else ""
        named = [sign + each for each in match["attributes"].split(",")] if suffix else []
        if tuple(named) != self.attributes:
            raise f.refusal(
                f"attributes [{', '.join(map(quoted, named))}], as the name says", "name",
                what=f"{{}} and its attributes {list(self.attributes)} disagree",
            )  # fmt: skip
        plain, double = f"{compute}g{suffix}", f"{compute}g.double{suffix}"
        if self.family not in (plain, double):
            raise f.refusal(f'"{plain}", or "{double}" for the one with double memory', "family")


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
    profiles: tuple[ProfilePart, ...]
    sources: tuple[Annotated[Evidence, m.Built(EvidencePart)], ...]

    def build(self, *, whole: bool = False) -> Gpu:
        """Build and check the device.

        That of a deployment may have no profiles: nothing is known of such a GPU (`uncut_gpu`). A
        `whole` one has some.
        """
        if whole and not self.profiles:
            raise f.refusal("at least one entry", "profiles", what="{} is empty")
        if len(self.profiles) > MOST_PROFILES:
            what = f"{{}} has {len(self.profiles)} entries"
            raise f.refusal(f"at most {MOST_PROFILES} profiles", "profiles", what=what)
        for index, part in enumerate(self.profiles):
            with f.blaming("profiles", index):
                part.check(self.compute_slices, self.memory_slices)
        if not self.sources:
            raise f.refusal("at least one entry", "sources", what="{} is empty")
        profiles = tuple(part.build() for part in self.profiles)
        _refuse_duplicates(profiles)
        known = {key: getattr(self, key) for key in Gpu.__match_args__ if key != "profiles"}
        gpu = Gpu(profiles=profiles, **known)
        _check_maxima(gpu)
        # counted before anything is listed; with fewer of the profiles there are fewer sets
        if (sets := gpu.sets_without_overlap([one.name for one in profiles])) > MOST_SETS:
            raise f.refusal(
                f"at most {MOST_SETS}, since configurations are found by listing them", "profiles",
                what=f"{{}}: these starts and sizes allow {sets} sets of instances that do not "
                "overlap",
                fix="leave out profiles or starts that no plan needs",
            )  # fmt: skip
        if "geometry" not in self.model_fields_set:
            _check_geometry(gpu)
        return gpu

    @classmethod
    def from_object(cls, value: Gpu, **other: Any) -> Self:
        """Describe a device; its geometry was judged when it was read."""
        told = {key: getattr(value, key) for key in Gpu.__match_args__ if key != "profiles"}
        profiles = [ProfilePart.from_object(each) for each in value.profiles]
        return cls.from_fields(schema_=SCHEMA, geometry="own", profiles=profiles, **told)


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


def _check_maxima(gpu: Gpu) -> None:
    """Each profile's maximum must fit at once, when nothing else is there."""
    for index, profile in enumerate(gpu.profiles):
        fits = 0
        free = 0  # the first slice after the instances so far: each as early as it can be
        for start in profile.starts:
            if start >= free:
                fits, free = fits + 1, start + profile.memory
        fits = min(fits, gpu.compute_slices // profile.compute)
        fits = min(fits, 1) if profile.has_media_engines else fits
        if profile.max > fits:
            what = f"{{}} is {profile.max}, but only {fits} of {profile.name!r} fit at once"
            raise f.refusal(f"at most {fits}", "profiles", index, "max", what=what)


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
