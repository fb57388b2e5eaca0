"""The file of mig-parted: what it refuses is refused, and what is there is kept."""

from __future__ import annotations

import re

import pytest

from cms.errors import FileError, InvalidProblem
from cms.files.source import Source
from cms.fleet import gpu
from cms.fleet.deployment import FleetGpu, FleetNode
from cms.fleet.deployment.export import TARGETS, ExportOptions, export
from cms.fleet.deployment.export.export import bare
from cms.fleet.deployment.export.mig_parted_file import (
    Entry,
    configs_of,
    cuts_of,
    merged,
    name_of,
    read_configs,
    text_of,
)
from cms.values.frozen import FrozenMap
from tests.fleet.export.cases import A30, MIXED, body

# --- mig-parted's own rules -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ("mig-configs: {}", 'no "version"'),
        ("version: v2\nmig-configs: {}", '"v2"'),
        ("version: v1\nmig-configs: {}\nmore: 1", 'unknown key "more"'),
        ("version: v1\nmig-configs:\n  a: []", "at least one entry"),
        ("version: v1\nmig-configs:\n  a: [{devices: 0, mig-enabled: false}]", "write [0], not 0"),
        ("version: v1\nmig-configs:\n  a: [{devices: all}]", 'no "mig-enabled"'),
        ("version: v1\nmig-configs:\n  a: [{devices: all, mig-enabled: true}]", "no mig-devices"),
        (
            "version: v1\nmig-configs:\n"
            "  a: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 0}}]",
            "a count above 0",
        ),
        (
            "version: v1\nmig-configs:\n"
            "  a: [{devices: all, mig-enabled: false, mig-devices: {1g.5gb: 2}}]",
            "MIG is not enabled",
        ),
        ("version: v1\nmig-configs: {}\n---\nversion: v1", "one configuration file"),
    ],
)
def test_a_file_that_mig_parted_refuses_is_refused(broken: str, words: str) -> None:
    with pytest.raises(FileError, match=re.escape(words)):
        read_configs(Source("c.yaml", broken))


def test_a_configuration_by_pci_ids_needs_them_to_be_known() -> None:
    filtered = Entry(None, None, ("0x20B710DE",))
    a30 = FleetNode("n", (FleetGpu("n", 0, A30),))
    assert A30.pci_device_ids == ("0x20B710DE",)
    assert cuts_of([filtered], a30, "c.yaml") == {0: None}
    unknown = gpu("b200-180gb")
    assert not unknown.pci_device_ids
    with pytest.raises(FileError, match="PCI ids"):
        cuts_of([filtered], FleetNode("n", (FleetGpu("n", 0, unknown),)), "c.yaml")
    with pytest.raises(FileError, match="in 2 entries"):
        cuts_of([Entry((0,), None), Entry(None, None)], a30, "c.yaml")
    with pytest.raises(FileError, match="GPU 3 is listed"):
        cuts_of([Entry((0, 3), None)], a30, "c.yaml")


# --- below an existing file -----------------------------------------------------------------------

THEIRS = """\
# ours since 2024
version: v1
mig-configs:
    all-disabled:
      - devices: all          # as in the default file
        mig-enabled: false

    # for training
    train:
      - device-filter: ["0x20B710DE"]
        devices: [0, 1]
        mig-enabled: true
        mig-devices: {
          "1g.10gb": 7,
        }  # seven
# the end
"""


def test_an_existing_file_keeps_every_line_and_gains_ours() -> None:
    options = ExportOptions(merge=Source("theirs.yaml", THEIRS))
    text = body(export(MIXED, "mig-parted", options).files["mig-parted.yaml"])
    before, after = THEIRS.split("# the end\n")[0], "# the end\n"
    assert text.startswith(before)
    assert text.endswith(after)
    found = read_configs(Source("c.yaml", text))
    assert list(found) == ["all-disabled", "train", "cms-7ae23248281d"]
    tool = TARGETS["mig-parted"]
    written = export(MIXED, "mig-parted", options)
    assert tool.read(written.files, bare(MIXED)) == tool.as_seen(MIXED)
    again = ExportOptions(merge=Source("ours.yaml", written.files["mig-parted.yaml"]))
    assert export(MIXED, "mig-parted", again) == written
    operator = export(MIXED, "gpu-operator", options)
    assert "    # for training" in operator.files["configmap.yaml"]
    assert TARGETS["gpu-operator"].read(operator.files, bare(MIXED)) == tool.as_seen(MIXED)


def test_a_name_that_means_something_else_already_is_refused() -> None:
    cuts = {0: None}
    text = text_of({name_of(cuts): {0: FrozenMap({"1g.10gb": 1})}})
    with pytest.raises(FileError, match="of another content already"):
        merged(Source("c.yaml", text), {name_of(cuts): cuts})


def test_two_layouts_of_one_name_are_both_named() -> None:
    """Two of which the hashes begin with the same 48 bits, found among 48 million."""
    one, two = ({0: FrozenMap({"1g.10gb": count})} for count in (5_758_168, 44_609_950))
    assert name_of(one) == name_of(two)
    assert list(configs_of([one, dict(one)])) == [name_of(one)]
    says = r'layouts .*"1g.10gb": 5758168.* and .*"1g.10gb": 44609950.* name cms-4fe7713f35a0;'
    with pytest.raises(InvalidProblem, match=says):
        configs_of([one, two])


@pytest.mark.parametrize(
    "text",
    [
        '{"version": "v1", "mig-configs": {}}',
        "version: v1\nmig-configs: {a: [{devices: all, mig-enabled: false}]}\n",
    ],
)
def test_a_file_in_braces_is_not_added_to(text: str) -> None:
    with pytest.raises(FileError, match="in braces"):
        merged(Source("c.yaml", text), {})
