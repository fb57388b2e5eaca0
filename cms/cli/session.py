"""One run of the command line: where its output goes, and what its exit code means."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import IntEnum
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import typer

import cms
from cms.errors import FileError, cut
from cms.files import Parsed
from cms.files.documents import document_text, json_line, parse_document, write_document
from cms.files.source import read_before, write_bytes
from cms.values.words import printable, printable_lines

from ..running.interrupt import EXIT_CODE, CommandCtrlC
from .options import usage_error
from .progress import Doing

if TYPE_CHECKING:
    from cms.fleet.report.page import Page

    from .settings import Fleet

T = TypeVar("T")
Document = Callable[[], Mapping[str, Any]]
_WIDTH_OF_FILES = 100
"""Columns of a report that goes to a file or a pipe, so that two runs compare line by line."""
_LEAST_WIDTH = 40
"""In fewer columns the tables would lose their words; a narrower terminal breaks the lines."""
# Same widths, so that a drawing keeps its shape in an encoding that has only ASCII.
_PLAIN = str.maketrans("─│┌┐└┘├┤┬┴┼━╌×░…·–−≥", "-|+++++++++=-x:~.-->")


class Exit(IntEnum):
    """What the commands return; FAILED: bad data, or a check that failed."""

    ANSWER = 0
    FAILED = 1
    USAGE = 2
    INFEASIBLE = 3
    NO_SCHEDULE = 4
    INTERRUPTED = EXIT_CODE


class Session:
    """What a command needs besides its arguments: the terminal and Ctrl-C."""

    def __init__(self, interrupts: CommandCtrlC) -> None:
        self.interrupts = interrupts
        self.context: Any = None  # of the command
        self.json = False
        self.quiet = False
        self.has_answered = False
        self.folder = Path()
        self.fleet_file: Path | None = None  # that was named, beside the one that is looked for
        self._doing: Doing | None = None
        self._written: list[tuple[Path, str]] = []

    @cached_property
    def fleet(self) -> Fleet:
        """The settings of ``fleet.toml``, or those that hold without one."""
        from .settings import Fleet

        return Fleet()

    @property
    def columns(self) -> dict[str, str]:
        """Other names of columns, by ``[tables] map``."""
        return self.fleet.tables.map

    def read_beside(self, file: str | None, read: Callable[[Path], T]) -> T | None:
        """Read a file that the settings name, if they do."""
        return None if file is None else read(self.folder / file)

    def begin(self, output: Path | None, *, json: bool = False, quiet: bool = False) -> Path | None:
        """Take note of the output options; return the file to write. ``-o -`` is ``--json``."""
        to_pipe = is_pipe(output)
        if to_pipe and sys.stdout is None:
            raise FileError("<stdout>", "standard output is closed", fix="name a file to write")
        self.json = json or to_pipe
        self.quiet = self.interrupts.quiet = quiet
        return None if to_pipe else output

    def refuse_unwritable(self, *files: tuple[Path | None, str]) -> None:
        """Say before a long run, not after it, that a file cannot be written."""
        given = [(path, option) for path, option in files if path is not None]
        self._written = [(path, option) for path, option in given if not is_pipe(path)]
        printed = dict.fromkeys(option for path, option in given if is_pipe(path))
        printed = {"--output": None} | printed if self.json else printed
        taken: dict[Path, str] = {}
        for path, option in self._written:
            name, place, fault = str(path), Path(os.path.realpath(path)), ""
            if path.is_dir():
                fault = f"{name!r} is a folder; expected a file to write"
            elif option == "--picture" and path.suffix.lower() != ".svg":
                fault = f"{name!r}: pictures are SVG; expected a name that ends in .svg"
            elif not path.parent.is_dir():
                where = f"there is no folder {str(path.parent)!r} to write {path.name!r} to"
                fault = f"{where}; create it"
            elif place in taken and (path.is_file() or not path.exists()):  # not /dev/null
                fault = f"{name!r}: {taken[place]} writes it, too; name another file"
            if fault:
                raise usage_error(fault, option)
            taken[place] = option
        if len(printed) > 1:
            raise usage_error(f"only one of {' and '.join(printed)} can be standard output")

    def print_json(self, make: Document) -> None:
        """Make a document and write it to stdout, exactly as ``--output`` writes it to a file."""
        self.print_text(document_text(make, "<stdout>"))

    def print_page(self, page: Page) -> None:
        """Write a page to stdout: in colour on a terminal that wants it, 100 wide elsewhere."""
        from rich.console import Console
        from rich.segment import Segments

        from cms.fleet.report.terminal import render

        columns = shutil.get_terminal_size((_WIDTH_OF_FILES, 25)).columns
        console = Console(
            file=sys.stdout or io.StringIO(), width=max(_LEAST_WIDTH, columns),
            height=25,  # says nothing, but with both given Rich does not look for itself
            highlight=False, markup=False, emoji=False, legacy_windows=False,
        )  # fmt: skip
        with console.capture() as capture:
            for part in render(page, console.width):
                # only its own colours reach a terminal, not what names hold
                own = ((each, printable_lines(each.text)) for each in console.render(part))
                told = (each if each.control else each._replace(text=text) for each, text in own)
                console.print(Segments(told))
        # Rich fills every table cell up to its column's width.
        lines = capture.get().split("\n")
        self._print("\n".join(line.rstrip(" ") for line in lines))

    def print_text(self, text: str) -> None:
        """Write text to stdout, nothing of which steers a terminal."""
        self._print(printable_lines(text))

    def say(self, document: Mapping[str, Any], text: str) -> None:
        """Print what was done, as JSON or as a line."""
        if self.json:
            self.print_json(lambda: document)
        elif not self.quiet:
            self.print_text(text)

    def _print(self, text: str) -> None:
        self._make_way()
        try:
            _write(sys.stdout, text)
        except OSError as fault:
            what, fix = f"cannot be written: {fault.strerror or fault}", "free some space"
            raise FileError("<stdout>", what, fix=f"{fix}, or write to another place") from None
        self.has_answered = True

    def write(self, make: Document, path: Path | None) -> None:
        """Make a document and write it to the file of ``--output``, if there is one."""
        if path is not None:
            write_document(make, path)

    def write_folder(
        self, files: Mapping[str, str], path: Path | None, *, force: bool = False
    ) -> None:
        """Write a folder of texts as a whole, if there is one to write."""
        if path is not None:
            from cms.fleet.deployment.written_folder import write_folder

            if (kept := write_folder(files, path, force=force)) is not None:
                self.note(f"what was in {path} is now in {kept}")

    def show(
        self, make: Document, view: Callable[[], Page], output: Path | None = None,
        picture: Path | None = None,
    ) -> None:  # fmt: skip
        """Print an answer first and write files after it: a full disk must not cost the answer."""
        view = cache(view)
        if self.json:
            self.print_json(make)
        elif not (self.quiet or is_pipe(picture)):
            self.print_page(view())
        self.write(make, output)
        if picture is not None:
            from cms.fleet.report.figure import drawing

            write_bytes(drawing(view()).encode("utf-8"), picture)

    def list_names(
        self, names: Sequence[str], make: Document, view: Callable[[], Page], output: Path | None
    ) -> int:
        """Print a list, of which --quiet leaves the names, one a line."""
        if self.quiet and not self.json:
            self.print_text("".join(f"{name}\n" for name in names))
        self.show(make, view, output)
        return Exit.ANSWER

    def code_of(self, solution: cms.Solution) -> int:
        """Return the exit code of a solution."""
        if solution.stop_reason == "interrupted":
            return Exit.INTERRUPTED
        codes = {"infeasible": Exit.INFEASIBLE, "no_schedule": Exit.NO_SCHEDULE}
        return self.code(codes.get(solution.status, Exit.ANSWER))

    def code(self, code: Exit = Exit.ANSWER) -> int:
        """Return the exit code of an answer, which Ctrl-C may have cut short."""
        return Exit.INTERRUPTED if self.interrupts.pressed else code

    def doing(self, what: str) -> Doing:
        """Say on a terminal what is being done, if it takes more than two seconds."""
        self._doing = Doing(None if self.quiet else sys.stderr, what)
        return self._doing

    def _make_way(self) -> None:
        """Wipe away what is said of what is being done: something is said on a line of its own."""
        if self._doing is not None:
            self._doing.end()

    @contextmanager
    def reading(self, what: str = "reading the files") -> Iterator[None]:
        """Say so likewise, and let Ctrl-C end it at once; refuse to write over what was read."""
        with self.doing(what), self.interrupts.abortable():
            yield
        for path, option in self._written:
            if (name := read_before(path)) is not None:
                lost = f"it is read as {name!r}, and would be lost"
                raise usage_error(f"{str(path)!r}: {lost}; name another file", option)

    def warn(self, text: str) -> None:
        """Write a warning to stderr; where JSON is wanted, the document holds it."""
        if not self.json:
            self.note(f"warning: {text}")

    def note(self, text: str) -> None:
        """Write what is going on to stderr, as the log of a long run does."""
        if not self.quiet:
            self._make_way()
            _tell(text)


def open_document(path: Path) -> tuple[str, Parsed]:
    """Parse a JSON file, of a path or ``-``; return its ``format``, empty without one, and it."""
    document = parse_document(path)
    value = document.value
    kind = value.get("format") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) else "", document


def is_pipe(path: Path | None) -> bool:
    """Whether a file is ``-``: standard input or output."""
    return path is not None and str(path) == "-"


def session_of(context: typer.Context) -> Session:
    """Return the session a command runs in."""
    session = context.obj
    assert isinstance(session, Session)
    session.context, given = context, context.params
    if given.get("force") and "output" in given and str(given["output"] or "-") == "-":
        raise usage_error("it goes with --output, which names what to write", "--force")
    return session


def refuse_two_readers(*files: tuple[Path | None, str]) -> None:
    """Say that standard input can be read only once."""
    readers = [option for path, option in files if is_pipe(path)]
    if len(readers) > 1:
        only = "only one of them can be standard input"
        raise usage_error(f"{' and '.join(readers)} are both '-'; {only}")


def report_error(error: BaseException | str, code: int, *, as_json: bool, kind: str = "") -> int:
    """Write what went wrong to stderr, one line or a JSON document; return the exit code."""
    message = cut(str(error))
    if kind == "UsageError":
        message = " ".join(message.split())  # what may be chosen stands on lines of its own
    if as_json:
        about: dict[str, object] = {"kind": kind or type(error).__name__, "message": message}
        for name in ("path", "line", "column", "expected", "fix", "algorithm"):
            if (value := getattr(error, name, None)) is not None:
                about[name] = value
        text = json_line({"error": about, "exit_code": code})
    else:
        text = f"error: {printable(message)}"
    _tell(text)
    return code


def _tell(text: str) -> None:
    """Write to stderr; where that cannot be, the exit code still counts."""
    with suppress(OSError):
        _write(sys.stderr, f"{printable_lines(text)}\n")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:  # closed by whoever started the process
        return
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        text = text.translate(_PLAIN)
        text = text.encode(stream.encoding, errors="backslashreplace").decode(stream.encoding)
    except LookupError:
        pass
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        # The reader has seen enough (`cms plan | head`). What Python still holds for it must not
        # raise again when the interpreter flushes it at the end.
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, stream.fileno())
        os.close(silent)
