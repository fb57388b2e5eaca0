"""``cms plan``: what it prints, writes and places, and what reaches the problem."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any, Literal

import pytest

from cms import solve
from cms.fleet import Plan, build_problem, read_operating_points, read_plan, read_services
from cms.fleet.deployment import Deployment, Instance, desired_state, read_deployment, read_nodes
from cms.fleet.placement import PlacementInfeasible, compact, place, place_plan
from tests.cli.shared import POINTS, ROOT, S1, SERVICES, TABLES, Cms, flat, fleet, written
from tests.fleet.plans import words_of
from tests.samples import few

PLAN = f"plan {TABLES}"
FREE: tuple[Literal["gpus", "nodes"], ...] = ("gpus", "nodes")
ODD = "[red]see[/red]"


@pytest.fixture
def odd(here: Path) -> Path:
    """The tables, with a name that could be taken for markup, and a whole GPU to choose."""
    services = (here / "s.csv").read_text("utf-8").replace("see,", f"{ODD},")
    (here / "s.csv").write_text(services, "utf-8")
    points = (here / "p.csv").read_text("utf-8") + "vgg,a100-80gb,7g.80gb,1,8,140,30\n"
    (here / "p.csv").write_text(points, "utf-8")
    return here


@pytest.fixture
def half(here: Path) -> str:
    """A plan of a service that half a GPU can serve, under the rule capacity."""
    (here / "s.csv").write_text(f"{SERVICES}chat,bert,300,60\n", "utf-8")
    (here / "p.csv").write_text(
        f"{POINTS}bert,a100-80gb,3g.40gb,1,8,320,25\nbert,a100-80gb,3g.40gb,1,1,100,10\n", "utf-8"
    )
    return "plan -s s.csv -p p.csv"


def test_plan_prints_bars_a_table_the_bound_and_the_proof(odd: Path, cms: Cms) -> None:
    out, err = cms(PLAN)
    assert err == ""
    lines = out.splitlines()
    assert lines[0] == "s"
    assert re.search(r"1 × │ 4g.40gb p=1 b=8 +│ 3g.40gb p=2 b=4 ", out)
    assert re.search(r"│ 2 \[red\]see\[/red\] +│ 1 chat", out)
    assert re.search(r"chat .*100 +120 +20 %  1 x 3g.40gb \(p=2 b=4, 120/s, 20 ms\)", out)
    assert lines[-2] == "1 GPU, lower bound 1: optimal, proof checked"
    assert re.fullmatch(r"\(auto, \d+\.\d\d s, ended with a proof\)", lines[-1])
    assert max(map(len, lines)) <= 100


def test_json_is_the_document_and_quiet_writes_alone(here: Path, cms: Cms) -> None:
    out, err = cms(PLAN, "--json -o made.json")
    assert (out, err) == ((here / "made.json").read_text("utf-8"), "")
    assert json.loads(out)["solution"]["status"] == "optimal"
    assert read_plan("made.json").services[0].provided_rps == 120
    assert cms(PLAN, "-q -o made.json --picture made.svg") == ("", "")
    assert re.fullmatch(r"<svg .*</svg>\s*", cms(PLAN, "--picture -").out, re.DOTALL)
    assert read_plan("made.json").solution.machine_count == 1
    ElementTree.parse("made.svg")


def test_scenario_s5_from_two_tables_is_planned_and_its_odd_figure_warned_about(cms: Cms) -> None:
    tables = [ROOT / "examples/services_s5.csv", ROOT / "instances/data/a100_operating_points.csv"]
    out, err = cms("plan -s", tables[0], "-p", tables[1], "--rule parvagpu --max-processes 3")
    assert err.startswith("warning: model mobilenetv2 on a100-80gb")
    assert "12 GPUs, lower bound 12: optimal, proof checked" in out


def test_warning_about_the_data_goes_to_stderr(here: Path, cms: Cms) -> None:
    text = (here / "p.csv").read_text("utf-8").replace(",20\n", ",0.02\n")
    (here / "p.csv").write_text(text, "utf-8")
    out, err = cms(PLAN)
    assert err.startswith("warning: ")
    assert "latency_ms looks like seconds" in err
    assert "warning" not in out
    for silent in ("--quiet", "--json"):
        assert cms(PLAN, silent).err == ""


def test_rates_are_multiplied_and_services_left_out(odd: Path, cms: Cms) -> None:
    more = "--scale 3 --scale chat=1/2 --cost a100-80gb=2 -o made.json"
    title = cms(PLAN, more).out.splitlines()[0]
    assert title == "s (what if: all rates x 3, chat x 0.5)"
    plan = read_plan("made.json")
    assert [each.wanted_rps for each in plan.services] == [50, 150]
    assert plan.solution.cost == 2 * (plan.solution.machine_count or 0)
    title = cms(PLAN, f"--drop {ODD} -o made.json").out.splitlines()[0]
    assert title == f"s (what if: without {ODD})"
    assert [each.service.name for each in read_plan("made.json").services] == ["chat"]
    assert cms(PLAN, f"--drop chat --drop {ODD} --json").json["solution"]["machine_count"] == 0
    assert "(what if: all rates x 2)" in cms(S1, "--scale 2").out.splitlines()[0]


def test_margin_and_growth_are_said(half: str, cms: Cms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cms.cli.searching.GROWTH_SECONDS", 600.0)  # the proof, however long
    out = cms(half).out
    assert re.search(r"All rates may grow by [\d.]+ % together on these GPUs \(proved most\)", out)
    assert "99 % within the limit" in out
    assert "may grow" not in cms(half, "--no-balance").out
    assert "may grow" not in cms(half, "--rule half").out
    document = cms(half, "--rate-margin 12.5% --json").json
    assert document["problem"]["jobs"][0]["demand"] == "337.5"
    assert document["promise"]["rate_margin"] == document["rate_margin"] == "0.125"


# --- infeasible -----------------------------------------------------------------------------------


def test_too_few_gpus_say_what_would_do(
    here: Path, cms: Cms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cms.cli.searching.SHORTAGE_SECONDS", 600)  # of a busy machine
    said = cms("plan --published S5 --max-gpus a100-80gb=11", code=3).flat
    assert "the GPUs do not suffice: there are only 11 x a100-80gb; allow more" in said
    assert "1 more a100-80gb GPU would do (proved fewest), or 92.4 % of every rate" in said
    assert "no schedule was found" in cms("plan --published S6 --time-limit 0", code=4).out
    said = cms(PLAN, "--max-gpus a100-80gb=0 -o none.json", code=3).flat
    assert "1 more a100-80gb GPU would do (proved fewest); not even 0.1 % of" in said
    found = json.loads((here / "none.json").read_text("utf-8"))["solution"]["shortage"]
    assert (found["more_machines"], found["less_demand"]) == ({"a100-80gb": 1}, 0)
    cms("check none.json")


# --- on GPUs that are there -----------------------------------------------------------------------


def test_plan_is_placed_on_a_table_of_nodes(here: Path, cms: Cms) -> None:
    said = cms("plan plan.json --nodes nodes.csv --picture target.svg").out
    assert "0: 8 of 8 slices used, nothing fits" in said
    assert "of a plan with 1 GPU: 1 GPU, lower bound 1: optimal, proof checked" in said
    assert "1 x a100-80gb on 1 node, 1 changed\n" in said
    assert "1 x a100-80gb on 1 node" in words_of((here / "target.svg").read_text("utf-8"))


def test_placed_plan_heeds_limits_of_its_gpus_by_any_of_their_names(here: Path, cms: Cms) -> None:
    for limit in ("--max-gpus A100-SXM4-80GB=0", "--fleet group.toml"):
        (here / "group.toml").write_text('[[group]]\nname = "all"\nmax = 0\n', "utf-8")
        assert "at most 0" in cms("plan plan.json --nodes nodes.csv", limit, code=3).flat
    said = cms("plan plan.json --nodes nodes.csv --max-gpus nosuch=1", code=2).err
    assert "unknown GPU 'nosuch'" in said


def test_placed_plan_keeps_what_runs_and_nodes_are_added(here: Path, cms: Cms) -> None:
    (here / "more.csv").write_text("node,gpu,count\nnode-b,a100-80gb,1\nnode-c,a100-80gb,4\n")
    out, err = cms("plan plan.json --current target.json --nodes more.csv")
    assert "7 GPUs on 3 nodes" in out
    assert "2 of 2 running instances kept (maximum, proof checked)" in out
    assert "node 'node-a' and 1 more was never observed" in err
    assert "plan: 2 instances kept, 0 services below their floor; 1 GPU, proved least" in flat(out)


def test_last_line_is_what_changes_what_it_costs_and_what_is_proved(here: Path, cms: Cms) -> None:
    (here / "fleet.toml").write_text(
        "[plan]\ncurrency = 'EUR'\n[gpus.a100-80gb]\nprice_per_hour = 2.5\n", "utf-8"
    )
    (here / "two.csv").write_text("node,gpu,count\na,a100-80gb,2\n", "utf-8")
    said = cms(PLAN, "--nodes two.csv -o now.json").flat
    assert said.endswith("plan: 2 instances created; 2.50 EUR/h, proved least")
    said = cms(PLAN, "--current now.json --scale chat=2").flat
    assert re.search(
        r"plan: 2 instances kept, 1 created, 0 [^;]*floor; 5.00 EUR/h \(\+100 %\)", said
    )
    said = cms(PLAN, "--current now.json --drop chat").flat
    assert said.endswith("below their floor; 2.50 EUR/h (0 %), proved least")
    assert "plan: 1 instance kept, 1 deleted, 0 services" in said
    (here / "fleet.toml").unlink()  # the plan knows its prices itself
    cms(PLAN, "--cost a100-80gb=2 -o plan.json -q")
    said = cms("plan plan.json --current now.json").flat
    assert "plan: 2 instances kept, 0 services below their floor; cost 2 (0 %), proved" in said


def test_constraints_of_a_dropped_service_are_left_out_and_said(here: Path, cms: Cms) -> None:
    (here / "fleet.toml").write_text(
        "[tables]\nservices = 's.csv'\noperating_points = 'p.csv'\n"
        "[placement]\nmin_replicas = { chat = 2 }\nanti_affinity = [['chat', 'see']]\n", "utf-8",
    )  # fmt: skip
    line = "left out, with the constraints that name it: 'chat'\n"
    assert cms("plan --rule parvagpu --drop chat --nodes nodes.csv -o a.json").err == line
    cms("plan --rule parvagpu --drop chat -o without.json -q")
    assert cms("plan without.json --nodes nodes.csv -o b.json").err == line
    assert same(read_deployment("a.json"), read_deployment("b.json"))
    (here / "s.csv").unlink()  # which is read for names that are not there alone
    assert "s.csv: there is no such file" in cms("plan without.json --nodes nodes.csv", code=1).err
    cms("plan plan.json --nodes nodes.csv -q -o c.json")
    cms("plan --compact --current c.json -q")


def test_json_names_a_cap_by_its_gpus(six: Path, cms: Cms) -> None:
    capped = "plan --published S2 --current today.json --max-gpus A100-SXM4-80GB=4 --json"
    (limit,) = cms(capped).json["plan"]["problem"]["group_limits"]
    assert (limit["name"], limit["at_most"]) == ("all a100-80gb GPUs", 4)


def test_no_place_exits_with_3_the_proof_and_what_would_do(here: Path, cms: Cms) -> None:
    written(fleet([[Instance("1g.10gb", 2, owner="pod team-x/a")]]), here / "taken.json")
    command = "plan plan.json --current taken.json -o no.json"
    said = cms(command, code=3).flat
    assert said.startswith("cannot be placed, proof checked: - ")
    assert "beside 1 foreign instance" in said or "node-a/0" in said
    assert "1 more a100-80gb would do: list it in --nodes" in said
    assert cms(command, "--json", code=3).json["proof"] == "checked"
    assert not (here / "no.json").exists()


@pytest.fixture
def six(here: Path, cms: Cms) -> Path:
    """S1 on six GPUs, in today.json."""
    (here / "six.csv").write_text("node,gpu,count\nnode-a,a100-80gb,6\n", "utf-8")
    cms(S1, "--nodes six.csv -o today.json -q")
    return here


def test_nearest_plan_is_written_as_a_deployment_that_checks(six: Path, cms: Cms) -> None:
    command = "plan --published S2 --current today.json --extra-cost 0"
    said = cms(command, "-o near.json --picture near.svg").flat
    assert "of a plan with 3 GPUs: 3 GPUs, lower bound 3: optimal, proof checked" in said
    assert "10 of 10 running instances kept (maximum, proof checked) of all plans" in said
    assert (six / "near.svg").read_text("utf-8").startswith("<svg")
    cms("check near.json")
    near = read_deployment("near.json")
    assert near.plan is not None
    assert cms(command, "--json").json["format"] == "cms-deployment"
    first = near.used_gpus()[0].with_instances(())  # emptied by hand
    written(near.with_gpus({(first.node, first.index): first}), six / "less.json")
    faults = cms("check less.json --json", code=1).json["faults"]
    assert {fault["kind"] for fault in faults} == {"capacity"}


def test_plan_for_too_few_gpus_that_are_there_exits_with_3_and_what_would_do(
    six: Path, cms: Cms
) -> None:
    near = "--current today.json"
    said = cms("plan --published S6", near, "-o no.json", code=3).flat
    assert "10 more a100-80gb GPUs would do (proved fewest)" in said
    told = cms("plan --published S6", near, "--json", code=3).json
    assert (told["solution"]["status"], told["solution"]["proof"]) == ("infeasible", "checked")
    written(fleet([[Instance("1g.10gb", 6, owner="pod x/a")]]), six / "taken.json")
    said = cms("plan --published S2 --current taken.json", code=3).flat
    assert "more a100-80gb GPUs would do" in said  # empty ones, not such as there are
    assert cms("plan --published S1 --current taken.json", code=3).flat.count("beside 1g.10gb@6")
    cms("plan --published S2", near, "--no-balance -q")
    cms("plan --published S2 --max-gpus a100-80gb=1", near, "-o no.json", code=3)
    assert not (six / "no.json").exists()


def test_plan_uses_what_is_left_of_gpus_of_two_types_at_the_price_of_each_node(
    here: Path, cms: Cms
) -> None:
    """Nothing is said of types: those that are there and were measured."""
    (here / "both.csv").write_text(
        (here / "p.csv").read_text("utf-8")
        + "bert,a30-24gb,2g.12gb,1,4,60,30\nbert,a30-24gb,4g.24gb,1,8,130,40\n", "utf-8",
    )  # fmt: skip
    (here / "chat.csv").write_text(SERVICES + "chat,bert,200,100\n", "utf-8")
    (here / "two.csv").write_text(
        "node,gpu,count,price_per_hour\na,a30-24gb,2,0.9\nb,a30-24gb,2,0.45\nc,a100-80gb,1,2.5\n",
        "utf-8",
    )
    (here / "fleet.toml").write_text('[plan]\ncurrency = "EUR"\n', "utf-8")
    command = "plan -s chat.csv -p both.csv --rule half --nodes two.csv"
    out = cms(command, "-o held.json").flat
    assert "2 x a30-24gb on 1 node, 2 changed" in out
    assert "0.90 EUR/h (least, proof checked)" in out
    cms("check held.json")
    plan = read_deployment("held.json").plan
    assert plan is not None
    assert {group.machine for group in plan.groups} == {"a30-24gb at 0.45"}
    (here / "group.toml").write_text(
        '[[group]]\nname = "budget"\ngpus = ["A30"]\nmax_cost = 0.8\n', "utf-8"
    )
    dear = cms(command, "--fleet group.toml").flat
    assert "2.5 (least, proof checked)" in dear
    err = cms(command, "--fleet group.toml --max-gpus a100-80gb=0", code=3).err
    assert "group budget: 0.9 instead of 0.8 would do, proved least" in err


def test_of_plans_at_one_cost_the_one_on_fewest_gpus_is_taken(here: Path, cms: Cms) -> None:
    """Two A30 cost as much as an A100, which serves as much."""
    (here / "one.csv").write_text(SERVICES + "chat,bert,40,100\n", "utf-8")
    (here / "two.csv").write_text(
        "model,device,profile,processes,batch,throughput_rps,latency_ms\n"
        "bert,a30-24gb,4g.24gb,1,1,20,10\nbert,a100-80gb,7g.80gb,1,1,40,10\n", "utf-8",
    )  # fmt: skip
    gpus = "--gpu a30-24gb --gpu a100-80gb --cost a100-80gb=2"
    found = cms("plan -s one.csv -p two.csv --rule plain --json", gpus).json
    assert [group["gpu"] for group in found["groups"]] == ["a100-80gb"]
    # one A100 serves both; an A30 that costs nothing serves one of them beside it
    (here / "one.csv").write_text(SERVICES + "chat,bert,20,100\nsee,vgg,40,100\n", "utf-8")
    (here / "two.csv").write_text(
        "model,device,profile,processes,batch,throughput_rps,latency_ms\n"
        "bert,a30-24gb,4g.24gb,1,1,20,10\nbert,a100-80gb,3g.40gb,1,1,20,10\n"
        "vgg,a100-80gb,3g.40gb,1,1,40,10\n", "utf-8",
    )  # fmt: skip
    (here / "fleet.toml").write_text(
        "[gpus.a30-24gb]\nprice_per_hour = 0\n[gpus.a100-80gb]\nprice_per_hour = 1\n"
        "[placement]\nspread = {see = 'node'}\n", "utf-8",
    )  # fmt: skip
    (here / "nodes.csv").write_text("node,gpu,count\na,a30-24gb,2\na,a100-80gb,1\n", "utf-8")
    said = cms("plan -s one.csv -p two.csv --rule plain --nodes nodes.csv --fleet fleet.toml").out
    assert "1 x a100-80gb on 1 node" in said
    assert "spread of see: node: costs 0 GPUs" in said


def test_what_runs_is_put_together(here: Path, cms: Cms) -> None:
    halves = next(iter(read_deployment("now.json").gpus())).instances
    written(fleet([halves, halves, halves, []]), here / "three.json")
    command = "plan --compact --current three.json"
    assert (
        "2 GPUs (the fewest, checked) after 1 restart; 1 GPU and 0 nodes come free"
        in cms(command, "--max-restarts 1 -o target.json").flat
    )
    assert "3 -> 2 GPUs" in cms("apply target.json --current three.json --dry-run").flat
    cms(command, "--max-restarts 0 -o target.json -q")
    assert cms("apply target.json --current three.json --dry-run --json").json["actions"] == []
    said = cms(command, "--max-restarts", ["0, 1"]).flat
    assert "at most 0: 3 GPUs (the fewest, checked) after 0 restarts; 0 GPUs" in said
    assert "at most 1: 2 GPUs (the fewest, checked) after 1 restart; 1 GPU" in said
    said = cms(command, "--free nodes").flat
    assert "1 node (the fewest, checked), 2 GPUs after 1 restart" in said


# --- each mode does what its function does --------------------------------------------------------


@pytest.mark.parametrize("seed", few(2, range(8)))
def test_modes_agree_with_the_functions_that_they_call(seed: int, here: Path, cms: Cms) -> None:
    rates = [20 + (37 * seed + 61 * at) % 200 for at in range(3)]
    (here / "s.csv").write_text(
        SERVICES + "".join(f"s{at},{'bert' if at else 'vgg'},{rate},100\n" for at, rate in
                           enumerate(rates)), "utf-8",
    )  # fmt: skip
    (here / "nodes.csv").write_text("node,gpu,count\na,a100-80gb,6\nb,a100-80gb,6\n", "utf-8")
    posed = build_problem(
        read_services("s.csv"), read_operating_points("p.csv"), ["a100-80gb"], rule="parvagpu"
    )
    cms(PLAN, "-q -o plan.json")
    made = read_plan("plan.json")
    assert made.serving.problem == posed.problem
    solution = solve(posed.problem)
    assert (made.solution.cost, made.solution.lower_bound) == (solution.cost, solution.lower_bound)

    placed = deployed(place(desired_state(made), read_nodes("nodes.csv")))
    cms("plan plan.json --nodes nodes.csv -q -o a.json")
    assert same(read_deployment("a.json"), placed)
    cms(PLAN, "--nodes nodes.csv -q -o b.json")
    assert same(read_deployment("b.json"), placed)

    before = read_deployment("a.json")
    (here / "s.csv").write_text((here / "s.csv").read_text("utf-8").replace(",2", ",4"), "utf-8")
    cms(PLAN, "-q --no-balance -o next.json")
    wanted = read_plan("next.json")
    cms("plan next.json --current a.json -q -o c.json")
    assert same(read_deployment("c.json"), deployed(place(desired_state(wanted), before)))
    cms(PLAN, "--current a.json -q -o d.json")
    near = read_deployment("d.json")
    found = place_plan(Plan(wanted.serving, solve(wanted.serving.problem)), before)
    assert kept(before, near) == kept(before, deployed(found))
    assert kept(before, near) >= kept(before, read_deployment("c.json"))

    for free in FREE:
        cms("plan --compact --current a.json -q -o e.json --free", free)
        packed = compact(before, free=free)
        assert same(read_deployment("e.json"), packed.deployment)


def deployed(found: Any) -> Deployment:
    assert not isinstance(found, PlacementInfeasible)
    deployment: Deployment = found.deployment
    return deployment


def same(one: Deployment, other: Deployment) -> bool:
    return one.nodes == other.nodes


def kept(before: Deployment, after: Deployment) -> int:
    """How many instances do the same in the same place."""
    there = {(gpu.name, each.place, each.work) for gpu, each in before.instances()}
    return sum((gpu.name, each.place, each.work) in there for gpu, each in after.instances())
