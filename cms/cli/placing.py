"""What ``cms plan`` does with GPUs that are there: places a plan, or puts together what runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import FileError, InvalidOption

from . import options
from .catalogue import find_gpu
from .fleets import read_current
from .searching import heard
from .session import Exit, Session

if TYPE_CHECKING:
    from cms.fleet.deployment import (
        Compacted,
        Deployment,
        DesiredState,
        PlacementConstraints,
        PlacementInfeasible,
        PlacementResult,
    )
    from cms.fleet.report.page import Page
    from cms.fleet.serving import Plan, Service

Nodes = Annotated[
    Path | None,
    typer.Option(
        "--nodes", metavar="nodes.csv",
        help="Place the plan on these GPUs: columns node, gpu, count and, if wanted, driver, zone. "
        "With --current: GPUs beside it.",
    ),
]  # fmt: skip
ExtraGpus = Annotated[
    int | None,
    typer.Option(
        "--extra-gpus", metavar="K", min=0,
        help="With --current: use up to K more GPUs to keep more of what runs.",
    ),
]  # fmt: skip
Compact = Annotated[
    bool,
    typer.Option("--compact", help="Plan nothing new: put what runs on the fewest GPUs."),
]
MaxRestarts = Annotated[
    str | None,
    typer.Option(
        "--max-restarts", metavar="K[,K...]",
        help="With --compact: move at most K instances. Of several numbers, the last one counts.",
    ),
]  # fmt: skip
FREED = ("gpus", "nodes")
Free = Annotated[
    str,
    typer.Option(
        "--free", metavar="gpus|nodes", help="With --compact: what is to come free first.",
        autocompletion=options.offering(lambda: FREED),
    ),
]  # fmt: skip
_Files = tuple[Path | None, Path | None]


def read_gpus_there(
    session: Session, nodes: Path | None, current: Path | None, gpu: list[str] | None, max_age: str
) -> Deployment | None:
    """Read the GPUs that there are, with what is on them."""
    today = None if current is None else read_current(session, current, max_age)
    if nodes is None:
        return today
    from cms.fleet.deployment import read_nodes  # only now: a plan alone needs no deployments

    devices = [find_gpu(key, "--gpu") for key in gpu or ()]
    table = read_nodes(nodes, {each.key: each for each in devices})
    if today is None:
        return table
    own = {node.name: node for node in today.nodes}
    for node in table.nodes:
        if node.name in own:
            types = [[(c.index, c.gpu.key) for c in one.gpus] for one in (own[node.name], node)]
            if types[0] != types[1]:
                raise FileError(
                    nodes, f"node {node.name!r} has other GPUs here than in {current}",
                    expected="the same", fix="or leave it out here",
                )  # fmt: skip
    more = tuple(node for node in table.nodes if node.name not in own)
    return replace(today, nodes=(*today.nodes, *more))


def place_plan(
    session: Session, plan: Plan, fleet: Deployment, title: str, seconds: float | None, to: _Files
) -> int:
    """Place a plan on the GPUs of a fleet and keep most of what runs there."""
    from cms.fleet.deployment import PlacementInfeasible, desired_state

    if plan.solution.cost is None:
        session.warn("the plan has no schedule, so nothing can be placed")
        return session.code_of(plan.solution)
    wanted, as_grouped = desired_state(plan), session.fleet.placement.as_grouped
    wishes = _wishes(session, wanted.services)
    if as_grouped and wishes:
        raise options.usage_error(
            "constraints decide which instances share a GPU, and as_grouped leaves that to the "
            "plan; give one of them",
            "[placement]",
        )
    how = {"wishes": wishes, "as_grouped": as_grouped, "time_limit": seconds}
    found = heard(session, lambda: _placed(session, wanted, fleet, how), doing="placing")
    if isinstance(found, PlacementInfeasible):
        more = heard(
            session,
            lambda: _what_would_do(session, wanted, fleet, found, how),
            doing="no place; looking for sufficient changes",
        )
        return _refuse(session, found, more)
    return _show(session, found.deployment, title, str(found), to)


def plan_nearest(
    session: Session,
    current: Deployment,
    plan: Plan,
    title: str,
    how: Mapping[str, Any],
    to: _Files,
) -> int:
    """Find, of all plans on as few GPUs, the one that keeps most of what runs."""
    from cms.fleet.deployment import PlacementInfeasible, desired_state, nearest

    wishes = _wishes(session, desired_state(plan).services)
    found = heard(
        session,
        lambda: nearest(current, plan, wishes=wishes, cancel=session.interrupts.cancel, **how),
        doing="looking for the nearest plan",
    )
    if isinstance(found, PlacementInfeasible):
        return _refuse(session, found, "")
    return _show(session, found.deployment, title, str(found), to) or session.code_of(plan.solution)


def compact_fleet(
    session: Session,
    start: Deployment,
    max_restarts: str | None,
    free: str,
    seconds: float | None,
    title: str,
    to: _Files,
) -> int:
    """Put what runs together on the fewest GPUs or nodes."""
    most = _numbers(max_restarts)
    if free not in FREED:
        raise options.usage_error(f"{free!r}: expected {' or '.join(FREED)}", "--free")
    table = heard(
        session,
        lambda: _compacted(session, start, most, free, seconds),
        doing="looking for what to move together",
    )
    words = [
        f"at most {number}: {each}" if len(most) > 1 else str(each)
        for number, each in zip(most, table, strict=True)
    ]
    return _show(session, table[-1].deployment, title, "; ".join(words), to)


def _show(session: Session, found: Deployment, title: str, end: str, to: _Files) -> int:
    def view() -> Page:
        from cms.fleet.report.deployments import deployment_page

        return deployment_page(found, title, end=end)

    def document() -> dict[str, Any]:
        from cms.fleet.deployment import deployment_to_json

        return deployment_to_json(found)

    session.show(document, view, *to)
    return Exit.INTERRUPTED if session.interrupts.pressed else Exit.ANSWER


def _wishes(session: Session, services: Sequence[Service]) -> PlacementConstraints:
    """The columns of services, and the fleet's constraints, which go before them."""
    from cms.fleet.deployment import PlacementConstraints, placement_constraints

    given = session.fleet.placement
    try:
        own = PlacementConstraints(
            given.min_replicas, given.spread, given.anti_affinity, given.max_per_gpu, given.survive
        )
        own.require(services)
    except InvalidOption as fault:
        raise options.usage_error(str(fault), "[placement]") from None
    return placement_constraints(services) | own


def _placed(
    session: Session, wanted: DesiredState, fleet: Deployment, how: Mapping[str, Any]
) -> PlacementResult | PlacementInfeasible:
    from cms.fleet.deployment import place

    return place(wanted, fleet, cancel=session.interrupts.cancel, **how)


def _what_would_do(
    session: Session,
    wanted: DesiredState,
    fleet: Deployment,
    found: PlacementInfeasible,
    how: Mapping[str, Any],
) -> str:
    """Find how many more empty GPUs would do, of the one type that is wanted, without wishes."""
    if how["wishes"] or len(wanted.gpus) != 1:
        return ""
    ((key, most),) = wanted.gpus.items()
    low, high = 0, most  # numbers of further GPUs that do not, and that do, suffice
    while high - low > 1 and not session.interrupts.pressed:
        middle = (low + high) // 2
        tried = _placed(session, wanted, _grown(fleet, wanted, key, middle), how)
        low, high = (middle, high) if isinstance(tried, type(found)) else (low, middle)
    return f"{high} more {key} would do: list {'it' if high == 1 else 'them'} in --nodes"


def _grown(fleet: Deployment, wanted: DesiredState, key: str, more: int) -> Deployment:
    from cms.fleet.deployment import FleetGpu, FleetNode

    name = max((node.name for node in fleet.nodes), default="") + "+"  # sorts behind all others
    cards = tuple(FleetGpu(name, index, wanted.devices[key]) for index in range(more))
    return replace(fleet, nodes=(*fleet.nodes, FleetNode(name, cards)))


def _refuse(session: Session, found: PlacementInfeasible, more: str) -> int:
    """Say why nothing could be placed; no file is written, since there is no deployment."""
    document = {
        "placed": False,
        "proof": found.proof.value,
        "reasons": list(found.reasons),
        "would_do": more or None,
    }
    if session.json:
        session.print_json(lambda: document)
    elif not session.quiet:
        from cms.fleet.report.proofs import refusal_page

        proof = "proof checked" if found.proof == "checked" else "claimed by the solver"
        reasons = [*found.reasons, *([more] if more else [])]
        session.print_page(refusal_page(f"cannot be placed, {proof}:", reasons))
    return Exit.INFEASIBLE


def _numbers(text: str | None) -> list[int | None]:
    """Read the numbers of restarts, one or more."""
    if text is None:
        return [None]
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        if not (part.isascii() and part.isdigit() and len(part) <= 9):
            raise options.usage_error(
                f"{text!r}: expected a whole number, or several: 0,2,5", "--max-restarts"
            )
    return [int(part) for part in parts]


def _compacted(
    session: Session, start: Deployment, most: list[int | None], free: str, limit: float | None
) -> list[Compacted]:
    from cms.fleet.deployment import compact

    wishes = _wishes(session, start.services)
    return [
        compact(
            start, max_restarts=number, free=free, wishes=wishes,  # type: ignore[arg-type]
            time_limit=limit,
            cancel=session.interrupts.cancel,
        )
        for number in most
    ]  # fmt: skip
