"""Days of shared GPUs as JSON documents (format ``cms-shared-day``): equal ones are equal files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from ....files import fields as f
from ....files import model as m
from ....files.documents import parse_document, write_document
from ....files.parsed import Parsed
from ....files.source import StrPath
from .latency import SampledGpu
from .loop import POLICIES
from .result import DayOfJobs, LimitVerdict, PlayedPolicy, SharedDay
from .terms import Terms

__all__ = ["read_shared_day", "shared_day_from_json", "shared_day_to_json", "write_shared_day"]


class _TermsPart(m.Part):
    MAKES: ClassVar[Any] = Terms
    hours: f.Count
    interval: f.Count
    quantile: f.Exact
    stay: f.Count
    dead_band: f.Count
    restart: f.Count
    job_hours: f.Exact
    arrivals_per_hour: f.Exact
    waiting_scale: f.Count
    tolerated: f.Exact
    sample: f.Count
    protection: f.Flag


class _JobsPart(m.Part):
    MAKES: ClassVar[Any] = DayOfJobs
    arrived: f.Count
    begun: f.Count
    ended: f.Count
    mean_completion_minutes: f.Exact | None
    p99_completion_minutes: f.Exact | None
    mean_wait_minutes: f.Exact | None
    largest_wait_minutes: f.Exact | None


class _SamplePart(m.Part):
    MAKES: ClassVar[Any] = SampledGpu
    gpu: f.Count
    requests: f.Count
    p99_ms: f.Exact
    alone_p99_ms: f.Exact


class _PolicyPart(m.Part):
    name: f.Text
    gpu_hours: f.Exact
    shared_gpu_hours: f.Exact
    over_gpu_hours: f.Exact
    throughput: f.Exact
    mean_slowdown: f.Exact
    p99_slowdown: f.Exact
    evictions: f.Count
    moves: f.Count
    restarts: f.Count
    starts: f.Count
    jobs: Annotated[DayOfJobs, m.Built(_JobsPart)]
    sample: tuple[Annotated[SampledGpu, m.Built(_SamplePart)], ...]

    def build(self) -> PlayedPolicy:
        f.refuse_unknown(self.name, "policy", POLICIES, "name")
        return PlayedPolicy(**dict(self))


class SharedDayDocument(m.Document):
    """A simulated day of shared GPUs."""

    KIND: ClassVar[str] = "cms-shared-day"
    problem_sha256: f.Text
    gpus: f.Count
    activity: f.Text
    seed: f.Count
    minutes: f.Count
    stopped: f.Flag
    limited: f.Flag
    unmeasured: f.Count
    verdict: LimitVerdict
    of_clairvoyant: f.Exact | None
    terms: Annotated[Terms, m.Built(_TermsPart)]
    policies: tuple[Annotated[PlayedPolicy, m.Built(_PolicyPart)], ...]

    def build(self) -> SharedDay:
        """Build the day; its verdicts must follow from its policies."""
        if not self.policies:
            raise f.refusal("one policy or more", "policies")
        told = dict(self)
        derived = {key: told.pop(key) for key in ("verdict", "of_clairvoyant")}
        day = SharedDay(**told)
        for key, value in derived.items():
            if value != getattr(day, key):
                raise f.refusal(f"{getattr(day, key)}, as the first policy's figures say", key)
        return day


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
    return shared_day_from_json(parse_document(path))


def shared_day_to_json(day: SharedDay) -> dict[str, Any]:
    """Turn a day into the document that :func:`shared_day_from_json` reads."""
    return SharedDayDocument.from_object(day).to_json()


def shared_day_from_json(document: Parsed | Mapping[str, Any]) -> SharedDay:
    """Turn a parsed document into a day.

    Parameters
    ----------
    document : Parsed or Mapping
        Of a parsed one, errors have the line and column of the file it was read from.

    Raises
    ------
    FileError
        Naming the value at fault.
    """
    found: SharedDay = m.build(SharedDayDocument, document)
    return found
