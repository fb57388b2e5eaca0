"""The stand-in for nvidia-mig-parted: whole GPUs by counts, and its file read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.stand_ins.machines import Ran, StandInNode

HEAD = "version: v1\nmig-configs:\n"
TWO = f"""{HEAD}
  all-disabled:
  - {{devices: all, mig-enabled: false}}
  cms-7f3a-node-a:
  - devices: [0]
    mig-enabled: true
    mig-devices: {{"4g.40gb": 1, "3g.40gb": 1}}
  - devices: [1]
    mig-enabled: true
    mig-devices: {{"2g.20gb": 3, "1g.10gb": 1}}
"""
HALVES = (("4g.40gb", 0), ("3g.40gb", 4))
APPLY = "apply -f - -c cms-7f3a-node-a"
ASSERT = "assert -f - -c cms-7f3a-node-a"


def two(folder: Path, key: str = "h100-80gb", **options: object) -> StandInNode:
    return StandInNode(folder / "node", [key, key], **options)  # type: ignore[arg-type]


def one(folder: Path, **options: object) -> StandInNode:
    return StandInNode(folder / "node", ["a100-80gb"], **options)  # type: ignore[arg-type]


def entry(counts: str, devices: str = "all") -> str:
    """A file with one entry."""
    return (
        f"{HEAD}  it:\n  - {{devices: {devices}, mig-enabled: true, mig-devices: {{{counts}}}}}\n"
    )


def applied(node: StandInNode, counts: str, devices: str = "all") -> Ran:
    return node.mig_parted("apply -f -", entry(counts, devices))


@pytest.mark.parametrize("choice", ["lowest", "guide", "any"])
def test_apply_assert_export(tmp_path: Path, choice: str) -> None:
    node = two(tmp_path, choice=choice)
    assert node.mig_parted(ASSERT, TWO) == (
        1,
        "",
        'level=fatal msg="Assertion failure: selected configuration not currently applied"\n',
    )
    assert node.mig_parted(APPLY, TWO).text == "MIG configuration applied successfully\n"
    assert node.layout(0) == HALVES
    assert sorted(name for name, _ in node.layout(1)) == ["1g.10gb", *["2g.20gb"] * 3]
    said = node.mig_parted(ASSERT, TWO)
    assert (said.code, said.text) == (0, "Selected MIG configuration currently applied\n")
    exported = node.mig_parted("export").text
    assert exported == (
        "version: v1\nmig-configs:\n  current:\n"
        "  - devices: [0]\n    mig-enabled: true\n    mig-devices:\n"
        "      3g.40gb: 1\n      4g.40gb: 1\n"
        "  - devices: [1]\n    mig-enabled: true\n    mig-devices:\n"
        "      1g.10gb: 1\n      2g.20gb: 3\n"
    )
    assert node.mig_parted("assert -f -", exported).code == 0


def test_a_gpu_that_is_as_wanted_is_left_alone_and_any_other_is_made_anew(tmp_path: Path) -> None:
    node = two(tmp_path)
    node.put(0, HALVES)
    node.put(1, [("2g.20gb", 0)])
    node.client(0, 4)
    before, uuids, other = node.instances(0), node.mig_uuids(0), node.mig_uuids(1)[0]
    assert node.mig_parted(APPLY, TWO).code == 0
    assert (node.instances(0), node.mig_uuids(0)) == (before, uuids)
    assert len(node.layout(1)) == 4
    assert other not in node.mig_uuids(1).values()


@pytest.mark.parametrize(
    ("counts", "says"),
    [
        ('"1g.18gb": 1', 'MIG profile "1g.18gb" not found on this GPU'),
        ('"3g.40gb": 2, "1g.10gb": 1', "all orderings failed"),
    ],
)
def test_what_cannot_be_made_leaves_a_gpu_empty_or_as_far_as_a_client_lets_it(
    tmp_path: Path, counts: str, says: str
) -> None:
    node = one(tmp_path)
    node.put(0, HALVES)
    pid = node.client(0, 4)
    ran = applied(node, '"7g.80gb": 1')
    assert (ran.code, node.layout(0)) == (1, HALVES[1:])
    assert "all orderings failed" in ran.error
    assert "erroneous devices may persist" in ran.error
    node.leave(pid)
    ran = applied(node, counts)
    assert (ran.code, node.instances(0)) == (1, ())
    assert says in ran.error


def test_it_tries_the_next_order(tmp_path: Path) -> None:
    """Where places are taken as they come, 3+2+1+1 in one order fails and in another fits."""
    ends = set()
    for seed in range(6):
        node = one(tmp_path / str(seed), choice="any", seed=seed)
        ran = applied(node, '"3g.40gb": 1, "2g.20gb": 1, "1g.10gb": 2')
        assert (ran.code, len(node.layout(0))) == (0, 4)
        ends.add("Insufficient Resources" in ran.error)
    assert True in ends


def test_a_zero_count_is_never_as_wanted(tmp_path: Path) -> None:
    node, counts = one(tmp_path), '"7g.80gb": 1, "1g.10gb": 0'
    assert applied(node, counts).code == 0
    first = node.mig_uuids(0)
    assert node.mig_parted("assert -f -", entry(counts)).code == 1
    assert applied(node, counts).code == 0
    assert node.mig_uuids(0) != first


def test_assert_wants_every_gpu_and_apply_only_those_named(tmp_path: Path) -> None:
    node = two(tmp_path)
    node.put(1, [("7g.80gb", 0)])
    assert applied(node, '"7g.80gb": 1', "[0]").code == 0
    assert node.layouts() == ((("7g.80gb", 0),),) * 2
    assert node.mig_parted("assert -f -", entry('"7g.80gb": 1', "[0]")).code == 1


def test_one_wrong_mode_clears_every_gpu_that_is_named(tmp_path: Path) -> None:
    """The other one was as wanted, and is made anew all the same."""
    node = two(tmp_path, mig=[True, False])
    node.put(0, HALVES)
    uuids = node.mig_uuids(0)
    assert node.mig_parted(APPLY, TWO).code == 0
    assert node.layout(0) == HALVES
    assert node.mig_uuids(0) != uuids


def test_ampere_is_reset_for_a_mode_and_refuses_with_a_client(tmp_path: Path) -> None:
    node = two(tmp_path, "a100-80gb", mig=[True, False])
    pid = node.client(0)
    refused = node.mig_parted(APPLY, TWO)
    assert (refused.code, node.mode(1)) == (1, "Disabled")
    assert "error resetting all GPUs: exit status 255" in refused.error
    node.leave(pid)
    assert node.mig_parted(APPLY, TWO).code == 0
    assert node.mig_parted("apply -f - -c all-disabled", TWO).code == 0
    assert [node.mode(gpu) for gpu in (0, 1)] == ["Disabled"] * 2
    assert node.mig_parted("export").text == (
        "version: v1\nmig-configs:\n  current:\n"
        "  - devices: all\n    mig-enabled: false\n    mig-devices: {}\n"
    )


def test_hollow_instances_are_not_seen_and_in_the_way_once(tmp_path: Path) -> None:
    node = one(tmp_path)
    node.put(0, [("1g.10gb", 3)], hollow=True)
    assert "mig-devices: {}" in node.mig_parted("export").text
    assert applied(node, '"7g.80gb": 1').code == 1
    assert node.instances(0) == ()
    assert applied(node, '"7g.80gb": 1').code == 0


def test_filters_and_cards_of_two_kinds(tmp_path: Path) -> None:
    node = StandInNode(tmp_path / "node", ["a30-24gb", "gh200-144gb", "l40s"])
    text = (
        HEAD + "  it:\n"
        '  - {devices: all, device-filter: "0x20B710DE", mig-enabled: true, '
        'mig-devices: {"2g.12gb": 2}}\n'
        '  - {devices: all, device-filter: ["0x234810DE"], mig-enabled: true, '
        'mig-devices: {"7g.144gb": 1}}\n'
        '  - {devices: [2], mig-enabled: false}\n'
    )  # fmt: skip
    assert node.mig_parted("apply -f - -c it", text).code == 0
    assert node.layouts() == ((("2g.12gb", 0), ("2g.12gb", 2)), (("7g.144gb", 0),), ())
    assert node.mig_parted("assert -f - -c it", text).code == 0
    exported = node.mig_parted("export").text
    assert '  - device-filter: "0x20B710DE"\n    devices: all\n' in exported
    assert node.mig_parted("assert -f -", exported).code == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mig-configs: {a: [{devices: all, mig-enabled: false}]}", "missing 'version' field"),
        ("version: v2", "unknown version: v2"),
        (HEAD + "  a: []", "at least one entry in 'a' is required"),
        ("version: v1\nmig-configs: {}", "at least one entry in 'mig-configs' is required"),
        (HEAD + "  a: [{devices: all, mig-enabled: false}]\nmore: 1", "unexpected field: more"),
        (HEAD + "  a: [{mig-enabled: false}]", "missing required field: devices"),
        (HEAD + "  a: [{devices: all}]", "missing required field: mig-enabled"),
        (HEAD + "  a: [{devices: 0, mig-enabled: false}]", "invalid input for 'devices': 0"),
        (HEAD + "  a: [{devices: [true], mig-enabled: false}]", "invalid input for 'devices'"),
        (HEAD + "  a: [{devices: all, mig-enabled: 1}]", "'mig-enabled' is no bool"),
        (HEAD + "  a: [{devices: all, mig-enabled: false, x: 1}]", "unexpected field: x"),
        (HEAD + "  a: [{devices: all, mig-enabled: true}]", "missing required field 'mig-devices'"),
        (entry("1g.5gb: 1").replace("true", "false"), "MIG devices included"),
        (entry("1g.5gb: 0"), "all counts for all MigProfiles are 0"),
        (entry("1g.5gb: -1"), "invalid count for '-1'"),
        (entry("1g5gb: 1"), "invalid format for '1g5gb'"),
        (entry("1g.5gb+me-me: 1"), "invalid format"),
        (entry("1g.5gb: 1.5"), "are no counts"),
        (HEAD + "  a: [", "unmarshal error"),
        (TWO, "missing required flag 'selected-config'"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, text: str, reason: str) -> None:
    ran = two(tmp_path).mig_parted("assert -f -", text)
    assert ran.code == 1
    assert reason.lower() in ran.error.lower()


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("apply", "missing required flags 'config-file'"),
        ("apply -f - -c other", "selected mig-config not present: other"),
        ("apply -f nowhere.yaml", "read error"),
        ("apply -f - --force", "flag provided but not defined: --force"),
        ("apply -f", "flag needs an argument"),
        ("remove", "No help topic for 'remove'"),
    ],
)
def test_command_lines_that_are_refused(tmp_path: Path, command: str, reason: str) -> None:
    ran = two(tmp_path).mig_parted(command, TWO)
    assert ran.code == 1
    assert reason.lower() in ran.error.lower()


def test_faults_happen_to_it_too(tmp_path: Path) -> None:
    node, counts = one(tmp_path), '"4g.40gb": 1, "3g.40gb": 1'
    node.fault("cgi", "killed_after", at=2)
    assert applied(node, counts).code == 137
    assert [held.hollow for held in node.instances(0)] == [False, True]
    # What it sees is half of what is wanted; it clears the GPU and begins again.
    assert applied(node, counts).code == 0
    assert node.layout(0) == HALVES


def test_as_a_program(tmp_path: Path) -> None:
    node = two(tmp_path)
    (node.folder / "config.yaml").write_text(TWO, encoding="utf-8")
    ran = node.sh(f"nvidia-mig-parted -d {APPLY.replace('-f -', '-f config.yaml')}")
    assert (ran.code, ran.text) == (0, "MIG configuration applied successfully\n")
    assert node.log()[-1].endswith("-> 0")
