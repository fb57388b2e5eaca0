"""Queueing rules are read from JSON by their kind; a user's own is given beside the file."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import CmsError
from ...files.node import Node
from .capacity import CapacityRule
from .latency_rule import LatencyRule
from .load_curve import BATCHES, LoadCurve, PointKey
from .promise import QUEUES
from .queueing import RULES, QueueingRule

__all__ = ["curve_from_json", "rule_from_json"]


def rule_from_json(
    node: Node, own: QueueingRule | None, curves: Mapping[PointKey, LoadCurve]
) -> QueueingRule:
    """Read a rule.

    Parameters
    ----------
    node : Node
    own : QueueingRule or None
        The rule of a plan that was made with a rule of one's own.
    curves : mapping
        The load curves of the plan's points.

    Raises
    ------
    FileError
        If it is no rule of ours, or not what its name means.

    Examples
    --------
    >>> print(rule_from_json(Node(RULES["half"].to_json()), None, {}))
    batch latency <= 0.5 x the limit
    """
    if not isinstance(node.value, dict) or "name" not in node.value:
        raise node.wrong('an object with "name"')
    name = node.at("name").text()
    if own is not None:
        if own.name != name:
            raise node.at("name").wrong(f'"{own.name}", the rule that was given')
        return own.with_curves(curves) if isinstance(own, CapacityRule) and curves else own
    rule: LatencyRule | CapacityRule
    if "latency_share" in node.value:
        rule = _latency_rule(node, name)
    elif "late_share" in node.value:
        rule = _capacity_rule(node, name)
    else:
        raise node.error(
            f"the rule {name!r} is not known here", fix="give read_plan the rule it was made with"
        )
    known = RULES.get(name)
    if known is not None and not _same(known, rule):
        raise node.error(
            f"{node.label} is {rule}", expected=f"{known}, which is what {name!r} means"
        )
    if isinstance(rule, CapacityRule) and curves:
        try:
            return rule.with_curves(curves)
        except CmsError as fault:
            raise node.error(f"{node.label}: {fault}") from None
    return rule if known is None else known


def curve_from_json(node: Node) -> LoadCurve:
    """Read a load curve.

    Raises
    ------
    FileError
        If it is none.
    """
    fields = node.object(("late_share", "evidence", "rates_rps", "latencies_ms"), (BATCHES,))
    try:
        return LoadCurve(
            [entry.number() for entry in fields["rates_rps"].array()],
            [entry.number() for entry in fields["latencies_ms"].array()],
            fields["late_share"].number(),
            fields["evidence"].text(),
            fields[BATCHES].text() if BATCHES in fields else "",
        )
    except CmsError as fault:
        raise node.refused(fault) from None


def _same(known: QueueingRule, rule: LatencyRule | CapacityRule) -> bool:
    if isinstance(known, LatencyRule) and isinstance(rule, LatencyRule):
        return (known.share, known.strict) == (rule.share, rule.strict)
    return known == rule


def _latency_rule(node: Node, name: str) -> LatencyRule:
    fields = node.object(("name", "latency_share", "strict"), ("source",))
    source = fields["source"].text() if "source" in fields else ""
    strict = fields["strict"].boolean()
    try:
        return LatencyRule(name, fields["latency_share"].number(), strict=strict, source=source)
    except CmsError as fault:
        raise fields["latency_share"].error(str(fault)) from None


def _capacity_rule(node: Node, name: str) -> CapacityRule:
    fields = node.object(("name", "late_share", "queue", "certified"))
    queue, certified = fields["queue"].one_of(QUEUES), fields["certified"].boolean()
    try:
        return CapacityRule(name, fields["late_share"].number(), queue, certified)
    except CmsError as fault:
        raise fields["late_share"].error(str(fault)) from None
