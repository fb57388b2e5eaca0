"""`cms apply` by the real kubectl, where it differs from what other tools do."""

from __future__ import annotations

from pathlib import Path

import pytest

from cms.fleet.deployment import Instance
from tests.fleet.apply.cluster_site import TOOL, cluster_site
from tests.fleet.apply.site import arrives
from tests.fleet.stand_ins.kubernetes.cluster import needs_kubectl
from tests.fleet.transition.cases import does, on_node, planned, reached

pytestmark = needs_kubectl


def test_a_foreign_pod_on_the_node_is_not_sent_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = (does("b", "2g.12gb"), Instance("1g.6gb", 3))
    now = on_node((does("a", "4g.24gb"),), beside)
    found = reached(now, on_node((does("b", "2g.12gb"),), beside), tool=TOOL, floor=0)
    with cluster_site(tmp_path, found) as site:
        limits = {"nvidia.com/mig-1g.6gb": "1"}
        container = {"name": "c", "image": "x", "resources": {"limits": limits}}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "theirs"},
               "spec": {"containers": [container], "nodeName": "n"}}  # fmt: skip
        site.c.apply(pod)
        site.c.settle()
        assert site.apply() == 1
        said = " ".join(capsys.readouterr().out.split())
        assert "pod default/theirs holds nvidia.com/mig-1g.6gb" in said
        assert not site.c.get("Node", "n")["spec"].get("unschedulable")


@pytest.mark.long
@pytest.mark.parametrize("seed", [5, 9])
def test_pods_that_are_not_tied_to_nodes_arrive(tmp_path: Path, seed: int) -> None:
    """Without floors: a drain evicts what the scheduler has put on a node and the plan has not."""
    found = planned(seed, TOOL)
    with cluster_site(tmp_path, found, tied=False) as site:
        assert site.apply("--parallel", "2", "-q") == 0
        assert site.is_as(found, found.target)
        assert site.apply("--undo", "-q") == 0
        assert site.is_as(found, found.start)


@pytest.mark.long
def test_a_failure_of_mig_manager_is_mended(tmp_path: Path) -> None:
    found = planned(5, TOOL)
    with cluster_site(tmp_path, found) as site:
        site.c.world.mig_fails.add("n0")
        assert site.apply("-q") == 1
        assert site.floors_held(found)
        site.c.world.mig_fails.clear()
        site.c.kubectl("label", "--overwrite", "node", "n0", "nvidia.com/mig.config=all-disabled")
        site.c.settle()
        arrives(site, found, "--resume")
