"""Deployments as JSON documents (format ``cms-deployment``): equal ones are equal files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...errors import CmsError
from ...files.documents import check_head, head, read_document, write_document
from ...files.node import Node
from ...files.source import StrPath
from ..serving.part_files import device_to_json, service_to_json
from ..serving.plan_reading import plan_from_json
from ..serving.plan_writing import plan_to_json
from ..serving.queueing import QueueingRule
from .model import Deployment
from .node_files import node_from_json, node_to_json, point_names, points_to_json, read_parts

__all__ = ["deployment_from_json", "deployment_to_json", "read_deployment", "write_deployment"]


def write_deployment(deployment: Deployment, path: StrPath) -> None:
    """Write a deployment to a JSON file.

    Parameters
    ----------
    deployment : Deployment
    path : str or path-like
        The file; ``-`` is standard output.

    Raises
    ------
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet import gpu
    >>> from cms.fleet.deployment import FleetGpu, FleetNode, Instance
    >>> card = FleetGpu("node-a", 0, gpu("a100-80gb"), instances=(Instance("3g.40gb", 4),))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "now.json"
    >>> write_deployment(Deployment((FleetNode("node-a", (card,)),)), path)
    >>> print(read_deployment(path))
    1 GPU on 1 node, 1 instance
    """
    write_document(lambda: deployment_to_json(deployment), path)


def read_deployment(path: StrPath, *, rule: QueueingRule | None = None) -> Deployment:
    """Read a deployment from a JSON file.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.
    rule : QueueingRule, optional
        The rule of a deployment that was made with a rule of one's own.

    Raises
    ------
    FileError
        With line and column, if the file is no deployment or its parts contradict each other.
        Whether its instances can be where it has them is what `check_deployment` says.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "now.json"
    >>> write_deployment(Deployment(()), path)
    >>> read_deployment(path) == Deployment(())
    True
    """
    return deployment_from_json(read_document(path, "cms-deployment"), rule=rule)


def deployment_to_json(deployment: Deployment) -> dict[str, Any]:
    """Turn a deployment into the document that :func:`read_deployment` reads.

    Raises
    ------
    CmsError
        If its plan cannot be written.
    """
    names = point_names(each.work for _, each in deployment.instances())
    rule, plan = deployment.rule, deployment.plan
    return {
        **head("cms-deployment"),
        "rule": None if rule is None else rule.to_json(),
        "services": [service_to_json(service) for service in deployment.services],
        "points": points_to_json(names, deployment.services, rule),
        "devices": [device_to_json(gpu) for _, gpu in sorted(deployment.devices.items())],
        "nodes": [node_to_json(node, names) for node in deployment.nodes],
        "plan": None if plan is None else plan_to_json(plan),
    }


def deployment_from_json(
    document: Node | Mapping[str, Any], *, rule: QueueingRule | None = None
) -> Deployment:
    """Turn a parsed document into a deployment.

    Parameters
    ----------
    document : Node or Mapping
        With a node, errors have the line and column of the file it was read from.
    rule : QueueingRule, optional
        The rule of a deployment that was made with a rule of one's own.

    Raises
    ------
    FileError
        If a part is missing or wrong, or the parts contradict each other.
    """
    node = document if isinstance(document, Node) else Node(document)
    check_head(node, "cms-deployment")
    fields = node.object(
        ("format", "schema", "rule", "services", "points", "devices", "nodes", "plan")
    )
    parts = read_parts(fields, rule)
    nodes = tuple(node_from_json(entry, parts) for entry in fields["nodes"].array())
    plan = fields["plan"]
    read = None if plan.value is None else plan_from_json(plan, rule=rule)
    try:
        return Deployment(nodes, tuple(parts.services.values()), parts.rule, read)
    except CmsError as fault:
        raise node.refused(fault) from None
