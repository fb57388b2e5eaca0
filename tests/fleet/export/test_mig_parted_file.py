"""The file of mig-parted: what it refuses is refused, with the place."""

from __future__ import annotations

import pytest

from cms.errors import FileError
from cms.files.source import Source
from cms.fleet import get_gpu
from cms.fleet.deployment import FleetGpu
from cms.fleet.deployment.observation.mig_parted import Entry, read_configs, read_cuts
from cms.values.frozen import FrozenMap
from tests.fleet.export.cases import A30

HEAD = "version: v1\nmig-configs:\n  a: "


@pytest.mark.parametrize(
    ("broken", "place", "has"),
    [
        ("mig-configs: {}", "1:1", '"version"'),
        ("version: v2\nmig-configs: {}", "1:10", '"v2"'),
        ("version: v1\nmig-configs: {}\nmore: 1", "3:1", '"more"'),
        (f"{HEAD}[]", "3:6", "mig-configs.a"),
        (f"{HEAD}[{{devices: 0, mig-enabled: false}}]", "3:17", "[0]"),
        (f"{HEAD}[{{devices: all}}]", "3:7", '"mig-enabled"'),
        (f"{HEAD}[{{devices: all, mig-enabled: true}}]", "3:7", "mig-devices"),
        (f"{HEAD}[{{devices: all, mig-enabled: true, mig-devices: {{1g.5gb: 0}}}}]", "3:54", "0"),
        (f"{HEAD}[{{devices: all, mig-enabled: false, mig-devices: {{1g.5gb: 2}}}}]", "3:55", ""),
        ("version: v1\nmig-configs: {}\n---\nversion: v1", "4:1", ""),
    ],
)
def test_a_file_that_mig_parted_refuses_is_refused(broken: str, place: str, has: str) -> None:
    with pytest.raises(FileError) as fault:
        read_configs(Source("c.yaml", broken))
    assert f"{fault.value.line}:{fault.value.column}" == place
    assert has in f"{fault.value}"


def test_a_configuration_is_of_the_gpus_that_it_names() -> None:
    source, seven = Source("c.yaml"), FrozenMap({"1g.6gb": 4})
    filtered, b200 = Entry(None, None, ("0x20B710DE",)), get_gpu("b200-180gb")
    assert A30.pci_device_ids == ("0x20B710DE",)
    assert not b200.pci_device_ids

    def cuts(*entries: Entry, card: object = A30) -> list[tuple[object, ...]]:
        cards = () if card is None else (FleetGpu("n", 0, card),)  # type: ignore[arg-type]
        found = read_cuts(source, entries, "n", cards)
        return [(f.index, f.mig and f.mig.value, f.counts, f.product is None) for f in found]

    assert cuts(filtered) == [(0, "off", None, True)]
    assert cuts(Entry((0,), seven)) == [(0, "on", {"1g.6gb": 4}, True)]
    assert cuts(Entry((1, 3), seven, filtered.filters), card=None) == [
        (1, "on", {"1g.6gb": 4}, False), (3, "on", {"1g.6gb": 4}, False),
    ]  # fmt: skip
    for entries, card, has in (
        ([filtered], b200, "0x20B710DE"),
        ([Entry((0,), None), Entry(None, None)], A30, "n/0"),
        ([Entry((0,), None), Entry((0,), seven)], None, "GPU 0"),
        ([Entry((0, 3), None)], A30, "GPU 3"),
        ([Entry(None, seven)], None, "'n'"),
    ):
        with pytest.raises(FileError, match=f"^c.yaml: .*{has}"):
            cuts(*entries, card=card)
