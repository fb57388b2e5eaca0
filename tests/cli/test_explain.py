"""``cms explain``: why a service is served so, and what would save a GPU."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from cms.cli.progress import Doing
from cms.fleet import read_plan, rightsize
from cms.fleet.report.what_if import rightsized_page
from cms.fleet.what_if.least import Outcome
from tests.cli.shared import POINTS, SERVICES, Cms, flat
from tests.fleet.plans import printed

BOTH = pytest.mark.parametrize("service", ["chat", ""])


def test_explanation_says_what_each_choice_costs_and_what_that_means(here: Path, cms: Cms) -> None:
    said = cms("explain plan.json chat")
    lines = said.out.splitlines()
    assert said.err == ""
    assert lines[0] == "plan.json: why chat is served so"
    assert lines[1] == "chat (bert): 100 requests/s within 100 ms"
    assert "Gets 120 requests/s from 1 x 3g.40gb (p=2 b=4, 120/s, 20 ms)." in lines
    (row,) = (line for line in lines if line.startswith("3g.40gb"))
    assert row.split()[1:4] == ["120", "1", "1/3"]
    assert row.endswith("1: >= 1 (+0)  impossible")
    assert "of no use to it (too slow, not allowed or not measured): 4g.40gb" in said.out
    assert "It is a bound, no promise: such a plan may cost more, and there may be" in said.flat
    assert "the service pays 0.3333 of the bound, which is 1 GPU." in said.flat
    assert "1 GPU, lower bound 1: optimal, proof checked" in said.out
    assert max(map(len, lines)) <= 100


def test_json_is_one_document_on_stdout_and_the_same_in_the_file(here: Path, cms: Cms) -> None:
    out, err = cms("explain plan.json see --json -o why.json")
    assert (out, err) == ((here / "why.json").read_text("utf-8"), "")
    document = json.loads(out)
    assert (document["service"], document["cost"], document["lower_bound"]) == ("see", 1, 1)
    (four,) = document["choices"]
    assert (four["profile"], four["count"], four["needed"]) == ("4g.40gb", 1, 1)
    assert four["without"] == {"possible": False, "bound": None, "more": None, "at_least": None}
    assert cms("explain plan.json see -q") == ("", "")


@BOTH
def test_infeasible_plan_says_where_to_look(service: str, here: Path, cms: Cms) -> None:
    (here / "s.csv").write_text(f"{SERVICES}chat,bert,100,1\n", "utf-8")
    cms("plan -s s.csv -p p.csv --rule plain -q -o lost.json", code=3)
    said = cms("explain lost.json", service, code=3).err
    assert "lost.json: the plan is infeasible, so that nothing can be explained" in said
    assert "'cms plan' says why" in said
    assert json.loads(cms("explain lost.json --json", service, code=3).err)["exit_code"] == 3


@BOTH
def test_plan_that_does_not_hold_is_not_believed(service: str, here: Path, cms: Cms) -> None:
    document = json.loads((here / "plan.json").read_text("utf-8"))
    prices = document["solution"]["certificate"]["tree"]["prices"]
    prices[next(iter(prices))] = 2
    (here / "wrong.json").write_text(json.dumps(document), "utf-8")
    out = cms("explain wrong.json", service, code=1).out
    assert out.startswith("not valid: ")
    assert "is worth 8/3 at these prices" in out
    assert cms("explain wrong.json --json", service, code=1).json["valid"] is False


# --- what would save a GPU ------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path: Path, cms: Cms, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plan of two GPUs: 10 requests/s less, or 20 ms more, would save one. Nothing is slow."""
    monkeypatch.setitem(Doing.__init__.__kwdefaults__ or {}, "first", 3600.0)
    (tmp_path / "s.csv").write_text(f"{SERVICES}chat,bert,130,100\n", "utf-8")
    (tmp_path / "p.csv").write_text(
        f"{POINTS}bert,a100-80gb,3g.40gb,1,2,60,33\nbert,a100-80gb,3g.40gb,1,8,90,120\n", "utf-8"
    )
    cms("plan -s s.csv -p p.csv --rule plain -q -o plan.json")
    return tmp_path


def test_least_relaxations_are_listed_with_their_proofs(made: Path, cms: Cms) -> None:
    said = cms("explain plan.json -p p.csv")
    lines = said.out.splitlines()
    assert said.err == ""
    assert lines[0] == "plan.json: what would save a GPU, 2 -> 1"
    assert "chat rate 130/s 120/s -7.7 % the least, proved" in map(flat, lines)
    assert "chat latency limit 100 ms 120 ms +20 % the least, proved" in map(flat, lines)
    assert "a plan of at most 1 GPU was found and checked" in said.flat
    assert "No smaller change of any one of these numbers is enough, proved: -7.7 %" in said.flat
    assert max(map(len, lines)) <= 100
    out, err = cms("explain plan.json -p p.csv --json -o less.json")
    assert (err, out) == ("", (made / "less.json").read_text("utf-8"))
    document = json.loads(out)
    assert (document["cost"], document["target"], document["proved"]) == (2, 1, True)
    assert [each["enough"] for each in document["relaxations"]] == [120, 120]
    assert cms("explain plan.json -p p.csv -q") == ("", "")


def test_without_the_table_it_is_said_what_is_not_looked_at(made: Path, cms: Cms) -> None:
    said = cms("explain plan.json").flat
    assert "not looked at: limits: a looser one may admit operating points" in said
    assert "latency limit" not in said.split("not looked at")[0]


def test_published_scenario_has_its_points(cms: Cms) -> None:
    cms("plan --published S4 --time-limit none -q -o s4.json")
    document = cms("explain s4.json --published S4 --time-limit none --json").json
    found = {(each["service"], each["what"]): each for each in document["relaxations"]}
    rate = found["vgg16", "rate"]
    assert (rate["enough"], rate["outcome"], rate["cost"]) == ("840.592", "least", 6)
    assert found["vgg16", "latency_limit"]["outcome"] == "none"


def test_load_curves_go_with_the_table(made: Path, cms: Cms) -> None:
    (made / "c.csv").write_text(
        "model,device,profile,processes,batch,late_share,evidence,rates_rps,latencies_ms\n"
        "bert,a100-80gb,3g.40gb,1,2,0.01,measured,10 58,20 90\n", "utf-8",
    )  # fmt: skip
    cms("plan -s s.csv -p p.csv --load-curves c.csv -q -o curved.json")
    error = cms("explain curved.json -p p.csv", code=2).error
    assert "the plan was made with load curves" in error
    assert "chat" in cms("explain curved.json -p p.csv --load-curves c.csv").out


def test_plan_without_a_schedule_saves_nothing(cms: Cms) -> None:
    cms("plan --published S5 --time-limit 0 -q -o none.json", code=4)
    error = cms("explain none.json", code=4).error
    assert "the plan has no schedule, so that there is nothing to save" in error


def test_what_is_found_and_not_proved_is_not_called_proved(made: Path) -> None:
    plan = read_plan("plan.json")
    found = rightsize(plan)
    (rate,) = found.relaxations

    def said(**change: Any) -> str:
        return flat(printed(rightsized_page(replace(found, **change), plan, "x")))

    loose = replace(rate, outcome=Outcome.FOUND, short=Fraction(371, 3))
    assert "found; 123.6667/s is proved too little" in said(relaxations=(loose,))
    assert "the least, proved" not in said(relaxations=(loose,))
    bare = said(relaxations=(replace(loose, short=None),), proved=False)
    assert "found, not proved" in bare
    assert "It is not proved that 1 does not suffice without any relaxation" in bare
    opened = replace(rate, plan=None, outcome=Outcome.OPEN, ruled_out=Fraction(1, 30))
    assert "rate: not known: chat (at least 3.3 %)" in said(relaxations=(opened,))
    free = said(better=plan, relaxations=())
    assert "There is a plan with 2 GPUs without any relaxation: plan again." in free
