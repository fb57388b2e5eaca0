"""``cms apply``: find the transition to a target, show it, ask, carry it out and verify it."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext, suppress
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import cms.fleet
from cms.errors import FileError

from . import fleets, options
from .command import command
from .export import export_options
from .observe import report_drift
from .options import File, Text, Texts
from .searching import heard
from .session import Exit, Session, open_document, report_error

if TYPE_CHECKING:
    from cms.fleet.apply import Apply, Head, Journal
    from cms.fleet.deployment.transition import Impossible, Transition
    from cms.fleet.report.page import Page

_STATE = "state.jsonl"
METHODS = ("ours", "exchange_and_compact")
#: What is said of a transition by what proves that there is none.
_IMPOSSIBLE = {
    "checked": "there is no such transition, proof checked:",
    "solver": "there is no such transition, claimed by the solver:",
    "none": "no transition was found, and there may be one:",
}


@command()
def apply(
    session: Session,
    target: File = None,
    sources: Texts = None,
    current: File = None,
    check: bool = False,
    tool: str = "nvidia-smi",
    floor: Texts = None,
    spare: str = "auto",
    parallel: int = 1,
    max_failures: int = 0,
    no_work: bool = False,
    yes: bool = False,
    dry_run: bool = False,
    print: File = None,
    resume: bool = False,
    undo: bool = False,
    timeline: bool = False,
    rates: File = None,
    method: str = "ours",
    node: Text = None,
    device: Texts = None,
    max_age: str = "15min",
    time_limit: str = "none",
    seed: int = 0,
    picture: File = None,
    output: File = None,
) -> int:
    """Change what runs into a target, above all floors.

    The transition is found, shown, carried out after a question, and verified. -o writes it, with
    state.jsonl beside it, whose folder --resume and --undo take. Tools: nvidia-smi, mig-parted,
    gpu-operator, slurm.

    Exit code 3: it is proved impossible as asked; 4: no way was found, and there may be one.
    """
    context = session.context
    if check:
        heeded = "target sources current check node device max_age output"
        options.refuse_others(context, heeded, "it is for finding the way; leave out --check")
        read = [*(sources or ()), *filter(None, [current and str(current)])]
        if target is None or not read:
            words = "name what should run and what runs: cms apply TARGET --check SOURCE..."
            raise options.usage_error(words, "SOURCE" if target else "TARGET")
        return report_drift(session, target, read, node, device, max_age, output)
    for name, value in (("SOURCE", sources), ("--node", node), ("--gpu", device)):
        if value:
            raise options.usage_error("it goes with --check", name)
    asks = not (yes or dry_run or print is not None)
    if asks and not (sys.stdin and sys.stdin.isatty() and sys.stderr and sys.stderr.isatty()):
        raise options.usage_error("this is no terminal to ask on: give --yes, or --dry-run")
    if resume and undo:
        raise options.usage_error("go on or back: give one of --resume and --undo")
    if resume or undo:
        heeded = "target resume undo yes dry_run parallel max_failures max_age"
        why = f"{'--undo' if undo else '--resume'} carries out what {_STATE} holds; leave it out"
        options.refuse_others(context, heeded, why)
        return _go_on(session, target, undo, dry_run, asks, parallel, max_failures)
    for name, drawn in (("--timeline", timeline), ("--picture", picture)):
        if drawn and session.json and (timeline or not dry_run):
            raise options.usage_error("a report shows it, and JSON is printed", name)
    if rates is not None and picture is None and not timeline:
        raise options.usage_error("rates are drawn; add --timeline or --picture", "--rates")
    with session.reading():
        from cms.fleet.apply import Head, Journal, find_tool, hold_lock
        from cms.fleet.deployment.transition import transition_to_json

        chosen = find_tool(tool)
    if target is None:
        raise options.usage_error("name what is to run: cms apply TARGET --current now.json")
    asked = tool, floor, spare, method, max_age, time_limit, seed
    way = _find_way(session, target, current, *asked)
    if isinstance(way, int):
        return way
    found, words, notes = way
    known = None
    if rates is not None:  # by service, each from a second on
        told = cms.fleet.read_rates(rates)
        known = {
            service: [(at * told.step_s, rate) for at, rate in enumerate(every) if rate is not None]
            for service, every in told.rates_rps.items()
        }
    with session.reading("looking what is needed"):
        prepared = _prepare(session, Head(found, chosen, with_work=not no_work))
        if print is None and not dry_run:
            prepared.find_worker()

    def view() -> Page:
        from cms.fleet.report.transitions import transition_page

        return transition_page(
            found, rates=known, floor=words, timeline=timeline, notes=notes,
            durations=prepared.durations, by_node=chosen.drains_nodes,
            where=prepared.expect(parallel),
        )  # fmt: skip

    document = partial(transition_to_json, found)
    if session.json and not dry_run and print is None:  # how it ends is what is printed
        session.write(document, output)
    else:
        session.show(document, view, output, picture)
    if session.interrupts.pressed:
        return Exit.INTERRUPTED
    if print is not None:
        session.write_folder(prepared.write_scripts(), print)
        return Exit.ANSWER
    if dry_run:
        return _list_commands(session, prepared)
    if asks and not _is_wanted(session, prepared, parallel):
        return Exit.FAILED
    folder = session.folder / ".cms"
    with hold_lock(folder / "lock"):
        state = (folder / "apply" if output is None else output.parent) / _STATE
        journal = Journal.create(state, prepared.head)
        return _carry_out(session, prepared, journal, parallel, max_failures)


def _find_way(
    session: Session, target: Path, current: Path | None, tool: str, floor: list[str] | None,
    spare: str, method: str, max_age: str, time_limit: str, seed: int,
) -> tuple[Transition, str, Iterable[str]] | int:  # fmt: skip
    """Return the transition, its floor in words, and notes; or the exit code if there is none."""
    with session.reading():
        kind, document = open_document(target)
        if kind == "cms-transition":
            from cms.fleet.deployment.transition import transition_from_json

            searched = {"current", "floor", "spare", "method", "time_limit"}
            heeded = " ".join(session.context.params.keys() - searched)
            options.refuse_others(session.context, heeded, "the transition says it; leave it out")
            given = transition_from_json(document)
            fleets.refuse_stale(session, given.start, max_age)
            return given, "as listed", ()
    if current is None:
        raise options.usage_error(
            "give what runs: --current now.json, which 'cms observe SOURCE... -o now.json' writes"
        )
    share, shares = _read_floors(floor)
    how: dict[str, Any] = {"floor": share, "durations": session.fleet.transition.durations}
    if method not in METHODS:
        raise options.usage_error(f"{method!r}: expected {' or '.join(METHODS)}", "--method")
    is_ours = method == "ours"
    if is_ours:
        how |= {
            "floors": shares, "spare": options.spare(spare, "--spare"), "seed": seed, "tool": tool,
            "time_limit": options.time_limit(time_limit), "cancel": session.interrupts.cancel,
        }  # fmt: skip
    elif tool != "nvidia-smi" or shares or spare != "auto":
        raise options.usage_error(
            "exchange_and_compact cuts each instance and takes one --floor for all; leave out "
            "--tool, --spare and floors of single services, of fleet.toml as well",
            "--method",
        )
    with session.reading():
        from cms.fleet.deployment import Deployment, DesiredState, desired_state, transition
        from cms.fleet.deployment.observation.devices import renumber_gpus
        from cms.fleet.deployment.observation.sources import read_possible
        from cms.fleet.serving.plan_document import plan_from_json
        from cms.values.numbers import shown

        start = fleets.read_fleet(current)
        to: Deployment | DesiredState
        if kind != "cms-plan":
            to = read_possible(document)
            start, to = renumber_gpus(start, to), renumber_gpus(to, start)
            if not is_ours:
                what = "it decides itself what lies where, and so does a deployment; give a plan"
                raise options.usage_error(what, "--method")
        else:
            plan = plan_from_json(document)
            if plan.solution.cost is None:
                raise FileError(target, "the plan has no schedule: nothing leads to it")
            to = desired_state(plan)
            if is_ours:
                how["as_grouped"] = session.fleet.placement.as_grouped
        if "floor" not in options.given_options(session.context):  # fleet.toml outlives services
            for name in shares.keys() - {s.name for s in (*start.services, *to.services)}:
                session.warn(f"[transition] floors: no service {name!r} is there")
                del shares[name]
        fleets.refuse_stale(session, start, max_age)
    find: Callable[..., Transition | Impossible] = (
        transition.transition if is_ours else transition.exchange_and_compact
    )
    found = heard(session, lambda: find(start, to, **how), doing="planning")
    if isinstance(found, transition.Impossible):
        return fleets.say_impossible(session, found, {"found": False}, _IMPOSSIBLE[found.proof])
    own = (f"{name} {shown(each * 100)} %" for name, each in shares.items())
    words = ", ".join([f"{shown(share * 100)} %", *own])
    if tool == "nvidia-smi":
        return found, words, ()
    from cms.fleet.report.transitions import whole_gpus_words

    return found, words, whole_gpus_words(found, to, tool)


def _read_floors(floor: list[str] | None) -> tuple[Fraction, dict[str, Fraction]]:
    """Return the share that all services keep, and those of single ones."""
    alone, named = ([t for t in floor or () if ("=" in t) is has] for has in (False, True))
    if len(alone) > 1:
        raise options.usage_error(f"{alone[1]!r} is a second one for all services", "--floor")
    share = options.share(alone[0], "--floor") if alone else Fraction(1)
    shares = options.pairs(named, "--floor", "chat=50%")
    return share, {name: options.share(text, "--floor") for name, text in shares.items()}


def _prepare(session: Session, head: Head) -> Apply:
    """Return what carries out a transition, by the settings."""
    from cms.fleet.apply import Apply, Job, Shell

    told = session.fleet.apply
    times = (float(options.seconds(text, "")) for text in (told.timeout, told.pause))
    shell = Shell(told.shell, *times)
    job = Job(
        head.transition, shell, export_options(session),
        session.fleet.observation.service_label or "cms.service", told.drain_flags,
        told.slurm_folder, told.slurm_restart or "",
    )  # fmt: skip
    work = session.fleet.work.model_dump(exclude_none=True)
    return Apply(head, job, work, session.fleet.transition.durations)


def _go_on(
    session: Session, folder: Path | None, undo: bool, dry_run: bool, asks: bool, parallel: int,
    max_failures: int,
) -> int:  # fmt: skip
    """Go on with an earlier apply, or back."""
    from cms.fleet.apply import Journal, begin_undo, hold_lock

    if folder is not None and folder.is_file():
        raise options.usage_error(f"{folder} is a file; expected the folder of {_STATE}", "TARGET")
    path = (folder or session.folder / ".cms" / "apply") / _STATE
    with nullcontext() if dry_run or not path.exists() else hold_lock(session.folder / ".cms/lock"):
        with session.reading():
            journal = Journal.read(path)
            prepared = _prepare(session, begin_undo(journal) if undo else journal.head)
        if undo and not prepared.head.units:
            if not (dry_run or journal.head.is_undo):  # then --resume begins nothing either
                journal.follow(prepared.head)
            session.say({"done": 0}, "nothing was begun, so there is nothing to undo\n")
            return Exit.ANSWER
        if dry_run:
            return _list_commands(session, prepared, () if undo else journal.ended)
        if asks and not _is_wanted(session, prepared, parallel):
            return Exit.FAILED
        if undo:
            journal = journal.follow(prepared.head)
        return _carry_out(session, prepared, journal, parallel, max_failures)


def _list_commands(session: Session, prepared: Apply, ended: Collection[int] = ()) -> int:
    """List what would be run for each action that is left."""
    if not (session.quiet or session.json):
        session.print_text("".join(f"{line}\n" for line in prepared.describe(ended)))
    return Exit.ANSWER


def _is_wanted(session: Session, prepared: Apply, parallel: int) -> bool:
    """Ask on the terminal whether it is to be carried out."""
    with session.interrupts.abortable(), suppress(typer.Abort):
        if typer.confirm(f"{prepared.expect(parallel)}. Carry it out?", err=True):
            return True
    session.note("nothing was done")
    return False


def _carry_out(
    session: Session, prepared: Apply, journal: Journal, parallel: int, max_failures: int
) -> int:
    """Carry out what is left, and say how far it came and what can be done now."""
    outcome = prepared.run(
        journal, parallel=parallel, max_failures=max_failures,
        cancel=session.interrupts.cancel, tell=session.note,
    )  # fmt: skip
    failed = {str(prepared.head.units[at]): why for at, why in outcome.failed.items()}
    said = {"done": outcome.done, "left": outcome.left, "failed": failed}
    said |= {"state": str(journal.path)}
    if outcome.has_arrived:
        session.say(said, f"arrived: {outcome.done} done, and all is as it should be\n")
        return Exit.ANSWER
    folder = journal.path.parent
    where = "" if folder == session.folder / ".cms" / "apply" else f" {folder}"
    words = f"{outcome.done} done, {len(failed)} failed, {outcome.left} not begun\n"
    words += "".join(f"- {action}: {why}\n" for action, why in failed.items())
    if session.fleet_file is not None:
        where += f" --fleet {shlex.quote(str(session.fleet_file))}"
    go_on = f"go on: cms apply{where} --resume; go back: cms apply{where} --undo\n"
    session.say(said, words + go_on)
    if session.quiet and not session.json:
        report_error(" ".join((words + go_on).split("\n")), Exit.FAILED, as_json=False)
    return Exit.INTERRUPTED if session.interrupts.pressed and not failed else Exit.FAILED
