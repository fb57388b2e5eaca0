"""A published table of measurements that no licence covers: read where its user points to it."""

from __future__ import annotations

import csv
import os
from fractions import Fraction
from pathlib import Path

import pytest

from cms import DutyCycleRule, TimeSharedJob, TimeSharedProblem
from instances.families.time_sharing import pairs

VARIABLE = "CMS_GPULET_TABLE"
#: Model and latency limit in seconds of the services of gpulet's third scenario.
SCENARIO_3 = {"resnet50": "0.108", "vgg16": "0.142", "mobilenet": "0.064"}

Table = dict[str, dict[str, list[tuple[int, Fraction]]]]


def table() -> Table:
    """Read ``model,batch,per cent,throughput,x,latency,y,flag``, or skip the test."""
    path = os.environ.get(VARIABLE)
    if not path:
        pytest.skip(f"{VARIABLE} names no file: the measured table has no licence to be shipped")
    found: Table = {}
    with Path(path).open(encoding="utf-8", newline="") as file:
        for model, batch, share, _, throughput, _, _, flag in csv.reader(file):
            if flag == "1":
                points = found.setdefault(model, {}).setdefault(f"mps:{share}", [])
                points.append((int(batch), int(batch) / Fraction(throughput)))
    return found


def scenario_3(
    points: Table, rate: int, rule: DutyCycleRule, *, max_jobs: int | None = None
) -> TimeSharedProblem:
    """Three services of one rate, as measured."""
    return TimeSharedProblem(
        configurations=pairs(),
        jobs=[
            TimeSharedJob(model, rate, limit, points[model]) for model, limit in SCENARIO_3.items()
        ],
        rule=rule,
        max_jobs=max_jobs,
    )
