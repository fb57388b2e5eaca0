"""A device's layouts are counted before they are listed; one with too many is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms import solve
from cms.errors import FileError, InvalidOption
from cms.files.model import build
from cms.fleet import plan_from_json, plan_to_json
from cms.fleet.hardware import enumeration, gpu, gpus, read_gpu
from cms.fleet.hardware.device_file import MOST_PROFILES, DevicePart
from cms.fleet.hardware.enumeration import MOST_SETS, Shape, Table
from cms.fleet.serving import OperatingPoint, Plan, Service, as_problem

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def device(slices: int, profiles: int, **changes: Any) -> dict[str, Any]:
    """A device whose profiles all take one slice, anywhere."""
    names = [f"a{LETTERS[i // 26]}{LETTERS[i % 26]}" for i in range(profiles)]
    return {
        "schema": 1, "version": 1, "key": "mine", "architecture": "own",
        "compute_slices": slices, "memory_slices": slices, "mode_change_needs_reset": None,
        "profiles": [
            {
                "id": i, "name": f"1g.5gb+{name}", "family": f"1g+{name}", "compute": 1,
                "memory": 1, "starts": list(range(slices)), "max": slices, "sms": None,
                "memory_mib": None, "attributes": [name],
            }
            for i, name in enumerate(names)
        ],
        "sources": [{"fields": ["starts"], "evidence": "capture", "source": "by hand"}],
        **changes,
    }  # fmt: skip


def refusal(document: dict[str, Any]) -> str:
    with pytest.raises(FileError) as caught:
        build(DevicePart, document, whole=True)
    return str(caught.value)


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_a_small_file_of_too_many_layouts_is_refused_before_any_is_listed(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(enumeration, "_with")  # without it no layout can be made
    path = tmp_path / f"mine.{suffix}"
    path.write_text(json.dumps(device(16, 4), indent=1), "utf-8")
    with pytest.raises(FileError) as caught:
        read_gpu(path)
    assert str(caught.value).endswith(
        f"profiles: these starts and sizes allow {5**16 - 1} sets of instances that do not "
        f"overlap, expected at most {MOST_SETS}, since configurations are found by listing them; "
        "leave out profiles or starts that no plan needs"
    )
    assert caught.value.line is not None


def test_so_is_one_in_a_plan() -> None:
    service = Service("chat", "bert", 100, 100)
    serving = as_problem(
        [service], [OperatingPoint("bert", "a30-24gb", "1g.6gb", 1, 2, 60, 33)], "a30-24gb"
    )
    document = plan_to_json(Plan(serving, solve(serving.problem)))
    plan_from_json(document)
    document = copy.deepcopy(document) | {"devices": [device(16, 4, key="a30-24gb")]}
    with pytest.raises(FileError, match="sets of instances that do not overlap"):
        plan_from_json(document)


def test_so_is_one_of_too_many_profiles() -> None:
    assert f"expected at most {MOST_PROFILES} profiles" in refusal(device(1, MOST_PROFILES + 1))
    build(DevicePart, device(2, MOST_PROFILES), whole=True)


def test_a_device_made_by_hand_lists_no_more_either() -> None:
    one = build(DevicePart, device(3, 26), whole=True)
    assert one.sets_without_overlap(one.base_profiles) == 0
    names = [profile.name for profile in one.profiles]
    assert len(one.layouts(names)) == one.sets_without_overlap(names) == 27**3 - 1
    wide = tuple(replace(p, starts=tuple(range(16)), max=16) for p in one.profiles)
    many = replace(one, compute_slices=16, memory_slices=16, profiles=wide)
    for ask in (many.layouts, many.maximal_layouts, many.configurations_of, many.layout_counts):
        with pytest.raises(InvalidOption, match=f"{27**16 - 1} sets .* at most {MOST_SETS}"):
            ask(names)
    few = replace(many, memory_slices=14, compute_slices=14)
    assert [dict(c.blocks) for c in few.configurations_of(names[:1])] == [{names[0]: 14}]


def test_the_shipped_devices_are_far_from_the_limit() -> None:
    for each in gpus():
        everything = [profile.name for profile in each.profiles]
        assert (
            len(each.layouts(everything)) <= each.sets_without_overlap(everything) < MOST_SETS / 3
        )
        assert each.sets_without_overlap() == len(each.layouts())


@st.composite
def tables(draw: st.DrawFn) -> Table:
    slices = draw(st.integers(1, 5))
    shapes = []
    for _ in range(draw(st.integers(1, 3))):
        memory = draw(st.integers(1, slices))
        starts = st.sets(st.integers(0, slices - memory), min_size=1)
        shapes.append(
            Shape(
                draw(st.integers(1, slices)), memory, tuple(sorted(draw(starts))),
                draw(st.integers(1, slices)), draw(st.booleans()),
            )
        )  # fmt: skip
    return Table(tuple(shapes), draw(st.integers(1, slices)), slices)


def by_the_rules(
    table: Table, *, only_overlap: bool = False
) -> Iterable[tuple[tuple[int, int], ...]]:
    """Every set of places in the order of a plain search, by the five rules read one by one."""
    places = enumeration.placements(table)

    def extend(
        chosen: tuple[tuple[int, int], ...], first: int
    ) -> Iterable[tuple[tuple[int, int], ...]]:
        for at in range(first, len(places)):
            wanted = (*chosen, places[at])
            shapes = [table.shapes[i] for i, _ in wanted]
            taken = [s + k for i, s in wanted for k in range(table.shapes[i].memory)]
            if len(set(taken)) < len(taken):
                continue
            if not only_overlap and (
                sum(shape.compute for shape in shapes) > table.compute_slices
                or sum(shape.media for shape in shapes) > 1
                or any(sum(i == j for j, _ in wanted) > table.shapes[i].max for i, _ in wanted)
            ):
                continue
            yield wanted
            yield from extend(wanted, at + 1)

    return extend((), 0)


@given(table=tables())
def test_layouts_are_those_of_the_rules_in_their_order(table: Table) -> None:
    assert [node.places for node in enumeration.nodes(table)] == list(by_the_rules(table))
    sets = list(by_the_rules(table, only_overlap=True))
    assert enumeration.sets_without_overlap(table) == len(sets)


def test_the_search_meets_no_more_than_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    tried, real = 0, enumeration._with

    def counted(*arguments: Any) -> Any:
        nonlocal tried
        tried += 1
        return real(*arguments)

    monkeypatch.setattr(enumeration, "_with", counted)
    one = gpu("h100-80gb")
    everything = [profile.name for profile in one.profiles]
    assert len(one.layouts(everything)) < tried <= one.sets_without_overlap(everything)


@given(table=tables(), data=st.data())
def test_a_maximum_is_refused_if_and_only_if_so_many_do_not_fit(
    table: Table, data: st.DataObject
) -> None:
    shape = table.shapes[0]
    plain = Table((shape._replace(max=99),), table.compute_slices, table.memory_slices)
    if shape.compute > table.compute_slices:
        return
    fits = max(counts[0] for counts in enumeration.first_layouts(plain))
    attributes = ["me"] if shape.media else []
    name = f"{shape.compute}g{'+me' if shape.media else ''}"
    entry = {
        "id": 1, "name": name.replace("g", "g.5gb"), "family": name, "compute": shape.compute,
        "memory": shape.memory, "starts": list(shape.starts), "max": fits, "sms": None,
        "memory_mib": None, "attributes": attributes,
    }  # fmt: skip
    document = device(
        1, 0, compute_slices=table.compute_slices, memory_slices=table.memory_slices
    ) | {"profiles": [entry]}  # fmt: skip
    build(DevicePart, document, whole=True)
    entry["max"] = fits + data.draw(st.integers(1, 3))
    assert f"only {fits} of" in refusal(document)


@pytest.mark.parametrize("name", ["1" * 5000 + "g.5gb", "1" * 5000 + "c.1g.5gb", "9c.1g.5gb"])
def test_a_name_of_thousands_of_digits_is_refused_like_any_other(name: str) -> None:
    document = device(1, 1)
    document["profiles"][0] |= {"name": name, "family": "1g", "attributes": []}
    assert "profiles[0].name" in refusal(document)
    assert len(refusal(document)) < 1_000
