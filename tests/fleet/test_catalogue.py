"""The catalogue: what its files say, how a device is found, what can be on one."""

from __future__ import annotations

import re
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest

from cms.errors import InvalidOption
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, check_deployment
from cms.fleet.hardware import Gpu, get_gpu, list_gpus, mps_shares
from tests.fleet.stand_ins.placement import MODELS, layouts


@pytest.mark.parametrize("card", list_gpus(), ids=lambda card: card.key)
def test_both_have_the_same_table_of_every_card(card: Gpu) -> None:
    model = MODELS[card.key]
    # The catalogue counts an RTX PRO 6000 in quarters, as its figure does, its driver in twelfths.
    scale, rest = divmod(model.memory_slices, card.memory_slices)
    assert (rest, card.compute_slices) == (0, model.compute_slices)
    known = {profile.name: profile for profile in model.profiles}
    for profile in card.profiles:
        other = known.pop(profile.name)
        assert profile.id in (None, other.number)
        assert (profile.compute, profile.max) == (other.compute, other.most)
        assert [scale * start for start in profile.starts] == list(other.starts)
        assert (scale * profile.memory, profile.has_media_engines) == (other.size, other.media)
    assert scale > 1 or not known


def test_what_cards_have_is_what_was_published() -> None:
    published: dict[str, list[int | None]] = {
        "a100-40gb a100-80gb": [14, 14, 28, 42, 56, 98],
        "h100-80gb": [16, 26, 32, 60, 64, 132],
        "h100-94gb gh200-144gb": [16, 26, 32, None, None, None],
        "h200-141gb": [16, 26, 32, 60, 64, None],
        "b200-180gb": [18, 30, 36, 70, 72, 148],
        "gb200-186gb": [18, 32, 38, None, None, None],
        "a30-24gb": [14, 28, 56],
        "b300 gb300 h100-96gb": [None] * 6,
    }
    for keys, sms in published.items():
        for key in keys.split():
            assert [p.sms for p in get_gpu(key).profiles if "me" not in p.attributes] == sms
    assert {each.key for each in list_gpus()} == {
        key for key, one in MODELS.items() if one.profiles
    }
    for device in list_gpus():
        assert all(entry.source and entry.fields for entry in device.sources)
        assert not any("a user's" in entry.source for entry in device.sources), device.key
        optional = ("sms", "memory_mib", "id", "since_driver")
        known = [f for f in optional if any(getattr(p, f) is not None for p in device.profiles)]
        for field in ("name", "compute", "memory", "starts", "max", *known):
            assert any(field in entry.fields for entry in device.sources), (device.key, field)
    for device in list_gpus():
        assert device.mode_change_needs_reset == (device.architecture == "ampere")
    names = [name.lower() for d in list_gpus() for name in (d.key, *d.aliases, *d.pci_device_ids)]
    assert len(names) == len(set(names))


def test_a_device_is_found_by_key_product_name_or_pci_id() -> None:
    known = {
        "a100-80gb": (" A100-80GB ", "NVIDIA-A100-SXM4-80GB", "nvidia a100 80gb pcie"),
        "a100-40gb": ("A100-PCIE-40GB",),
        "h100-80gb": ("NVIDIA H100 80GB HBM3",),
        "h100-96gb": ("NVIDIA GH200 480GB", "h20"),
        "a30-24gb": ("a30-24gb", "A30", "0x20B710DE"),
        "gh200-144gb": ("0x234810de",),
    }
    assert {key: {get_gpu(name).key for name in names} for key, names in known.items()} == {
        key: {key} for key in known
    }


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a100", "or a100-80gb (A100-SXM4-80GB, A100 80GB PCIe)? Known: "),
        ("h100-80g", "did you mean h100-80gb?"),
        ("v100", "known: a100-40gb, "),
        ("../a100-80gb", "unknown GPU"),
        (100, "GPU name is 100"),
    ],
)
def test_an_unknown_device_is_refused_with_the_likely_ones(name: Any, words: str) -> None:
    with pytest.raises(InvalidOption, match=re.escape(words)):
        get_gpu(name)


def test_an_unknown_profile_is_refused_with_the_known_ones() -> None:
    a100, known = get_gpu("a100-80gb"), r"no profile '3g\.20gb'.*; its profiles: 1g\.10gb, "
    for ask in (
        lambda: a100.profile("3g.20gb"),
        lambda: a100.is_layout([("3g.20gb", 0)]),
        lambda: a100.room((), "3g.20gb"),
    ):
        with pytest.raises(InvalidOption, match=known):
            ask()
    with pytest.raises(InvalidOption, match="expected a list of names"):
        a100.layouts("3g.40gb")


def test_blocks_are_qualified_and_mps_shares_bounded_by_size_and_clients() -> None:
    found = get_gpu("h100-80gb").configurations_of(["7g.80gb", "3g.40gb"], prefix="h100-80gb:")
    assert [dict(configuration.blocks) for configuration in found] == [
        {"h100-80gb:7g.80gb": 1},
        {"h100-80gb:3g.40gb": 2},
    ]
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


def test_wrong_mps_shares_are_refused() -> None:
    cases: list[tuple[Any, Any, str]] = [
        ([], {}, "no MPS steps"),
        ([0], {}, "MPS step is 0; expected per cent"),
        ([101], {}, "MPS step is 101"),
        (["half"], {}, "MPS step: 'half' is not a number"),
        ([25, "25.0"], {}, "MPS step 25 occurs twice"),
        ([25], {"max_clients": 49}, "max_clients is 49; expected 1 to 48"),
        ([25], {"max_clients": 0}, "max_clients is 0"),
        ([25], {"max_clients": 2.0}, "max_clients is 2.0; expected a whole number"),
    ]
    for steps, options, words in cases:
        with pytest.raises(InvalidOption, match=words):
            mps_shares(steps, machine="a100", **options)


def test_importing_the_fleet_loads_nothing_and_a_shipped_device_no_yaml() -> None:
    code = (
        "import sys, cms.fleet; assert 'cms.fleet.hardware' not in sys.modules; "
        "assert len(cms.fleet.get_gpu('a100-80gb').configurations) == 12; "
        "assert not [m for m in sys.modules if m.startswith('ruamel')]; "
        "assert 'read_gpu' in dir(cms.fleet)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


LARGEST = get_gpu("a100-40gb")


def test_both_have_the_same_layouts_of_the_largest_table() -> None:
    names = [profile.name for profile in LARGEST.profiles]
    found = {tuple(sorted(each)) for each in layouts(MODELS[LARGEST.key], names)}
    mine = {tuple(sorted(map(tuple, each))) for each in LARGEST.layouts(names)}
    assert (len(found), mine == found) == (2318, True)
    for layout in found:
        held = tuple(Instance(*place) for place in layout)
        card = FleetGpu("a", 0, LARGEST, instances=held)
        assert check_deployment(Deployment((FleetNode("a", (card,)),))) == ()
