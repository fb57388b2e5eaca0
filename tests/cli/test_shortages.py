"""``cms plan``: budgets, nodes and caps that are short, services left out, and money."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cms.fleet import get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance
from tests.cli.shared import SERVICES, Cms, written

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
