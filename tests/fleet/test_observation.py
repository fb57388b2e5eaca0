"""What nvidia-smi printed becomes a deployment, and what cannot be is refused with its place."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError
from cms.files.source import Source
from cms.fleet import gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode, Seen, State
from cms.fleet.deployment.labels import point_label
from cms.fleet.deployment.observation.facts import GpuFacts, NodeFacts, PodFacts, Stated
from cms.fleet.deployment.observation.merge import Observed, merge
from cms.fleet.deployment.observation.nvidia_smi import is_nvidia_smi, read_nvidia_smi
from cms.fleet.serving import RULES

from .deployments import SERVICES, layouts, point

LIST = """\
GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-0)
  MIG 3g.40gb     Device  0: (UUID: MIG-aa)
GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-1)
"""
QUERY = """\
index, uuid, name, mig.mode.current, driver_version
0, GPU-0, NVIDIA A100-SXM4-80GB, Enabled, 550.54.15
1, GPU-1, NVIDIA A100-SXM4-80GB, Disabled, 550.54.15
"""
LGI = """\
+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 3g.40gb          9        2          4:4     |
+-------------------------------------------------------+
"""
LCI = """\
+--------------------------------------------------------------------+
| Compute instances:                                                 |
| GPU     GPU       Name             Profile   Instance   Placement  |
|       Instance                       ID        ID       Start:Size |
|         ID                                                         |
|====================================================================|
|   0      2       MIG 3g.40gb          2         0          0:3     |
+--------------------------------------------------------------------+
"""
A100 = gpu("a100-80gb")


def told(*texts: str, node: str = "a") -> NodeFacts:
    sources = [Source(f"file{number}.txt", text) for number, text in enumerate(texts)]
    return replace(read_nvidia_smi(*sources), node=Stated(node, "--node"))


def observed(*texts: str) -> Deployment:
    return merge([told(*texts)]).deployment


def test_a_node_from_four_listings() -> None:
    first, second = observed(QUERY, LIST, LGI, LCI).node("a").gpus
    assert first.instances == (
        Instance("3g.40gb", 4, owner="unknown", gpu_instance=2, uuid="MIG-aa"),
    )
    assert (first.mode, first.uuid, first.seen) == (Mode.MIG, "GPU-0", Seen.SEEN)
    assert (second.mode, second.instances, second.gpu.key) == (Mode.WHOLE, (), "a100-80gb")
    assert observed(QUERY, LIST, LGI, LCI).node("a").driver == "550.54.15"


def test_listings_in_one_file_and_in_any_order_say_the_same() -> None:
    assert observed(QUERY + LIST + LGI + LCI) == observed(LCI + QUERY + LGI + LIST)


def test_an_instance_without_a_compute_instance_is_hollow_and_may_go() -> None:
    none = "No compute instances found: Not Found\n"
    (instance,) = observed(QUERY, LGI, none).node("a").gpus[0].instances
    assert (instance.state, instance.owner) == (State.HOLLOW, None)


def test_no_instances_found_is_an_empty_gpu() -> None:
    assert observed(QUERY, "No GPU instances found: Not Found\n").node("a").gpus[0].is_empty


def test_no_mig_enabled_devices_is_mig_off() -> None:
    cards = observed(LIST.replace("  MIG 3g.40gb     Device  0: (UUID: MIG-aa)\n", ""),
                     "No MIG-enabled devices found.\n").node("a").gpus  # fmt: skip
    assert {card.mode for card in cards} == {Mode.WHOLE}


def test_both_spellings_and_any_widths() -> None:
    narrow = "| 0 MIG 3g.40gb 9 2 4:4 |\n"
    assert observed(QUERY, LGI) == observed(QUERY, narrow)


def test_compute_instances_of_older_drivers_have_no_placement() -> None:
    old = LCI.replace("          0:3     |", "|")
    assert "0:3" not in old
    assert observed(QUERY, LGI, old) == observed(QUERY, LGI, LCI)


@pytest.mark.parametrize(("zone", "hour"), [("UTC0", 10), ("ABC-2", 8), ("ABC+5", 15)])
def test_a_timestamp_is_of_the_clock_of_the_node(
    zone: str, hour: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        listing = read_nvidia_smi(Source("x", "index, timestamp\n0, 2026/11/23 10:15:00.250\n"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert listing.at == f"2026-11-23T{hour:02}:15:00Z"


def test_what_is_recognised() -> None:
    assert all(is_nvidia_smi(Source("x", text)) for text in (LIST, QUERY, LGI, LCI))
    assert not is_nvidia_smi(Source("x", "service,model,rate_rps\n"))


def test_counts_against_none_name_the_line_that_says_that_there_are_none() -> None:
    card = GpuFacts(0, "export.yaml", counts={"1g.10gb": 2})
    counted = NodeFacts("export.yaml", Stated("a", "--node"), gpus=(card,))
    where = r"^export.yaml: a/0 has 2 x 1g.10gb here, and nothing in file1.txt:1"
    with pytest.raises(FileError, match=where):
        merge([told(QUERY, "No GPU instances found: Not Found\n"), counted])


def test_counts_have_starts_where_one_layout_has_them() -> None:
    for counts, seen, starts in (
        ({"7g.80gb": 1}, Seen.ONLY_ONE, [0]),
        ({"3g.40gb": 1}, Seen.UNKNOWN, [None]),
    ):
        card = GpuFacts(0, "export.yaml:3", mig=Stated("on", "export.yaml:3"), counts=counts)
        facts = NodeFacts("export.yaml", Stated("a", "--node"), gpus=(card,))
        (found,) = merge([facts], device=A100).deployment.gpus()
        assert (found.seen, [each.start for each in found.instances]) == (seen, starts)


@given(st.sampled_from(layouts("a100-80gb")[1:]), st.randoms(use_true_random=False))
def test_every_layout_is_read_back(layout: tuple[tuple[str, int], ...], random: object) -> None:
    rows = "".join(
        f"|   0  MIG {profile}   9   {number}   {start}:{A100.profile(profile).memory}   |\n"
        for number, (profile, start) in enumerate(layout)
    )
    assert list(observed(QUERY, rows).node("a").gpus[0].layout) == list(layout)


# --- what cannot be -------------------------------------------------------------------------------

BAD = {
    "not a listing": (("hello\n",), "'hello' is not understood"),
    "nothing": (("\n",), "nothing that nvidia-smi prints"),
    "no placement": ((QUERY, "|   0  MIG 3g.40gb  9  2  |\n"), "no placement Start:Size"),
    "a start that is none": ((QUERY, LGI.replace("4:4", "2:4")), "a start among 0, 4"),
    "another size": ((QUERY, LGI.replace("4:4", "4:3")), "takes 3 memory slices here"),
    "no name of a profile": ((QUERY, LGI.replace("3g.40gb", "3g")), "no profile '3g'"),
    "another's compute instance": (
        (QUERY, LGI, LCI.replace("3g.40gb", "2g.20gb")), "file2.txt:7: .* here, and is a 3g.40gb",
    ),
    "twice the same instance": ((QUERY, LGI, LGI), r"GPU instance 2 here and in file1.txt:6"),
    "an overlap": (
        (QUERY, LGI, "| 0 MIG 1g.10gb 19 7 6:1 |\n"), "3g.40gb@4 and 1g.10gb@6 on memory slice 6",
    ),
    "two UUIDs": ((QUERY, LIST.replace("GPU-0", "GPU-9")), "UUID of GPU 0 is GPU-9 here and GPU-0"),
    "no UUID": ((QUERY.replace("GPU-0", "- off off no"),), "^file0.txt:2: the UUID of a/0 is '- "),
    "more than a UUID": ((LIST.replace("GPU-0", "GPU-0 off"), LGI), "^file0.txt:1: the UUID of a"),
    "no card": ((LGI,), "what GPU a/0 is is said nowhere"),
    "no mode": ((LIST, LGI), "a/1 has no instances, and whether MIG is on is said nowhere"),
    "an odd mode": ((QUERY.replace("Enabled", "Maybe"),), "mig.mode.current is 'Maybe'"),
    "a short row": ((QUERY.replace(", Enabled", ""),), "4 cells under 5 names"),
    "an odd driver": ((QUERY.replace("550.54.15", "new"),), "the driver is 'new'"),
    "a device before its GPU": ((LIST.split("\n", 1)[1],), "stands before its GPU"),
    "half a compute instance": ((QUERY, LGI, "| 0 2 MIG 3g.40gb 2 |\n"), "nvidia-smi mig -lci"),
    "words in a compute instance": ((QUERY, LGI, "| 0 2 MIG 3g.40gb a b |\n"), "not understood"),
    "half a GPU instance": ((QUERY, "| 0 MIG 3g.40gb 4:4 |\n"), "is not understood"),
    "no index": ((QUERY.replace("\n0,", "\nx,"),), "the index is 'x'"),
    "two drivers": ((QUERY.replace("1, GPU-1, NVIDIA A100-SXM4-80GB, Disabled, 550.54.15",
                                   "1, GPU-1, NVIDIA A100-SXM4-80GB, Disabled, 535.1"),),
                    "the driver is 535.1 here and 550.54.15 in file0.txt:2"),
    "two modes": ((QUERY, QUERY.replace("Enabled", "Disabled")), "mig.mode.current of 0 is off"),
    "two cards": ((QUERY, LIST.replace("GPU 0: NVIDIA A100-SXM4-80GB", "GPU 0: NVIDIA A30")),
                  "the product of GPU 0 is NVIDIA A30 here and NVIDIA A100"),
    "no instances": ((QUERY,), "MIG is on on a/0, and its instances are listed nowhere"),
    "a long index": ((f"index, timestamp\n{'9' * 5000}, x\n",), "^file0.txt:2: the index is"),
    "a long card": ((f"GPU {'9' * 5000}: NVIDIA A30 (UUID: GPU-0)\n" + LIST,), "not understood"),
    "a long place": ((QUERY, f"| 0 MIG 1g.10gb 19 7 {'9' * 5000}:1 |\n"), "no placement"),
    "a long instance": ((QUERY, f"| 0 MIG 1g.10gb 19 {'9' * 5000} 0:1 |\n"), "no placement"),
    "a small 2 above": ((QUERY, "| \u00b2 MIG 1g.10gb 19 7 0:1 |\n"), "not understood"),
    "an odd time": (("index, timestamp\n0, yesterday\n",), "the timestamp is 'yesterday'"),
    "too many media engines": ((QUERY, "| 0 MIG 1g.10gb+me 20 1 0:1 |\n"
                                       "| 0 MIG 1g.10gb+me 20 2 1:1 |\n"), "at most 1"),
    "none and some": (
        (QUERY + "No GPU instances found: Not Found\n" + LGI,),
        r'^file0.txt:4: it says "No GPU instances found" here, and GPU 0 has a 3g.40gb in '
        r"file0.txt:10",
    ),
    "some and none": (
        (QUERY, LGI, "No GPU instances found\n"), "^file2.txt:1: .* a 3g.40gb in file1.txt:6",
    ),
    "none and a device": (
        (LIST, "No GPU instances found\n"), "^file1.txt:1: .* a 3g.40gb in file0.txt:2",
    ),
    "none and a compute instance": (
        (QUERY, "No GPU instances found\n", LCI), "GPU 0 has a compute instance in file2.txt:7",
    ),
    "no compute instance and one": (
        (QUERY, LGI, LCI, "No compute instances found\n"), "^file3.txt:1: .* in file2.txt:7",
    ),
    "all off and one on": (
        (QUERY, "No MIG-enabled devices found.\n"), "^file1.txt:1: .*MIG is on on GPU 0 in .*:2",
    ),
    "all off and an instance": (
        (LGI, "No MIG-enabled devices found.\n"), "^file1.txt:1: .* a 3g.40gb in file0.txt:6",
    ),
    "an error of the driver": ((QUERY, "Failed to display GPU instances: Unknown Error\n"),
                               "is not understood"),
    "no GPU of that number": (("No devices were found\n",), "is not understood"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_observations_are_refused_in_words(name: str) -> None:
    texts, says = BAD[name]
    with pytest.raises(FileError, match=says):
        observed(*texts)


def test_an_observation_without_a_node() -> None:
    with pytest.raises(FileError, match="does not say of which node it is, expected NODE=FILE"):
        merge([read_nvidia_smi(Source("lgi.txt", LGI))])


def test_two_sources_that_contradict_each_other_are_both_named() -> None:
    other = LGI.replace("4:4", "0:4")
    with pytest.raises(FileError, match=r"a/0 has 3g.40gb@0 here, and 3g.40gb@4 in file1.txt:6"):
        merge([told(QUERY, LGI), replace(told(QUERY, other), source="later.txt")])


def test_a_listing_that_was_cut_off_is_no_empty_gpu() -> None:
    whole = LGI.rstrip().splitlines()
    assert [whole[0][:2], whole[-1][:2]] == ["+-", "+-"]
    for kept in range(2, len(whole)):
        if whole[kept - 1].startswith("|"):
            with pytest.raises(FileError, match="the table ends before its frame; was the file"):
                observed(QUERY, "\n".join(whole[:kept]) + "\n")


def devices(*names: str) -> str:
    return "GPU 0: A100 (UUID: GPU-0)\n" + "".join(
        f"  MIG {name}  Device  {at}: (UUID: MIG-{at})\n" for at, name in enumerate(names)
    )


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("|   0      2       MIG 3g.40gb  2  0  0:3  |\n", "compute instance in GPU instance 2"),
        (devices("3g.40gb", "3g.40gb"), "device"),
        (devices("3g.40gb", "1c.3g.40gb"), "device"),
        (devices("1c.3g.40gb", "3g.40gb"), "device"),
    ],
)
def test_a_listing_closed_too_early_is_noticed_by_what_else_is_listed(more: str, says: str) -> None:
    short = "+---+\n|   0  MIG 3g.40gb    9    1    0:4     |\n+---+\n"
    with pytest.raises(FileError, match=says + ".*which the listing from"):
        read_nvidia_smi(Source("lgi.txt", short), Source("more.txt", more))


def test_instances_on_a_gpu_with_mig_off_are_a_contradiction() -> None:
    with pytest.raises(FileError, match=r"a/0 has 3g.40gb here, and MIG is off in .*:2"):
        observed(QUERY.replace("Enabled", "Disabled"), LGI)


# --- what instances do ----------------------------------------------------------------------------


CHAT = point("chat", A100.key, "3g.40gb")


def known() -> Deployment:
    card = FleetGpu("a", 0, A100, instances=(Instance("3g.40gb", 4, CHAT),))
    return Deployment((FleetNode("a", (card,)),), SERVICES, RULES["half"])


def with_pods(*pods: PodFacts, text: str = LGI) -> Observed:
    cluster = NodeFacts("pods.json", Stated("a", "pods.json:1"), pods=pods)
    return merge([told(QUERY, text), cluster], known())


TWO = LGI + "| 0 MIG 3g.40gb 9 1 0:4 |\n+---+\n"
OURS = PodFacts("prod/chat-1", "pods.json:4", ("3g.40gb",), "chat", point_label(CHAT))
THEIRS = PodFacts("team-x/train", "pods.json:9", ("3g.40gb",))


def test_without_a_cluster_an_instance_does_what_was_meant_there() -> None:
    (instance,) = merge([told(QUERY, LGI)], known()).deployment.node("a").gpus[0].instances
    assert (instance.work, instance.owner) == (CHAT, None)


def test_a_pod_of_ours_is_work_and_another_one_is_pinned() -> None:
    (instance,) = with_pods(OURS).deployment.node("a").gpus[0].instances
    assert (instance.work, instance.owner, instance.is_guessed) == (CHAT, None, False)
    (instance,) = with_pods(THEIRS).deployment.node("a").gpus[0].instances
    assert (instance.work, instance.owner) == (None, "pod team-x/train")


def test_which_of_two_instances_a_pod_holds_is_not_known() -> None:
    found = with_pods(OURS, THEIRS, text=TWO)
    held = found.deployment.node("a").gpus[0].instances
    assert all(each.is_guessed for each in held)
    assert sorted(each.owner or "" for each in held) == ["", "pod team-x/train"]
    assert "which of its 2 x 3g.40gb serve what is not known" in found.warnings[0]


def test_where_all_hold_the_same_nothing_is_guessed() -> None:
    again = replace(OURS, name="prod/chat-2")
    found = with_pods(OURS, again, text=TWO)
    assert not any(each.is_guessed for each in found.deployment.node("a").gpus[0].instances)
    assert not found.warnings


def test_a_claim_says_exactly_which() -> None:
    placed = replace(OURS, places=((0, "3g.40gb", 0),))
    held = with_pods(placed, text=TWO).deployment.node("a").gpus[0].instances
    assert [(each.start, each.work, each.is_guessed) for each in held] == [
        (0, CHAT, False), (4, None, False),
    ]  # fmt: skip


def test_more_pods_than_instances() -> None:
    with pytest.raises(FileError, match=r"2 pods of node 'a' hold 3g.40gb, but it has 1"):
        with_pods(OURS, THEIRS)


def test_a_pod_on_an_instance_that_is_not_there() -> None:
    with pytest.raises(FileError, match=r"holds 3g.40gb@0 of a/0, which is not there"):
        with_pods(replace(OURS, places=((0, "3g.40gb", 0),)))


def test_what_can_be_given_away_is_what_the_gpus_hold() -> None:
    cluster = NodeFacts(
        "node.json", Stated("a", "node.json:1"), pods=(), allocatable={"3g.40gb": 2}
    )
    with pytest.raises(FileError, match="can give away 2 x 3g.40gb, but its GPUs hold 1"):
        merge([told(QUERY, LGI), cluster])


def test_a_node_that_is_being_changed() -> None:
    cluster = NodeFacts(
        "node.json", Stated("a", "node.json:1"), mig_state=Stated("pending", "node.json:7")
    )
    with pytest.raises(FileError, match=r"node.json:7: node 'a' is being changed"):
        merge([told(QUERY, LGI), cluster])


def test_labels_that_no_plan_knows_are_anothers() -> None:
    found = with_pods(replace(OURS, point="old"))
    (instance,) = found.deployment.node("a").gpus[0].instances
    assert instance.owner == "pod prod/chat-1"
    assert "which no plan or deployment that was given knows" in found.warnings[0]
