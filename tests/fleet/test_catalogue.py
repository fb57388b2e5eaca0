"""The catalogue: what its files say, how a device is found, what the package takes from it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from fractions import Fraction

import pytest

from cms.errors import InvalidOption
from cms.fleet.hardware import Placement, gpu, gpus, mps_shares, read_gpu

NAMES = {
    "a100-40gb": "1g.5gb 1g.5gb+me 1g.10gb 2g.10gb 3g.20gb 4g.20gb 7g.40gb",
    "a100-80gb": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "h100-80gb": "1g.10gb 1g.10gb+me 1g.20gb 2g.20gb 3g.40gb 4g.40gb 7g.80gb",
    "h100-94gb": "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.47gb 4g.47gb 7g.94gb",
    "h100-96gb": "1g.12gb 1g.12gb+me 1g.24gb 2g.24gb 3g.48gb 4g.48gb 7g.96gb",
    "h200-141gb": "1g.18gb 1g.18gb+me 1g.35gb 2g.35gb 3g.71gb 4g.71gb 7g.141gb",
    "gh200-144gb": "1g.18gb 1g.18gb+me 1g.36gb 2g.36gb 3g.72gb 4g.72gb 7g.144gb",
    "b200-180gb": "1g.23gb 1g.23gb+me 1g.45gb 2g.45gb 3g.90gb 4g.90gb 7g.180gb",
    "gb200-186gb": "1g.23gb 1g.23gb+me 1g.47gb 2g.47gb 3g.93gb 4g.93gb 7g.186gb",
    "b300": "1g.34gb 1g.34gb+me 1g.67gb 2g.67gb 3g.135gb 4g.135gb 7g.269gb",
    "gb300": "1g.35gb 1g.35gb+me 1g.70gb 2g.70gb 3g.139gb 4g.139gb 7g.278gb",
    "a30-24gb": "1g.6gb 1g.6gb+me 2g.12gb 2g.12gb+me 4g.24gb",
    "rtx-pro-6000-96gb": "1g.24gb 2g.48gb 4g.96gb",
}


# -- what the files say ----------------------------------------------------------------------------


def test_the_catalogue_has_every_card_with_figures_and_no_other() -> None:
    assert {device.key for device in gpus()} == set(NAMES)
    for device in gpus():
        assert " ".join(profile.name for profile in device.profiles) == NAMES[device.key]


def test_compute_is_not_linear_in_slices_from_hopper_on() -> None:
    def sms(key: str) -> list[int | None]:
        return [profile.sms for profile in gpu(key).profiles if "me" not in profile.attributes]

    assert sms("a100-40gb") == sms("a100-80gb") == [14, 14, 28, 42, 56, 98]
    assert sms("h100-80gb") == [16, 26, 32, 60, 64, 132]
    assert sms("h100-94gb") == sms("gh200-144gb") == [16, 26, 32, None, None, None]
    assert sms("h200-141gb") == [16, 26, 32, 60, 64, None]
    assert sms("b200-180gb") == [18, 30, 36, 70, 72, 148]
    assert sms("gb200-186gb") == [18, 32, 38, None, None, None]
    assert sms("a30-24gb") == [14, 28, 56]
    assert sms("b300") == sms("gb300") == sms("h100-96gb") == [None] * 6


def test_every_number_has_a_source_and_no_memory_is_read_off_a_name() -> None:
    for device in gpus():
        assert all(entry.source and entry.fields for entry in device.sources)
        assert not any("a user's" in entry.source for entry in device.sources), device.key
        for field in ("name", "compute", "memory", "starts", "max"):
            assert any(field in entry.fields for entry in device.sources), (device.key, field)
        for field in ("sms", "memory_mib", "id", "since_driver"):
            if any(getattr(profile, field) is not None for profile in device.profiles):
                assert any(field in entry.fields for entry in device.sources), (device.key, field)
        for profile in device.profiles:
            gigabytes = profile.name.partition(".")[2].partition("gb")[0]
            assert profile.memory_mib != int(gigabytes) * 1024


def test_mig_mode_needs_a_reset_on_ampere_alone() -> None:
    for device in gpus():
        assert device.mode_change_needs_reset == (device.architecture == "ampere")


def test_a_name_means_something_else_on_another_card() -> None:
    assert gpu("a100-40gb").profile("1g.10gb").memory == 2
    assert gpu("a100-80gb").profile("1g.10gb").memory == 1


def test_the_name_of_an_older_driver_finds_the_same_profile() -> None:
    assert gpu("a100-80gb").profile("7g.79gb").name == "7g.80gb"
    assert gpu("gb200-186gb").place({"3g.95gb": 1}) == (Placement("3g.93gb", 0),)


# -- finding a device ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("a100-80gb", "a100-80gb"),
        (" A100-80GB ", "a100-80gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA-A100-SXM4-80GB", "a100-80gb"),
        ("nvidia a100 80gb pcie", "a100-80gb"),
        ("A100-PCIE-40GB", "a100-40gb"),
        ("NVIDIA H100 80GB HBM3", "h100-80gb"),
        ("NVIDIA GH200 480GB", "h100-96gb"),
        ("h20", "h100-96gb"),
        ("A30", "a30-24gb"),
        ("0x20B710DE", "a30-24gb"),
        ("0x234810de", "gh200-144gb"),
    ],
)
def test_a_device_is_found_by_key_product_name_or_pci_id(name: str, key: str) -> None:
    assert gpu(name).key == key


def test_a_device_is_loaded_once() -> None:
    assert gpu("H200") is gpu("h200-141gb")


def test_no_two_devices_answer_to_one_name() -> None:
    names = [name.lower() for d in gpus() for name in (d.key, *d.aliases, *d.pci_device_ids)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a100", "or a100-80gb (A100-SXM4-80GB, A100 80GB PCIe)? Known: "),
        (
            "H100",
            "'H100'; did you mean h100-80gb (H100 80GB HBM3, H100 PCIe), h100-94gb (H100 NVL)",
        ),
        ("h100-80g", "did you mean h100-80gb?"),
        ("A100-SXM-80GB", "a100-80gb"),
        ("v100", "known: a100-40gb, "),
        ("", "unknown GPU ''; known: "),
        ("../a100-80gb", "unknown GPU"),
        ("rtx-pro-5000", "rtx-pro-6000-96gb"),
    ],
)
def test_an_unknown_device_is_refused_with_the_likely_ones(name: str, words: str) -> None:
    with pytest.raises(InvalidOption) as caught:
        gpu(name)
    assert words in str(caught.value)
    assert "read_gpu" in str(caught.value)


def test_a_device_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidOption, match="GPU name is 100"):
        gpu(100)  # type: ignore[arg-type]


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidOption, match=r"no profile '3g\.20gb'.*; its profiles: 1g\.10gb, "):
        gpu("a100-80gb").profile("3g.20gb")
    with pytest.raises(InvalidOption, match="expected a list of names"):
        gpu("a100-80gb").layouts("3g.40gb")


# -- what the rest of the package takes from here --------------------------------------------------


def test_configurations_are_the_maximal_multisets_of_the_base_profiles() -> None:
    a100 = gpu("a100-80gb")
    assert len(a100.configurations) == 12
    assert {configuration.machine for configuration in a100.configurations} == {"a100-80gb"}
    assert [configuration.blocks for configuration in a100.configurations] == list(
        a100.maximal_multisets()
    )


def test_block_names_can_be_qualified_for_several_cards() -> None:
    found = gpu("h100-80gb").configurations_of(["7g.80gb", "3g.40gb"], prefix="h100-80gb:")
    assert [dict(configuration.blocks) for configuration in found] == [
        {"h100-80gb:7g.80gb": 1},
        {"h100-80gb:3g.40gb": 2},
    ]


def test_a_device_hashes_compares_and_pickles() -> None:
    device = gpu("a100-80gb")
    copy = pickle.loads(pickle.dumps(device))
    assert copy == device
    assert hash(copy) == hash(device)
    assert copy != gpu("a100-40gb")


def test_mps_shares_are_bounded_by_size_and_clients() -> None:
    shares = mps_shares(["12.5", 25, 50], machine="a100-mps", prefix="a100-mps:", max_clients=4)
    assert dict(shares.sizes) == {
        "a100-mps:mps:12.5": Fraction(25, 2),
        "a100-mps:mps:25": 25,
        "a100-mps:mps:50": 50,
    }
    assert shares.capacity == 100
    assert (shares.machine, shares.max_blocks) == ("a100-mps", 4)
    assert shares.allows({"a100-mps:mps:25": 2, "a100-mps:mps:50": 1})
    assert not shares.allows({"a100-mps:mps:12.5": 5})
    assert mps_shares([1], machine="m").max_blocks == 48


@pytest.mark.parametrize(
    ("steps", "options", "words"),
    [
        ([], {}, "no MPS steps"),
        ([0], {}, "MPS step is 0; expected per cent"),
        ([101], {}, "MPS step is 101"),
        ([-5], {}, "MPS step is -5"),
        (["half"], {}, "MPS step: 'half' is not a number"),
        ([float("nan")], {}, "MPS step is nan"),
        ([25, "25.0"], {}, "MPS step 25 occurs twice"),
        ([25], {"max_clients": 49}, "max_clients is 49; expected 1 to 48"),
        ([25], {"max_clients": 0}, "max_clients is 0"),
        ([25], {"max_clients": 2.0}, "max_clients is 2.0; expected a whole number"),
    ],
)
def test_wrong_mps_shares_are_refused(
    steps: list[object], options: dict[str, int], words: str
) -> None:
    with pytest.raises(InvalidOption) as caught:
        mps_shares(steps, machine="a100", **options)  # type: ignore[arg-type]
    assert words in str(caught.value)


def test_importing_the_fleet_loads_nothing_and_a_shipped_device_no_yaml() -> None:
    code = (
        "import sys, cms.fleet; assert 'cms.fleet.hardware' not in sys.modules; "
        "assert len(cms.fleet.gpu('a100-80gb').configurations) == 12; "
        "assert not [m for m in sys.modules if m.startswith('ruamel')]; "
        "assert 'read_gpu' in dir(cms.fleet)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_catalogue_reads_its_files_as_a_users() -> None:
    from cms.fleet.hardware.catalogue import _DEVICES

    for device in gpus():
        assert read_gpu(_DEVICES / f"{device.key}.json") == device
