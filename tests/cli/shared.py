"""What the tests of the command line share: files, what commands print, and small fleets."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

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

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "cms"]
SERVICES = "service,model,rate_rps,latency_limit_ms\n"
POINTS = "model,device,profile,processes,batch,throughput_rps,latency_ms\n"
#: Two services that fit on one GPU, chat on 3g.40gb and see on 4g.40gb, by the rule parvagpu.
TABLES = "-s s.csv -p p.csv --rule parvagpu"
CURVES = "model,device,profile,processes,batch,late_share,evidence,rates_rps,latencies_ms\n"
S1 = "plan --published S1"
#: Offline workloads beside online services, by pairs that were measured.
MATCH = "colocate match --online online.csv --offline offline.csv"
#: Small files of every kind, by what they are for.
FILES = Path(__file__).parent
ONLINE, OFFLINE, PAIRS = (
    (FILES / "stock" / f"{name}.csv").read_text("utf-8") for name in ("online", "offline", "pairs")
)


class Said(NamedTuple):
    """What a command printed."""

    out: str
    err: str

    @property
    def flat(self) -> str:
        """The report with single blanks: tables and broken lines compare as they are read."""
        return flat(self.out)

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The one line on stderr; nothing may be on stdout."""
        return one_line(self.out, self.err)


#: Type a command: texts are split at blanks, paths and lists are taken as they are.
Cms = Callable[..., Said]


def flat(text: str) -> str:
    return " ".join(text.split())


def one_line(out: str, err: str) -> str:
    assert out == ""
    assert "Traceback" not in err
    assert err.count("\n") == 1, err
    assert err.startswith("error: ")
    return err


def error_of(capsys: pytest.CaptureFixture[str]) -> str:
    return one_line(*capsys.readouterr())


def words_of_command(*words: str | Path | list[str]) -> list[str]:
    found: list[str] = []
    for each in words:
        if isinstance(each, str):
            found += each.split()
        else:
            found += each if isinstance(each, list) else [str(each)]
    return found


# --- small fleets ---------------------------------------------------------------------------------

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
