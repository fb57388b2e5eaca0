"""What the tests of the command line share."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "cms"]
SERVICES = "service,model,rate_rps,latency_limit_ms\n"
POINTS = "model,device,profile,processes,batch,throughput_rps,latency_ms\n"


def error_of(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr; nothing may be on stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert err.count("\n") == 1, err
    assert err.startswith("error: ")
    return err
