"""``cms place``: a plan on numbered GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import CmsError, FileError, InvalidOption

from . import options
from .catalogue import find_gpu
from .fleets import MaxAge, read_fleet, refuse_stale_now
from .observe import Gpus
from .searching import heard
from .session import Exit, Session, refuse_two_readers, report_error, session_of

if TYPE_CHECKING:
    from cms.fleet.deployment import Deployment, Placed, Unplaceable, Wanted, Wishes
    from cms.fleet.report.page import Page

_File = Annotated[
    Path, typer.Argument(metavar="plan.json", help="A plan file; '-' is standard input.")
]
_Nodes = Annotated[
    Path | None,
    typer.Option(
        "--nodes", metavar="nodes.csv",
        help="Columns: node, gpu, count and, if wanted, driver, zone. With --now: GPUs beside it.",
    ),
]  # fmt: skip
_Now = Annotated[
    Path | None,
    typer.Option(
        "--now", metavar="now.json",
        help="What runs today (cms observe): most of it goes on, what is not ours stays.",
    ),
]  # fmt: skip
_MinReplicas = Annotated[
    list[str] | None,
    typer.Option(
        "--min-replicas", metavar="SERVICE=N", help="At least N instances; may be repeated."
    ),
]
_Spread = Annotated[
    list[str] | None,
    typer.Option(
        "--spread", metavar="SERVICE=node|zone",
        help="No node (zone) has more than its equal share of the instances; may be repeated.",
    ),
]  # fmt: skip
_AntiAffinity = Annotated[
    list[str] | None,
    typer.Option(
        "--anti-affinity", metavar="A,B", help="Two services never on one GPU; may be repeated."
    ),
]
_MaxPerGpu = Annotated[
    list[str] | None,
    typer.Option(
        "--max-per-gpu", metavar="SERVICE=N",
        help="At most N instances on one GPU; may be repeated.",
    ),
]  # fmt: skip
_Survive = Annotated[
    str | None,
    typer.Option(
        "--survive", metavar="node:SHARE",
        help="With any one node gone, each service still has this share of its rate: node:80%.",
    ),
]  # fmt: skip
_AsGrouped = Annotated[
    bool,
    typer.Option("--as-grouped", help="GPUs hold together what the plan has on one GPU."),
]
_Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE.svg", help="Also draw the fleet: an SVG picture."),
]
_TimeLimit = Annotated[
    str,
    typer.Option("--time-limit", metavar="SECONDS", help="When to stop; 'none' for no limit."),
]


def place(
    context: typer.Context,
    plan: _File,
    nodes: _Nodes = None,
    now: _Now = None,
    gpu: Gpus = None,
    min_replicas: _MinReplicas = None,
    spread: _Spread = None,
    anti_affinity: _AntiAffinity = None,
    max_per_gpu: _MaxPerGpu = None,
    survive: _Survive = None,
    as_grouped: _AsGrouped = False,
    max_age: MaxAge = "15min",
    time_limit: _TimeLimit = "none",
    picture: _Picture = None,
    output: options.Output = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Place a plan on numbered GPUs and keep most of what runs.

    Exit code 3: it cannot be placed; the answer says why, and what would do. 4: no place was found
    in time.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    session.refuse_unwritable((output, "--output"), (picture, "--picture"))
    refuse_two_readers((plan, "plan.json"), (nodes, "--nodes"), (now, "--now"))
    if nodes is None and now is None:
        raise options.usage_error("give --nodes nodes.csv, --now now.json, or both")
    seconds = options.time_limit(time_limit)
    with session.reading():
        from cms.fleet.deployment import wanted_of
        from cms.fleet.serving import read_plan

        made = read_plan(plan)
        if made.solution.cost is None:
            session.warn("the plan has no schedule, so nothing can be placed")
            return session.code_of(made.solution)
        wanted = wanted_of(made)
        fleet = _fleet(session, nodes, now, gpu, max_age)
        wishes = _wishes(
            wanted, min_replicas, spread, anti_affinity, max_per_gpu, survive
        )  # fmt: skip
        if as_grouped and wishes:
            raise options.usage_error(
                "wishes decide which instances share a GPU, and --as-grouped leaves that to the "
                "plan; give one of them"
            )
    how = {"wishes": wishes, "as_grouped": as_grouped, "time_limit": seconds}
    try:
        found = heard(session, lambda: _placed(session, wanted, fleet, how), doing="placing")
    except CmsError as fault:
        if type(fault) is not CmsError or session.interrupts.pressed:
            raise
        # the one thing that is nobody's fault: time was up
        report_error(fault, Exit.NO_SCHEDULE, as_json=session.json)
        return Exit.NO_SCHEDULE
    from cms.fleet.deployment import Unplaceable

    if isinstance(found, Unplaceable):
        more = heard(
            session,
            lambda: _what_would_do(session, wanted, fleet, found, how),
            doing="no place; looking for what would do",
        )
        return refuse(session, found, more)

    def view() -> Page:
        from cms.fleet.report.deployments import deployment_page

        return deployment_page(found.deployment, plan.name, end=str(found))

    def document() -> dict[str, Any]:
        from cms.fleet.deployment import deployment_to_json

        return deployment_to_json(found.deployment)

    session.show(document, view, output, picture)
    return Exit.INTERRUPTED if session.interrupts.pressed else Exit.ANSWER


def _fleet(
    session: Session, nodes: Path | None, now: Path | None, gpu: list[str] | None, max_age: str
) -> Deployment:
    """The GPUs there are, with what is on them."""
    from dataclasses import replace

    from cms.fleet.deployment import read_nodes

    today = None if now is None else read_fleet(now)
    if today is not None:
        refuse_stale_now(session, today, max_age)
    if nodes is None:
        assert today is not None
        return today
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
                    nodes, f"node {node.name!r} has other GPUs here than in {now}",
                    expected="the same", fix="or leave it out here",
                )  # fmt: skip
    more = tuple(node for node in table.nodes if node.name not in own)
    return replace(today, nodes=(*today.nodes, *more))


def _wishes(
    wanted: Wanted,
    min_replicas: list[str] | None,
    spread: list[str] | None,
    anti_affinity: list[str] | None,
    max_per_gpu: list[str] | None,
    survive: str | None,
) -> Wishes:
    """The columns of the plan's services, and the options, which go before them."""
    from cms.fleet.deployment import Wishes, wishes_of

    pairs = [tuple(name.strip() for name in text.split(",")) for text in anti_affinity or ()]
    for names, text in zip(pairs, anti_affinity or (), strict=True):
        if len(names) != 2 or not all(names):
            raise options.usage_error(
                f"{text!r}: expected two services: chat,code", "--anti-affinity"
            )
    try:
        own = Wishes(
            _numbers(min_replicas, "--min-replicas"),
            options.pairs(spread, "--spread", "chat=node"),
            [(names[0], names[1]) for names in pairs],
            _numbers(max_per_gpu, "--max-per-gpu"),
            survive,
        )
        own.require(wanted.services)
    except InvalidOption as fault:
        raise options.usage_error(str(fault)) from None
    return wishes_of(wanted.services) | own


def _numbers(texts: list[str] | None, option: str) -> dict[str, int]:
    found = {}
    for name, value in options.pairs(texts, option, "chat=2").items():
        if not (value.isascii() and value.isdigit() and len(value) <= 9):
            raise options.usage_error(f"{name}={value}: expected a whole number", option)
        found[name] = int(value)
    return found


def _placed(
    session: Session, wanted: Wanted, fleet: Deployment, how: Mapping[str, Any]
) -> Placed | Unplaceable:
    from cms.fleet.deployment import place as placing

    return placing(wanted, fleet, cancel=session.interrupts.cancel, **how)


def _what_would_do(
    session: Session,
    wanted: Wanted,
    fleet: Deployment,
    found: Unplaceable,
    how: Mapping[str, Any],
) -> str:
    """Find how many more empty GPUs would do, of the one type that is wanted, without wishes."""
    if how["wishes"] or len(wanted.gpus) != 1:
        return ""
    ((key, most),) = wanted.gpus.items()
    low, high = 0, most  # so many more GPUs do not, and do, suffice
    while high - low > 1 and not session.interrupts.pressed:
        middle = (low + high) // 2
        tried = _placed(session, wanted, _grown(fleet, wanted, key, middle), how)
        low, high = (middle, high) if isinstance(tried, type(found)) else (low, middle)
    return f"{high} more {key} would do: list {'it' if high == 1 else 'them'} in --nodes"


def _grown(fleet: Deployment, wanted: Wanted, key: str, more: int) -> Deployment:
    from dataclasses import replace

    from cms.fleet.deployment import FleetGpu, FleetNode

    name = max((node.name for node in fleet.nodes), default="") + "+"  # sorts behind all others
    cards = tuple(FleetGpu(name, index, wanted.devices[key]) for index in range(more))
    return replace(fleet, nodes=(*fleet.nodes, FleetNode(name, cards)))


def refuse(session: Session, found: Unplaceable, more: str) -> int:
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
