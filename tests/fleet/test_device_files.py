"""Device files of the user's own: JSON and YAML, and a word for whatever is wrong in them."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from cms.errors import FileError
from cms.fleet.hardware import gpus, read_gpu
from cms.fleet.hardware.catalogue import _DEVICES
from tests.texts import LETTERS

Change = Callable[[dict[str, Any]], object]

# Four slices, three profiles.
DEVICE: dict[str, Any] = {
    "schema": 1,
    "version": 3,
    "key": "mine",
    "architecture": "blackwell",
    "compute_slices": 4,
    "memory_slices": 4,
    "mode_change_needs_reset": None,
    "profiles": [
        {
            "id": number,
            "name": name,
            "family": f"{slices}g",
            "compute": slices,
            "memory": slices,
            "starts": starts,
            "max": len(starts),
            "sms": sms,
            "memory_mib": mib,
            "attributes": [],
        }
        for number, name, slices, starts, sms, mib in (
            (7, "1g.6gb", 1, [0, 1, 2, 3], None, 5952),
            (5, "2g.12gb", 2, [0, 2], 28, None),
            (0, "4g.24gb", 4, [0], 56, None),
        )
    ],
    "sources": [
        {
            "fields": ["starts"],
            "evidence": "capture",
            "source": "my own card",
            "driver": "580.95",
            "date": "2026-11-01",
        }
    ],
}


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

# The same in the shape of hardware documentation: flow mappings in a block sequence, bare dates.
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


def refusal(path: Path) -> FileError:
    with pytest.raises(FileError) as caught:
        read_gpu(path)
    assert str(path) in str(caught.value)
    return caught.value


def test_a_users_device_file_works_like_a_shipped_one(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(MINE)
    mine = read_gpu(path)
    assert (mine.key, mine.version, mine.mode_change_needs_reset) == ("mine", 3, None)
    assert [str(configuration) for configuration in mine.configurations] == [
        "4g.24gb",
        "2 x 2g.12gb",
        "2 x 1g.6gb + 2g.12gb",
        "4 x 1g.6gb",
    ]
    assert mine.profile("1g.6gb").memory_mib == 5952
    assert mine.sources[0].date == "2026-11-01"


def test_a_users_yaml_says_the_same_as_his_json(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(MINE)
    (tmp_path / "mine.yaml").write_text(MINE_YAML)
    (tmp_path / "mine.yml").write_text(MINE_YAML)
    assert read_gpu(tmp_path / "mine.yaml") == read_gpu(str(tmp_path / "mine.json"))
    assert read_gpu(tmp_path / "mine.yml") == read_gpu(tmp_path / "mine.json")


@pytest.mark.parametrize("key", [device.key for device in gpus()])
def test_every_shipped_device_survives_a_detour_over_yaml(key: str, tmp_path: Path) -> None:
    data = json.loads((_DEVICES / f"{key}.json").read_text(encoding="utf-8"))
    with (tmp_path / "device.yaml").open("w", encoding="utf-8") as file:
        YAML().dump(data, file)
    assert read_gpu(tmp_path / "device.yaml") == read_gpu(_DEVICES / f"{key}.json")


def test_a_table_on_another_scale_is_taken_as_it_is(tmp_path: Path) -> None:
    """A four-slice card whose tool counts eight memory slots."""
    device = json.loads(MINE)
    device["memory_slices"] = 8
    for profile, starts, memory in zip(
        device["profiles"], ([0, 1, 4, 5], [0, 4], [0]), (1, 2, 8), strict=True
    ):
        profile["starts"], profile["memory"] = starts, memory
    path = tmp_path / "mine.json"
    path.write_text(as_json(device))
    assert read_gpu(path).layout_counts() == (25, 5, 9, 4, 4)


def test_keys_of_the_users_own_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(as_json(json.loads(MINE) | {"x-rack": "B7"}))
    assert read_gpu(path).key == "mine"


def change(*path: str | int, to: object) -> Change:
    def apply(device: dict[str, Any]) -> None:
        target: Any = device
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = to

    return apply


def drop(*path: str | int) -> Change:
    def apply(device: dict[str, Any]) -> None:
        target: Any = device
        for step in path[:-1]:
            target = target[step]
        del target[path[-1]]

    return apply


WRONG: list[tuple[Change, int, str]] = [
    (change("schema", to=2), 2, "schema is 2, expected 1"),
    (drop("schema"), 1, 'has no "schema"'),
    (drop("sources"), 1, 'has no "sources"'),
    (change("sources", to=[]), 14, "sources is empty, expected at least one entry"),
    (change("version", to=0), 3, "version is 0, expected a whole number >= 1"),
    (change("version", to="3"), 3, 'version is "3", expected a whole number >= 1'),
    (change("key", to="My Card"), 4, 'key is "My Card", expected a key in lower case'),
    (change("architecture", to=9), 5, "architecture is 9, expected a text"),
    (change("compute_slices", to=0), 6, "compute_slices is 0, expected a whole number >= 1"),
    (change("compute_slices", to=4.5), 6, "compute_slices is 4.5, expected a whole number"),
    (change("memory_slices", to=10**6), 7, "memory_slices is 1000000, expected at most 16"),
    (
        change("mode_change_needs_reset", to="yes"),
        8,
        'mode_change_needs_reset is "yes", expected true or false',
    ),
    (change("pci_device_ids", to=["20B7"]), 17, 'pci_device_ids[0] is "20B7", expected "0xDDDD'),
    (change("aliases", to=[""]), 17, "aliases[0] is empty"),
    (change("geometry", to="mine"), 17, 'geometry is "mine", expected one of own'),
    (change("memry_slices", to=4), 17, 'unknown key "memry_slices"'),
    (change("profiles", to={}), 9, "profiles is an object, expected an array"),
    (change("profiles", to=[]), 9, "profiles is empty"),
    (change("profiles", 1, to=3), 11, "profiles[1] is 3, expected an object"),
    (drop("profiles", 1, "starts"), 11, "profiles[1] (profile '2g.12gb') has no \"starts\""),
    (change("profiles", 1, "start", to=[0]), 11, 'unknown key "start"'),
    (
        change("profiles", 1, "starts", to=[0, 3]),
        11,
        "profiles[1].starts[1] (profile '2g.12gb'): an instance of 2 memory slices from slice 3 "
        "ends beyond the last of 4, expected a start of at most 2",
    ),
    (change("profiles", 1, "starts", to=[-1]), 11, "starts[0] (profile '2g.12gb') is -1, expect"),
    (change("profiles", 1, "starts", to=[]), 11, "starts (profile '2g.12gb') is empty"),
    (change("profiles", 1, "starts", to=[2, 0]), 11, "is 0, expected more than the start before"),
    (change("profiles", 1, "starts", to=[0, 0]), 11, "is 0, expected more than the start before"),
    (change("profiles", 1, "starts", to=0), 11, "starts (profile '2g.12gb') is 0, expected an arr"),
    (change("profiles", 1, "memory", to=5), 11, "memory (profile '2g.12gb') is 5, expected at mos"),
    (change("profiles", 1, "compute", to=5), 11, "compute (profile '2g.12gb') is 5, expected at m"),
    (
        change("profiles", 1, "compute", to=3),
        11,
        "name (profile '2g.12gb') says 2 compute slices, but compute is 3, expected the same",
    ),
    (change("profiles", 1, "name", to="2g-12gb"), 11, 'is "2g-12gb", expected [<C>c.]<G>g.<M>gb'),
    (change("profiles", 1, "name", to=2), 11, "profiles[1].name is 2, expected a text"),
    (
        change("profiles", 1, "name", to="3c.2g.12gb"),
        11,
        'is "3c.2g.12gb", expected at most 2c, as many as there are compute slices',
    ),
    (
        change("profiles", 1, "name", to="2g.12gb+me"),
        11,
        'disagree, expected attributes ["me"], as the name says',
    ),
    (
        change("profiles", 1, "attributes", to=["me"]),
        11,
        "and its attributes ['me'] disagree, expected attributes []",
    ),
    (change("profiles", 1, "family", to="3g"), 11, 'is "3g", expected "2g", or "2g.double" for'),
    (change("profiles", 1, "max", to=0), 11, "max (profile '2g.12gb') is 0, expected a whole num"),
    (
        change("profiles", 1, "max", to=3),
        11,
        "is 3, but only 2 of '2g.12gb' fit at once, expected at most 2",
    ),
    (
        change("profiles", 1, "id", to=7),
        11,
        "id (profile '2g.12gb') is 7, as in profile '1g.6gb', expected another id",
    ),
    (change("profiles", 1, "id", to=-1), 11, "id (profile '2g.12gb') is -1"),
    (change("profiles", 1, "sms", to=0), 11, "sms (profile '2g.12gb') is 0"),
    (change("profiles", 1, "memory_mib", to="12 GiB"), 11, 'is "12 GiB", expected a whole number'),
    (change("profiles", 1, "since_driver", to=525), 11, "since_driver (profile '2g.12gb') is 525"),
    (
        change("profiles", 1, "other_names", to=["4g.24gb"]),
        11,
        'is "4g.24gb", expected a name that no profile of this device has',
    ),
    (
        change("profiles", 1, "starts", to=[0, 1, 2]),
        9,
        "profiles: these starts, sizes and maxima allow ",
    ),
    (
        change("sources", 0, "evidence", to="hearsay"),
        14,
        'is "hearsay", expected one of page, code',
    ),
    (change("sources", 0, "source", to=" "), 14, "sources[0].source is empty"),
    (change("sources", 0, "driver", to=580.95), 14, "sources[0].driver is 580.95, expected a text"),
    (change("sources", 0, "date", to="1.11.2026"), 14, "expected a date such as 2026-11-01"),
]


@pytest.mark.parametrize(("change", "line", "words"), WRONG, ids=[words for _, _, words in WRONG])
def test_a_wrong_device_file_is_refused_with_line_and_field(
    change: Change, line: int, words: str, tmp_path: Path
) -> None:
    device = json.loads(MINE)
    change(device)
    path = tmp_path / "mine.json"
    path.write_text(as_json(device))
    fault = refusal(path)
    assert words in str(fault)
    # `as_json` writes the sources on one line: 14. A field put at the end stands below them.
    assert fault.line == min(line, 15)


@pytest.mark.parametrize(("change", "line", "words"), WRONG, ids=[words for _, _, words in WRONG])
def test_a_wrong_yaml_file_is_refused_with_the_same_words(
    change: Change, line: int, words: str, tmp_path: Path
) -> None:
    device = json.loads(MINE)
    change(device)
    path = tmp_path / "mine.yaml"
    with path.open("w") as file:
        YAML().dump(device, file)
    fault = refusal(path)
    assert words in str(fault)
    assert fault.line is not None
    assert fault.column is not None


def test_a_duplicate_profile_is_refused_where_it_stands(tmp_path: Path) -> None:
    device = json.loads(MINE)
    device["profiles"].append(device["profiles"][1] | {"id": None})
    path = tmp_path / "mine.json"
    path.write_text(as_json(device))
    fault = refusal(path)
    assert "profiles[3].name (profile '2g.12gb') is '2g.12gb', as in profile" in str(fault)
    assert fault.line == 13


def test_two_profiles_of_one_family_are_refused_with_the_word_for_double_memory(
    tmp_path: Path,
) -> None:
    device = json.loads(MINE)
    device["profiles"].append(
        device["profiles"][1] | {"id": 4, "name": "2g.24gb", "memory": 4, "starts": [0], "max": 1}
    )
    path = tmp_path / "mine.json"
    path.write_text(as_json(device))
    assert 'the one with double memory is a "<G>g.double"' in str(refusal(path))
    device["profiles"][3]["family"] = "2g.double"
    path.write_text(as_json(device))
    mine = read_gpu(path)
    assert mine.base_profiles == ("1g.6gb", "2g.12gb", "4g.24gb")
    assert mine.place({"2g.24gb": 1, "2g.12gb": 1}) is None


def faulty_mock() -> dict[str, Any]:
    """A wrong table in circulation: a 3g of three memory slices, a 7g of seven."""
    device: dict[str, Any] = json.loads((_DEVICES / "h100-80gb.json").read_text(encoding="utf-8"))
    device["profiles"] = [p for p in device["profiles"] if p["family"] == f"{p['compute']}g"]
    for profile in device["profiles"]:
        if profile["family"] in ("3g", "7g"):
            profile["memory"] -= 1
    return device


def test_a_wrong_table_in_circulation_is_caught_although_two_counts_are_right(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mock.json"
    path.write_text(as_json(faulty_mock()))
    text = str(refusal(path))
    assert "allow 308 layouts (19 maximal) and 38 multisets (" in text
    assert "12 maximal), expected 297 layouts (19 maximal) and 37 multisets (14 of" in text
    assert "geometry" in text


def test_a_table_that_a_driver_does_print_can_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "mock.json"
    path.write_text(as_json(faulty_mock() | {"geometry": "own"}))
    assert "the key 'h100-80gb' of the catalogue, and another profile" in str(refusal(path))
    path.write_text(as_json(faulty_mock() | {"geometry": "own", "key": "mock"}))
    counts = read_gpu(path).layout_counts()
    assert (counts.layouts, counts.multisets) == (308, 38)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.txt", MINE, "the name ends with '.txt', expected a device file: .json, .yaml or .yml"),
        ("a", MINE, "the name has no ending"),
        ("a.json", "", "the file is empty, expected a device"),
        ("a.json", "[1, 2", "the document ends too early"),
        ("a.json", MINE.replace('"version": 3', '"version": 3, "version": 4'), ":3:"),
        ("a.json", MINE.replace(": 3,", ": NaN,", 1), ":3:14: NaN is no number"),
        ("a.json", "[]", "the document is an array, expected an object"),
        ("a.yaml", "# nothing\n", "the file holds only comments"),
        ("a.yaml", "- 1\n", ":1:1: the document is an array, expected an object"),
        ("a.yaml", "schema: [1\nversion: 2\n", ":2:8: this is no YAML: "),
        ("a.yaml", "schema: 1\n\tversion: 2\n", ":2:1: this is no YAML: "),
        ("a.yaml", MINE_YAML + "schema: 2\n", ':18:1: the key "schema" is there twice'),
        ("a.yaml", "a: &x [1]\nb: *x\n", ":1:"),
        ("a.yaml", "a: !python/object:os.system 1\n", ":1:"),
        ("a.yaml", "? [1, 2]\n: 3\n", "a key is no plain text"),
        ("a.yaml", "[" * 5000, "a.yaml:1:51: a value is nested in more than 50 others"),
        ("a.yaml", "#" * 50_001, "has 50001 characters, expected at most 50000 of YAML; write the"),
        ("a.yaml", "a: &x [*x]\n", "holds itself by an alias"),
        ("a.yaml", MINE_YAML + "---\nschema: 1\n", ":19:1: a second document begins here"),
        ("a.yaml", "schema: 1\nkey: \x07\n", "this is no YAML: "),
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


def test_a_missing_file_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text(MINE)
    assert re.search("nearest: .mine.json.", str(refusal(tmp_path / "mien.json")))


# Only the package's own error may leave the reader, whatever stands in a file.
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 9) | st.floats() | st.text(LETTERS, max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "starts", "max", "id", "key", "profiles"])
            | st.text(LETTERS, max_size=3),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)


@given(
    value=ANY_JSON,
    at=st.sampled_from(
        [
            *((key,) for key in json.loads(MINE)),
            *(("profiles", 1, key) for key in json.loads(MINE)["profiles"][1]),
            ("profiles", 0),
            ("sources", 0),
            ("sources", 0, "date"),
        ]
    ),
)
def test_anything_in_any_place_is_taken_or_refused_as_a_file_error(
    tmp_path_factory: pytest.TempPathFactory, value: object, at: tuple[str | int, ...]
) -> None:
    device = json.loads(MINE)
    change(*at, to=value)(device)
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(device))
    with contextlib.suppress(FileError):
        read_gpu(path)


@given(text=st.text(LETTERS, max_size=60))
def test_any_text_is_refused_as_a_file_error(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    for ending in ("json", "yaml"):
        path = tmp_path_factory.getbasetemp() / f"text.{ending}"
        path.write_bytes(text.encode("utf-8"))
        refusal(path)
