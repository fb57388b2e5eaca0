"""What the tests of the command line share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

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
