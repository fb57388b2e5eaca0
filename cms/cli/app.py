"""The application: its commands, and what becomes of the errors that they raise."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer
import typer.core

from cms.errors import CmsError, InvalidOption, UnknownMethod, UnsupportedProblem
from cms.files.source import noting_reads
from cms.plugin.registry import UnknownInstance
from cms.running.interrupt import CommandCtrlC, Interrupted

from .apply import apply
from .check import check
from .colocate import match, train
from .explain import explain
from .export import export
from .init import gpus, init
from .observe import observe
from .options import UsageError, load_declarations
from .plan import plan
from .problem import algorithms, pack, program, solve
from .replan import replan
from .session import Exit, Session, report_error, session_of
from .show import show
from .simulate import calibrate, simulate

__all__ = ["application", "run"]

_EPILOG = (
    "Exit codes: 0 a checked answer; 1 bad data or a failed check; 2 bad usage; 3 infeasible; "
    "4 no schedule in time; 130 interrupted (the best schedule is still printed)."
)
_MORE = "Other options (--json, --quiet, --fleet, ...) and exit codes: 'cms --help'."
_CLICK_ERROR: type[Exception] = UsageError.__mro__[1]
# What Typer says of a switch, and of a type, a range and a default that need no word.
_SWITCH = re.compile(r"--(\S+) / --no-\1")
_NEEDLESS = re.compile(r" <.*>|  \[(default: no-\S+|\S*x[<>=]+\S+)\]|;? \S*x[<>=]+\S+(?=\])")
_BAD_USAGE = (InvalidOption, UnknownInstance, UnknownMethod, UnsupportedProblem)


class _Command(typer.core.TyperCommand):
    """A command whose help shows examples, and where common options are explained."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        super().format_help_text(ctx, formatter)
        with formatter.section("Examples"):
            for line in load_declarations()[self.name or ""]["examples"]:
                formatter.write(f"  {line}\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for heading in ("Arguments", "Options"):
            rows = []
            for each in self.get_params(ctx):
                record = each.get_help_record(ctx)
                if record is not None and f"{each.param_type_name}s" == heading.lower():
                    name, said = (_NEEDLESS.sub("", text) for text in record)
                    rows.append((_SWITCH.sub(r"--[no-]\1", name), said))
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


class _Grouped(typer.core.TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for heading in _COMMANDS:
            rows = [
                (name, command.get_short_help_str(limit=60))
                for name, command in self.commands.items()
                if getattr(command, "rich_help_panel", None) == heading
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)
        with formatter.section("Options of the commands"):
            common = load_declarations()["common"].values()
            formatter.write_dl([(one["listed"], one["help"]) for one in common if "listed" in one])


application = typer.Typer(
    name="cms",
    cls=_Grouped,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
_COMMANDS = {
    "Plan": (init, plan, explain, calibrate, simulate, show, check, gpus),
    "Run": (observe, apply, export, replan),
    "Research": (),
}
_GROUPS = (
    ("colocate", "Run", "Run offline workloads beside online services.", (match, train)),
    (
        "problem", "Research", "Solve problems of any jobs and machines.",
        (solve, pack, program, algorithms),
    ),
)  # fmt: skip
for _heading, _commands in _COMMANDS.items():
    for _command in _commands:
        application.command(cls=_Command, epilog=_MORE, rich_help_panel=_heading)(_command)
for _name, _heading, _help, _commands in _GROUPS:
    _group = typer.Typer(name=_name, help=_help)
    for _command in _commands:
        _group.command(cls=_Command, epilog=_MORE)(_command)
    application.add_typer(_group, rich_help_panel=_heading)


@application.callback(invoke_without_command=True, epilog=_EPILOG)
def cms(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the version as JSON.")] = False,
) -> int:
    """Plan fleets of configurable machines, MIG GPUs above all, with a proof of every bound."""
    if context.invoked_subcommand is not None:
        return Exit.ANSWER
    session = session_of(context)
    if not version:
        session.print_text(context.get_help() + "\n")
        return Exit.USAGE
    from cms import __version__ as number

    session.json, name = json, "configurable-machines"
    session.say({"name": name, "version": number}, f"{name} {number}\n")
    return Exit.ANSWER


def run(arguments: Sequence[str], interrupts: CommandCtrlC | None = None) -> int:
    """Run the command line and return its exit code; nothing escapes as a traceback."""
    interrupts = interrupts or CommandCtrlC()
    session = Session(interrupts)
    as_json = "--json" in arguments
    try:
        with noting_reads():
            code = _application()(
                args=list(arguments), prog_name="cms", standalone_mode=False, obj=session
            )
    except Interrupted:
        return _say_interrupted(arguments)
    except SystemExit as leaving:  # Typer's way out when the reader of a help page has gone
        return leaving.code if isinstance(leaving.code, int) else Exit.FAILED
    except Exception as error:  # noqa: BLE001 - the last resort: a message instead of a traceback
        if interrupts.pressed and not session.has_answered:
            return _say_interrupted(arguments)
        return _explain(error, as_json=as_json)
    return int(code or 0)


@cache
def _application() -> Callable[..., int | None]:
    """Build the commands once; a process that runs many, as our tests do, waits for it once."""
    return typer.main.get_command(application)


def _say_interrupted(arguments: Sequence[str]) -> int:
    searching = {"plan", "solve"} & set(arguments[:2])
    what = "interrupted: no schedule was found" if searching else "interrupted"
    as_json = "--json" in arguments
    return report_error(what, Exit.INTERRUPTED, as_json=as_json, kind="Interrupted")


def _explain(error: Exception, *, as_json: bool) -> int:
    code, message, kind = Exit.FAILED, str(error), type(error).__name__
    if isinstance(error, _CLICK_ERROR):
        code = Exit.USAGE if isinstance(error, UsageError) else Exit.FAILED
        message, kind = getattr(error, "format_message", error.__str__)(), "UsageError"
        context = getattr(error, "ctx", None)
        if context is not None and not as_json:
            message += f" (try '{context.command_path} --help')"
    elif isinstance(error, CmsError):
        if isinstance(error, _BAD_USAGE):
            code = Exit.USAGE
        elif type(error) is CmsError:  # time was up
            code = Exit.NO_SCHEDULE
        return report_error(error, code, as_json=as_json)
    elif isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        message, kind = f"{where}{error.strerror or error}", "OSError"
    elif isinstance(error, MemoryError):
        message = "out of memory"
    else:
        if "CMS_TRACEBACK" in os.environ:
            traceback.print_exception(error, file=sys.stderr)
        message, kind = (
            f"{kind}: {error} (this is a bug in configurable-machines; set CMS_TRACEBACK=1 to see "
            "where, and please report it)",
            "InternalError",
        )
    return report_error(message, code, as_json=as_json, kind=kind)
