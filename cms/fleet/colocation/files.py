"""Co-location problems and their solutions as JSON; ``docs/reference/schemas`` has the schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import create_model

from ...files import fields as f
from ...files import model as m
from ...files.documents import parse_document, write_document
from ...files.parsed import Parsed
from ...files.source import StrPath
from ...solving.solution import Proof, Status, StopReason
from .certificate import AssignmentPrices
from .problem import FORBIDDEN, ColocationPlan, ColocationProblem, OfflineClass, OnlineClass
from .solution import ColocationIncumbent, ColocationSolution

_OnlineName = Annotated[str, f.name("online class")]
_OfflineName = Annotated[str, f.name("offline class")]


_KINDS: dict[str, Any] = {
    "int": f.Count, "bool": f.Flag, "str": f.Text, "Fraction": f.Exact, "Number": f.Exact,
    "Fraction | None": f.Exact | None,
}  # fmt: skip


def part_of(made: Any, make: Callable[..., Any] | None = None, **special: Any) -> type[m.Part]:
    """Declare how a class of numbers and words is written; `make`, or the class, builds one.

    `special`: how some fields are written, with a default or without; and keys that are no fields.
    """
    told: Any = {}
    for name, hint in (made.__annotations__ | special).items():
        kind = special.get(name) or _KINDS[getattr(hint, "__forward_arg__", hint)]
        told[name] = kind if isinstance(kind, tuple) else (kind, ...)
    part: type[m.Part] = create_model(f"_{made.__name__}Part", __base__=m.Part, **told)
    part.MAKES = staticmethod(make or made)
    return part


_OfflinePart = part_of(OfflineClass, name=_OfflineName, model=Annotated[str, f.name("model")])


def require_length(values: Sized, length: int, *at: str | int) -> None:
    """Refuse a list at a path of another length."""
    if len(values) != length:
        raise f.refusal(f"{length} entries", *at, what=f"{{}} has {len(values)} entries")


_OnlinePart = part_of(
    OnlineClass, lambda weights, **told: (OnlineClass(**told), weights), name=_OnlineName,
    device=Annotated[str, f.name("device")], running=_OfflineName | None,
    weights=tuple[f.Count | None, ...],
)  # fmt: skip


class ColocationProblemDocument(m.Document):
    """A co-location problem, one class a line."""

    KIND: ClassVar[str] = "cms-colocation-problem"
    margin: f.Count
    lowest_share: f.Count
    offline: tuple[Annotated[OfflineClass, m.Built(_OfflinePart)], ...]
    online: tuple[Annotated[Any, m.Built(_OnlinePart)], ...]

    def build(self) -> ColocationProblem:
        """Build the problem; a pair that memory or the share forbids has no weight."""
        for index, (_, row) in enumerate(self.online):
            require_length(row, len(self.offline), "online", index, "weights")
        rows = [[FORBIDDEN if w is None else w for w in row] for _, row in self.online]
        problem = ColocationProblem(
            online=[own for own, _ in self.online], offline=self.offline, weights=rows,
            margin=self.margin, lowest_share=self.lowest_share,
        )  # fmt: skip
        for index, given in enumerate(problem.weights.tolist()):
            for place, weight in enumerate(given):
                if weight == FORBIDDEN != rows[index][place]:
                    why = "null: no share is left there, or the memory does not fit"
                    raise f.refusal(why, "online", index, "weights", place)
        return problem

    @classmethod
    def from_object(cls, value: ColocationProblem, **other: Any) -> Self:
        """Describe a problem."""
        online = [
            _OnlinePart.from_object(each, weights=[None if w == FORBIDDEN else w for w in row])
            for each, row in zip(value.online, value.weights.tolist(), strict=True)
        ]
        return super().from_object(value, online=online)


_IncumbentPart = part_of(ColocationIncumbent, seconds=f.Seconds)


class _PairPart(m.Part):
    online: _OnlineName
    offline: _OfflineName
    count: f.AtLeastOne
    share: f.Count


class _CertificatePart(m.Part):
    problem_sha256: f.Sha256
    online: dict[_OnlineName, f.Count]
    offline: dict[_OfflineName, f.Count]


class ColocationSolutionDocument(m.Document):
    """A solution of a co-location problem, one pair of classes a line."""

    KIND: ClassVar[str] = "cms-colocation-solution"
    problem_sha256: f.Sha256
    status: Literal[Status.OPTIMAL, Status.FEASIBLE]
    proof: Literal[Proof.CHECKED, Proof.NONE]
    stop_reason: StopReason
    method: f.Text
    seconds: f.Seconds
    value: f.Count
    upper_bound: f.Count
    gap: f.AnyWhole
    plan: tuple[_PairPart, ...]
    certificate: _CertificatePart
    history: tuple[Annotated[ColocationIncumbent, m.Built(_IncumbentPart)], ...]

    def build(self, problem: ColocationProblem | None = None) -> ColocationSolution:
        """Build the solution of a problem; its parts must agree."""
        assert problem is not None
        for at, digest in (
            (("problem_sha256",), self.problem_sha256),
            (("certificate", "problem_sha256"), self.certificate.problem_sha256),
        ):
            if digest != problem.sha256:
                raise f.refusal(f"{problem.sha256}, the SHA-256 of the problem", *at)
        counts: dict[tuple[str, str], int] = {}
        for index, part in enumerate(self.plan):
            known = problem.online_index
            f.refuse_unknown(part.online, "online class", known, "plan", index, "online")
            if part.share != (share := problem.shares[known[part.online]]):
                why = f"the share of online class {part.online!r}"
                raise f.refusal(f"{share}, {why}", "plan", index, "share")
            if (pair := (part.online, part.offline)) in counts:
                what = "{} is about a pair that is there already"
                raise f.refusal(None, "plan", index, what=what)
            counts[pair] = part.count
        prices = AssignmentPrices(self.certificate.online, self.certificate.offline)
        told = dict(self) | {"plan": ColocationPlan(counts), "certificate": prices}
        del told["gap"]
        solution = ColocationSolution(**told)
        if self.gap != solution.gap:
            raise f.refusal(f"{solution.gap}, the upper bound less the value", "gap")
        is_optimal = self.status == Status.OPTIMAL
        wanted = Proof.CHECKED if is_optimal else Proof.NONE
        if self.proof != wanted:
            raise f.refusal(f'"{wanted}", since the status is "{self.status}"', "proof")
        if self.stop_reason is StopReason.PROVED and self.proof != Proof.CHECKED:
            raise f.refusal("another reason, since nothing is proved", "stop_reason")
        if is_optimal != (solution.gap == 0):
            raise f.refusal(f"the other one, since the gap is {solution.gap}", "status")
        for index, (before, line) in enumerate(pairwise(self.history), 1):
            if line.value < before.value:
                why = f"at least {before.value}, as in the line before"
                raise f.refusal(why, "history", index, "value")
            if line.upper_bound > before.upper_bound:
                why = f"at most {before.upper_bound}, as in the line before"
                raise f.refusal(why, "history", index, "upper_bound")
        return solution

    @classmethod
    def describe(cls, problem: ColocationProblem, solution: ColocationSolution) -> Self:
        """Describe a solution, with the share that each pair gets."""
        places = problem.online_index
        plan = [
            _PairPart.from_object(pair, share=problem.shares[places[pair.online]])
            for pair in solution.plan
        ]
        digest = solution.problem_sha256
        certificate = _CertificatePart.from_object(solution.certificate, problem_sha256=digest)
        return cls.from_object(solution, plan=plan, certificate=certificate)


def read_colocation_problem(path: StrPath) -> ColocationProblem:
    """Read a co-location problem from a JSON file, ``-`` for standard input; numbers are exact.

    A FileError has line and column.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.colocation.edge_problems import posed
    >>> problem, path = posed([2], [5], [[7]]), pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> write_colocation_problem(problem, path)
    >>> read_colocation_problem(path) == problem
    True
    """
    return colocation_problem_from_json(parse_document(path))


def write_colocation_problem(problem: ColocationProblem, path: StrPath) -> None:
    """Write a problem to a JSON file, one class a line; see :func:`read_colocation_problem`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.colocation.edge_problems import posed
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "problem.json"
    >>> write_colocation_problem(posed([2], [5], [[7]]), path)
    >>> path.read_text().splitlines()[1]
    '  "format": "cms-colocation-problem",'
    """
    write_document(lambda: colocation_problem_to_json(problem), path)


def read_colocation_solution(path: StrPath, problem: ColocationProblem) -> ColocationSolution:
    """Read a solution of a problem, whose shares must be those in the file.

    What it says is read, not believed: :func:`colocation_faults` tells whether it holds. A
    FileError has line and column. See :func:`write_colocation_solution` for an example.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.colocation import colocate
    >>> from cms.fleet.colocation.edge_problems import posed
    >>> problem, path = posed([2], [5], [[7]]), pathlib.Path(tempfile.mkdtemp()) / "share.json"
    >>> write_colocation_solution(problem, colocate(problem, "colocation_dedicated"), path)
    >>> read_colocation_solution(path, problem).plan.placed
    0
    """
    return colocation_solution_from_json(parse_document(path), problem)


def write_colocation_solution(
    problem: ColocationProblem, solution: ColocationSolution, path: StrPath
) -> None:
    """Write a solution of a problem to a JSON file, one pair of classes a line, with its share.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.colocation import colocate
    >>> from cms.fleet.colocation.edge_problems import posed
    >>> problem, path = posed([2], [5], [[7]]), pathlib.Path(tempfile.mkdtemp()) / "share.json"
    >>> solution = colocate(problem)
    >>> write_colocation_solution(problem, solution, path)
    >>> read_colocation_solution(path, problem) == solution
    True
    """
    write_document(lambda: colocation_solution_to_json(problem, solution), path)


def colocation_problem_to_json(problem: ColocationProblem) -> dict[str, Any]:
    """Turn a problem into the document that :func:`colocation_problem_from_json` reads."""
    return ColocationProblemDocument.from_object(problem).to_json()


def colocation_solution_to_json(
    problem: ColocationProblem, solution: ColocationSolution
) -> dict[str, Any]:
    """Turn a solution into the document that :func:`colocation_solution_from_json` reads."""
    return ColocationSolutionDocument.describe(problem, solution).to_json()


def colocation_problem_from_json(document: Parsed | Mapping[str, Any]) -> ColocationProblem:
    """Turn a parsed document into a problem; a FileError names the class and value at fault."""
    found: ColocationProblem = m.build(ColocationProblemDocument, document)
    return found


def colocation_solution_from_json(
    document: Parsed | Mapping[str, Any], problem: ColocationProblem
) -> ColocationSolution:
    """Turn a parsed document into a solution of a problem."""
    found: ColocationSolution = m.build(ColocationSolutionDocument, document, problem=problem)
    return found
