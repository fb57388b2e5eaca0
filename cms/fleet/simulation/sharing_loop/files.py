"""Days of shared GPUs as JSON documents (format ``cms-shared-day``): equal ones are equal files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any

from ....files.documents import check_head, head, number_to_json, read_document, write_document
from ....files.node import Node
from ....files.source import StrPath
from .latency import SampledGpu
from .loop import POLICIES
from .result import DayOfJobs, PlayedPolicy, SharedDay
from .terms import Terms

__all__ = ["read_shared_day", "shared_day_from_json", "shared_day_to_json", "write_shared_day"]

FORMAT = "cms-shared-day"
_TERMS = tuple(each.name for each in fields(Terms))
_WHOLE_TERMS = ("hours", "interval", "stay", "dead_band", "restart", "waiting_scale", "sample")
_HOURS = ("gpu_hours", "shared_gpu_hours", "over_gpu_hours", "throughput")
_SLOWDOWNS = ("mean_slowdown", "p99_slowdown")
_COUNTS = ("evictions", "moves", "restarts", "starts")
_JOB_COUNTS = ("arrived", "begun", "ended")
_JOB_TIMES = DayOfJobs._fields[3:]
_POLICY = ("name", *_HOURS, *_SLOWDOWNS, *_COUNTS, "jobs", "sample")
_DAY = (
    *("format", "schema", "problem_sha256", "gpus", "activity", "seed", "minutes", "stopped"),
    *("limited", "unmeasured", "verdict", "of_clairvoyant", "terms", "policies"),
)


def write_shared_day(day: SharedDay, path: StrPath) -> None:
    """Write a day to a JSON file, a policy a line.

    Parameters
    ----------
    day : SharedDay
    path : str or path-like
        The file; ``-`` is standard output.

    Raises
    ------
    FileError
        If the file cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cms.fleet.sharing.edge_problems import posed
    >>> from cms.fleet.simulation.sharing_loop import share_day
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "day.json"
    >>> day = share_day(posed([], [], []), [], policies=["dedicated"])
    >>> write_shared_day(day, path)
    >>> read_shared_day(path) == day
    True
    """
    write_document(lambda: shared_day_to_json(day), path)


def read_shared_day(path: StrPath) -> SharedDay:
    """Read a day from a JSON file.

    Parameters
    ----------
    path : str or path-like
        The file; ``-`` is standard input.

    Raises
    ------
    FileError
        With line and column, if the file is no such day.
    """
    return shared_day_from_json(read_document(path, FORMAT))


def shared_day_to_json(day: SharedDay) -> dict[str, Any]:
    """Turn a day into the document that :func:`shared_day_from_json` reads."""
    part = day.of_clairvoyant
    return {
        **head(FORMAT),
        "problem_sha256": day.problem_sha256,
        "gpus": day.gpus,
        "activity": day.activity,
        "seed": day.seed,
        "minutes": day.minutes,
        "stopped": day.stopped,
        "limited": day.limited,
        "unmeasured": day.unmeasured,
        "verdict": day.verdict.value,
        "of_clairvoyant": None if part is None else number_to_json(part),
        "terms": {name: _plain(getattr(day.terms, name)) for name in _TERMS},
        "policies": [_policy(each) for each in day.policies],
    }


def _plain(value: Any) -> Any:
    return number_to_json(value) if isinstance(value, Fraction) else value


def _policy(each: PlayedPolicy) -> dict[str, Any]:
    return {
        "name": each.name,
        **{name: number_to_json(getattr(each, name)) for name in (*_HOURS, *_SLOWDOWNS)},
        **{name: getattr(each, name) for name in _COUNTS},
        "jobs": {name: _plain(value) for name, value in each.jobs._asdict().items()},
        "sample": [
            {name: _plain(value) for name, value in gpu._asdict().items()} for gpu in each.sample
        ],
    }


def shared_day_from_json(document: Node | Mapping[str, Any]) -> SharedDay:
    """Turn a parsed document into a day.

    Parameters
    ----------
    document : Node or Mapping
        With a node, errors have the line and column of the file it was read from.

    Raises
    ------
    FileError
        Naming the value at fault.
    """
    node = document if isinstance(document, Node) else Node(document)
    check_head(node, FORMAT)
    parts = node.object(_DAY)
    policies = tuple(_policy_of(entry) for entry in parts["policies"].array())
    if not policies:
        raise parts["policies"].wrong("one policy or more")
    day = SharedDay(
        problem_sha256=parts["problem_sha256"].text(),
        gpus=parts["gpus"].integer(),
        activity=parts["activity"].text(),
        seed=parts["seed"].integer(),
        minutes=parts["minutes"].integer(),
        stopped=parts["stopped"].boolean(),
        limited=parts["limited"].boolean(),
        unmeasured=parts["unmeasured"].integer(),
        terms=_terms_of(parts["terms"]),
        policies=policies,
    )
    parts["verdict"].agree(day.verdict.value, "what the first policy's hours over the limit say")
    part = day.of_clairvoyant
    expected = None if part is None else number_to_json(part)
    parts["of_clairvoyant"].agree(expected, "the first policy's throughput by the clairvoyant's")
    return day


def _terms_of(node: Node) -> Terms:
    parts = node.object(_TERMS)
    values: dict[str, Any] = {name: parts[name].integer() for name in _WHOLE_TERMS}
    values["protection"] = parts["protection"].boolean()
    values |= {name: parts[name].number() for name in _TERMS if name not in values}
    return node.build(Terms, **values)


def _policy_of(node: Node) -> PlayedPolicy:
    parts = node.object(_POLICY)
    jobs = parts["jobs"].object(DayOfJobs._fields)
    numbers: dict[str, Any] = {name: parts[name].number() for name in (*_HOURS, *_SLOWDOWNS)}
    numbers |= {name: parts[name].integer() for name in _COUNTS}
    became: dict[str, Any] = {name: jobs[name].integer() for name in _JOB_COUNTS}
    became |= {name: jobs[name].or_null(Node.number) for name in _JOB_TIMES}
    return PlayedPolicy(
        name=parts["name"].one_of(list(POLICIES)),
        **numbers,
        jobs=DayOfJobs(**became),
        sample=tuple(_sampled(entry) for entry in parts["sample"].array()),
    )


def _sampled(node: Node) -> SampledGpu:
    parts = node.object(SampledGpu._fields)
    return SampledGpu(
        parts["gpu"].integer(), parts["requests"].integer(),
        parts["p99_ms"].number(), parts["alone_p99_ms"].number(),
    )  # fmt: skip
