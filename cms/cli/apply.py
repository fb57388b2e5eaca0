"""``cms apply``: plan the transition to a target, check it and write its scripts."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from cms.errors import FileError

from . import fleets, options
from .drift import report_drift
from .export import export_options, where_written
from .fleet_file import FleetFile, with_fleet_file
from .observe import Gpus, NodeName
from .options import option
from .searching import heard
from .session import Exit, open_document, refuse_two_readers, session_of

_METHODS = ("ours", "exchange_and_compact")
#: What is said of a transition by what proves that there is none.
_IMPOSSIBLE = {
    "checked": "there is no such transition, proof checked:",
    "solver": "there is no such transition, claimed by the solver:",
    "none": "no transition was found, and there may be one:",
}

_Target = Annotated[
    Path,
    typer.Argument(
        metavar="TARGET",
        help="What is to run: a plan or a deployment; with --check a folder of 'cms export' or "
        "'cms apply', or one of its steps as well: DIR/steps/07.",
    ),
]
_Sources = Annotated[
    list[str] | None,
    typer.Argument(metavar="SOURCE", help="With --check: what the tools printed, as for 'cms "
    "observe'."),
]  # fmt: skip
_Check = Annotated[
    bool,
    typer.Option("--check", help="Report the drift of what runs from TARGET; exit with 1 if any."),
]
_Floor = Annotated[
    list[str] | None,
    option(
        "[SERVICE=]SHARE", "What every service, or one, keeps of the smaller of its old and new "
        "rate: 90%, chat=50%; may be repeated.  [default: 100%]",
    ),
]  # fmt: skip
_Spare = Annotated[
    str,
    option("auto|N", "At most N GPUs beyond the larger of before and after; auto: as few as do."),
]
Tool = Annotated[
    str,
    option(
        "NAME", "What partitions the GPUs: nvidia-smi (each instance), mig-parted (whole GPUs), "
        "gpu-operator or slurm (whole GPUs, after a drain of the node).",
        autocompletion=options.offering_from("cms.fleet.deployment.transition.folder", "TOOLS"),
    ),
]  # fmt: skip
_Method = Annotated[
    str,
    option(
        "NAME", "ours, or exchange_and_compact to compare with.",
        "--method", "-m", autocompletion=options.offering(lambda: _METHODS),
    ),
]  # fmt: skip
MaxParallel = Annotated[
    int | None, option("N", "Run at most N actions concurrently.  [default: all]", min=1)
]
_Timeline = Annotated[
    bool,
    typer.Option(
        "--timeline",
        help="Also show what happens when on which GPU, and each service's lowest capacity.",
    ),
]
_Rates = Annotated[
    Path | None,
    option(
        "rates.csv", "Rates from the beginning on, compared with capacities: time, service, "
        "rate_rps.",
    ),
]  # fmt: skip


@with_fleet_file
def apply(
    context: typer.Context,
    target: _Target,
    sources: _Sources = None,
    current: fleets.Current = None,
    check: _Check = False,
    fleet: FleetFile = None,
    tool: Tool = "nvidia-smi",
    floor: _Floor = None,
    spare: _Spare = "auto",
    max_parallel: MaxParallel = None,
    timeline: _Timeline = False,
    rates: _Rates = None,
    method: _Method = "ours",
    node: NodeName = None,
    device: Gpus = None,
    max_age: fleets.MaxAge = "15min",
    time_limit: options.TimeLimit = "none",
    seed: options.Seed = 0,
    picture: options.Picture = None,
    output: fleets.Folder = None,
    force: fleets.Force = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Plan the way from what runs to a target, above all floors.

    -o writes it as scripts, run.sh and one for each step. With --check it reports what is not
    there.

    Exit code 3: it is proved impossible as asked; 4: no way was found, and there may be one.
    """
    session = session_of(context)
    output = session.begin(output, json=json, quiet=quiet)
    if check:
        heeded = "target sources current check node device max_age output"
        options.refuse_others(context, heeded, "it is for finding the way; leave out --check")
        read = [*(sources or ()), *([] if current is None else [str(current)])]
        return report_drift(session, target, read, node, device, max_age, output)
    if sources or current is None:
        raise options.usage_error(
            "give what runs: --current now.json, which 'cms observe SOURCE... -o now.json' writes"
        )
    for name, value in (("--node", node), ("--gpu", device)):
        if value:
            raise options.usage_error("it goes with --check", name)
    refuse_two_readers((current, "--current"), (target, "TARGET"), (rates, "--rates"))
    if timeline and session.json:
        raise options.usage_error("a report shows it, and JSON is printed", "--timeline")
    if rates is not None and picture is None and output is None and not timeline:
        raise options.usage_error("rates are drawn; add --timeline, --picture or -o", "--rates")
    alone = [text for text in floor or () if "=" not in text]
    named = options.pairs([text for text in floor or () if "=" in text], "--floor", "chat=50%")
    if len(alone) > 1:
        raise options.usage_error(f"{alone[1]!r} is a second one for all services", "--floor")
    share = options.share(alone[0], "--floor") if alone else Fraction(1)
    shares = {name: options.share(text, "--floor") for name, text in named.items()}
    if method not in _METHODS:
        raise options.usage_error(f"{method!r}: expected {' or '.join(_METHODS)}", "--method")
    durations = session.fleet.transition.durations
    timed: dict[str, Any] = {"max_parallel": max_parallel, "durations": durations}
    how = {"floor": share, **timed}
    if method == "ours":
        how |= {
            "floors": shares, "spare": options.spare(spare, "--spare"), "seed": seed,
            "tool": tool, "time_limit": options.time_limit(time_limit),
            "cancel": session.interrupts.cancel,
        }  # fmt: skip
    elif tool != "nvidia-smi" or shares or spare != "auto":
        raise options.usage_error(
            "exchange_and_compact cuts each instance and takes one --floor for all; leave out "
            "--tool, --spare and floors of single services, of fleet.toml as well",
            "--method",
        )
    session.refuse_unwritable((picture, "--picture"))
    if output is not None:
        from cms.fleet.deployment.written_folder import refuse_folder

        refuse_folder(output, force=force)
    with session.reading():
        from cms.fleet.deployment import Deployment, DesiredState, desired_state, transition
        from cms.fleet.deployment.observation.numbering import renumber_gpus
        from cms.fleet.deployment.transition.folder import FolderOptions, folder_of, tool_writer
        from cms.fleet.replanner import read_rates
        from cms.fleet.report.page import Page
        from cms.fleet.report.transitions import transition_page, whole_gpus_words
        from cms.fleet.serving.plan_document import plan_from_json
        from cms.values.numbers import shown

        own, told = tool_writer(tool), export_options(session)
        start = fleets.read_fleet(current)
        kind, document = open_document(target)
        to: Deployment | DesiredState
        if kind != "cms-plan":
            to = fleets.deployment_of(document)
            start, to = renumber_gpus(start, to), renumber_gpus(to, start)
            if method != "ours":
                raise options.usage_error(
                    "it decides itself what lies where, and so does a deployment; give a plan",
                    "--method",
                )
        else:
            plan = plan_from_json(document)
            if plan.solution.cost is None:
                raise FileError(target, "the plan has no schedule, so nothing leads to it")
            to = desired_state(plan)
            if method == "ours":
                how["as_grouped"] = session.fleet.placement.as_grouped
        if "floor" not in options.given_options(context):  # of fleet.toml, which outlives services
            for name in shares.keys() - {each.name for each in (*start.services, *to.services)}:
                session.warn(f"[transition] floors: no service {name!r} is there")
                del shares[name]
        own_words = (f"{name} {shown(each * 100)} %" for name, each in shares.items())
        words = ", ".join([f"{shown(share * 100)} %", *own_words])
        fleets.refuse_stale(session, start, max_age)
        own.refuse(start, told)
        known = None
        if rates is not None:
            told_rates = read_rates(rates)
            known = {
                service: [
                    (at * told_rates.step_s, rate)
                    for at, rate in enumerate(every)
                    if rate is not None
                ]
                for service, every in told_rates.rates_rps.items()
            }
    find: Callable[..., transition.Transition | transition.Impossible] = (
        transition.transition if method == "ours" else transition.exchange_and_compact
    )
    found = heard(session, lambda: find(start, to, **how), doing="planning")
    if isinstance(found, transition.Impossible):
        return fleets.say_impossible(
            session, found, {"found": False}, _IMPOSSIBLE[found.proof.value]
        )

    def view() -> Page:
        return transition_page(
            found,
            rates=known,
            floor=words,
            timeline=timeline,
            notes=[] if tool == "nvidia-smi" else whole_gpus_words(found, to, tool),
            where=where_written(output),
            by_node=transition.PartitioningTool(tool).drains_nodes,
            **timed,
        )

    def draw() -> str:
        from cms.fleet.report.figure import drawing

        return drawing(view())

    drawn = None if output is None else draw  # what cannot be written is refused all the same
    folder = folder_of(found, FolderOptions(tool, words, durations, max_parallel, told, drawn))
    session.show(lambda: transition.transition_to_json(found), view, None, picture)
    session.write_folder(folder.files, output, force=force)
    return Exit.INTERRUPTED if session.interrupts.pressed else Exit.ANSWER
