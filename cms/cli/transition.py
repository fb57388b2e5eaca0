"""``cms transition``: from what runs to what is wanted, step by step and above all floors."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cms.errors import CmsError

from . import options
from .documents import open_document
from .export import ConfigMap, Merge, OperatorNamespace, SlurmNodes, SlurmTypes
from .fleets import Force, MaxAge, read_fleet, refuse_stale_now
from .searching import heard
from .session import Exit, Session, refuse_two_readers, report_error, session_of

if TYPE_CHECKING:
    from cms.fleet.deployment import Compacted, Deployment, Wanted
    from cms.fleet.deployment.export import ExportOptions
    from cms.fleet.deployment.transition import Impossible, Transition
    from cms.fleet.report.page import Page

_METHODS = ("ours", "exchange_and_compact")
_FREED = ("gpus", "nodes")


def _actuators() -> Iterable[str]:
    from cms.fleet.deployment.transition.folder import ACTUATORS

    return ACTUATORS


_Now = Annotated[
    Path, typer.Argument(metavar="now.json", help="What runs (cms observe); '-' is standard input.")
]
_Target = Annotated[
    Path | None,
    typer.Argument(metavar="TARGET", help="What is wanted: a plan, or a deployment as it is."),
]
_Compact = Annotated[
    bool,
    typer.Option("--compact", help="No TARGET: what runs is to be put on as few GPUs as possible."),
]
_MaxRestarts = Annotated[
    str | None,
    typer.Option(
        "--max-restarts", metavar="K[,K...]",
        help="At most so many instances move (--compact). Of several, each is reported, and the "
        "last one gone to.  [default: as many as it takes]",
    ),
]  # fmt: skip
_Free = Annotated[
    str,
    typer.Option(
        "--free", metavar="gpus|nodes", help="What is to come free first (--compact).",
        autocompletion=options.offering(lambda: _FREED),
    ),
]  # fmt: skip
_Floor = Annotated[
    list[str] | None,
    typer.Option(
        "--floor", metavar="[SERVICE=]SHARE",
        help="What every service, or one, keeps of the smaller of its old and new rate: 90%, "
        "chat=50%; may be repeated.  [default: 100%]",
    ),
]  # fmt: skip
_Spare = Annotated[
    str,
    typer.Option(
        "--spare", metavar="auto|N",
        help="At most so many GPUs beyond the larger of before and after; auto: as few as do.",
    ),
]  # fmt: skip
Actuator = Annotated[
    str,
    typer.Option(
        "--actuator", metavar="TOOL",
        help="What cuts the GPUs: nvidia-smi (each instance), mig-parted (whole GPUs), "
        "gpu-operator or slurm (whole GPUs, after a drain of the node).",
        autocompletion=options.offering(_actuators),
    ),
]  # fmt: skip
_AsGrouped = Annotated[
    bool, typer.Option("--as-grouped", help="GPUs hold together what the plan has on one GPU.")
]
_Method = Annotated[
    str,
    typer.Option(
        "--method", metavar="NAME", help="ours, or exchange_and_compact to compare with.",
        autocompletion=options.offering(lambda: _METHODS),
    ),
]  # fmt: skip
MaxParallel = Annotated[
    int | None,
    typer.Option(
        "--max-parallel",
        metavar="N",
        min=1,
        help="At most so many actions at once.  [default: all]",
    ),
]
DurationsFile = Annotated[
    Path | None,
    typer.Option(
        "--durations", metavar="FILE",
        help="Your own seconds: cut_s, start_s, delete_s, stop_s, rewrite_s, reset_s, "
        "prepare_s; JSON, YAML.",
    ),
]  # fmt: skip
_Folder = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="DIR",
        help="The folder to write: run.sh, and for each step a script for the --actuator; '-' "
        "prints the transition's JSON instead.",
    ),
]  # fmt: skip
_Simulate = Annotated[
    bool,
    typer.Option(
        "--simulate",
        help="Also show what happens when on which GPU, and each service's lowest capacity.",
    ),
]
_Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE.svg", help="Also draw that: an SVG picture."),
]
_Trace = Annotated[
    Path | None,
    typer.Option(
        "--trace", metavar="RATES.csv",
        help="Rates from the beginning on, compared with capacities: time, service, rate_rps.",
    ),
]  # fmt: skip
_TimeLimit = Annotated[
    str,
    typer.Option("--time-limit", metavar="SECONDS", help="When to stop; 'none' for no limit."),
]


def transition(
    context: typer.Context,
    now: _Now,
    target: _Target = None,
    compact: _Compact = False,
    max_restarts: _MaxRestarts = None,
    free: _Free = "gpus",
    floor: _Floor = None,
    spare: _Spare = "auto",
    actuator: Actuator = "nvidia-smi",
    as_grouped: _AsGrouped = False,
    method: _Method = "ours",
    max_parallel: MaxParallel = None,
    durations: DurationsFile = None,
    merge: Merge = None,
    operator_namespace: OperatorNamespace = "gpu-operator",
    config_map: ConfigMap = "cms-mig-parted-config",
    slurm_type: SlurmTypes = None,
    slurm_node: SlurmNodes = None,
    seed: options.Seed = 0,
    time_limit: _TimeLimit = "none",
    max_age: MaxAge = "15min",
    simulate: _Simulate = False,
    picture: _Picture = None,
    trace: _Trace = None,
    output: _Folder = None,
    force: Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Plan a transition that keeps every capacity floor.

    Or, with --compact, to what runs on as few GPUs as possible.

    Exit code 3: it is proved impossible as asked; 4: no way was found, and there may be one.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    refuse_two_readers(
        (now, "now.json"), (target, "TARGET"), (durations, "--durations"), (trace, "--trace"),
        (merge, "--merge"),
    )  # fmt: skip
    if trace is not None and picture is None and output is None and not simulate:
        raise options.usage_error("rates are drawn; add --simulate, --picture or -o", "--trace")
    _refuse_two_targets(target, compact, max_restarts, free, method)
    most = _numbers(max_restarts)
    share, shares, words = _floors(floor)
    if method not in _METHODS:
        raise options.usage_error(f"{method!r}: expected {' or '.join(_METHODS)}", "--method")
    how: dict[str, Any] = {"floor": share, "max_parallel": max_parallel}
    if method == "ours":
        how |= {
            "floors": shares, "spare": _spare(spare), "as_grouped": as_grouped, "seed": seed,
            "actuator": actuator,
            "time_limit": options.time_limit(time_limit), "cancel": session.interrupts.cancel,
        }  # fmt: skip
    elif actuator != "nvidia-smi":
        raise options.usage_error(
            "exchange_and_compact cuts each instance; leave out --actuator", "--method"
        )
    elif shares or as_grouped or spare != "auto":
        raise options.usage_error(
            "exchange_and_compact takes one --floor for all; leave out --spare and --as-grouped",
            "--method",
        )
    session.refuse_unwritable((picture, "--picture"))
    if output is not None:
        from cms.fleet.deployment.written_folder import refuse_folder

        refuse_folder(output, force=force)
    with session.reading():
        from cms.fleet.deployment import Deployment
        from cms.fleet.deployment.observation.numbering import renumber_gpus
        from cms.fleet.deployment.transition import read_durations
        from cms.fleet.deployment.transition.folder import FolderOptions, actuator_of, folder_of

        tool = actuator_of(actuator)
        told = _told(merge, operator_namespace, config_map, slurm_type, slurm_node)
        how["durations"] = None if durations is None else read_durations(durations)
        start = read_fleet(now)
        to = None if target is None else _wanted(target)
        if isinstance(to, Deployment):
            start, to = renumber_gpus(start, to), renumber_gpus(to, start)
        refuse_stale_now(session, start, max_age)
        tool.refuse(start, told)
        rates = None if trace is None else _rates(trace)
    table: list[Compacted] = []
    try:
        if to is None:
            limit = options.time_limit(time_limit)
            table = heard(
                session,
                lambda: _compacted(session, start, most, free, limit),
                doing="looking for what to move together",
            )
            to = table[-1].deployment
        found = heard(session, lambda: _planned(start, to, method, how), doing="planning")
    except CmsError as fault:
        if type(fault) is not CmsError or session.interrupts.pressed:
            raise
        # the one thing that is nobody's fault: time was up
        report_error(fault, Exit.NO_SCHEDULE, as_json=session.json)
        return Exit.NO_SCHEDULE
    from cms.fleet.deployment.transition import Impossible
    from cms.fleet.deployment.transition.whole_gpus import Actuator as Actuators

    if isinstance(found, Impossible):
        return _refuse(session, found)
    timed = {
        "durations": how["durations"], "max_parallel": max_parallel,
        "by_node": Actuators(actuator).drains_nodes,
    }  # fmt: skip

    def view() -> Page:
        from cms.fleet.report.transitions import transition_page, whole_gpus_words

        notes = [] if actuator == "nvidia-smi" else whole_gpus_words(found, to, actuator)
        where = "nothing is written without -o DIR" if output is None else f"written to {output}"
        return transition_page(
            found, rates=rates, floor=words, timeline=simulate, notes=notes, where=where, **timed
        )

    def draw() -> str:
        from cms.fleet.report.figure import drawing

        return drawing(view())

    drawn = None if output is None else draw  # what cannot be written is refused all the same
    folder = folder_of(
        found, FolderOptions(actuator, words, how["durations"], max_parallel, told, drawn)
    )

    def document() -> dict[str, Any]:
        from cms.fleet.deployment.transition import transition_to_json

        rows = [
            {"max_restarts": number, **done.to_json()}
            for number, done in zip(most, table, strict=False)  # none without --compact
        ]
        return transition_to_json(found) | ({"compacted": rows} if rows else {})

    session.show(document, view, None, picture)
    session.write_folder(folder.files, output, force=force)
    return Exit.INTERRUPTED if session.interrupts.pressed else Exit.ANSWER


def _floors(texts: list[str] | None) -> tuple[Fraction, dict[str, Fraction], str]:
    """The share of all services, those of single ones, and both in words."""
    alone = [text for text in texts or () if "=" not in text]
    named = options.pairs([text for text in texts or () if "=" in text], "--floor", "chat=50%")
    if len(alone) > 1:
        raise options.usage_error(f"{alone[1]!r} is a second one for all services", "--floor")
    share = options.share(alone[0], "--floor") if alone else Fraction(1)
    shares = {name: options.share(text, "--floor") for name, text in named.items()}
    from cms.values.numbers import shown

    words = [f"{shown(share * 100)} %"]
    words += [f"{name} {shown(own * 100)} %" for name, own in shares.items()]
    return share, shares, ", ".join(words)


def _spare(text: str) -> str | int:
    if text == "auto":
        return text
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise options.usage_error(f"{text!r}: expected auto or a whole number", "--spare")
    return int(text)


def _wanted(path: Path) -> Deployment | Wanted:
    kind, document = open_document(path)
    if kind != "cms-plan":
        return read_fleet(path)
    from cms.fleet.deployment import wanted_of
    from cms.fleet.serving.plan_document import plan_from_json

    plan = plan_from_json(document)
    if plan.solution.cost is None:
        raise CmsError(f"{path} has no schedule, so nothing leads to it")
    return wanted_of(plan)


def _refuse_two_targets(
    target: Path | None, compact: bool, max_restarts: str | None, free: str, method: str
) -> None:
    if compact and target is not None:
        raise options.usage_error(
            f"what runs stays what it is; leave out {target}, or --compact", "--compact"
        )
    if compact and method != "ours":
        raise options.usage_error(f"{method} leads to a plan; leave it out", "--compact")
    if not compact and target is None:
        raise options.usage_error("Missing argument 'TARGET' (or --compact)")
    if not compact and max_restarts is not None:
        raise options.usage_error("it goes with --compact alone", "--max-restarts")
    if not compact and free != "gpus":
        raise options.usage_error("it goes with --compact alone", "--free")
    if free not in _FREED:
        raise options.usage_error(f"{free!r}: expected {' or '.join(_FREED)}", "--free")


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
    """Put what runs together, and say what each number of restarts gives; the last one counts."""
    from cms.fleet.deployment import compact

    found: list[Compacted] = []
    for number in most:
        done = compact(
            start, max_restarts=number, free=free, time_limit=limit,  # type: ignore[arg-type]
            cancel=session.interrupts.cancel,
        )  # fmt: skip
        found.append(done)
        if not (session.quiet or session.json):
            said = f"at most {number}: " if len(most) > 1 else ""
            session.print(f"{said}{done}")
    return found


def _rates(path: Path) -> dict[str, list[tuple[Fraction, Fraction]]]:
    """Read rates as what they are so many seconds after the first."""
    from cms.fleet.reconciling import read_rates

    found = read_rates(path)
    return {
        service: [(at * found.step_s, rate) for at, rate in enumerate(own) if rate is not None]
        for service, own in found.rates_rps.items()
    }


def _told(
    merge: Path | None,
    operator_namespace: str,
    config_map: str,
    slurm_type: list[str] | None,
    slurm_node: list[str] | None,
) -> ExportOptions:
    """What the files of a tool are told."""
    from cms.files.source import read_source
    from cms.fleet.deployment.export import ExportOptions
    from cms.values.frozen import FrozenMap

    return ExportOptions(
        merge=None if merge is None else read_source(merge, holds="a mig-parted file"),
        operator_namespace=operator_namespace,
        config_map=config_map,
        slurm_types=FrozenMap(options.pairs(slurm_type, "--slurm-type", "a100-80gb=a100")),
        slurm_nodes=FrozenMap(options.pairs(slurm_node, "--slurm-node", "node-a=CPUs=64")),
    )


def _planned(
    start: Deployment, to: Deployment | Wanted, method: str, how: dict[str, Any]
) -> Transition | Impossible:
    from cms.fleet.deployment import Deployment
    from cms.fleet.deployment.transition import exchange_and_compact, transition

    if isinstance(to, Deployment) and (method != "ours" or how.get("as_grouped")):
        raise options.usage_error(
            "a deployment says itself what lies where; give a plan for --as-grouped and "
            "--method exchange_and_compact"
        )
    if isinstance(to, Deployment) or method == "ours":
        return transition(start, to, **how)
    return exchange_and_compact(start, to, **how)


def _refuse(session: Session, found: Impossible) -> int:
    """Say why there is no way; nothing is written."""
    document = {"found": False, "proof": found.proof.value, "reasons": list(found.reasons)}
    if session.json:
        session.print_json(lambda: document)
    elif not session.quiet:
        from cms.fleet.report.proofs import refusal_page

        what = {
            "checked": "there is no such transition, proof checked:",
            "solver": "there is no such transition, claimed by the solver:",
            "none": "no transition was found, and there may be one:",
        }[found.proof.value]
        session.print_page(refusal_page(what, found.reasons))
    return Exit.NO_SCHEDULE if found.proof == "none" else Exit.INFEASIBLE
