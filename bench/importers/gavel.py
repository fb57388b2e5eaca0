"""Gavel's throughputs of training jobs alone and in pairs on one GPU."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, Any

from pydantic import TypeAdapter

from cms.files.fields import Exact, Value, read_number
from cms.files.json_text import parse_json
from cms.files.model import read_as
from cms.files.parsed import Parsed
from cms.files.source import StrPath, read_source
from cms.fleet.colocation.weights import MeasuredPair, Profiles

#: No share was set: each of the two could use all SMs.
_WHOLE = 100
_ALONE = "null"
_APART = "_unconsolidated"
#: Of throughputs and slowdowns; the published figures are of runs that repeat to about a per cent.
_PLACES = 4
#: What stands under a job: its own speed alone; its speed and the other's beside another.
_BATCH = re.compile(r" \(batch size (\d+)\)$")


_PAIR = TypeAdapter(tuple[Exact, Exact])


def _read_speeds(value: Any) -> Any:
    """Read a job's speed alone, or its own and the other's beside another."""
    return _PAIR.validate_python(value) if isinstance(value, list) else read_number(value)


_Jobs = dict[str, dict[str, dict[str, Annotated[Any, Value(_read_speeds)]]]]


def read_gavel_pairs(path: StrPath) -> tuple[tuple[MeasuredPair, ...], Profiles]:
    """Read pairs of single-GPU jobs from a file of throughputs as Gavel publishes them.

    By GPU type and job ``('ResNet-18 (batch size 32)', 1)`` it has steps a second alone (``null``)
    and beside other jobs, ``[own, other]``. Jobs on several GPUs and types ``..._unconsolidated``
    are left aside.

    A pair is a row in each order, at a share of 100, since none was set. Throughputs are normalised
    by those alone and at most 1; slowdowns are their inverses. Pairs that could not run, which have
    throughputs of 0, are left out. Profiles have family, batch and steps a second alone.

    References
    ----------
    D. Narayanan et al., Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning
    Workloads, OSDI '20; ``scheduler/*_throughputs.json`` of stanford-futuredata/gavel (MIT).
    """
    source = read_source(path, holds="a JSON document")
    document = Parsed(parse_json(source), source)
    read: TypeAdapter[_Jobs] = TypeAdapter(_Jobs)
    pairs: dict[tuple[str, str, str], MeasuredPair] = {}
    profiles: dict[tuple[str, str], dict[str, Fraction | str | None]] = {}
    for device, jobs in read_as(document, read.validate_python).items():
        if device.endswith(_APART):
            continue
        alone = {}
        for key, name in _single(document.at(device)):
            if not isinstance(speed := jobs[name].get(_ALONE), Fraction):
                what = f'{document.label(device, name)} has no "{_ALONE}"'
                raise document.error(what, device, name, expected="steps a second alone")
            alone[key] = speed
            batch = _BATCH.search(key)
            profiles[key, device] = {
                "family": key[: batch.start()] if batch else key,
                "batch": Fraction(batch[1]) if batch else None,
                "solo_steps_per_s": speed,
            }
        for key, name in _single(document.at(device)):
            for other, beside in _single(document.at(device, name)):
                speeds = jobs[name][beside]
                if not isinstance(speeds, tuple):
                    raise document.wrong("two numbers", device, name, beside)
                if other not in alone:
                    what = f"{other!r} beside {key!r} has no throughput alone"
                    raise document.error(what, device, name, beside)
                own, its = speeds
                if own and its and alone[key] and alone[other]:
                    part, slower = own / alone[key], its / alone[other]
                    pairs[other, key, device] = MeasuredPair(
                        other, key, device, _WHOLE, min(round(part, _PLACES), Fraction(1)),
                        max(round(1 / slower, _PLACES), Fraction(1)),
                    )  # fmt: skip
    return tuple(pairs.values()), Profiles(profiles)


def _single(jobs: Parsed) -> Iterator[tuple[str, str]]:
    """Yield the names of jobs on one GPU, and the keys under which something is said of them."""
    for text in jobs.value:
        if text == _ALONE:
            continue
        try:
            name, gpus = ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            what = f"the job {text[:80]!r} cannot be read"
            raise jobs.error(what, text, expected="('name', number of GPUs)") from None
        if gpus == 1 and isinstance(name, str):
            yield name, text
