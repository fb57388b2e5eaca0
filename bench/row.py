"""A row: what came of one task, in plain values; one line of a results file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from fractions import Fraction
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from cms.errors import cut
from cms.files import number_to_json
from cms.values.numbers import exact

from .task import Task

#: No count, seed or time of a run is as large; a float of JSON can be infinite.
_MOST = 2**63
_MEASURED = Mapping[str, float | list[float]]
_EXACT = ("cost", "lower_bound", "claimed_bound", "gap")


class Outcome(StrEnum):
    """How a run ended.

    ``ANSWERED``: with an answer that was checked. ``OUT_OF_TIME``: a peer, a rule or a bound was
    ended at the limit.
    ``UNSUPPORTED``: the method cannot take the problem and says why. ``FAILED``: it crashed, did
    not stop, or said what does not hold.
    """

    ANSWERED = "answered"
    OUT_OF_TIME = "out_of_time"
    UNSUPPORTED = "unsupported"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """What came of one task; every suite's rows have the same fields.

    Sizes are None if the run ended before the instance was made. ``error`` says why it failed, or
    is unsupported. ``checker`` accepted the answer: "independent" (``proofs_checks.checker``, from
    files) or "cms". A peer's proof is its own word, "solver", its bound is claimed, and its gap is
    to its own bound. ``seconds`` are of the run alone. Memory is in bytes: the largest resident
    size of the run (or of the process), and that at its beginning. ``history`` has seconds, cost,
    lower bound and source; ``measurements`` further figures, or a relaxation's value.
    """

    key: str
    suite: str
    kind: str
    family: str
    arguments: Mapping[str, Any]
    module: str
    instance_sha256: str | None = None
    n: int | None = None
    blocks: int | None = None
    configurations: int | None = None
    machine_types: int | None = None
    algorithm: str
    options: Mapping[str, Any]
    seed: int
    time_limit: float
    threads: int | None = None
    warm_up: bool
    fresh: bool
    outcome: Outcome
    error: str | None = None
    status: str | None = None
    proof: str | None = None
    stop_reason: str | None = None
    checker: str | None = None
    cost: Fraction | None = None
    lower_bound: Fraction | None = None
    claimed_bound: Fraction | None = None
    gap: Fraction | None = None
    seconds: float | None = None
    make_seconds: float | None = None
    build_seconds: float | None = None
    check_seconds: float | None = None
    peak_memory: int | None = None
    memory_before: int | None = None
    passes: int | None = None
    guarantee: Mapping[str, str] = field(default_factory=dict)
    history_length: int | None = None
    history: tuple[tuple[Any, ...], ...] = ()
    measurements: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    cores: int | None = None

    @staticmethod
    def of(task: Task, **found: Any) -> RunRow:
        """Return the row of a task with what was found out."""
        if isinstance(found.get("error"), str):
            # A file's name may hold bytes that are no text; printed and kept, they are escaped.
            found["error"] = found["error"].encode(errors="backslashreplace").decode()
        return RunRow(
            key=task.key, suite=task.suite, kind=task.kind.value, family=task.source.family,
            arguments=dict(task.source.arguments), module=task.source.module, algorithm=task.method,
            options=dict(task.options), seed=task.seed, time_limit=task.time_limit,
            warm_up=task.warm_up, fresh=task.fresh, **found,
        )  # fmt: skip

    @property
    def instance(self) -> str:
        """The instance's source in words."""
        words = (f"{name}={value}" for name, value in self.arguments.items())
        return " ".join([self.family, *words])

    @property
    def proved(self) -> bool:
        """Whether the run ended with a proof, checked or a solver's word, within its limit."""
        return (
            self.outcome is Outcome.ANSWERED
            and self.status in ("optimal", "infeasible")
            and self.seconds is not None
            and self.seconds <= self.time_limit
        )

    @property
    def seconds_to_proof(self) -> float:
        """The run's seconds if it ended with a proof within its limit; otherwise the limit."""
        return self.seconds if self.proved and self.seconds is not None else self.time_limit

    def to_line(self) -> str:
        """Return it as one line of JSON, without the line end."""
        document = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        for name in _EXACT:
            value = document[name]
            document[name] = None if value is None else number_to_json(value)
        return json.dumps(document, separators=(",", ":"))

    @staticmethod
    def from_line(line: str) -> RunRow:
        """Read what :meth:`to_line` wrote."""
        try:
            document = json.loads(line)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        hints = get_type_hints(RunRow)
        if not isinstance(document, dict) or set(document) != set(hints):
            raise ValueError("it is no row of this version of bench")
        for name in _EXACT:
            value = document[name]
            document[name] = None if value is None else exact(value, name, nonnegative=False)
        document["outcome"] = Outcome(document["outcome"])
        for name, hint in hints.items():
            if not _is_of(document[name], _MEASURED if name == "measurements" else hint):
                raise ValueError(f"{name} is {cut(json.dumps(document[name], default=str))}")
        return RunRow(**{**document, "history": tuple(map(tuple, document["history"]))})


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type; numbers are finite."""
    if hint is Any:
        return True
    kind, inside = get_origin(hint), get_args(hint)
    if kind is UnionType:
        return any(_is_of(value, each) for each in inside)
    if kind is Mapping:
        return isinstance(value, dict) and all(_is_of(each, inside[1]) for each in value.values())
    if kind in (list, tuple):
        return isinstance(value, list) and all(_is_of(each, inside[0]) for each in value)
    if hint in (int, float):
        return type(value) in (int, hint) and abs(value) < _MOST
    return isinstance(value, hint)
