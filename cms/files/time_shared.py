"""Problems whose blocks jobs share in time, and their mixes, as part of a JSON document."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from typing import Any

from ..mixes.frames import FrameRule
from ..mixes.model import TimeSharedJob
from ..mixes.problem import TimeSharedProblem
from ..schedule.contents import Content, Mix
from ..values.numbers import shown
from .layout import number_to_json
from .node import Node


def sharing_to_json(problem: TimeSharedProblem) -> dict[str, Any]:
    """Turn what holds of all mixes into the value that :func:`sharing_from_json` reads."""
    return {"rule": problem.rule.value, "max_jobs": problem.max_jobs}


def sharing_from_json(node: Node) -> dict[str, Any]:
    """Read the rule, and how many jobs may share a block.

    Raises
    ------
    FileError

    Examples
    --------
    >>> sharing_from_json(Node({"rule": "collect_then_run"}))["max_jobs"] is None
    True
    """
    fields = node.object(("rule",), ("max_jobs",))
    most = fields["max_jobs"].integer_or_null(minimum=1) if "max_jobs" in fields else None
    rules = [rule.value for rule in FrameRule]
    return {"rule": FrameRule(fields["rule"].one_of(rules)), "max_jobs": most}


def jobs_to_json(problem: TimeSharedProblem) -> list[dict[str, Any]]:
    """Turn the jobs into the value that :func:`jobs_from_json` reads."""
    return [
        {
            "name": job.name,
            "demand": number_to_json(job.demand),
            "limit": number_to_json(job.limit),
            "points": {
                block: [[number_to_json(p.amount), number_to_json(p.length)] for p in points]
                for block, points in job.points.items()
            },
        }
        for job in problem.jobs
    ]


def jobs_from_json(array: Node, blocks: Collection[str]) -> list[TimeSharedJob]:
    """Read jobs with latency limits and points on known blocks.

    Raises
    ------
    FileError
        At the number at fault.

    Examples
    --------
    >>> job = {"name": "x", "demand": 1, "limit": "0.1", "points": {"a": [[1, "0.01"]]}}
    >>> jobs_from_json(Node([job]), ["a"])[0].points["a"]
    (Point(amount=Fraction(1, 1), length=Fraction(1, 100)),)
    """
    jobs = []
    seen: set[str] = set()
    for entry in array.array():
        fields = entry.object(("name", "demand", "limit", "points"))
        name = fields["name"].new_name("job", seen)
        entry.about = f"job {name!r}"
        points = {}
        for block, listed in fields["points"].entries():
            listed.refuse_unknown(block, "block", blocks)
            points[block] = _points(listed)
        numbers = fields["demand"].number(), _positive(fields["limit"])
        jobs.append(entry.build(TimeSharedJob, name, *numbers, points))
    return jobs


def content_to_json(content: Content) -> str | dict[str, Any]:
    """Turn what a block is given to into the value that :func:`content_from_json` reads.

    Examples
    --------
    >>> content_to_json("x"), content_to_json(Mix({"x": 8, "y": "1/2"}))
    ('x', {'x': 8, 'y': '0.5'})
    """
    if isinstance(content, str):
        return content
    return {name: number_to_json(amount) for name, amount in content.items()}


def content_from_json(node: Node) -> Content:
    """Read what a block is given to: the name of a job, or the amounts of a mix.

    Raises
    ------
    FileError
        If it is neither.
    """
    if not isinstance(node.value, dict | str):
        raise node.wrong("the name of a job, or an object with the amount of each job of a mix")
    if isinstance(node.value, str):
        return node.name("job")
    amounts = {name: _positive(amount) for name, amount in node.names("job")}
    if not amounts:
        raise node.error(f"{node.label} has no job", expected="at least one", fix="leave it out")
    return node.build(Mix, amounts)


def _points(array: Node) -> list[tuple[Fraction, Fraction]]:
    lengths: dict[Fraction, Fraction] = {}
    for pair in array.array():
        amount_node, length = pair.array(length=2)
        amount = _positive(amount_node)
        if amount in lengths:
            raise amount_node.error(
                f"{amount_node.label}: there are two points of the amount {shown(amount)}",
                expected="one length for every amount",
            )
        lengths[amount] = _positive(length)
    return list(lengths.items())


def _positive(node: Node) -> Fraction:
    value = node.number()
    if not value:
        raise node.wrong("a number > 0")
    return value
