"""What all commands do first: their session, ``fleet.toml``, and the files that they are given."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args

import typer

from .fleet_file import apply_settings
from .options import OptionGroup, declare, find_declaration, spelling
from .session import refuse_two_readers, session_of

_Command = Callable[..., int]
_ADDED = {"json": (bool, False), "quiet": (bool, False), "fleet": (Path | None, None)}


def command(*, settings: bool = True, checks_output: bool = True) -> Callable[[_Command], _Command]:
    """Make a command of a function that takes a session, its arguments, options and option groups.

    What is said of these stands in ``commands.toml``. The command has --json and --quiet besides
    and, with `settings`, those of ``fleet.toml``. Standard input that is read twice and, with
    `checks_output`, files that cannot be written are refused before it runs.
    """

    def decorate(function: _Command) -> _Command:
        name, kind = function.__name__, inspect.Parameter.KEYWORD_ONLY
        every = [inspect.Parameter("context", kind, annotation=typer.Context)]
        read: dict[str, str] = {}  # the files, and what a person calls them
        written: dict[str, str] = {}
        document = ""
        groups: dict[str, tuple[Any, list[str]]] = {}
        for each in _list_parameters(function, groups):
            said = find_declaration(each.name, name)
            of: Any = each.annotation
            annotation = Annotated[of, declare(each.name, name)]
            every.append(each.replace(kind=kind, annotation=annotation))
            if (of is Path or Path in get_args(of)) and said["metavar"] != "DIR":
                label = said["metavar"] if said.get("argument") else spelling(each.name)
                (written if said.get("writes") else read)[each.name] = label
            document = each.name if said.get("document") else document
        for more, (of, default) in _ADDED.items():
            if settings or more != "fleet":
                of = Annotated[of, declare(more)]
                every.append(inspect.Parameter(more, kind, default=default, annotation=of))

        @wraps(function)
        def run(
            context: typer.Context, json: bool, quiet: bool, fleet: Path | None = None, **given: Any
        ) -> int:
            session = session_of(context)
            if settings:
                given = apply_settings(context, fleet, given)
            output = session.begin(given.get(document), json=json, quiet=quiet)
            given |= {document: output} if document else {}
            if checks_output:
                session.refuse_unwritable(*((given[name], said) for name, said in written.items()))
            refuse_two_readers(*((given[name], said) for name, said in read.items()))
            for name, (group, names) in groups.items():
                given[name] = group(**{each: given.pop(each) for each in names})
            return function(session, **given)

        run.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in every}
        return run

    return decorate


def _list_parameters(
    function: _Command, groups: dict[str, tuple[Any, list[str]]]
) -> Iterator[inspect.Parameter]:
    """Yield what a command takes after the session; of groups note the names, yield the parts."""
    for each in [*inspect.signature(function, eval_str=True).parameters.values()][1:]:
        if isinstance(each.annotation, type) and issubclass(each.annotation, OptionGroup):
            parts = inspect.signature(each.annotation, eval_str=True).parameters
            groups[each.name] = each.annotation, [*parts]
            yield from parts.values()
        else:
            yield each
