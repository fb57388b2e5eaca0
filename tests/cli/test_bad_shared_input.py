"""Bad inputs of plans whose services share instances: each names the thing and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from cms.cli.app import run
from tests.cli.shared import POINTS, SERVICES, error_of

FILES = {
    "s": SERVICES + "chat,bert,1000,60\n",
    "p": POINTS + "bert,a100-80gb,mps:50,1,8,800,10\n",
    "i": "model,device,profile,batch,beside_model,beside_batch,slowdown\n"
    "bert,a100-80gb,mps:50,8,bert,8,1.25\n",
    "u": "model,device,profile,batch,l2_util,dram_util\nbert,a100-80gb,mps:50,8,60,30\n",
    "o": "batch,overhead_ms\n8,1\n",
}
BESIDE = "--interference i.csv"


@pytest.mark.parametrize(
    ("altered", "options", "message"),
    [
        (("s", "60\n", "\n"), "", "service 'chat' has no latency limit"),
        (("s", ",1000,", ",-1,"), "", 'rate_rps is "-1"'),
        (("p", "mps:50,1", "mps:50,2"), "", "has processes = 2"),
        (("p", "bert,a", "brt,a"), "", "bert"),
        (("o", "8,1", "4,1"), "--headroom gpulet --batching-overheads o.csv", "batch of 8"),
        (("o", "8,1", "8,-1"), "--headroom gpulet --batching-overheads o.csv", '"-1"'),
        (("s", "", ""), "--rule rond_robin", "nearest: 'round_robin'"),
        (("s", "", ""), "--rate-margin -5%", "--rate-margin"),
        (("i", "1.25", "0"), BESIDE, 'slowdown is "0", expected a number > 0'),
        (("i", "mps:50", "mps:100"), BESIDE, "which shares its GPU with no other"),
        (("i", "bert,8,1", "vgg,8,1"), BESIDE, "the first: bert on a100-80gb, mps:50, batch 8"),
        (("i", "a100-80gb", "h100-80gb"), BESIDE, "no share of this GPU"),
        (("u", "", ""), f"{BESIDE} --utilisations u.csv", "1 pair does not tell the five"),
        (("u", "a100", "h100"), f"{BESIDE} --utilisations u.csv", "no measured pair"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_said(
    altered: tuple[str, str, str],
    options: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, old, new = altered
    for key, text in FILES.items():
        (tmp_path / f"{key}.csv").write_text(
            text.replace(old, new) if key == name and old else text
        )
    monkeypatch.chdir(tmp_path)
    given = ["plan", "-s", "s.csv", "-p", "p.csv", "--sharing", "time", "-q", *options.split()]
    assert run(given) in (1, 2)
    assert message in error_of(capsys)
