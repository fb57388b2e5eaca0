"""Small fleets for the tests of the commands about them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from cms.fleet import OperatingPoint, Service, get_gpu
from cms.fleet.deployment import (
    Deployment,
    FleetGpu,
    FleetNode,
    Instance,
    Observation,
    Work,
    write_deployment,
)
from cms.fleet.serving import RULES
from tests.fleet.smi import card, log

A100 = get_gpu("a100-80gb")
LGI = """\
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|   0  MIG 3g.40gb          9        2          4:4     |
|   0  MIG 1g.10gb         19        7          0:1     |
"""
LOG = log(card("GPU-0"), card("GPU-1"))
#: When the files of the tests were written.
AT = "2026-11-23T10:00:00Z"
CUT = """\
version: v1
mig-configs:
  current:
  - devices: all
    mig-enabled: true
    mig-devices: {1g.10gb: 7}
"""


def work(profile: str = "3g.40gb", service: str = "chat") -> Work:
    point = OperatingPoint("bert", "a100-80gb", profile, 2, 4, 120, 20)
    return Work(service, point, Fraction(120))


def fleet(gpus: Sequence[Sequence[Instance]], at: str | None = None, **more: Any) -> Deployment:
    cards = tuple(
        FleetGpu("node-a", index, A100, instances=tuple(held), **more)
        for index, held in enumerate(gpus)
    )
    seen = None if at is None else Observation(at, ("lgi.txt",))
    node = FleetNode("node-a", cards, observed=seen)
    return Deployment((node,), (Service("chat", "bert", 100, 100),), RULES["parvagpu"])


def written(deployment: Deployment, path: Path) -> str:
    write_deployment(deployment, path)
    return str(path)


def put(path: Path, text: str, at: str = AT) -> None:
    """Write a file as of a time."""
    path.write_text(text, "utf-8")
    moment = datetime.fromisoformat(at).timestamp()
    os.utime(path, (moment, moment))
