"""The stand-in for nvidia-smi: what is created, where, what is destroyed, and MIG mode."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.fleet.stand_ins.machines import StandInNode
from tests.fleet.stand_ins.placement import MODELS, layouts


def a100(folder: Path, **options: object) -> StandInNode:
    return StandInNode(folder / "node", ["a100-80gb"], **options)  # type: ignore[arg-type]


# Creating


def test_create_says_what_the_real_tool_says(tmp_path: Path) -> None:
    node = a100(tmp_path)
    ran = node.smi("mig -i 0 -cgi 3g.40gb:4,14:2 -C")
    big, small = node.at(0, 4).gi, node.at(0, 2).gi
    where = f"on GPU  0 GPU instance ID {big:>2} using profile MIG 3g.40gb (ID  2)"
    assert ran == (
        0,
        f"Successfully created GPU instance ID {big:>2} on GPU  0 using profile MIG 3g.40gb "
        "(ID  9)\n"
        f"Successfully created compute instance ID  0 {where}\n"
        f"Successfully created GPU instance ID {small:>2} on GPU  0 using profile MIG 2g.20gb "
        "(ID 14)\n"
        f"Successfully created compute instance ID  0 on GPU  0 GPU instance ID {small:>2} using "
        "profile MIG 2g.20gb (ID  1)\n",
        "",
    )
    assert node.layout(0) == (("2g.20gb", 2), ("3g.40gb", 4))


def test_names_numbers_and_full_names_mean_the_same(tmp_path: Path) -> None:
    for number, word in enumerate(("9", "3g.40gb", "MIG 3g.40gb", "9:0", "MIG 3g.40gb:0")):
        node = a100(tmp_path / str(number))
        assert node.smi(["mig", "--create-gpu-instance", word, "-C"]).code == 0
        assert node.layout(0) == (("3g.40gb", 0),)


@pytest.mark.parametrize("word", ["5g.50gb", "9:2", "9:x", "9:", "1g.5gb", ""])
def test_what_no_profile_is(tmp_path: Path, word: str) -> None:
    node = a100(tmp_path)
    ran = node.smi(["mig", "-cgi", f"19:6,{word}"])
    assert ran.code == 2
    assert ran.text.splitlines()[1:] == [
        f"Unable to create a GPU instance on GPU  0 using profile {word}: Invalid Argument",
        "Failed to create GPU instances: Invalid Argument",
    ]
    # What stood before it in the list is made, and stays.
    assert [(held.profile, held.start) for held in node.instances(0)] == [("1g.10gb", 6)]


def test_every_layout_is_made_and_every_other_place_refused(tmp_path: Path) -> None:
    """All layouts of the base profiles, each place asked for by name and start."""
    model, base = MODELS["a30-24gb"], ["1g.6gb", "2g.12gb", "4g.24gb"]
    every = set(layouts(model, base))
    places = [(name, at) for name in base for at in model.by_name[name].starts]
    for number, layout in enumerate(sorted(every)):
        node = StandInNode(tmp_path / str(number), ["a30-24gb"])
        for name, start in sorted(layout, reverse=number % 2 == 0):
            assert node.smi(f"mig -cgi {name}:{start} -C").code == 0
        assert node.layout(0) == tuple(sorted(layout, key=lambda place: place[1]))
        for name, start in places:
            if tuple(sorted([*layout, (name, start)])) not in every:
                assert node.smi(f"mig -cgi {name}:{start}").code == 23


GUIDE = [
    # What NVIDIA's guide prints for lists without starts: the places, or None where it fails; of
    # the lowest starts one order fails as well.
    ("19,14,5", [("4g.40gb", 0), ("2g.20gb", 4), ("1g.10gb", 6)]),
    ("9,19,14,19", [("1g.10gb", 0), ("1g.10gb", 1), ("2g.20gb", 2), ("3g.40gb", 4)]),
    (
        "14,19,19,19,19,19",
        [*(("1g.10gb", at) for at in range(4)), ("2g.20gb", 4), ("1g.10gb", 6)],
    ),
    ("19,19,14,9", None),
]  # fmt: skip


@pytest.mark.parametrize(("words", "placed"), GUIDE)
def test_placement_as_in_the_guide(
    tmp_path: Path, words: str, placed: list[tuple[str, int]] | None
) -> None:
    node = a100(tmp_path, choice="guide")
    ran = node.smi(f"mig -cgi {words} -C")
    if placed is None:
        assert ran.code == 23
        assert ran.text.splitlines()[-2:] == [
            "Unable to create a GPU instance on GPU  0 using profile 9: Insufficient Resources",
            "Failed to create GPU instances: Insufficient Resources",
        ]
        assert len(node.instances(0)) == 3
    else:
        assert node.layout(0) == tuple(placed)


def test_any_place_is_a_legal_one_and_the_seed_decides(tmp_path: Path) -> None:
    def made(name: str, seed: int) -> tuple[tuple[str, int], ...]:
        node = a100(tmp_path / name, choice="any", seed=seed)
        assert node.smi("mig -cgi 19,19,19,19,19,19,19 -C").code == 0
        assert node.layout(0) == tuple(("1g.10gb", start) for start in range(7))
        assert node.smi("mig -dci").code == node.smi("mig -dgi").code == 0
        node.smi("mig -cgi 1g.10gb,2g.20gb -C")
        return node.layout(0)

    found = [made(f"{seed}", seed) for seed in range(8)]
    assert len(set(found)) > 3
    assert made("again", 5) == found[5]


def test_without_a_gpu_named_all_of_them_are_meant(tmp_path: Path) -> None:
    node = StandInNode(tmp_path / "node", ["a30-24gb"] * 3, mig=[True, False, True])
    assert node.smi("mig -cgi 2g.12gb -C").code == 0
    assert node.layouts() == ((("2g.12gb", 0),), (), (("2g.12gb", 0),))
    by_uuid = f"{node.uuid(2)},00000000:01:00.0"
    assert node.smi(f"mig -i {by_uuid} -cgi 1g.6gb:2 -C").code == 0
    assert [len(layout) for layout in node.layouts()] == [2, 0, 2]


def test_ids_are_shuffled_and_reused(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.smi("mig -cgi 19,19,19,19,19,19,19")
    ids = [held.gi for held in node.instances(0)]
    assert sorted(ids) != ids
    for gi in (ids[5], ids[3]):
        node.smi(f"mig -gi {gi} -dgi")
    # At another place the same id: only the listing tells which instance it is now.
    node.smi("mig -cgi 19:5 -C")
    assert node.at(0, 5).gi == ids[3]


def test_compute_instances_one_by_one(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.smi("mig -cgi 3g.40gb:4")
    gi = node.at(0, 4).gi
    assert (node.at(0, 4).hollow, node.layout(0)) == (True, ())
    assert node.smi(f"mig -gi {gi} -cci 1c.3g.40gb,1").code == 0
    second = f"|   0     {gi:>2}       MIG 2c.3g.40gb       1         1          1:2     |"
    assert second in node.smi(f"mig -lci -gi {gi}").text
    assert node.smi("mig -cci").code == 23
    assert node.smi(f"mig -dci -gi {gi} -ci 0,1").code == 0
    assert node.smi("mig -cci").text == (
        f"Successfully created compute instance ID  0 on GPU  0 GPU instance ID {gi:>2} using "
        "profile MIG 3g.40gb (ID  2)\n"
    )


# Destroying


def test_a_gpu_instance_goes_after_its_compute_instance_and_clients(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.put(0, [("4g.40gb", 0), ("3g.40gb", 4)])
    gi = node.at(0, 4).gi
    in_use = "In use by another client"
    assert node.smi(f"mig -i 0 -gi {gi} -dgi") == (
        19,
        f"Unable to destroy GPU instance ID {gi:>2} from GPU  0: {in_use}\n"
        f"Failed to destroy GPU instances: {in_use}\n",
        "",
    )
    server, agent = node.client(0, 4), node.client(0, 4, compute=False)
    assert node.smi(f"mig -i 0 -gi {gi} -dci") == (
        19,
        f"Unable to destroy compute instance ID  0 from GPU  0 GPU instance ID {gi:>2}: {in_use}\n"
        f"Failed to destroy compute instances: {in_use}\n",
        "",
    )
    node.leave(server)
    assert node.smi(f"mig -i 0 -gi {gi} -dci").text == (
        f"Successfully destroyed compute instance ID  0 from GPU  0 GPU instance ID {gi:>2}\n"
    )
    assert node.smi(f"mig -i 0 -gi {gi} -dgi").code == 19
    node.leave(agent)
    assert node.smi(f"mig -i 0 -gi {gi} -dgi").text == (
        f"Successfully destroyed GPU instance ID {gi:>2} from GPU  0\n"
    )
    # The other one never noticed.
    assert node.layout(0) == (("4g.40gb", 0),)


# MIG mode


def test_mode_changes_at_once_from_hopper_on(tmp_path: Path) -> None:
    node = StandInNode(tmp_path / "node", ["h100-80gb", "b200-180gb", "l40s"], mig=False)
    assert node.smi("-i 2 -mig 1").code == 3
    assert node.smi("-i 1 -mig 1") == (
        0,
        "Enabled MIG Mode for GPU 00000000:21:00.0\nAll done.\n",
        "",
    )
    assert (node.mode(0), node.mode(1)) == ("Disabled", "Enabled")
    node.put(1, [("7g.180gb", 0)])
    assert node.smi("-i 1 -mig 0") == (
        19,
        "Unable to disable MIG Mode for GPU 00000000:21:00.0: In use by another client\n"
        "Terminating early due to previous errors.\n",
        "",
    )
    node.smi("mig -dci")
    node.smi("mig -dgi")
    assert node.smi("-i 0,1 -mig DISABLED").code == 0
    assert node.mode(1) == "Disabled"


def test_mode_is_pending_on_ampere_until_a_reset(tmp_path: Path) -> None:
    node = a100(tmp_path, mig=False)
    bus = "00000000:01:00.0"
    assert node.smi("-i 0 -mig 1") == (
        0,
        f"Warning: MIG mode is in pending enable state for GPU {bus}:Not Supported\n"
        f"Reboot the system or try nvidia-smi --gpu-reset to make MIG mode effective on GPU {bus}\n"
        "All done.\n",
        "",
    )
    assert node.smi("mig -cgi 0").text == "No MIG-enabled devices found.\n"
    modes = "--query-gpu=mig.mode.current,mig.mode.pending --format=csv,noheader"
    assert node.smi(modes).text == "Disabled, Enabled\n"
    pid = node.client(0)
    assert "pending enable state" in node.smi("-mig 1").text
    refused = node.smi("-i 0 --gpu-reset")
    assert refused.code == 255
    assert f"  GPU {bus}: In use by another client\n" in refused.text
    node.leave(pid)
    assert node.smi(f"-i {bus} -r") == (0, f"GPU {bus} was successfully reset.\nAll done.\n", "")
    assert node.smi(modes).text == "Enabled, Enabled\n"


def test_instances_survive_neither_reset_nor_reboot_but_the_mode_does(tmp_path: Path) -> None:
    node = a100(tmp_path)
    node.put(0, [("7g.80gb", 0)])
    assert node.smi("-r").code == 0
    assert (node.mode(0), node.layout(0)) == ("Enabled", ())
    node.put(0, [("7g.80gb", 0)])
    node.client(0, 0)
    node.smi("-mig 0")
    node.reboot()
    assert (node.mode(0), node.layout(0)) == ("Disabled", ())


# As a program


def test_a_script_finds_the_tool_and_parallel_calls_lose_nothing(tmp_path: Path) -> None:
    node = a100(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        ran = list(pool.map(lambda at: node.sh(f"nvidia-smi mig -cgi 19:{at} -C"), range(7)))
    assert {one.code for one in ran} == {0}
    assert node.layout(0) == tuple(("1g.10gb", start) for start in range(7))
    assert len(node.log()) == 7
    assert node.log()[0].startswith("nvidia-smi mig -cgi 19:")
    script = "set -e; nvidia-smi mig -lgi | grep -c MIG; nvidia-smi mig -cgi 7g.80gb; echo no"
    stopped = node.sh(script)
    assert (stopped.code, stopped.text.splitlines()[0]) == (23, "7")
    assert "no" not in stopped.text.splitlines()
    node.fault("dci", "killed_after")
    assert node.sh("nvidia-smi mig -dci").code == 137
