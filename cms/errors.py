"""The errors a user can meet: each names the thing, its value, what was expected and the fix."""

from __future__ import annotations

from pathlib import Path

# A name may be a megabyte long; what a person reads of a message fits on a screen.
_LONGEST, _HEAD, _TAIL = 2000, 1200, 600


def cut(text: str) -> str:
    """Leave the middle of a text out that is too long for a message, and say how long it is."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_HEAD]}... ({len(text)} characters in all) ...{text[-_TAIL:]}"


class CmsError(Exception):
    """Base class of every error this package raises on purpose; its text is cut to a screen."""

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

    Attributes
    ----------
    algorithm, message : str
        Its name; what it claimed or did, and why that is refused.

    Examples
    --------
    >>> print(AlgorithmError("liar", "its schedule leaves job 'a' unserved"))
    algorithm 'liar': its schedule leaves job 'a' unserved
    """

    def __init__(self, algorithm: str, message: str) -> None:
        super().__init__(algorithm, message)
        self.algorithm, self.message = algorithm, message

    def __str__(self) -> str:
        return cut(f"algorithm {self.algorithm!r}: {self.message}")


class GuaranteeBreached(AlgorithmError):
    """A finished run costs more than the proved guarantee allows, or has no schedule."""


class FileError(CmsError, ValueError):
    """Something in a file is not as expected: where, what was found, and what to do about it.

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
        super().__init__(str(path), cut(what))
        self.path, self.what, self.line, self.column = str(path), cut(what), line, column
        self.expected, self.fix = expected and cut(expected), fix and cut(fix)

    def __str__(self) -> str:
        place = self.path, self.line, self.column
        where = ":".join(str(part) for part in place if part is not None)
        expected = f", expected {self.expected}" if self.expected else ""
        return cut(f"{where}: {self.what}{expected}" + (f"; {self.fix}" if self.fix else ""))
