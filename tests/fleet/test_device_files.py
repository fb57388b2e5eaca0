"""Device files of the user's own: JSON and YAML, a word for whatever is wrong, and limits."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from ruamel.yaml import YAML

from cms import solve
from cms.errors import FileError, InvalidOption
from cms.files.model import build
from cms.fleet import plan_from_json, plan_to_json
from cms.fleet.hardware import Gpu, enumeration, list_gpus, read_gpu
from cms.fleet.hardware.catalogue import _DEVICES, MOST_PROFILES, DevicePart
from cms.fleet.hardware.enumeration import MOST_SETS
from cms.fleet.serving import OperatingPoint, Plan, Service, build_problem
from tests.fleet.plans import GONE, set_at
from tests.references.layouts import small_cards

# Four slices, three profiles, in the shape of hardware documentation: flow mappings, bare dates.
MINE_YAML = """\
# my card
schema: 1
version: 3
key: mine
architecture: blackwell
compute_slices: 4
memory_slices: 4
mode_change_needs_reset: null
profiles:
- {id: 7, name: 1g.6gb, family: 1g, compute: 1, memory: 1, starts: [0, 1, 2, 3], max: 4, sms: null,
   memory_mib: 5952, attributes: []}
- {id: 5, name: 2g.12gb, family: 2g, compute: 2, memory: 2, starts: [0, 2], max: 2, sms: 28,
   memory_mib: null, attributes: []}
- {id: 0, name: 4g.24gb, family: 4g, compute: 4, memory: 4, starts: [0], max: 1, sms: 56,
   memory_mib: null, attributes: []}
sources:
- {fields: [starts], evidence: capture, source: my own card, driver: "580.95", date: 2026-11-01}
"""
DEVICE: dict[str, Any] = YAML(typ="safe").load(MINE_YAML)
DEVICE["sources"][0]["date"] = "2026-11-01"


def as_json(device: dict[str, Any]) -> str:
    """A field a line from line 2 on, and a profile a line: the 2g of `DEVICE` is on line 11."""
    parts = []
    for key, value in device.items():
        if key == "profiles" and isinstance(value, list):
            entries = ",\n".join("    " + json.dumps(entry) for entry in value)
            parts.append(f'  "profiles": [\n{entries}\n  ]')
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


MINE = as_json(DEVICE)


def write(folder: Path, device: dict[str, Any], **changes: Any) -> Path:
    path = folder / "mine.json"
    path.write_text(as_json(device | changes))
    return path


def refusal(path: Path) -> FileError:
    with pytest.raises(FileError) as caught:
        read_gpu(path)
    assert str(path) in str(caught.value)
    return caught.value


def test_a_users_device_file_works_like_a_shipped_one_in_json_and_yaml(tmp_path: Path) -> None:
    mine = read_gpu(write(tmp_path, DEVICE, **{"x-rack": "B7"}))  # keys of one's own are left alone
    assert (mine.key, mine.version, mine.mode_change_needs_reset) == ("mine", 3, None)
    assert [str(configuration) for configuration in mine.configurations] == [
        "4g.24gb", "2 x 2g.12gb", "2 x 1g.6gb + 2g.12gb", "4 x 1g.6gb",
    ]  # fmt: skip
    assert (mine.profile("1g.6gb").memory_mib, mine.sources[0].date) == (5952, "2026-11-01")
    for name in ("mine.yaml", "mine.yml"):
        (tmp_path / name).write_text(MINE_YAML)
        assert read_gpu(str(tmp_path / name)) == mine


@pytest.mark.parametrize("device", list_gpus(), ids=lambda device: device.key)
def test_every_shipped_device_is_read_as_a_users_and_survives_yaml(
    device: Gpu, tmp_path: Path
) -> None:
    path = _DEVICES / f"{device.key}.json"
    with (tmp_path / "device.yaml").open("w", encoding="utf-8") as file:
        YAML().dump(json.loads(path.read_text(encoding="utf-8")), file)
    assert read_gpu(tmp_path / "device.yaml") == read_gpu(path) == device


def changed(path: str, value: object) -> dict[str, Any]:
    """The device with another value at a place, such as ``1.starts``: of its profile 1."""
    device: dict[str, Any] = json.loads(MINE)
    set_at(device, f"profiles.{path}" if path[0].isdigit() else path, value)
    return device


# What is changed, the line of `as_json` (a field put at the end stands below the sources), words.
WRONG: list[tuple[str, object, int, str]] = [
    ("schema", GONE, 1, 'has no "schema"'),
    ("sources", [], 14, "sources is empty, expected at least one entry"),
    ("key", "My Card", 4, 'key is "My Card", expected a key in lower case'),
    ("compute_slices", 0, 6, "compute_slices is 0, expected a whole number >= 1"),
    ("memory_slices", 10**6, 7, "memory_slices is 1000000, expected at most 16"),
    ("pci_device_ids", ["20B7"], 15, 'pci_device_ids[0] is "20B7", expected "0xDDDD'),
    ("aliases", [""], 15, "aliases[0] is empty"),
    ("geometry", "mine", 15, 'geometry is "mine", expected one of own'),
    ("profiles", [], 9, "profiles is empty"),
    ("1.starts", GONE, 11, "profiles[1] (profile '2g.12gb') has no \"starts\""),
    ("1.starts", [0, 3], 11, "profiles[1].starts[1] (profile '2g.12gb'): an instance of 2 memory"),
    ("1.starts", [-1], 11, "starts[0] (profile '2g.12gb') is -1, expect"),
    ("1.starts", [], 11, "starts (profile '2g.12gb') is empty"),
    ("1.starts", [2, 0], 11, "is 0, expected more than the start before"),
    ("1.starts", [0, 0], 11, "is 0, expected more than the start before"),
    ("1.memory", 5, 11, "memory (profile '2g.12gb') is 5, expected at mos"),
    ("compute_slices", 3, 12, "compute (profile '4g.24gb') is 4, expected at most 3"),
    ("1.compute", 3, 11, "name (profile '2g.12gb') says 2 compute slices, but compute is 3"),
    ("1.name", "2g-12gb", 11, 'is "2g-12gb", expected [<C>c.]<G>g.<M>gb'),
    ("1.name", "3c.2g.12gb", 11, 'is "3c.2g.12gb", expected at most 2c'),
    ("1.name", "1" * 5000 + "g.5gb", 11, "name (profile '1111"),
    ("1.name", "2g.12gb+me", 11, 'disagree, expected attributes ["me"], as the name says'),
    ("1.attributes", ["me"], 11, "and its attributes ['me'] disagree, expected attributes []"),
    ("1.family", "3g", 11, 'is "3g", expected "2g", or "2g.double" for'),
    ("1.max", 3, 11, "is 3, but only 2 of '2g.12gb' fit at once, expected at most 2"),
    ("1.id", 7, 11, "id (profile '2g.12gb') is 7, as in profile '1g.6gb', expected another id"),
    ("1.since_driver", 525, 11, "since_driver (profile '2g.12gb') is 525"),
    ("1.other_names", ["4g.24gb"], 11, 'is "4g.24gb", expected a name that no profile of this'),
    ("1.named_since", "R1", 11, "named_since (profile '2g.12gb') is 'R1', and what drivers before"),
    ("1.starts", [0, 1, 2], 9, "profiles: these starts, sizes and maxima allow "),
    ("sources.0.evidence", "hearsay", 14, 'is "hearsay", expected one of page, code'),
    ("sources.0.date", "1.11.2026", 14, "expected a date such as 2026-11-01"),
]


@pytest.mark.parametrize(("path", "value", "line", "words"), WRONG, ids=map(str, range(len(WRONG))))
def test_a_wrong_device_file_is_refused_with_its_place_and_in_yaml_with_the_same_words(
    path: str, value: object, line: int, words: str, tmp_path: Path
) -> None:
    device = changed(path, value)
    fault = refusal(write(tmp_path, device))
    assert words in str(fault)
    assert len(str(fault)) < 1_000
    assert fault.line == line
    with (tmp_path / "mine.yaml").open("w") as file:
        YAML().dump(device, file)
    fault = refusal(tmp_path / "mine.yaml")
    assert words in str(fault)
    assert fault.line is not None
    assert fault.column is not None


def test_two_profiles_of_a_name_and_missing_files_are_refused(tmp_path: Path) -> None:
    device = json.loads(MINE)
    profiles = device["profiles"]
    profiles.append(profiles[1] | {"id": None})
    fault = refusal(write(tmp_path, device))
    assert "profiles[3].name (profile '2g.12gb') is '2g.12gb', as in profile" in str(fault)
    assert fault.line == 13
    profiles[3] |= {"name": "2g.24gb", "memory": 4, "starts": [0], "max": 1}
    assert 'the one with double memory is a "<G>g.double"' in str(refusal(write(tmp_path, device)))
    profiles[3]["family"] = "2g.double"
    mine = read_gpu(write(tmp_path, device))
    assert mine.base_profiles == ("1g.6gb", "2g.12gb", "4g.24gb")
    assert mine.place({"2g.24gb": 1, "2g.12gb": 1}) is None
    (tmp_path / "mine.json").write_text(MINE)
    assert re.search("nearest: .mine.json.", str(refusal(tmp_path / "mien.json")))


def test_a_wrong_table_in_circulation_is_caught_unless_a_driver_does_print_it(
    tmp_path: Path,
) -> None:
    """A 3g of three memory slices and a 7g of seven: two of the five counts are right."""
    device: dict[str, Any] = json.loads((_DEVICES / "h100-80gb.json").read_text(encoding="utf-8"))
    device["profiles"] = [p for p in device["profiles"] if p["family"] == f"{p['compute']}g"]
    for profile in device["profiles"]:
        if profile["family"] in ("3g", "7g"):
            profile["memory"] -= 1
    text = str(refusal(write(tmp_path, device)))
    assert "allow 308 layouts (19 maximal) and 38 multisets (" in text
    assert "12 maximal), expected 297 layouts (19 maximal) and 37 multisets (14 of" in text
    said = str(refusal(write(tmp_path, device, geometry="own")))
    assert "the key 'h100-80gb' of the catalogue, and another profile" in said
    counts = read_gpu(write(tmp_path, device, geometry="own", key="mock")).layout_counts()
    assert (counts.layouts, counts.multisets) == (308, 38)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", MINE, "the name ends with '.txt', expected a device file: .json, .yaml or .yml"),
        ("a.json", "", "the file is empty, expected a device"),
        ("a.json", "[]", "the document is an array, expected an object"),
        ("a.yaml", "- 1\n", ":1:1: the document is an array, expected an object"),
        ("a.yaml", "? [1, 2]\n: 3\n", "a key is no plain text"),
        ("a.yaml", "[" * 5000, "a.yaml:1:51: a value is nested in more than 50 others"),
        ("a.yaml", "#" * 50_001, "has 50001 characters, expected at most 50000 of YAML; write the"),
        ("a.yaml", MINE_YAML + "---\nschema: 1\n", ":19:1: a second document begins here"),
        ("a.yaml", MINE_YAML.replace("starts: [0, 2]", "starts: [0, 3]"), ":12:73: profiles[1]."),
        ("a.yaml", MINE_YAML.replace("max: 2", "max: 0x2"), ":12:82: profiles[1].max"),
    ],
)
def test_a_file_that_is_no_device_file_is_refused(
    name: str, text: str, words: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert words in str(refusal(path))


def wide(slices: int, profiles: int, **changes: Any) -> dict[str, Any]:
    """A device whose profiles all take one slice, anywhere."""
    names = [f"a{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(profiles)]
    of = {"compute_slices": slices, "memory_slices": slices, "architecture": "own"}
    one = DEVICE["profiles"][0] | {"starts": [*range(slices)], "max": slices}
    made = [
        one | {"id": i, "name": f"1g.6gb+{name}", "family": f"1g+{name}", "attributes": [name]}
        for i, name in enumerate(names)
    ]
    return {**DEVICE, **of, "profiles": made, **changes}


def refused(document: dict[str, Any]) -> str:
    with pytest.raises(FileError) as caught:
        build(DevicePart, document, whole=True)
    return str(caught.value)


def test_a_small_file_of_too_many_layouts_is_refused_before_any_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(enumeration, "_with")  # without it no layout can be made
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(wide(16, 4), indent=1), "utf-8")
    fault = refusal(path)
    assert f"allow {5**16 - 1} sets of instances that do not overlap, expected at most" in str(
        fault
    )
    assert fault.line is not None


def test_so_is_one_in_a_plan_and_one_of_too_many_profiles() -> None:
    serving = build_problem(
        [Service("chat", "bert", 100, 100)],
        [OperatingPoint("bert", "a30-24gb", "1g.6gb", 1, 2, 60, 33)],
    )
    document = plan_to_json(Plan(serving, solve(serving.problem)))
    plan_from_json(document)
    document = copy.deepcopy(document) | {"devices": [wide(16, 4, key="a30-24gb")]}
    with pytest.raises(FileError, match="sets of instances that do not overlap"):
        plan_from_json(document)
    assert f"expected at most {MOST_PROFILES} profiles" in refused(wide(1, MOST_PROFILES + 1))
    build(DevicePart, wide(2, MOST_PROFILES), whole=True)


def test_devices_made_by_hand_list_no_more_and_the_shipped_are_far_from_the_limit() -> None:
    one = build(DevicePart, wide(3, 26), whole=True)
    names = [profile.name for profile in one.profiles]
    assert len(one.layouts(names)) == one.sets_without_overlap(names) == 27**3 - 1
    wider = tuple(replace(p, starts=tuple(range(16)), max=16) for p in one.profiles)
    many = replace(one, compute_slices=16, memory_slices=16, profiles=wider)
    for ask in (many.layouts, many.maximal_layouts, many.configurations_of, many.layout_counts):
        with pytest.raises(InvalidOption, match=f"{27**16 - 1} sets .* at most {MOST_SETS}"):
            ask(names)
    few = replace(many, memory_slices=14, compute_slices=14)
    assert [dict(c.blocks) for c in few.configurations_of(names[:1])] == [{names[0]: 14}]
    for each in list_gpus():
        everything = [profile.name for profile in each.profiles]
        sets = each.sets_without_overlap(everything)
        assert len(each.layouts(everything)) <= sets < MOST_SETS / 3


@given(small_cards())
def test_a_maximum_is_refused_if_and_only_if_so_many_do_not_fit(device: Gpu) -> None:
    profile = device.profiles[0]
    free = (replace(profile, max=99),)
    fits = max(count for one in replace(device, profiles=free).multisets([profile.name])
               for count in one.values())  # fmt: skip
    suffix = "".join(f"+{each}" for each in profile.attributes)
    entry = DEVICE["profiles"][0] | {
        "name": f"{profile.compute}g.5gb{suffix}", "family": f"{profile.compute}g{suffix}",
        "attributes": [*profile.attributes], "compute": profile.compute, "max": fits,
        "memory": profile.memory, "starts": [*profile.starts],
    }  # fmt: skip
    slices = {each: getattr(device, each) for each in ("compute_slices", "memory_slices")}
    document = {**DEVICE, **slices, "profiles": [entry]}
    build(DevicePart, document, whole=True)
    entry["max"] = fits + 1
    assert f"only {fits} of" in refused(document)
