"""mig-parted's files, applied by a stand-in of mig-parted, and what is observed then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from cms.errors import FileError
from cms.files.source import Source
from cms.fleet import get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode
from cms.fleet.deployment.export import export
from cms.fleet.deployment.observation.mig_parted import Entry, read_configs, read_cuts
from cms.fleet.deployment.observation.sources import SourceFile, observe
from cms.values.frozen import FrozenMap
from tests.fleet.bridging import observed, stand_ins
from tests.fleet.deployments import SCENARIOS, fleet, scenario
from tests.fleet.export.cases import A30, body
from tests.fleet.stand_ins.machines import StandInNode


def exports_of(folder: Path, nodes: Mapping[str, StandInNode]) -> list[SourceFile]:
    """What `nvidia-mig-parted export` says of each node."""
    for name, node in nodes.items():
        (folder / f"{name}.yaml").write_text(node.mig_parted("export").text, encoding="utf-8")
    return [SourceFile(str(folder / f"{name}.yaml"), name) for name in nodes]


def is_cut(folder: Path, nodes: Mapping[str, StandInNode], target: Deployment) -> None:
    """By its listings, and by what mig-parted exports, a node has the counts of the target."""
    counts = [card.counts if card.mode is Mode.MIG else {} for card in target.gpus()]
    exports = exports_of(folder, nodes)
    assert [card.counts for card in observed(nodes, exports=exports).gpus()] == counts
    if len(target.devices) > 1:
        return
    alone = observe(exports, known=target, device=next(target.gpus()).gpu).deployment
    assert [c.counts if c.mode is Mode.MIG else {} for c in alone.gpus()] == counts


def applied(folder: Path, target: Deployment, now: Deployment, choice: str = "any") -> None:
    nodes, files = stand_ins(folder, now, choice=choice), export(target, "mig-parted").files
    for name, config in (row.split(",") for row in body(files["nodes.csv"]).splitlines()[1:]):
        told = ["-f", "-", "-c", config], files["mig-parted.yaml"]
        done = nodes[name].mig_parted(["apply", *told[0]], told[1])
        while choice == "any" and done.code and "all orderings failed" in done.error:
            done = nodes[name].mig_parted(["apply", *told[0]], told[1])  # other starts leave room
        assert done.code == 0, done
        assert nodes[name].mig_parted(["assert", *told[0]], told[1]).code == 0
    is_cut(folder, nodes, target)


def test_a_scenario_is_cut_as_its_file_says(tmp_path: Path) -> None:
    empty = fleet(node_a=4, node_b=3)
    first = next(iter(empty.gpus()))
    cards = {("node-a", 0): first.with_instances([Instance("4g.40gb", 0), Instance("1g.10gb", 5)])}
    applied(tmp_path, scenario("S4", empty), empty.with_gpus(cards))


@pytest.mark.long
@pytest.mark.parametrize("choice", ["lowest", "any"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_cut_as_its_file_says(tmp_path: Path, name: str, choice: str) -> None:
    empty = fleet(node_a=8, node_b=8)
    applied(tmp_path, scenario(name, empty), empty, choice)


def test_nodes_of_two_types_with_mig_off(tmp_path: Path) -> None:
    """What is exported of GPUs of two types has filters by PCI id, as the catalogue knows them."""
    two, grace = (Instance("2g.12gb", 0), Instance("1g.6gb+me", 2)), get_gpu("gh200-144gb")
    cards = (
        FleetGpu("node-a", 0, A30, instances=two),
        FleetGpu("node-a", 1, A30, Mode.WHOLE),
        FleetGpu("node-a", 2, grace, instances=(Instance("3g.72gb", 4),)),
        FleetGpu("node-a", 3, grace, Mode.WHOLE),
    )
    target = Deployment((FleetNode("node-a", cards),))
    turned = {
        (c.node, c.index): c.with_instances((), Mode.WHOLE if c.mode is Mode.MIG else Mode.MIG)
        for c in cards
    }
    applied(tmp_path, target, target.with_gpus(turned))


def test_an_export_that_contradicts_the_listings_is_refused(tmp_path: Path) -> None:
    target = scenario("S4", fleet(node_a=4, node_b=3))
    nodes = stand_ins(tmp_path, target)
    exports = exports_of(tmp_path, nodes)
    assert [*observed(nodes, exports=exports).gpus()] == [*observed(nodes).gpus()]
    nodes["node-a"].remove(0, nodes["node-a"].instances(0)[0].start)
    with pytest.raises(FileError, match="node-a/0 has .* here, and .* in .*told-0.txt"):
        observed(nodes, exports=exports)


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
        ([Entry((0,), None), Entry((0,), seven)], None, "n/0"),
        ([Entry((0, 3), None)], A30, "GPU 3"),
        ([Entry(None, seven)], None, "'n'"),
    ):
        with pytest.raises(FileError, match=f"^c.yaml: .*{has}"):
            cuts(*entries, card=card)
