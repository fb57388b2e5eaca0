"""Deployments as the files of the tools that bring them about, and what these files cannot say.

Each target is a function that fills in the files of ``templates/``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from ....errors import InvalidOption, InvalidProblem
from ....values.names import nearest
from ..checking import find_impossible
from ..difference import with_fixed
from ..model import Deployment
from . import kubernetes, mig_parted, slurm
from .export import Export, ExportOptions, refuse_unnumbered, require_word
from .workloads import Offer, advertise, name_by_driver

__all__ = ["TARGETS", "Export", "ExportOptions", "Offer", "advertise", "export"]

#: What writes a checked deployment for each target.
TARGETS: Mapping[str, Callable[[Deployment, ExportOptions], Export]] = {
    "mig-parted": mig_parted.write,
    "gpu-operator": mig_parted.write_for_operator,
    "slurm": slurm.write,
    "kubernetes": partial(kubernetes.write, "kubernetes"),
    "dra": partial(kubernetes.write, "dra"),
}


def export(deployment: Deployment, target: str, options: ExportOptions | None = None) -> Export:
    """Write a deployment as the files of a tool: the same texts for the same deployment.

    InvalidOption if ``TARGETS`` has no such target. InvalidProblem if a GPU cannot be as the
    deployment has it, a name cannot stand in a script, or the numbers of GPUs that the target needs
    are not known.

    Examples
    --------
    >>> from cms.fleet import get_gpu
    >>> from cms.fleet.deployment import FleetGpu, FleetNode, Instance
    >>> card = FleetGpu("node-a", 0, get_gpu("a100-80gb"), instances=(Instance("3g.40gb", 4),))
    >>> written = export(Deployment((FleetNode("node-a", (card,)),)), "mig-parted")
    >>> print(*written.files, sep=", ")
    README.md, mig-parted.yaml, nodes.csv
    >>> print(written.losses[0])
    Starts: the driver chooses them; 1 GPU can be cut in several ways with these counts: node-a/0.
    """
    if target not in TARGETS:
        raise InvalidOption(
            f"there is no target {target!r}{nearest(target, TARGETS)}; "
            f"the targets: {', '.join(TARGETS)}"
        )
    if why := find_impossible(deployment):
        raise InvalidProblem(f"it cannot be written for any tool: {why}")
    for node in deployment.nodes:
        require_word(node.name, "node")
    options = options or ExportOptions()
    if target in ("mig-parted", "gpu-operator", "slurm"):  # which are told GPUs by number
        refuse_unnumbered(deployment)
    now = None if options.now is None else name_by_driver(options.now)
    if now is not None:
        deployment = with_fixed(deployment.with_uuids_of(now), now)
    return TARGETS[target](name_by_driver(deployment), replace(options, now=now))
