"""What plan documents say of services that share instances in time, and its reader."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ...errors import CmsError
from ...files.documents import number_to_json
from ...files.node import Node
from ...files.numerals import is_whole
from ...problem.parts import Block
from ...time_sharing.frames import FrameRule
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from .gpus_used import SPLITS
from .headroom import Headroom
from .neighbours import classes_in
from .operating_point import OperatingPoint
from .part_files import POINT_KEYS, point_from_json, point_to_json
from .time_sharing import SharedServing, TimeSharing, amount_of

__all__ = [
    "points_from_json",
    "refuse_other_points",
    "refuse_other_rates",
    "shared_points_to_json",
    "sharing_from_json",
    "sharing_to_json",
]


def sharing_to_json(sharing: TimeSharing) -> dict[str, Any]:
    """Write the terms on which services share instances in time.

    Examples
    --------
    >>> sharing_to_json(TimeSharing(max_services=3))["rule"]
    'round_robin'
    """
    headroom = sharing.headroom
    return {
        "kind": "time",
        "rule": sharing.rule.value,
        "max_services": sharing.max_services,
        "splits": sharing.splits,
        "headroom": None if headroom is None else headroom.to_json(),
    }


def sharing_from_json(node: Node) -> TimeSharing:
    """Read the terms.

    Raises
    ------
    FileError

    Examples
    --------
    >>> sharing_from_json(Node(sharing_to_json(TimeSharing("collect_then_run")))).rule.value
    'collect_then_run'
    """
    fields = node.object(("kind", "rule", "max_services", "splits", "headroom"), ("interference",))
    fields["kind"].one_of(["time"])
    return TimeSharing(
        fields["rule"].one_of([rule.value for rule in FrameRule]),
        fields["max_services"].or_null(lambda it: it.integer(1)),
        fields["splits"].one_of(SPLITS),
        None if fields["headroom"].value is None else _headroom(fields["headroom"]),
    )


def _headroom(node: Node) -> Headroom:
    fields = node.object(("name", "overheads_ms"))
    overheads, table = fields["overheads_ms"], None
    if overheads.value is not None:
        table = {}
        for written, entry in overheads.entries():
            if not (is_whole(written) and written == str(int(written))):
                raise entry.error(
                    f"{overheads.label} has the key {written!r}", expected="a batch", at_key=True
                )
            table[int(written)] = entry.number()
    try:
        return Headroom(fields["name"].text(), table)
    except CmsError as fault:
        raise node.refused(fault) from None


def shared_points_to_json(serving: SharedServing) -> list[dict[str, Any]]:
    """Write every point that a mix may have, with the length of its slot."""
    return [
        {
            "service": service.name,
            "block": block,
            "gpu": serving.instance_of(block)[0],
            **point_to_json(point),
            "length_ms": number_to_json(1000 * _length(serving, service.name, block, point)),
            "supply_rps": None,  # what it counts for depends on the mix
        }
        for service in serving.services
        for block in serving.problem.blocks
        for point in serving.points.get((service.name, block), ())
    ]


def _length(serving: SharedServing, service: str, block: Block, point: OperatingPoint) -> Fraction:
    posed = serving.problem.job(service).point(block, amount_of(point))
    assert posed is not None  # the problem was made of the points
    return posed.length


def points_from_json(
    node: Node, problem: TimeSharedProblem
) -> FrozenMap[tuple[str, Block], tuple[OperatingPoint, ...]]:
    """Read the points.

    Raises
    ------
    FileError
        If two of a service on a block take the same amount, or they do not rise.
    """
    names, blocks = dict.fromkeys(problem.job_names), dict.fromkeys(problem.blocks)
    found: dict[tuple[str, Block], list[OperatingPoint]] = {}
    for entry in node.array():
        fields = entry.object((*POINT_KEYS, "service", "block", "gpu", "length_ms", "supply_rps"))
        pair = fields["service"].one_of(names), fields["block"].one_of(blocks)
        point, own = point_from_json(entry, fields), found.setdefault(pair, [])
        if own and amount_of(point) <= amount_of(own[-1]):
            raise entry.error(
                f"{entry.label} takes {amount_of(point)} requests at a time, after one of "
                f"{amount_of(own[-1])} of {pair[0]!r} on {pair[1]}",
                expected="one point an amount, by rising amounts",
            )
        own.append(point)
        fields["supply_rps"].agree(None, "since what a batch counts for depends on the mix")
    return FrozenMap({pair: tuple(own) for pair, own in found.items()})


def refuse_other_rates(fields: Mapping[str, Node], serving: SharedServing) -> None:
    """Refuse services, rules and caps that could not have made the problem.

    Raises
    ------
    FileError
    """
    problem, terms = serving.problem, fields["sharing"]
    terms.at("rule").agree(problem.rule.value, "as in the problem")
    terms.at("max_services").agree(problem.max_jobs, "as max_jobs in the problem")
    for entry, service, job in zip(
        fields["services"].array(), serving.services, problem.jobs, strict=True
    ):
        entry.at("planned_rps").agree(job.demand, "as in the problem")
        entry.at("planned_rps").agree(serving.planned_rps(service), _why_so_much(serving))
        entry.at("latency_limit_ms").agree(1000 * job.limit, "as in the problem")


def _why_so_much(serving: SharedServing) -> str:
    headroom = serving.sharing.headroom
    return "by the margin" + ("" if headroom is None else f" and the head-room {headroom.name!r}")


def refuse_other_points(node: Node, serving: SharedServing) -> None:
    """Refuse points that could not have made the problem.

    Raises
    ------
    FileError
        If a length is not the point's or not the problem's, or one of the two has other points.
    """
    left = {
        (job.name, block, point.amount): point.length
        for job in serving.problem.jobs
        for block, points in job.points.items()
        for point in points
    }
    for entry in node.array():
        name, block = entry.at("service").text(), entry.at("block").text()
        setting = entry.at("processes").integer(), entry.at("batch").integer()
        amount = Fraction(setting[0] * setting[1])
        point, length = serving.point(name, block, amount), entry.at("length_ms")
        entry.at("gpu").agree(serving.instance_of(block)[0], f"where {block} is")
        if (name, block, amount) not in left:
            raise entry.error(
                f"{entry.label}: the problem has no point of {name!r} on {block} that takes "
                f"{amount} requests",
                expected="the points of the problem",
            )
        length.agree(1000 * left.pop((name, block, amount)), "as in the problem, in milliseconds")
        if classes_in(block) is not None:
            continue  # a problem under interference is made anew of those on plain blocks
        try:
            planned = serving.sharing.length_ms(point)
        except CmsError as fault:
            raise entry.refused(fault) from None
        length.agree(planned, "by throughput, latency and head-room")
    for name, block, amount in left:
        raise node.error(
            f"{node.label}: there is no point of service {name!r} on {block} that takes {amount} "
            "requests",
            expected="one, since the problem has it",
        )
