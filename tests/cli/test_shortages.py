"""``cms plan``: budgets, nodes and caps that are short, left out services, the last line, money."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cms.fleet import get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, State, read_deployment
from tests.cli.shared import SERVICES, TABLES, Cms, fleet, written

PLAN = f"plan {TABLES}"
A30 = get_gpu("a30-24gb")


@pytest.fixture
def dear(here: Path) -> str:
    """A service that one A30 at 2.5 serves, five A30, and a budget of 2."""
    (here / "a.csv").write_text(SERVICES + "chat,bert,20,\n", "utf-8")
    (here / "a30.csv").write_text(
        "model,device,profile,processes,batch,throughput_rps,latency_ms\n"
        "bert,a30-24gb,4g.24gb,1,4,25,160\n", "utf-8",
    )  # fmt: skip
    (here / "five.csv").write_text("node,gpu,count\nn,a30-24gb,5\n", "utf-8")
    (here / "fleet.toml").write_text(
        '[gpus.a30-24gb]\nprice_per_hour = 2.5\n[plan]\nrule = "plain"\ncurrency = "EUR"\n',
        "utf-8",
    )
    budget = (here / "fleet.toml").read_text("utf-8") + '[[group]]\nname = "b"\nmax_cost = 2\n'
    (here / "budget.toml").write_text(budget, "utf-8")
    return "plan -s a.csv -p a30.csv"


def test_no_more_gpus_are_promised_where_a_budget_is_short(dear: str, cms: Cms) -> None:
    said = cms(dear, "--nodes five.csv --fleet budget.toml", code=3).flat
    assert "allow more ([[group]] in fleet.toml)," in said
    assert "1 more a30-24gb GPU than the limits allow would do with group b at 2.5 (proved" in said
    cms(dear, "-o held.json")
    said = cms("plan held.json --nodes five.csv --fleet budget.toml", code=3).flat
    assert "at most 2 of group b" in said
    assert "would do" not in said


def test_too_few_nodes_are_to_be_listed_and_caps_to_be_raised(
    dear: str, here: Path, cms: Cms
) -> None:
    taken = FleetGpu("n", 0, A30, instances=(Instance("4g.24gb", 0, owner="pod x/a"),))
    node = FleetNode("n", (taken, FleetGpu("n", 1, A30)))
    written(Deployment((node,)), here / "one.json")
    said = cms(dear, "--current one.json --scale 2", code=3)
    assert "there are only 1 x a30-24gb; allow more (--nodes), lower" in said.flat
    assert "what runs was not counted" in said.err
    written(Deployment((replace(node, gpus=(taken,)),)), here / "none.json")
    assert "alone" not in cms(dear, "--current none.json", code=3).flat
    said = cms(dear, "--nodes five.csv --max-gpus a30-24gb=1 --scale 2", code=3)
    assert "at most 1 x a30-24gb may be used; allow more (--max-gpus), lower" in said.flat
    assert "all a30-24gb GPUs: 2 instead of 1 would do" in said.err


def test_services_that_are_left_out_are_in_no_constraint(dear: str, here: Path, cms: Cms) -> None:
    (here / "two.csv").write_text(
        "service,model,rate_rps,latency_limit_ms,anti_affinity\nchat,bert,20,,see\nsee,bert,9,,\n"
    )
    (here / "fleet.toml").write_text(
        "[placement]\nmin_replicas = { see = 2 }\nspread = { see = 'node' }\n"
        "max_per_gpu = { see = 1, chat = 1 }\nanti_affinity = [['chat', 'see']]\n", "utf-8",
    )  # fmt: skip
    command = "plan -s two.csv -p a30.csv --rule plain --nodes five.csv --drop see"
    assert "1 x a30-24gb on 1 node" in cms(command).out
    assert "max_per_gpu of chat: 1" in cms(command).out


def test_costs_are_told_in_their_currency_wherever_they_stand(dear: str, cms: Cms) -> None:
    verdict = "1 GPU; 2.50 EUR/h, lower bound 2.50 EUR/h: optimal, proof checked"
    assert verdict in cms(dear, "-o money.json").out
    assert verdict in cms("show money.json").out
    assert verdict in cms("check money.json").out
    assert verdict in cms(dear, "--nodes five.csv").out


def test_cap_is_told_by_its_gpus_wherever_it_comes_from(here: Path, cms: Cms) -> None:
    cap = "[gpus.a100-80gb]\nmax = 1\n"
    (here / "fleet.toml").write_text(cap, "utf-8")
    said = cms(PLAN, "--nodes nodes.csv --scale chat=2", code=3)
    assert "at most 1 x a100-80gb may be used; allow more" in said.flat
    assert "all a100-80gb GPUs: 2 instead of 1 would do" in said.err
    (here / "fleet.toml").write_text(f"{cap}[placement]\nmax_per_gpu = {{ see = 1 }}\n"
                                    "anti_affinity = [['chat', 'see']]\n", "utf-8")  # fmt: skip
    said = cms(PLAN, "--nodes nodes.csv", code=3)
    assert "at most 1 x a100-80gb may be used, and with more there is a placement" in said.flat


def test_last_line_counts_restarts_and_gpus_as_the_result_does(here: Path, cms: Cms) -> None:
    """What is broken goes on nowhere; a GPU beside a foreign instance is paid already."""
    cms(PLAN, "--nodes nodes.csv -q -o now.json")
    now = read_deployment("now.json")
    for state in (State.NO_COMPUTE_INSTANCE, State.SPLIT):
        cards = {
            (card.node, card.index): replace(card, instances=tuple(
                replace(each, state=state) if each.work and each.work.service == "chat" else each
                for each in card.instances
            ))
            for card in now.gpus()
        }  # fmt: skip
        written(now.with_gpus(cards), here / "broken.json")
        for command in (PLAN, "plan plan.json", "plan --compact"):
            said = cms(command, "--current broken.json").flat
            assert "plan: 1 instance kept, 1 restarted, 0 services below their floor" in said
            assert "1 of 2 running" in said or "after 1 restart;" in said
    foreign = Instance("1g.10gb", 6, owner="pod x/a")
    written(fleet([[foreign], [foreign]]), here / "held.json")
    (here / "s.csv").write_text(f"{SERVICES}chat,bert,100,100\n", "utf-8")
    said = cms(PLAN, "--current held.json").flat
    assert said.endswith("plan: 1 instance created; cost 0, proved least")
    (here / "dear.csv").write_text(
        "node,gpu,count,price_per_hour\na,a100-80gb,1,0.5\nb,a100-80gb,1,1.5\n", "utf-8"
    )
    (here / "s.csv").write_text(f"{SERVICES}chat,bert,300,100\n", "utf-8")
    assert cms(PLAN, "--nodes dear.csv").flat.endswith("created; cost 2, proved least")
