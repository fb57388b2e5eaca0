"""The errors a user can meet: each names the thing, its value, what was expected and the fix."""

from __future__ import annotations

from pathlib import Path

# A name may be a megabyte long; what a person reads of a message fits on a screen.
_LONGEST, _HEAD, _TAIL = 2000, 1200, 600


def cut(text: str) -> str:
    """Leave the middle of a text out that is too long for a message, and say how long it is.

    Examples
    --------
    >>> cut("short")
    'short'
    >>> len(cut("x" * 10**6)), cut("x" * 10**6)[1200:1245]
    (1835, '... (1000000 characters in all) ...xxxxxxxxxx')
    """
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_HEAD]}... ({len(text)} characters in all) ...{text[-_TAIL:]}"


class CmsError(Exception):
    """Base class of every error this package raises on purpose.

    Its text is of a length that can be read: the middle of a longer one is left out.
    """

    def __str__(self) -> str:
        return cut(super().__str__())


class InvalidProblem(CmsError, ValueError):
    """A problem's data breaks a rule; the message names the job, block or configuration."""


class InvalidSchedule(CmsError, ValueError):
    """A schedule is malformed or cannot be built from the counts given."""


class InvalidCertificate(CmsError, ValueError):
    """A certificate does not hold for the problem; the message names the breach."""


class UnknownMethod(CmsError, ValueError):
    """No algorithm of this name is installed; the message lists those that are."""


class InvalidOption(CmsError, ValueError):
    """An option or argument has an unknown name or a value out of its range."""


class UnsupportedProblem(CmsError, ValueError):
    """The method cannot take this problem; the message is the algorithm's own reason."""


class ClusterError(CmsError, RuntimeError):
    """A cluster cannot be used, or cannot go on; the message says why and what to do."""


class AlgorithmError(CmsError, RuntimeError):
    """An algorithm made a claim that does not hold, or failed while it ran.

    Parameters
    ----------
    algorithm : str
        The algorithm's name.
    message : str
        What it claimed or did, and why that is refused.

    Examples
    --------
    >>> print(AlgorithmError("liar", "its schedule leaves job 'a' unserved"))
    algorithm 'liar': its schedule leaves job 'a' unserved
    """

    def __init__(self, algorithm: str, message: str) -> None:
        super().__init__(f"algorithm {algorithm!r}: {message}")
        self.algorithm = algorithm
        self.message = message

    def __reduce__(self) -> tuple[type[AlgorithmError], tuple[str, str]]:
        return type(self), (self.algorithm, self.message)


class GuaranteeBreached(AlgorithmError):
    """A finished run costs more than the proved guarantee allows, or has no schedule."""


class FileError(CmsError, ValueError):
    """Something in a file is not as expected.

    Parameters
    ----------
    path : str or Path
        The file.
    what : str
        What was found.
    line, column : int, optional
        Where, counted from 1.
    expected, fix : str, optional
        What was expected there, and what to do.

    Examples
    --------
    >>> print(FileError("p.json", 'demand is "x"', line=3, column=9, expected="a number"))
    p.json:3:9: demand is "x", expected a number
    """

    def __init__(
        self,
        path: str | Path,
        what: str,
        *,
        line: int | None = None,
        column: int | None = None,
        expected: str | None = None,
        fix: str | None = None,
    ) -> None:
        what = cut(what)
        expected, fix = expected and cut(expected), fix and cut(fix)
        self.path, self.what, self.line, self.column = str(path), what, line, column
        self.expected, self.fix = expected, fix
        where = ":".join(str(part) for part in (path, line, column) if part is not None)
        text = f"{where}: {what}"
        if expected:
            text += f", expected {expected}"
        if fix:
            text += f"; {fix}"
        super().__init__(text)

    def __reduce__(self) -> tuple[object, ...]:
        state = {"path": self.path, "line": self.line, "column": self.column}
        state |= {"expected": self.expected, "fix": self.fix}
        return _rebuild_file_error, (self.what, state)


def _rebuild_file_error(what: str, state: dict[str, str | int | None]) -> FileError:
    path = state.pop("path")
    return FileError(str(path), what, **state)  # type: ignore[arg-type]
