"""What plan documents say of interference, and its reader: the problems follow from the pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...errors import CmsError
from ...files.documents import number_to_json
from ...files.node import Node
from ...files.problems import problem_from_json, problem_to_json
from ...files.solutions import solution_from_json, solution_to_json
from ...referee.kinds import check
from ...solving.solution import Solution
from ...time_sharing.model import TimeSharedJob
from ...time_sharing.problem import TimeSharedProblem
from ...values.frozen import FrozenMap
from .gpus_used import block_prefixes, shapes
from .interference import INTERFERENCE_COLUMNS, Interference, Pair
from .neighbours import NeighbourServing, beside, classes_in
from .time_sharing import SharedServing

__all__ = ["interference_to_json", "neighbours_from_json", "outer_from_json"]

_KEYS = ("classes", "kinds", "pairs", "outer")


def interference_to_json(serving: NeighbourServing, outer: Solution | None) -> dict[str, Any]:
    """Write the pairs, the classes made of them, and the problem that bounds, with its solution."""
    return {
        "classes": serving.classes,
        "kinds": _kinds_to_json(serving),
        "pairs": [
            dict(zip(INTERFERENCE_COLUMNS, (*pair, number_to_json(factor)), strict=True))
            for pair, factor in serving.interference.pairs.items()
        ],
        "outer": {
            "problem": problem_to_json(serving.outer),
            "solution": None if outer is None else solution_to_json(outer),
        },
    }


def _kinds_to_json(serving: NeighbourServing) -> list[dict[str, Any]]:
    return [
        {"gpu": gpu, "model": model, "batch": batch, "class": rank}
        for (gpu, model, batch), rank in serving.ranks.items()
    ]


def neighbours_from_json(fields: Mapping[str, Node], shared: SharedServing) -> NeighbourServing:
    """Make the two images anew, and refuse a document that has others.

    Parameters
    ----------
    fields : Mapping of str to Node
        The values of the plan's document.
    shared : SharedServing
        What it says but for interference; its problem is the inner image.

    Raises
    ------
    FileError
        If a pair is wrong or missing, or the problems or classes are not what the pairs make.
    """
    node = fields["sharing"].at("interference")
    own = node.object(_KEYS)
    outer = own["outer"].object(("problem", "solution"))
    problem = problem_from_json(outer["problem"])
    pairs, classes = _pairs(own["pairs"]), own["classes"].integer(minimum=1)
    try:
        serving = beside(_solo(shared), pairs, classes)
    except CmsError as fault:
        raise own["pairs"].refused(fault) from None
    for at, found, wanted in (
        (fields["problem"], shared.problem, serving.problem),
        (outer["problem"], problem, serving.outer),
    ):
        if found != wanted:
            why = "by the plan's points and pairs of batches"
            at.agree(problem_to_json(wanted), why)
            raise at.error(f"{at.label} is another problem", expected=f"the one that follows {why}")
    own["kinds"].agree(_kinds_to_json(serving), "by how much they slow others")
    if serving.interference != pairs:
        raise own["pairs"].error(
            f"{own['pairs'].label} has other pairs than those of batches of this plan, by its "
            f"GPUs' keys and >= 1 ({len(pairs)}, and of those {len(serving.interference)})",
            expected="those alone, as they count",
        )
    if {pair: points for pair, points in serving.points.items() if points} != dict(shared.points):
        raise fields["operating_points"].error(
            f"{fields['operating_points'].label} has other points on blocks of two classes than on "
            "their shares",
            expected="the same, as far as their classes may be there",
        )
    return serving


def outer_from_json(fields: Mapping[str, Node], serving: NeighbourServing) -> Solution | None:
    """Read the solution of the outer problem; its schedule is checked.

    Raises
    ------
    FileError
    """
    node = fields["sharing"].at("interference").at("outer").at("solution")
    if node.value is None:
        return None
    found = solution_from_json(node)
    for violation in check(serving.outer, found.schedule) if found.cost is not None else ():
        raise node.error(f"{node.label} is not valid: {violation}")
    return found


def _pairs(node: Node) -> Interference:
    found = {}
    for entry in node.array():
        told = entry.object(INTERFERENCE_COLUMNS)
        pair = Pair(
            told["model"].text(),
            told["device"].text(),
            told["profile"].text(),
            told["batch"].integer(minimum=1),
            told["beside_model"].text(),
            told["beside_batch"].integer(minimum=1),
        )
        if pair in found:
            raise entry.error(f"{entry.label} is the second of {pair}", expected="one a pair")
        found[pair] = told["slowdown"].number()
    try:
        return Interference(found)
    except CmsError as fault:
        raise node.refused(fault) from None


def _solo(shared: SharedServing) -> SharedServing:
    """The problem without interference: what the image says of blocks without a neighbour."""
    problem = shared.problem
    plain = [block for block in problem.blocks if classes_in(block) is None]
    used = dict.fromkeys(map(shared.instance_of, plain))
    prefix = block_prefixes(shared.gpus)
    posed = TimeSharedProblem(
        configurations=[
            shape
            for one in shared.gpus
            for shape in shapes(one, used, prefix[one.key], shared.splits)
        ],
        jobs=[
            TimeSharedJob(
                job.name,
                job.demand,
                job.limit,
                {
                    block: [(point.amount, point.length) for point in points]
                    for block, points in job.points.items()
                    if block in plain
                },
            )
            for job in problem.jobs
        ],
        machine_types=problem.machine_types,
        rule=problem.rule,
        max_jobs=problem.max_jobs,
    )
    points = {pair: own for pair, own in shared.points.items() if pair[1] in plain}
    return replace(shared, problem=posed, points=FrozenMap(points))
