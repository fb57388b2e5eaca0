"""``cms simulate`` and ``cms calibrate``: tables, exit codes and files; load curves."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms.cli.app import run
from cms.fleet import read_load_curves, read_operating_points, read_plan
from cms.fleet.deployment import State, read_deployment
from cms.fleet.serving import write_plan
from cms.fleet.serving.document_parts import curves_to_json
from cms.fleet.simulation import read_simulation
from tests.cli.shared import COMMAND, POINTS, ROOT, SERVICES, Cms, flat, written
from tests.fleet.plans import plan as mixed

QUICK = "--requests 1500"


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "s.csv").write_text(SERVICES + "chat,bert,100,90\n<b>mail,bert,30,200\n")
    (folder / "p.csv").write_text(
        POINTS + "bert,a100-80gb,2g.20gb,2,4,200,40\nbert,a100-80gb,1g.10gb,1,2,50,40\n"
    )
    files = ["-s", str(folder / "s.csv"), "-p", str(folder / "p.csv")]
    assert run(["plan", "--rule", "parvagpu", *files, "-q", "-o", str(folder / "plan.json")]) == 0
    return folder / "plan.json"


def test_limit_is_met_or_violated_with_its_cause_or_open(plan: Path, cms: Cms) -> None:
    said = cms("simulate", plan, QUICK, "--scale 0.1").flat
    assert "2 of 2 limits met under Poisson arrivals, weighted random routing, rates x 0.1" in said
    assert "this plan promised nothing about waiting (rule parvagpu)" in said
    out = cms("simulate", plan, QUICK, "--scale 9 --routing shortest_queue", code=1).out
    assert "VIOLATED" in out
    assert "requests/s at most" in out
    assert max(map(len, out.splitlines())) <= 100
    warned = flat(cms("simulate", plan, "--requests 20 --scale 0.1 --surge 2@1+600").err)
    assert "chat is undecided" in warned
    assert "601 s: all rates x 1: the run ends before, after" in warned


def test_events_and_traces_are_the_same_for_any_threads(
    plan: Path, tmp_path: Path, cms: Cms
) -> None:
    (tmp_path / "e.csv").write_text("seconds,what,target,value\n2,fail,gpu:0,1\n")
    (tmp_path / "t.csv").write_text("TIMESTAMP\n" + "".join(f"{at / 8}\n" for at in range(900)))
    out = cms(
        "simulate", plan, "--events e.csv --surge 2@4+1 --seconds 9 --arrivals gamma:2",
        "--arrivals chat=t.csv -o sim.json --picture sim.svg", code=(0, 1),
    ).out  # fmt: skip
    document = json.loads((tmp_path / "sim.json").read_text())
    assert document["arrivals"] == "gamma:2 (chat: t.csv)"
    assert [event.split(": ")[1] for event in document["events"]] == [
        "GPU 0 fails, repaired after 1 s", "all rates x 2", "all rates x 1",
    ]  # fmt: skip
    assert sum(each["retried"] + each["lost"] for each in document["services"]) > 0
    assert "GPU 0 fails" in out
    assert "&lt;b&gt;mail" in (tmp_path / "sim.svg").read_text()
    for n in "12":
        more = f"--surge 3@1+2 --seed 7 --threads {n} -q -o {n}"
        cms("simulate", plan, QUICK, more, code=(0, 1))
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_deployment_is_replayed_with_the_instances_that_it_has(
    tmp_path: Path, plan: Path, cms: Cms
) -> None:
    """What runs is kept, so that the instances are others than those of the plan as it was made."""
    tables = f"-s {plan.parent}/s.csv -p {plan.parent}/p.csv --rule parvagpu"
    (tmp_path / "nodes.csv").write_text("node,gpu,count\na,a100-80gb,2\n")
    cms("plan", tables, "--nodes nodes.csv --scale 3 -q -o now.json")
    cms("plan", tables, "--current now.json -q -o near.json")
    for name, file in (("of-plan", plan), ("of-now", "now.json"), ("of-near", "near.json")):
        cms("simulate", file, QUICK, "-q -o", f"{name}.json", code=(0, 1))
    near, runs = read_simulation("of-near.json"), read_deployment("near.json")
    own = Counter(each.work.service for _, each in runs.instances() if each.work is not None)
    assert {each.name: each.instances for each in near.services} == own
    written(replace(runs, plan=None), tmp_path / "bare.json")
    assert "this deployment says nothing of rates" in cms("simulate bare.json", code=1).error
    gone = "chat"  # none of its instances can serve
    for state in (State.NO_COMPUTE_INSTANCE, State.SPLIT, State.DRAINING):
        cards = {
            (card.node, card.index): replace(card, instances=tuple(
                replace(each, state=state) if each.work and each.work.service == gone else each
                for each in card.instances
            ))
            for card in runs.gpus()
        }  # fmt: skip
        written(runs.with_gpus(cards), tmp_path / "broken.json")
        assert f"{gone}: no instance serves it" in cms("simulate broken.json", QUICK, code=1).out
    changes: tuple[tuple[str, int, dict[str, Any]], ...] = (
        ("rate_rps", 1, {"rate_rps": Fraction(1)}),
        ("latency_limit_ms", 9999, {"latency_limit_ms": Fraction(9999)}),
    )
    for what, value, change in changes:
        other = tuple(replace(one, **change) for one in runs.services)
        written(replace(runs, services=other), tmp_path / "other.json")
        error = cms("simulate other.json", code=1).error
        assert f"other.json: service '{gone}' has {what} {value} here and " in error


def test_plan_without_a_schedule_is_exit_code_3(plan: Path, cms: Cms) -> None:
    tables = f"-s {plan.parent}/s.csv -p {plan.parent}/p.csv --rule parvagpu"
    cms("plan", tables, "--max-gpus a100-80gb=0 -q -o none.json", code=3)
    assert "has no schedule" in cms("simulate none.json", code=3).err


def test_ctrl_c_prints_what_is_known_and_exits_with_130(plan: Path) -> None:
    """A run of years; what it prints on the way says that it has begun."""
    process = subprocess.Popen(
        [*COMMAND, "simulate", str(plan), "--seconds", "100000000", "--scale", "0.5"],
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
    assert "stopped before the end" in flat(out)
    assert "Traceback" not in err


@pytest.fixture
def cycled(tmp_path: Path) -> None:
    write_plan(mixed(), tmp_path / "plan.json")


@pytest.mark.usefixtures("cycled")
def test_cycles_are_replayed_where_services_share_instances(tmp_path: Path, cms: Cms) -> None:
    said = cms("simulate plan.json", QUICK, "--arrivals even -o sim.json").out
    assert "2 of 2 limits met under evenly spaced arrivals, proportional routing" in said
    document = json.loads((tmp_path / "sim.json").read_text())
    assert (document["rule"], document["promised"], document["met"]) == ("round_robin", True, 2)
    assert read_simulation("sim.json").services[0].requests == 1500


@pytest.mark.usefixtures("cycled")
@pytest.mark.parametrize(
    "more",
    ["--routing two_choices", "--events e.csv", "--arrivals gamma:4", "--arrivals chat=poisson"],
)
def test_what_cycles_do_not_heed_is_refused_by_name(more: str, cms: Cms) -> None:
    error = cms("simulate plan.json", more, code=2).error
    assert f"{more.split()[0]}: " in error
    assert "share instances in time, whose duty cycles are replayed" in error


MEASURED = (
    "model,device,profile,processes,batch,late_share,evidence,rates_rps,latencies_ms\n"
    "bert,a100-80gb,1g.10gb,3,4,0.01,measured,5 20 80,11 18 30\n"
)


def test_what_counts_on_a_measured_curve_is_not_replayed(tmp_path: Path, cms: Cms) -> None:
    """A service with a limit of 1.25 batch times, and one without."""
    (tmp_path / "s.csv").write_text(SERVICES + "chat,bert,100,25\nmail,bert,20,\n")
    (tmp_path / "p.csv").write_text(
        POINTS + "bert,a100-80gb,1g.10gb,3,4,600,20\nbert,a100-80gb,1g.10gb,3,1,180,17\n"
    )
    planned = "plan -s s.csv -p p.csv --load-curves c.csv -q -o plan.json"
    (tmp_path / "c.csv").write_text(MEASURED)
    cms(planned)
    said = cms("simulate plan.json", QUICK, "-o sim.json", code=1).flat
    assert "NOT REPLAYED: chat counts on a measured curve" in said
    assert "0 of 1 limits met" in said
    document = json.loads((tmp_path / "sim.json").read_text())
    assert (document["met"], document["violated"], document["not_replayed"]) == (0, 0, 1)
    chat, mail = document["services"]
    assert (chat["verdict"], chat["requests"]) == ("not replayed", 0)
    assert (mail["verdict"], mail["requests"]) == ("no limit", 1500)  # its supply is no curve's
    cms("check sim.json -q")
    # nor is one that is called simulated and names no batches
    (tmp_path / "c.csv").write_text(MEASURED.replace("measured", "simulated"))
    cms(planned)
    assert "batch times" in cms("simulate plan.json", QUICK, code=1).flat


@pytest.mark.parametrize(
    ("path", "value", "kind"),
    [
        ("late", 900, "late"), ("lost", 1, None), ("requests", 10**6, "requests"),
        ("retried", 10**6, "retried"), ("late_share", ["0.2", "0.3"], "late"),
        ("tolerated", "0", "verdict"), ("verdict", "undecided", None),
        ("overloaded", True, "verdict"), ("limit_ms", 1, "late"), ("p50_ms", 0, "latency"),
        ("p90_ms", 1, "latency"), ("max_ms", 10**9, "seconds"), ("mean_ms", 10**6, "latency"),
        ("mean_batch_size", "0.5", "batch"), ("utilisation", 2, "utilisation"),
        ("seconds", 0, "seconds"), ("load", None, "load"), ("deepest_queue", 10**6, "queue"),
        ("recoveries.0.event", 7, "event"), ("recoveries.0.seconds", 3, "event"),
        ("recoveries", [], "timeline"), ("timeline", None, "timeline"),
        ("timeline.requests.0", 77, "timeline"), ("timeline.late.0", 77, "timeline"),
        ("timeline.mean_ms.0", 10**6, "timeline"), ("timeline.mean_ms", "swapped", "timeline"),
        ("timeline.cell_seconds", 10, "timeline"),
    ],
)  # fmt: skip
def test_simulation_that_contradicts_itself_is_refused_with_its_place(
    replays: Path, tmp_path: Path, path: str, value: Any, kind: str | None, cms: Cms
) -> None:
    document = json.loads(replays.read_text())
    inside: Any = document["services"][0]
    *way, last = path.split(".")
    for step in way:
        inside = inside[int(step)] if isinstance(inside, list) else inside[step]
    key: Any = int(last) if isinstance(inside, list) else last
    inside[key] = [2000 * i for i, _ in enumerate(inside[key])] if value == "swapped" else value
    (tmp_path / "edited.json").write_text(json.dumps(document))
    said = cms("check edited.json --json", code=1)
    if kind is None:  # the reader's own error, with line and column
        assert "edited.json:" in said.out + said.err
        return
    faults = said.json["faults"]
    assert kind in [each["kind"] for each in faults]
    assert "service 'chat'" in faults[0]["where"]


@pytest.fixture(scope="module")
def replays(plan: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of two events; nothing is wrong with it."""
    folder = tmp_path_factory.mktemp("replays")
    (folder / "e.csv").write_text("seconds,what,target,value\n2,fail,chat:0,1\n")
    wish = ["--events", str(folder / "e.csv"), "--surge", "2@4+1", *QUICK.split()]
    out = ["--scale", "0.1", "-q", "-o", str(folder / "sim.json")]
    assert run(["simulate", str(plan), *wish, *out]) == 0
    assert run(["check", str(folder / "sim.json"), "-q"]) == 0
    return folder / "sim.json"


@pytest.fixture
def files(tmp_path: Path) -> None:
    """A service that half a GPU can serve, and points of one and of three processes."""
    (tmp_path / "s.csv").write_text(f"{SERVICES}chat,bert,300,60\n", "utf-8")
    (tmp_path / "p.csv").write_text(
        f"{POINTS}bert,a100-80gb,3g.40gb,1,8,320,25\nbert,a100-80gb,3g.40gb,1,1,100,10\n"
        "bert,a100-80gb,3g.40gb,3,8,900,27\n",
        "utf-8",
    )
    (tmp_path / "one.csv").write_text(f"{POINTS}bert,a100-80gb,3g.40gb,1,1,100,10\n", "utf-8")


@pytest.mark.usefixtures("files")
def test_load_curves_are_made_once_and_planned_with(tmp_path: Path, cms: Cms) -> None:
    quick = "--requests 1000 --max-processes 1"
    assert cms("calibrate p.csv -o curves.csv", quick).out == ""  # progress is beside it
    found = read_load_curves("curves.csv")
    assert [key[3:] for key in found] == [(1, 8), (1, 1)]
    cms("plan -s s.csv -p p.csv --max-processes 1 --load-curves curves.csv -o plan.json")
    made = read_plan("plan.json")
    ((point,),) = made.serving.points.values()
    entry = json.loads((tmp_path / "plan.json").read_text("utf-8"))["operating_points"][0]
    assert entry["evidence"] == "simulated"
    assert entry["fill_ms"] == {"1": 10, "8": 25}
    curve = found["bert", "a100-80gb", "3g.40gb", 1, 8]
    (use,) = made.services[0].uses
    assert use.point == point == read_operating_points("p.csv")[0]
    limit = made.serving.services[0].latency_limit_ms
    assert limit is not None
    assert 0 <= curve.sustained(limit) - use.supply_rps < 1


@pytest.mark.usefixtures("files")
def test_load_curves_go_to_stdout_as_a_table_or_as_json(tmp_path: Path, cms: Cms) -> None:
    quick = "calibrate one.csv --requests 1000 --late-share 5%"
    (tmp_path / "curves.csv").write_text(cms(quick).out, "utf-8")
    curves = cms(quick, "--json").json["load_curves"]
    assert curves == curves_to_json(read_load_curves("curves.csv"))
    assert [curves[0][key] for key in ("model", "batch", "evidence")] == ["bert", 1, "simulated"]
    cms("calibrate one.csv --requests 1000 --late-share 99.99% -q")  # its requests tell so much
    (tmp_path / "fleet.toml").write_text('[tables]\noperating_points = "one.csv"\n', "utf-8")
    assert cms(quick.replace(" one.csv", "")).out == (tmp_path / "curves.csv").read_text("utf-8")
