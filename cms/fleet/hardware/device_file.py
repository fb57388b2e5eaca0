"""A device file becomes a `Gpu`, or an error that names the file, the line and the field.

Shape of a file (``devices/`` has examples): one object with the fields of `Gpu`, an entry of
``profiles`` for each `Profile`, and ``sources``: who says so. Whatever nobody has seen is null.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...files.node import Node
from ...files.source import shortened
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
_NULL = Node(None)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_NAME = re.compile(
    r"(?:(?P<c>[1-9]\d*)c\.)?(?P<g>[1-9]\d*)g\.[1-9]\d*gb"
    r"(?P<suffix>[+-](?P<attributes>[a-z]+(?:\.[a-z]+)*(?:,[a-z]+(?:\.[a-z]+)*)*))?",
    re.ASCII,
)
_NAME_FORM = '[<C>c.]<G>g.<M>gb[+attribute,...|-attribute], such as "3g.40gb" or "1g.10gb+me"'
_EVIDENCE = ("page", "code", "capture", "measured")
_FIELDS = ("schema", "version", "key", "architecture", "compute_slices", "memory_slices")
_OPTIONAL = ("aliases", "pci_device_ids", "geometry")
_PROFILE_FIELDS = ("id", "name", "family", "compute", "memory", "starts", "max", "sms")
_PROFILE_OPTIONAL = ("since_driver", "other_names", "named_since")

#: What the base profiles must allow where a device has the slices and families of known cards.
KNOWN_COUNTS = {
    (7, 8, frozenset({"1g", "2g", "3g", "4g", "7g"})): LayoutCounts(297, 19, 37, 14, 12),
    (4, 4, frozenset({"1g", "2g", "4g"})): LayoutCounts(25, 5, 9, 4, 4),
}


def is_device_file(name: str) -> bool:
    """Whether a GPU is given as the path of a device file."""
    return name.lower().endswith((".yaml", ".yml", ".json"))


def read_device(document: Node) -> Gpu:
    """Build and check a device from the document of its file."""
    gpu = device_from_json(document)
    _some(document.at("profiles"))
    return gpu


def device_from_json(document: Node) -> Gpu:
    """Build and check a device from a parsed document, or from the part of a plan that is one.

    That of a deployment may have no profiles: nothing is known of such a GPU (`uncut_gpu`).
    """
    if isinstance(document.value, dict) and document.value.get("schema", SCHEMA) != SCHEMA:
        # First of all: a file of another schema may have other fields, too.
        raise document.at("schema").wrong(
            str(SCHEMA), "this version of the package reads no other schema of device files"
        )
    fields = document.object(
        (*_FIELDS, "mode_change_needs_reset", "profiles", "sources"), _OPTIONAL
    )
    compute_slices = _whole(fields["compute_slices"], 1, MOST_SLICES)
    memory_slices = _whole(fields["memory_slices"], 1, MOST_SLICES)
    entries = list(fields["profiles"].array())
    if len(entries) > MOST_PROFILES:
        raise fields["profiles"].error(
            f"{fields['profiles'].label} has {len(entries)} entries",
            expected=f"at most {MOST_PROFILES} profiles",
        )
    profiles = tuple(_profile(entry, compute_slices, memory_slices) for entry in entries)
    _refuse_duplicates(entries, profiles)
    gpu = Gpu(
        key=_matching(fields["key"], _KEY, 'a key in lower case, such as "a100-80gb"'),
        aliases=_texts(fields.get("aliases")),
        pci_device_ids=tuple(
            _matching(entry, _PCI, '"0xDDDDVVVV" or "0xDDDDVVVV:0xSSSSWWWW"')
            for entry in (fields["pci_device_ids"].array() if "pci_device_ids" in fields else ())
        ),
        architecture=_matching(fields["architecture"], _KEY, 'a word such as "hopper"'),
        compute_slices=compute_slices,
        memory_slices=memory_slices,
        mode_change_needs_reset=_yes_no_unknown(fields["mode_change_needs_reset"]),
        profiles=profiles,
        sources=tuple(_evidence(entry) for entry in _some(fields["sources"])),
        version=_whole(fields["version"], 1),
    )
    _check_maxima(entries, gpu)
    _refuse_too_many_sets(fields["profiles"], gpu)
    if "geometry" in fields:
        fields["geometry"].one_of(("own",))
    else:
        _check_geometry(fields["profiles"], gpu)
    return gpu


def _profile(node: Node, compute_slices: int, memory_slices: int) -> Profile:
    if isinstance(node.value, dict) and isinstance(node.value.get("name"), str):
        node.about = f"profile {node.value['name']!r}"
    fields = node.object((*_PROFILE_FIELDS, "memory_mib", "attributes"), _PROFILE_OPTIONAL)
    compute = _whole(fields["compute"], 1, compute_slices)
    memory = _whole(fields["memory"], 1, memory_slices)
    attributes = _texts(fields["attributes"])
    _check_name(fields["name"], compute, attributes)
    _check_family(fields["family"], fields["name"].text(), compute)
    return Profile(
        name=fields["name"].text(),
        family=fields["family"].text(),
        id=fields["id"].or_null(Node.integer),
        compute=compute,
        memory=memory,
        starts=_starts(fields["starts"], memory, memory_slices),
        max=_whole(fields["max"], 1),
        sms=fields["sms"].or_null(lambda it: it.integer(1)),
        memory_mib=fields["memory_mib"].or_null(lambda it: it.integer(1)),
        attributes=attributes,
        since_driver=fields.get("since_driver", _NULL).or_null(_driver),
        other_names=tuple(
            _matching(entry, _NAME, _NAME_FORM)
            for entry in (fields["other_names"].array() if "other_names" in fields else ())
        ),
        named_since=_named_since(fields),
    )


def _named_since(fields: Mapping[str, Node]) -> str | None:
    since = fields.get("named_since", _NULL).or_null(_filled)
    if since is not None and not ("other_names" in fields and list(fields["other_names"].array())):
        raise fields["named_since"].error(
            f"{fields['named_since'].label} is {since!r}, and what drivers before it call the "
            "profile is not said",
            expected="their name for it first in other_names",
        )
    return since


def _starts(node: Node, memory: int, memory_slices: int) -> tuple[int, ...]:
    starts: list[int] = []
    for entry in _some(node):
        start = _whole(entry, 0)
        if start + memory > memory_slices:
            raise entry.error(
                f"{entry.label}: an instance of {memory} memory slices from slice {start} ends "
                f"beyond the last of {memory_slices}",
                expected=f"a start of at most {memory_slices - memory}",
            )
        if starts and start <= starts[-1]:
            raise entry.wrong(f"more than the start before it, {starts[-1]}", "sort the starts")
        starts.append(start)
    return tuple(starts)


def _check_name(node: Node, compute: int, attributes: tuple[str, ...]) -> None:
    match = _NAME.fullmatch(node.text())
    if match is None:
        raise node.wrong(_NAME_FORM)
    if match["g"] != str(compute):
        raise node.error(
            f"{node.label} says {shortened(match['g'])} compute slices, but compute is {compute}",
            expected="the same number",
        )
    if match["c"] and match["c"] not in map(str, range(1, compute + 1)):
        raise node.wrong(f"at most {compute}c, as many as there are compute slices")
    sign = "-" if (match["suffix"] or "").startswith("-") else ""
    named = (match["attributes"] or "").split(",") if match["suffix"] else []
    if tuple(sign + attribute for attribute in named) != attributes:
        wanted = ", ".join(f'"{sign}{attribute}"' for attribute in named)
        raise node.error(
            f"{node.label} and its attributes {list(attributes)} disagree",
            expected=f"attributes [{wanted}], as the name says",
        )


def _check_family(node: Node, name: str, compute: int) -> None:
    match = _NAME.fullmatch(name)
    suffix = (match["suffix"] or "") if match else ""
    plain, double = f"{compute}g{suffix}", f"{compute}g.double{suffix}"
    if node.text() not in (plain, double):
        raise node.wrong(f'"{plain}", or "{double}" for the one with double memory')


def _refuse_duplicates(entries: list[Node], profiles: tuple[Profile, ...]) -> None:
    for field, fix in (
        ("name", "names tell profiles apart"),
        ("id", "write null for an id that nobody has seen"),
        ("family", 'the one with double memory is a "<G>g.double"'),
    ):
        seen: dict[object, str] = {}
        for entry, profile in zip(entries, profiles, strict=True):
            value = getattr(profile, field)
            if value is not None and value in seen:
                raise entry.at(field).error(
                    f"{entry.at(field).label} is {value!r}, as in profile {seen[value]!r}",
                    expected=f"another {field}",
                    fix=fix,
                )
            seen[value] = profile.name
    names = {profile.name for profile in profiles}
    for entry, profile in zip(entries, profiles, strict=True):
        for position, other in enumerate(profile.other_names):
            if other in names:
                raise (
                    entry.at("other_names")
                    .at(position)
                    .wrong("a name that no profile of this device has, under any driver")
                )
            names.add(other)


def _check_maxima(entries: list[Node], gpu: Gpu) -> None:
    """Each profile's maximum must fit at once, when nothing else is there."""
    for entry, profile in zip(entries, gpu.profiles, strict=True):
        fits = 0
        free = 0  # the first slice after the instances so far: each as early as it can be
        for start in profile.starts:
            if start >= free:
                fits, free = fits + 1, start + profile.memory
        fits = min(fits, gpu.compute_slices // profile.compute)
        fits = min(fits, 1) if profile.has_media_engines else fits
        if profile.max > fits:
            wrong = entry.at("max")
            raise wrong.error(
                f"{wrong.label} is {profile.max}, but only {fits} of {profile.name!r} fit at once",
                expected=f"at most {fits}",
            )


def _refuse_too_many_sets(node: Node, gpu: Gpu) -> None:
    """Count before anything is listed; with fewer of the profiles there are fewer sets."""
    sets = gpu.sets_without_overlap([profile.name for profile in gpu.profiles])
    if sets > MOST_SETS:
        raise node.error(
            f"{node.label}: these starts and sizes allow {sets} sets of instances that do not "
            "overlap",
            expected=f"at most {MOST_SETS}, since configurations are found by listing them",
            fix="leave out profiles or starts that no plan needs",
        )


def _check_geometry(node: Node, gpu: Gpu) -> None:
    """Compare the layouts with those of the known cards that have these slices and families."""
    slices = (gpu.compute_slices, gpu.memory_slices)
    families = frozenset(profile.family for profile in gpu.profiles if profile.is_base)
    known = KNOWN_COUNTS.get((*slices, families))
    if known is not None and (found := gpu.layout_counts()) != known:
        raise node.error(
            f"{node.label}: these starts, sizes and maxima allow {found}",
            expected=f"{known}, as every known card with {slices[0]} compute and {slices[1]} "
            "memory slices",
            fix="compare them with `nvidia-smi mig -lgipp`; if a driver does print this table, add "
            "the field geometry with the value own",
        )


def _evidence(node: Node) -> Evidence:
    fields = node.object(("fields", "evidence", "source"), ("driver", "date"))
    return Evidence(
        fields=_texts(fields["fields"]),
        evidence=fields["evidence"].one_of(_EVIDENCE),
        source=_filled(fields["source"]),
        driver=fields.get("driver", _NULL).or_null(_filled),
        date=fields.get("date", _NULL).or_null(
            lambda it: _matching(it, _DATE, "a date such as 2026-11-01")
        ),
    )


def _some(node: Node) -> list[Node]:
    entries = list(node.array())
    if not entries:
        raise node.error(f"{node.label} is empty", expected="at least one entry")
    return entries


def _whole(node: Node, least: int, most: int | None = None) -> int:
    value = node.integer(least)
    if most is not None and value > most:
        raise node.wrong(f"at most {most}")
    return value


def _filled(node: Node) -> str:
    if not node.text().strip():
        raise node.error(f"{node.label} is empty", expected="a text")
    return node.text()


def _driver(node: Node) -> str:
    return _matching(node, _DRIVER, 'a driver or its branch, such as "R525"')


def _texts(node: Node | None) -> tuple[str, ...]:
    return () if node is None else tuple(_filled(entry) for entry in node.array())


def _matching(node: Node, pattern: re.Pattern[str], expected: str) -> str:
    if not pattern.fullmatch(node.text()):
        raise node.wrong(expected)
    return node.text()


def _yes_no_unknown(node: Node) -> bool | None:
    if node.value is not None and not isinstance(node.value, bool):
        raise node.wrong("true, false, or null if unknown")
    return node.value
