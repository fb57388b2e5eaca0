"""Solutions as JSON documents; ``docs/reference/schemas`` has the schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from ..errors import InvalidOption
from ..infeasibility.shortage import Shortage
from ..plugin.guarantee import Guarantee, GuaranteeVerdict, Reference, Verdict
from ..problem.machine_problem import MachineProblem
from ..schedule.schedule import Schedule
from ..shards.schedule import ShardedSchedule
from ..solving.solution import Incumbent, Proof, Solution, Status, StopReason
from ..values.numbers import shown
from . import fields as f
from . import model as m
from .claims import Block, JobName, SchedulePart, Tree, TypeName
from .documents import parse_document, read_folder_document, write_document
from .parsed import Parsed
from .schema_version import head
from .shards.folders import FolderSchedulePart, write_solution_folder
from .source import StrPath


class _VerdictPart(m.Part):
    factor: f.Exact
    additive: f.Exact
    against: Reference
    theorem: f.Text
    verdict: Verdict

    def build(self) -> GuaranteeVerdict:
        """Build the verdict."""
        found = dict(self)
        return GuaranteeVerdict(verdict=found.pop("verdict"), guarantee=Guarantee(**found))

    @classmethod
    def from_object(cls, value: GuaranteeVerdict, **other: Any) -> Self:
        """Describe a verdict."""
        return super().from_object(value.guarantee, verdict=value.verdict)


class _IncumbentPart(m.Part):
    MAKES: ClassVar[Any] = Incumbent
    seconds: f.Seconds
    cost: f.Exact | None
    lower_bound: f.AnyExact
    claimed_bound: f.AnyExact | None
    source: f.Text


class ShortagePart(m.Part):
    """What would make an infeasible problem feasible: its form, not its proofs."""

    unservable: dict[JobName, tuple[Block, ...]]
    more_machines: dict[TypeName, f.AtLeastOne] | None
    machines_at_least: f.Count
    machines_proof: Proof
    less_demand: f.Exact
    too_much_demand: f.Exact | None
    demand_proof: Proof
    seconds: f.Seconds

    def build(self) -> Self:
        """Check that the figures can be true together."""
        share, too_much, more = self.less_demand, self.too_much_demand, self.more_machines
        if more is not None and (enough := sum(more.values())) < self.machines_at_least:
            raise f.refusal(f"at most {enough}, the machines that would do", "machines_at_least")
        if share > 1:
            raise f.refusal("a number from 0 to 1", "less_demand")
        if too_much is not None and too_much <= share:
            raise f.refusal(f"more than {shown(share)}, which would do", "too_much_demand")
        return self


class _CertificatePart(m.Part):
    problem_sha256: f.Sha256
    tree: Tree


class _SolutionFields(m.Document):
    problem_sha256: f.Sha256
    status: Status
    proof: Proof
    stop_reason: StopReason
    method: f.Text
    seconds: f.Seconds
    machine_count: f.Count | None
    cost: f.Exact | None
    lower_bound: f.AnyExact
    claimed_bound: f.AnyExact | None
    gap: f.AnyExact | None
    schedule: Any
    certificate: _CertificatePart
    guarantee: Annotated[GuaranteeVerdict, m.Built(_VerdictPart)] | None
    history: tuple[Annotated[Incumbent, m.Built(_IncumbentPart)], ...]
    shortage: Annotated[Any, m.Built(ShortagePart)] = f.left_out()

    def solution(self, schedule: Any) -> Solution:
        """Build the solution of a schedule; its parts must not contradict each other."""
        if self.certificate.problem_sha256 != self.problem_sha256:
            raise f.refusal(
                f"{self.problem_sha256} as in problem_sha256", "certificate", "problem_sha256",
                fix="the certificate belongs to another problem",
            )  # fmt: skip
        found = dict(self) | {"certificate": self.certificate.tree, "schedule": schedule}
        for derived in ("machine_count", "gap", "shortage"):
            del found[derived]
        solution = Solution(**found)
        self._refuse_contradictions(solution)
        self._refuse_disorder()
        return solution

    def _refuse_contradictions(self, solution: Solution) -> None:
        status, proof, cost = self.status, self.proof, self.cost
        has_schedule = status in (Status.OPTIMAL, Status.FEASIBLE)
        proves = status in (Status.OPTIMAL, Status.INFEASIBLE)
        no_machines = solution.schedule == type(solution.schedule)()
        is_proved = status is Status.OPTIMAL and proof is Proof.CHECKED
        unproved = "checked or solver" if proves else "none"
        for key, agrees, expected in (
            ("cost", has_schedule == (cost is not None), "a number" if has_schedule else "null"),
            ("schedule", has_schedule or no_machines, "one without machines"),
            ("proof", proves == (proof is not Proof.NONE), unproved),
            (
                "lower_bound",
                not is_proved or self.lower_bound == cost,
                f"the cost {shown(cost or 0)}",
            ),
            ("shortage", self.shortage is None or status is Status.INFEASIBLE, "none"),
        ):
            if not agrees:
                raise f.refusal(f'{expected}, since the status is "{status}"', key)
        for key, follows in (
            ("machine_count", solution.machine_count),
            ("gap", solution.gap),
        ):
            if getattr(self, key) != follows:
                wanted = "null" if follows is None else shown(follows)
                raise f.refusal(f"{wanted}, as schedule, cost and lower bound say", key)
        if self.stop_reason is StopReason.PROVED and proof is not Proof.CHECKED:
            expected = f'another reason, since the proof is "{proof}", not "checked"'
            raise f.refusal(expected, "stop_reason")
        if status is Status.OPTIMAL and not is_proved and self.claimed_bound is None:
            raise f.refusal("the bound by which a solver claims the optimum", "claimed_bound")
        if cost is not None and (self.claimed_bound or cost) > cost:
            raise f.refusal(f"at most {shown(cost)}, the cost of the schedule", "claimed_bound")
        if self.guarantee is not None:
            if cost is None:
                raise f.refusal("null, since there is no schedule", "guarantee")
            allowed = self.guarantee.guarantee.allows(self.lower_bound)
            if self.guarantee.verdict is Verdict.VERIFIED and cost > allowed:
                why = f"the cost exceeds factor x lower_bound + additive = {shown(allowed)}"
                raise f.refusal(f'"open", since {why}', "guarantee", "verdict")

    def _refuse_disorder(self) -> None:
        """Costs fall and bounds rise, towards those of the solution."""
        # Without a schedule, the bound that proves so may lie below one that was found before it.
        cost, bound = self.cost, None if self.cost is None else self.lower_bound
        for index, line in reversed([*enumerate(self.history)]):
            if line.cost is not None:
                if cost is None or line.cost < cost:
                    least = "null" if cost is None else f"at least {shown(cost)}"
                    expected = f"{least}, as the solution or a later line has it"
                    raise f.refusal(expected, "history", index, "cost")
                cost = line.cost
            if bound is not None and line.lower_bound > bound:
                most = f"at most {shown(bound)}, as the solution or a later line has it"
                raise f.refusal(most, "history", index, "lower_bound")
            bound = line.lower_bound

    @classmethod
    def from_object(cls, value: Solution, **other: Any) -> Self:
        """Describe a solution."""
        tree = {"problem_sha256": value.problem_sha256, "tree": value.certificate}
        certificate = _CertificatePart.from_fields(**tree)
        other = {"schedule": value.schedule, "shortage": None} | other
        return super().from_object(value, certificate=certificate, **other)


class SolutionDocument(_SolutionFields):
    """A solution whose schedule stands in the document."""

    KIND: ClassVar[str] = "cms-solution"
    schedule: Annotated[Schedule, m.Built(SchedulePart)]

    def build(self) -> Solution:
        """Build the solution."""
        return self.solution(self.schedule)


class SolutionFolderDocument(_SolutionFields):
    """A solution in shards: jobs' blocks stand in arrays beside the document."""

    KIND: ClassVar[str] = "cms-solution-folder"
    schedule: FolderSchedulePart

    def build(self, folder: Path | None = None) -> Solution:
        """Build the solution; its arrays are read on demand."""
        assert folder is not None
        with f.blaming("schedule"):
            schedule = self.schedule.build(folder)
        return self.solution(schedule)


def read_solution(path: StrPath) -> Solution:
    """Read a solution from a JSON file, or the folder of a solution in shards.

    What it says is read, not believed: :func:`cms.check` and the certificate's ``bound`` tell
    whether it holds for a problem.

    Parameters
    ----------
    path : str or path-like
        The file or folder; ``-`` is standard input.

    Raises
    ------
    FileError
        ``file:line:column: what, expected what; fix``; also if its parts contradict each other.

    Examples
    --------
    >>> read_solution("none.json")
    Traceback (most recent call last):
    cms.errors.FileError: none.json: there is no such file
    """
    folder, kind = Path(path), "cms-solution-folder"
    if str(path) == "-" or not folder.is_dir():
        return solution_from_json(parse_document(path))
    document, there = read_folder_document(path, "solution.json", kind), folder.absolute()
    found: Solution = m.build(SolutionFolderDocument, document, folder=there)
    return found


def write_solution(solution: Solution, path: StrPath) -> None:
    """Write a solution to a JSON file, one group of machines a line; of shards to a folder.

    Parameters
    ----------
    solution : Solution
    path : str or path-like
        The file; ``-`` is standard output. Or the folder, which must not be there yet.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms import Configuration, Job, Problem, solve
    >>> problem = Problem(configurations=Configuration({"7g": 1}), jobs=[Job("a", 9, {"7g": 4})])
    >>> solution = solve(problem)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "solution.json"
    >>> write_solution(solution, path)
    >>> read_solution(path).schedule == solution.schedule
    True
    """
    schedule: Any = solution.schedule
    if isinstance(schedule, ShardedSchedule):
        write_solution_folder(
            lambda parts: SolutionFolderDocument.from_object(solution, schedule=parts).to_json(),
            schedule, Path(path),
        )  # fmt: skip
    else:
        write_document(lambda: solution_to_json(solution), path)


def solution_to_json(solution: Solution, shortage: Shortage | None = None) -> dict[str, Any]:
    """Turn a solution into the document that :func:`solution_from_json` reads."""
    kind: type = type(solution.schedule)
    if not issubclass(kind, Schedule):
        raise InvalidOption(f"a schedule of type {kind.__name__} has no document")
    return SolutionDocument.from_object(solution, shortage=shortage).to_json()


def solution_summary(solution: Solution) -> dict[str, Any]:
    """Return the document of a solution in shards without the blocks of its jobs."""
    schedule: Any = solution.schedule
    parts = FolderSchedulePart.describe(schedule, ())
    whole = SolutionFolderDocument.from_object(solution, schedule=parts).to_json()
    del whole["schedule"]["counts"]
    return whole | head("cms-solution")


def solution_from_json(document: Parsed | Mapping[str, Any]) -> Solution:
    """Turn a parsed document into a solution."""
    found: Solution = m.build(SolutionDocument, document)
    return found


def refuse_other_shortage(shortage: Parsed, problem: MachineProblem) -> None:
    """Check that a shortage is about the jobs, blocks and machine types of a problem."""
    jobs, blocks = dict.fromkeys(problem.job_names), dict.fromkeys(problem.blocks)
    types = dict.fromkeys(machine.name for machine in problem.machine_types)

    def check(value: Any) -> None:
        told = ShortagePart.model_validate(value).build()
        for job, own in told.unservable.items():
            f.refuse_unknown(job, "job", jobs, "unservable", job, at_key=True)
            for index, block in enumerate(own):
                f.refuse_unknown(block, "block", blocks, "unservable", job, index)
        for machine in told.more_machines or ():
            f.refuse_unknown(machine, "machine type", types, "more_machines", machine, at_key=True)

    m.read_as(shortage, check)
