"""The border between ``solve`` and a third party's algorithm: what is handed out, what taken in.

Python's objects keep nothing from code that wants to change them. So such an algorithm gets parts
that were rebuilt for it, and of what it claims only numbers and names are taken, into new objects
of exactly our types: what it does to its own before, during or after a check changes nothing. (One
that replaces the functions of this package in its own process cannot be kept from anything.)
"""

from __future__ import annotations

import copy
import hashlib
import pickle
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple, cast, get_args

from ..certificate.certificate import LARGEST_DEPTH, Branch
from ..certificate.quantity import (
    BlocksOf,
    BlocksOfJob,
    MachinesOf,
    MachinesOfType,
    MachinesWith,
    Quantity,
)
from ..errors import InvalidCertificate, InvalidOption
from ..problem.parts import Configuration
from ..referee.check import referee_of
from ..referee.kinds import AnyProblem, AnySchedule, is_one_of
from ..running.aside import GRACE_SECONDS, Aside, in_words
from ..values.names import checked_name
from .algorithm import Named, SolverBound, Support
from .guarantee import Guarantee

#: A second look at what was given may take so many times as long as the first.
_PATIENCE = 10


class Told(NamedTuple):
    """What a third party's budget says is known."""

    lower_bound: Fraction
    best: AnySchedule | None


class Outlook:
    """What a third party's budget holds on to: its own, with no way back to us."""

    __slots__ = ("known",)

    def __init__(self) -> None:
        self.known = Told(Fraction(0), None)


class Border:
    """What one third party's algorithm was given for a problem.

    Parameters
    ----------
    problem : AnyProblem
        The user's.
    start : AnySchedule, optional
        The user's.

    Attributes
    ----------
    given : AnyProblem
        Equal to the user's, without a part in common that could be changed.
    outlook : Outlook
        What it has been told last.

    Examples
    --------
    >>> from cms import Job, Problem
    >>> problem = Problem(configurations=Configuration({"b": 2}), jobs=[Job("x", 3, {"b": 1})])
    >>> border = Border(problem)
    >>> object.__setattr__(border.given.machine_types[0], "cost", Fraction(1000))
    >>> problem.machine_types[0].cost, border.changed()
    (Fraction(1, 1), 'problem')
    """

    def __init__(self, problem: AnyProblem, start: AnySchedule | None = None) -> None:
        self.given: Any = problem.private_copy()
        referee = referee_of(problem)
        self._schedules, self._certificates = referee.schedules, referee.certificates
        self._start = None if start is None else start.private_copy()
        self._best = start, self._start
        self.outlook = Outlook()
        begun = time.monotonic()
        self._before = self._digests()
        self._digesting = time.monotonic() - begun

    def tell(self, lower_bound: Fraction, best: AnySchedule | None) -> None:
        """Let the algorithm know what is known."""
        if best is not self._best[0]:
            self._best = best, None if best is None else best.private_copy()
        self.outlook.known = Told(_rebuilt_fraction(lower_bound), self._best[1])

    def changed(self) -> str | None:
        """Return which input is no longer what was given: "problem", "start" or None."""
        # Aside, since there may be anything in it by now, things that take their time included.
        look = Aside(self._digests)
        if not look.ends_within(_PATIENCE * self._digesting + GRACE_SECONDS) or look.said:
            return "problem"
        now = cast("tuple[str, str]", look.result)
        pairs = zip(("problem", "start"), self._before, now, strict=True)
        return next((name for name, before, after in pairs if before != after), None)

    def _digests(self) -> tuple[str, str]:
        return self.given.compute_sha256(), schedule_digest(self._start)

    def taken(self, claim: object) -> object:
        """Rebuild a claim; what is none is returned as it is.

        Raises
        ------
        InvalidSchedule, InvalidCertificate, ValueError, ...
            If that cannot be done.
        """
        if type(claim) is Named:
            return Named(self._taken(claim.claim), claim.part)  # type: ignore[arg-type]
        return self._taken(claim)

    def _taken(self, claim: object) -> object:
        if type(claim) is self._schedules:
            return _copied(claim)
        if is_one_of(type(claim), self._certificates):
            return _rebuilt_certificate(claim, self._certificates, 0, {})
        if type(claim) is SolverBound:
            return SolverBound(claim.value, checked_name(claim.solver, "solver"))
        return claim


def taken_answer(answer: object) -> object:
    """Rebuild what was answered to ``support`` or ``guarantee``; anything else as it is.

    Examples
    --------
    >>> taken_answer(Support(True))
    Support(ok=True, reason='')
    """
    if type(answer) is Support:
        return Support(bool(answer.ok), str.__str__(answer.reason))
    if type(answer) is Guarantee:
        theorem = str.__str__(answer.theorem)
        return Guarantee(answer.factor, answer.additive, str.__str__(answer.against), theorem)
    return answer


def own_options(options: Mapping[str, object]) -> Mapping[str, object]:
    """Return options whose values have nothing in common with those given that could be changed.

    Raises
    ------
    InvalidOption
        If one cannot be copied, like a lock.

    Examples
    --------
    >>> given = {"parts": [Fraction(1, 2)]}
    >>> own = own_options(given)
    >>> own == given, own["parts"][0] is given["parts"][0]
    (True, False)
    """
    # `copy` takes a Fraction for something that cannot be changed.
    fractions: dict[int, object] = {}
    try:
        for value in _fractions_in(options):
            fractions[id(value)] = _rebuilt_fraction(value)
        return copy.deepcopy(options, fractions)
    except Exception as fault:
        raise InvalidOption(
            "options of a third party's method are copied for it, and these cannot be: "
            f"{in_words(fault)}"
        ) from fault


def schedule_digest(schedule: AnySchedule | None) -> str:
    """Return a digest of a schedule's data as they are now."""
    return hashlib.sha256(pickle.dumps(schedule)).hexdigest()


def _fractions_in(value: object) -> list[Fraction]:
    if isinstance(value, Fraction):
        return [value]
    parts: list[object] = []
    if isinstance(value, Mapping):
        parts = [*value, *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        parts = list(value)
    return [found for part in parts for found in _fractions_in(part)]


def _rebuilt_fraction(value: Fraction) -> Fraction:
    return Fraction(value.numerator, value.denominator)


def _copied(claim: Any) -> Any:
    # The class's own method: an object could have been given another.
    return type(claim).private_copy(claim)


def _rebuilt_certificate(
    node: Any, known: tuple[type, ...], depth: int, done: dict[int, tuple[object, Any]]
) -> Any:
    """Rebuild a tree of the known types; a side that stands in several places is rebuilt once.

    ``done`` holds the nodes themselves as well, so that no other can take a number over.
    """
    if id(node) in done:
        return done[id(node)][1]
    if not is_one_of(type(node), known):
        names = " and ".join(kind.__name__ for kind in known)
        raise InvalidCertificate(
            f"a part of type {type(node).__name__!r}; expected {names} only, and no subclass of "
            "them"
        )
    if type(node) is Branch:
        if depth >= LARGEST_DEPTH:  # as it must in a circle
            raise InvalidCertificate(
                f"a certificate has more than {LARGEST_DEPTH} branches above one another"
            )
        sides = [
            _rebuilt_certificate(side, known, depth + 1, done) for side in (node.below, node.above)
        ]
        rebuilt = Branch(_rebuilt_quantity(node.quantity), node.at_most, *sides)
    else:
        rebuilt = _copied(node)
    done[id(node)] = node, rebuilt
    return rebuilt


def _rebuilt_quantity(quantity: Quantity) -> Quantity:
    if type(quantity) is MachinesOfType:
        return MachinesOfType(quantity.weights)
    if type(quantity) is BlocksOf:
        return BlocksOf(quantity.block)
    if type(quantity) is BlocksOfJob:
        return BlocksOfJob(quantity.block, quantity.job)
    if type(quantity) is MachinesOf and type(quantity.configuration) is Configuration:
        shape = quantity.configuration
        return MachinesOf(Configuration(shape.blocks, shape.machine))
    if type(quantity) is MachinesWith and type(quantity.content) is Configuration:
        return MachinesWith(Configuration(quantity.content.blocks, quantity.content.machine))
    known = ", ".join(kind.__name__ for kind in get_args(Quantity))
    raise InvalidCertificate(f"a branch on {quantity!r}; expected one of {known}")
