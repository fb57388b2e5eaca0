"""What nvidia-smi printed becomes a deployment, and what cannot be is refused with its place."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.files.source import Source
from cms.fleet import get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode, StartSource, State
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.observation.facts import GpuFacts, NodeFacts, PodFacts, Statement
from cms.fleet.deployment.observation.merge import ObservationResult, merge
from cms.fleet.deployment.observation.nvidia_smi import is_nvidia_smi, read_nvidia_smi
from cms.fleet.serving import RULES
from tests.fleet.deployments import SERVICES, layouts, point
from tests.fleet.smi import card, lgi, log

A100 = get_gpu("a100-80gb")
LIST = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-0)
  MIG 3g.40gb     Device  0: (UUID: MIG-aa)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-1)
"""
OFF = card("GPU-1", "Disabled", devices=())
LOG = log(card(devices=[(2, 42)]), OFF)
LGI = lgi("0 3g.40gb 2 4:4")
TWO = lgi("0 3g.40gb 1 0:4", "0 3g.40gb 2 4:4")


def told(*texts: str, node: str = "a") -> NodeFacts:
    sources = [Source(f"file{number}.txt", text) for number, text in enumerate(texts)]
    return replace(read_nvidia_smi(*sources), node=Statement(node, "--node"))


def observed(*texts: str) -> Deployment:
    return merge([told(*texts)]).deployment


def held(*texts: str) -> list[Instance]:
    return [*observed(*texts).node("a").gpus[0].instances]


def test_a_node_from_its_listings_in_any_order_and_in_one_file() -> None:
    seen = observed(LOG, LIST, LGI)
    first, second = seen.node("a").gpus
    assert first.instances == (
        Instance("3g.40gb", 4, owner="unknown", gpu_instance=2, uuid="MIG-aa"),
    )
    assert (first.mode, first.uuid, first.start_source) == (Mode.MIG, "GPU-0", StartSource.OBSERVED)
    assert (second.mode, second.instances, second.gpu) == (Mode.WHOLE, (), A100)
    assert (first.gpu, seen.node("a").driver) == (A100, "550.54.15")
    narrow = "| 0 MIG 3g.40gb 9 2 4:4 |\n"
    assert seen == observed(LGI + LIST + LOG) == observed(LOG + narrow + LIST)
    assert all(is_nvidia_smi(Source("x", text)) for text in (LIST, LOG, LGI, narrow))
    assert not is_nvidia_smi(Source("x", "service,model,rate_rps\n"))


@pytest.mark.parametrize(
    ("devices", "listed", "state", "uuid"),
    [
        ([(2, 42)], None, State.RUNNING, None),
        ([(2, 42)], "3g.40gb", State.RUNNING, "MIG-aa"),
        ([(2, 37)], None, State.RUNNING, None),  # of one product some have fewer multiprocessors
        ([(2, 28)], None, State.SPLIT, None),
        ([(2, 42)], "1c.3g.40gb", State.SPLIT, None),
        ([(2, 14), (2, 14)], None, State.SPLIT, None),
        ([], None, State.NO_COMPUTE_INSTANCE, None),
        (None, "3g.40gb", State.RUNNING, "MIG-aa"),
    ],
)
def test_an_instance_is_whole_split_or_without_a_compute_instance(
    devices: list[tuple[int, int]] | None, listed: str | None, state: State, uuid: str | None
) -> None:
    texts = [] if listed is None else [LIST.replace("3g.40gb", listed, 1)]
    (found,) = held(log(card(devices=devices), OFF), LGI, *texts)
    assert (found.state, found.uuid) == (state, uuid)
    assert found.owner == (None if state is State.NO_COMPUTE_INSTANCE else "unknown")


LIST_OF_TWO = LIST.replace("GPU 1", "  MIG 3g.40gb     Device  1: (UUID: MIG-bb)\nGPU 1")


def test_lists_tell_modes_numbers_uuids_and_starts() -> None:
    assert held(log(card()), "No GPU instances found: Not Found\n") == []
    listed = LIST.replace("  MIG 3g.40gb     Device  0: (UUID: MIG-aa)\n", "")
    cards = observed(listed, "No MIG-enabled devices found.\n").gpus()
    assert {each.mode for each in cards} == {Mode.WHOLE}
    lost = log(card("GPU-1", "Disabled"), attached=2)
    with pytest.raises(FileError, match=r"^file0.txt:5: "):
        observed(lost)
    found = observed(lost, "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n").gpus()
    assert [each.index for each in found] == [1]
    # Its clock has no zone: nowhere was it that time later than twelve hours after Greenwich.
    time = "<timestamp>Mon Nov 23 10:15:00 2026</timestamp>"
    assert told(log(card(), head=time)).at == "2026-11-23T22:15:00Z"
    with pytest.raises(FileError, match=r"^file0.txt:3: .*yesterday"):
        told(log(card(), head="<timestamp>yesterday</timestamp>"))
    on = log(card(devices=[(2, 42), (1, 42)]), OFF)
    assert [(i.start, i.uuid) for i in held(on, TWO, LIST_OF_TWO)] == [(0, "MIG-bb"), (4, "MIG-aa")]
    assert [i.uuid for i in held(log(card(), OFF), TWO, LIST_OF_TWO)] == [None, None]
    for name, seen, start in (
        ("7g.80gb", StartSource.INFERRED, 0),
        ("3g.40gb", StartSource.UNKNOWN, None),
    ):
        of = GpuFacts(0, "e.yaml:3", mig=Statement("on", "e.yaml:3"), counts={name: 1})
        facts = NodeFacts("e.yaml", Statement("a", "--node"), gpus=(of,))
        (one,) = merge([facts], device=A100).deployment.gpus()
        assert (one.start_source, [each.start for each in one.instances]) == (seen, [start])


@given(st.sampled_from(layouts("a100-80gb")[1:]))
def test_every_layout_is_read_back(layout: Iterable[tuple[str, int]]) -> None:
    rows = [
        f"0 {profile} {number} {start}:{A100.profile(profile).memory}"
        for number, (profile, start) in enumerate(layout)
    ]
    assert observed(log(card()), lgi(*rows)).node("a").gpus[0].layout == tuple(layout)


ON = log(card())
MEDIA = "0 1g.10gb+me 1 0:1"
NO_NUMBER = "<mig_devices><mig_device/></mig_devices>"
ALL_OFF = "No MIG-enabled devices found.\n"
BOTH = log(card(devices=[(2, 42), (1, 42)]))
BAD: dict[str, tuple[tuple[str, ...], str, str]] = {
    "no placement": ((ON, "|   0  MIG 3g.40gb  9  2  |\n"), "file1.txt:1", "3g.40gb"),
    "half an instance": ((ON, "| 0 MIG 3g.40gb 4:4 |\n"), "file1.txt:1", "4:4"),
    "a compute instance": ((ON, LGI, "| 0 2 MIG 3g.40gb 2 0 0:3 |\n"), "file2.txt:1", "0:3"),
    "a start that is none": ((ON, LGI.replace("4:4", "2:4")), "file1.txt:6", "3g.40gb@2"),
    "another size": ((ON, LGI.replace("4:4", "4:3")), "file1.txt:6", "3 memory slices"),
    "no name of a profile": ((ON, LGI.replace("3g.40gb", "3g     ")), "file1.txt:6", "'3g'"),
    "twice the same instance": ((ON, LGI, LGI), "file2.txt:6", "file1.txt:6"),
    "an overlap": ((ON, LGI, "| 0 MIG 1g.10gb 19 7 6:1 |\n"), "file1.txt:6", "1g.10gb@6"),
    "too many media engines": ((ON, lgi(MEDIA, "0 1g.10gb+me 2 1:1")), "file1.txt:6", MEDIA[2:12]),
    "two UUIDs": ((ON, LIST.replace("GPU-0", "GPU-9")), "file0.txt:5", "GPU-9"),
    "more than a UUID": ((LIST.replace("GPU-0", "GPU-0 off"), LGI), "file0.txt:1", "GPU-0 off"),
    "two products": ((ON, LIST.replace("A100-SXM4-80GB", "A30", 1)), "file0.txt:5", "NVIDIA A30"),
    "two drivers": ((ON, log(card("GPU-0"), driver="535.1")), "file1.txt:3", "535.1"),
    "two modes": ((ON, log(card(mig="Disabled"))), "file1.txt:5", "off"),
    "no mode": ((LIST, LGI), "file0.txt:3", "a/1"),
    "an odd mode": ((log(card(mig="Maybe")),), "file0.txt:5", "Maybe"),
    "an odd driver": ((log(card(), driver="new"), LGI), "file0.txt:3", "new"),
    "a device before its GPU": ((LIST.split("\n", 1)[1],), "file0.txt:1", "MIG device"),
    "another's device": ((LOG, LGI, LIST.replace("3g.40", "1c.2g.20")), "file2.txt:2", "1c.2g.20"),
    "a device without a number": ((log(card(more=NO_NUMBER)),), "file0.txt:5", ""),
    "a cut log": ((LOG[:-30],), "file0.txt", ""),
    "a long card": ((f"GPU {'9' * 5000}: NVIDIA A30 (UUID: GPU-0)\n",), "file0.txt:1", "GPU"),
    "a long place": ((ON, f"| 0 MIG 1g.10gb 19 7 {'9' * 5000}:1 |\n"), "file1.txt:1", "1g.10gb"),
    "a small 2 above": ((ON, "| \u00b2 MIG 1g.10gb 19 7 0:1 |\n"), "file1.txt:1", "1g.10gb"),
    "none and some": ((ON, "No GPU instances found\n" + LGI), "file1.txt:1", "file1.txt:7"),
    "none and a device": ((LIST, "No GPU instances found\n"), "file1.txt:1", "file0.txt:2"),
    "none and one of the XML": ((LOG, "No GPU instances found\n"), "file1.txt:1", "file0.txt:5"),
    "all off and one on": ((ON, ALL_OFF), "file1.txt:1", "file0.txt:5"),
    "all off and an instance": ((LGI, ALL_OFF), "file1.txt:1", "file0.txt:6"),
    "MIG off and an instance": ((log(card(mig="Disabled")), LGI), "file1.txt:6", "file0.txt:5"),
    "MIG off and a device of -L": ((log(card(mig="Disabled")), LIST), "file1.txt:2", "file0.txt"),
    "closed too early, by the XML": ((BOTH, LGI), "file0.txt:5", "GPU instance 1"),
    "other devices in -L": ((log(card(devices=[])), LGI, LIST), "file2.txt:2", "1 MIG device"),
    "closed too early, by -L": ((ON, LGI, LIST_OF_TWO), "file2.txt:3", "3g.40gb"),
    "an error of the driver": ((ON, "Failed to display: Unknown Error\n"), "file1.txt:1", "Failed"),
    "no GPU of that number": (("No devices were found\n",), "file0.txt:1", "No devices"),
}  # fmt: skip


@pytest.mark.parametrize(("texts", "where", "has"), BAD.values(), ids=BAD)
def test_what_cannot_be_is_refused(texts: tuple[str, ...], where: str, has: str) -> None:
    with pytest.raises(FileError) as fault:
        observed(*texts)
    assert f"{fault.value}".startswith(f"{where}:")
    assert has in f"{fault.value}"


def test_a_listing_that_was_cut_off_or_contradicts_another_is_refused() -> None:
    whole = LGI.rstrip().splitlines()
    for kept in range(2, len(whole)):
        if whole[kept - 1].startswith("|"):
            with pytest.raises(FileError, match=rf"^file1.txt:{kept}: the table ends"):
                observed(LOG, "\n".join(whole[:kept]) + "\n")
    with pytest.raises(FileError, match="NODE=FILE"):
        merge([read_nvidia_smi(Source("lgi.txt", LGI))])
    other = told(ON, LGI.replace("4:4", "0:4"))
    with pytest.raises(FileError, match=r"a/0 has 3g.40gb@0 here, and 3g.40gb@4 in file1.txt:6"):
        merge([told(ON, LGI), replace(other, source="later.txt")])
    of = GpuFacts(0, "export.yaml", counts={"1g.10gb": 2})
    counted = NodeFacts("export.yaml", Statement("a", "--node"), gpus=(of,))
    with pytest.raises(FileError, match=r"^export.yaml: a/0 has 2 x 1g.10gb .* file1.txt:1"):
        merge([told(ON, "No GPU instances found: Not Found\n"), counted])


@given(st.integers(0, len(LOG) - 1), st.sampled_from("<>&x0 "))
def test_a_damaged_log_is_refused_or_read_and_never_a_crash(at: int, letter: str) -> None:
    text = LOG[:at] + letter + LOG[at + 1 :]
    with suppress(FileError):
        observed(text, LGI)


CHAT = point("chat", A100.key, "3g.40gb")
OURS = PodFacts("prod/chat-1", "pods.json:4", ("3g.40gb",), "chat", point_label(CHAT))
THEIRS = PodFacts("team-x/train", "pods.json:9", ("3g.40gb",))


def known() -> Deployment:
    one = FleetGpu("a", 0, A100, instances=(Instance("3g.40gb", 4, CHAT),))
    return Deployment((FleetNode("a", (one,)),), SERVICES, RULES["half"])


def with_pods(*pods: PodFacts, text: str = LGI, **more: Any) -> ObservationResult:
    cluster = NodeFacts("pods.json", Statement("a", "pods.json:1"), pods=pods, **more)
    return merge([told(ON, text), cluster], known())


def doing(*pods: PodFacts, text: str = LGI) -> list[tuple[object, ...]]:
    found = with_pods(*pods, text=text).deployment.instances()
    return [(each.start, each.work, each.owner, each.is_guessed) for _, each in found]


def test_instances_do_what_their_pods_do_or_what_was_meant() -> None:
    (instance,) = merge([told(ON, LGI)], known()).deployment.node("a").gpus[0].instances
    assert (instance.work, instance.owner) == (CHAT, None)
    theirs = "pod team-x/train"
    assert doing(OURS) == [(4, CHAT, None, False)]
    assert doing(THEIRS) == [(4, None, theirs, False)]
    assert doing(OURS, THEIRS, text=TWO) == [(0, CHAT, None, True), (4, None, theirs, True)]
    again = replace(OURS, name="prod/chat-2")  # where all do the same nothing is guessed
    assert doing(OURS, again, text=TWO) == [(0, CHAT, None, False), (4, CHAT, None, False)]
    placed = replace(OURS, places=((0, "3g.40gb", 0),))  # by a claim
    assert doing(placed, text=TWO) == [(0, CHAT, None, False), (4, None, None, False)]
    assert doing(replace(OURS, point="old")) == [(4, None, "pod prod/chat-1", False)]
    said = with_pods(OURS, THEIRS, text=TWO).warnings
    assert "2 x 3g.40gb" in said[0]
    assert "'old'" in with_pods(replace(OURS, point="old")).warnings[0]


@pytest.mark.parametrize(
    ("pods", "more", "where"),
    [
        ((OURS, THEIRS), {}, "pods.json:4"),
        ((replace(OURS, places=((0, "3g.40gb", 0),)),), {}, "pods.json:4"),
        ((), {"allocatable": {"3g.40gb": 2}}, "pods.json"),
        ((), {"mig_state": Statement("pending", "node.json:7")}, "node.json:7"),
    ],
)
def test_pods_and_counts_that_do_not_fit_are_refused(
    pods: tuple[PodFacts, ...], more: dict[str, Any], where: str
) -> None:
    with pytest.raises(FileError, match=f"^{where}: .*'?a'?"):
        with_pods(*pods, **more)
