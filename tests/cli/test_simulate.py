"""``cms simulate``: its table, sentence, exit codes, files and errors."""

from __future__ import annotations

import io
import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cms.cli.app import run
from cms.cli.progress import CountProgress
from cms.fleet.serving import write_plan
from cms.fleet.simulation import read_simulation
from tests.cli.shared import COMMAND, POINTS, ROOT, SERVICES, error_of
from tests.fleet.mixes import plan as mixed

QUICK = ["--requests", "1500"]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "s.csv").write_text(SERVICES + "chat,bert,100,90\n<b>mail,bert,30,200\n")
    (folder / "p.csv").write_text(
        POINTS + "bert,a100-80gb,2g.20gb,2,4,200,40\nbert,a100-80gb,1g.10gb,1,2,50,40\n"
    )
    files = ["-s", str(folder / "s.csv"), "-p", str(folder / "p.csv")]
    assert run(["plan", "--rule", "parvagpu", *files, "-q", "-o", str(folder / "plan.json")]) == 0
    return str(folder / "plan.json")


def test_a_limit_is_kept_broken_with_its_cause_and_exit_code_1_or_open_with_a_warning(
    plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", plan, *QUICK, "--rate", "0.1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "2 of 2 limits kept under Poisson arrivals, weighted random routing, rates x 0.1" in out
    assert "this plan promised nothing about waiting (rule parvagpu)" in out
    assert run(["simulate", plan, *QUICK, "--rate", "9", "--routing", "shortest_queue"]) == 1
    out = capsys.readouterr().out
    assert "BROKEN" in out
    assert "requests/s at most" in out
    assert max(map(len, out.splitlines())) <= 100
    assert run(["simulate", plan, "--requests", "20", "--rate", "0.1", "--surge", "2@1+600"]) == 0
    warned = " ".join(capsys.readouterr().err.split())
    assert "chat is undecided" in warned
    assert "601 s: all rates x 1: the run ends before, after" in warned


def test_events_traces_and_files_that_are_the_same_for_a_seed_and_any_threads(
    plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "e.csv").write_text("seconds,what,target,value\n2,fail,gpu:0,1\n")
    (tmp_path / "t.csv").write_text("TIMESTAMP\n" + "".join(f"{at / 8}\n" for at in range(900)))
    out, picture = tmp_path / "sim.json", tmp_path / "sim.svg"
    code = run([
        "simulate", plan, "--events", str(tmp_path / "e.csv"), "--surge", "2@4+1", "--seconds", "9",
        "--arrivals", "gamma:2", "--arrivals", f"chat={tmp_path / 't.csv'}", "-o", str(out),
        "--picture", str(picture),
    ])  # fmt: skip
    assert code in (0, 1)
    document = json.loads(out.read_text())
    assert document["arrivals"] == f"gamma:2 (chat: {tmp_path / 't.csv'})"
    assert [event.split(": ")[1] for event in document["events"]] == [
        "GPU 0 fails, repaired after 1 s", "all rates x 2", "all rates x 1",
    ]  # fmt: skip
    assert sum(each["retried"] + each["lost"] for each in document["services"]) > 0
    assert "GPU 0 fails" in capsys.readouterr().out
    assert "&lt;b&gt;mail" in picture.read_text()
    for threads in ("1", "2"):
        wish = ["--threads", threads, "-q", "-o", str(tmp_path / threads)]
        run(["simulate", plan, *QUICK, "--surge", "3@1+2", "--seed", "7", *wish])
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        ("--routing fair", "'fair'"), ("--arrivals gamma:x", "--arrivals"), ("--surge 2", "'2'"),
        ("--rate -1", "rates"), ("--arrivals gamma:4 --arrivals poisson", "twice"),
        ("--picture x.png", "SVG"),
        ("--arrivals nope=t.csv", "'nope'; the services are chat, <b>mail"),
        ("--arrivals cht=poisson", "nearest: 'chat'"),
        ("--surge 1e400@1+1", "is about 1.000e400"), ("--seconds 1e400", "about 1.000e400 s"),
    ],
)  # fmt: skip
def test_a_wish_that_cannot_be_meant_is_exit_code_2(
    wish: str, says: str, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", plan, *QUICK, *wish.split()]) == 2
    assert says in error_of(capsys)


EVENTS = "seconds,what,target,value\n"
TRACE = "when,who\n1,chat\n"


@pytest.mark.parametrize(
    ("table", "wish", "says"),
    [
        ("when,who\n1,chat\n", "--column when --service-column user --arrivals", "'user'"),
        ("seconds\n1\n1e400\n", "--arrivals", "table.csv:3:1: '1e400'"),
        ("seconds,what,target,value\n1,fail,gpu:0,1e400\n", "--events", "table.csv:2: about"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_place(
    table: str, wish: str, says: str, plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "table.csv").write_text(table)
    assert run(["simulate", plan, *QUICK, *wish.split(), str(tmp_path / "table.csv")]) == 1
    assert says in error_of(capsys)


def test_no_plan_is_exit_code_1_and_one_without_a_schedule_is_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text('{"format": "cms-simulation", "schema": 1}')
    assert run(["simulate", str(tmp_path / "x.json")]) == 1
    assert "cms-plan" in error_of(capsys)
    (tmp_path / "s.csv").write_text(SERVICES + "chat,bert,100,90\n")
    (tmp_path / "p.csv").write_text(POINTS + "bert,a100-80gb,1g.10gb,1,2,50,40\n")
    files = ["-s", str(tmp_path / "s.csv"), "-p", str(tmp_path / "p.csv"), "-q"]
    limit = ["--max-gpus", "a100-80gb=0", "-o", str(tmp_path / "plan.json")]
    assert run(["plan", "--rule", "parvagpu", *files, *limit]) == 3
    capsys.readouterr()
    assert run(["simulate", str(tmp_path / "plan.json")]) == 3
    assert "has no schedule" in capsys.readouterr().err


@pytest.mark.parametrize("tty", [True, False])
def test_progress_is_a_bar_on_a_terminal_and_lines_elsewhere(tty: bool) -> None:
    stream: Any = io.StringIO()
    stream.isatty = lambda: tty
    seconds = iter([0.0, 1.0, 2.5, 2.6, 8.0])
    progress = CountProgress(stream, seconds.__next__)
    for done in (1, 25, 30, 80):
        progress(done, 100)
    progress.end()
    shown = stream.getvalue()
    assert len([s for s in shown.split("\r" if tty else "\n") if "of 100 requests" in s]) == 2
    assert shown.endswith("\r\x1b[K" if tty else "80 % of 100 requests\n")


def test_ctrl_c_prints_what_is_known_and_exits_with_130(plan: str) -> None:
    """A run of years; what it prints on the way says that it has begun."""
    process = subprocess.Popen(
        [*COMMAND, "simulate", plan, "--seconds", "100000000", "--rate", "0.5"],
        cwd=ROOT, text=True, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        assert "requests" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert "stopped before the end" in " ".join(out.split())
    assert "Traceback" not in err


@pytest.fixture(scope="module")
def framed(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("framed") / "plan.json"
    write_plan(mixed(), path)
    return str(path)


def test_frames_are_replayed_where_services_share_instances(
    framed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "sim.json"
    more = ["--requests", "1500", "--arrivals", "even"]
    assert run(["simulate", framed, *more, "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert "2 of 2 limits kept under evenly spaced arrivals, proportional routing" in said
    document = json.loads(out.read_text())
    assert (document["rule"], document["promised"], document["kept"]) == ("round_robin", True, 2)
    assert read_simulation(out).services[0].requests == 1500


@pytest.mark.parametrize(
    "options",
    [
        ["--routing", "two_choices"], ["--events", "e.csv"], ["--arrivals", "gamma:4"],
        ["--arrivals", "chat=poisson"],
    ],
)  # fmt: skip
def test_what_frames_do_not_heed_is_refused_by_name(
    framed: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["simulate", framed, *options]) == 2
    assert f"{options[0]}: " in (error := error_of(capsys))
    assert "share instances in time, whose frames are replayed" in error


MEASURED = (
    "model,device,profile,processes,batch,late_share,evidence,rates_rps,latencies_ms\n"
    "bert,a100-80gb,1g.10gb,3,4,0.01,measured,5 20 80,11 18 30\n"
)


def planned_with_curves(folder: Path, curves: str) -> str:
    """A service with a limit of 1.25 batch times, and one without."""
    (folder / "s.csv").write_text(SERVICES + "chat,bert,100,25\nmail,bert,20,\n")
    (folder / "p.csv").write_text(
        POINTS + "bert,a100-80gb,1g.10gb,3,4,600,20\nbert,a100-80gb,1g.10gb,3,1,180,17\n"
    )
    (folder / "c.csv").write_text(curves)
    asked = ["-s", str(folder / "s.csv"), "-p", str(folder / "p.csv")]
    asked += ["--load-curves", str(folder / "c.csv"), "-q", "-o", str(folder / "plan.json")]
    assert run(["plan", *asked]) == 0
    return str(folder / "plan.json")


def test_what_counts_on_a_measured_curve_is_not_replayed_by_batches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, sim = planned_with_curves(tmp_path, MEASURED), tmp_path / "sim.json"
    assert run(["simulate", made, *QUICK, "-o", str(sim)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "NOT REPLAYED: chat counts on a measured curve" in out
    assert "0 of 1 limits kept" in out
    document = json.loads(sim.read_text())
    assert (document["kept"], document["broken"], document["not_replayed"]) == (0, 0, 1)
    chat, mail = document["services"]
    assert (chat["verdict"], chat["requests"]) == ("not replayed", 0)
    assert (mail["verdict"], mail["requests"]) == ("no limit", 1500)  # its supply is no curve's
    assert run(["check", str(sim), "-q"]) == 0
    # nor is one that is called simulated and names no batches
    forged = planned_with_curves(tmp_path, MEASURED.replace("measured", "simulated"))
    assert run(["simulate", forged, *QUICK]) == 1
    assert "batch times" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("late", 900, "late"), ("lost", 1, None), ("requests", 10**6, "requests"),
        ("retried", 10**6, "retried"), ("late_share", ["0.2", "0.3"], "late"),
        ("tolerated", "0", "verdict"), ("verdict", "undecided", None),
        ("overloaded", True, "verdict"), ("limit_ms", 1, "late"), ("p50_ms", 0, "latency"),
        ("p90_ms", 1, "latency"), ("max_ms", 10**9, "seconds"), ("mean_ms", 10**6, "latency"),
        ("mean_fill", "0.5", "fill"), ("utilisation", 2, "utilisation"),
        ("seconds", 0, "seconds"), ("load", None, "load"), ("deepest_queue", 10**6, "queue"),
        ("recoveries.0.event", 7, "event"), ("recoveries.0.seconds", 3, "event"),
        ("recoveries", [], "timeline"), ("timeline", None, "timeline"),
        ("timeline.requests.0", 77, "timeline"), ("timeline.late.0", 77, "timeline"),
        ("timeline.mean_ms.0", 10**6, "timeline"), ("timeline.mean_ms", "swapped", "timeline"),
        ("timeline.cell_seconds", 10, "timeline"),
    ],
)  # fmt: skip
def test_a_simulation_that_contradicts_itself_is_refused_with_its_place(
    replays: str, tmp_path: Path, path: str, value: Any, kind: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    document = json.loads(Path(replays).read_text())
    inside: Any = document["services"][0]
    *way, last = path.split(".")
    for step in way:
        inside = inside[int(step)] if isinstance(inside, list) else inside[step]
    key: Any = int(last) if isinstance(inside, list) else last
    inside[key] = [2000 * i for i, _ in enumerate(inside[key])] if value == "swapped" else value
    edited = tmp_path / "edited.json"
    edited.write_text(json.dumps(document))
    code = run(["check", str(edited), "--json"])
    said = capsys.readouterr()
    if kind is None:  # the reader's own error, with line and column
        assert (code, "edited.json:" in said.out + said.err) == (1, True)
        return
    faults = json.loads(said.out)["faults"]
    assert code == 1
    assert kind in [each["kind"] for each in faults]
    assert "service 'chat'" in faults[0]["where"]


@pytest.fixture(scope="module")
def replays(plan: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of two events; nothing is wrong with it."""
    folder = tmp_path_factory.mktemp("replays")
    (folder / "e.csv").write_text("seconds,what,target,value\n2,fail,chat:0,1\n")
    wish = ["--events", str(folder / "e.csv"), "--surge", "2@4+1", *QUICK, "--rate", "0.1"]
    assert run(["simulate", plan, *wish, "-q", "-o", str(folder / "sim.json")]) == 0
    assert run(["check", str(folder / "sim.json"), "-q"]) == 0
    return str(folder / "sim.json")
