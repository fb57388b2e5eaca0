"""Shares that slow one another: what holds beside every neighbour, and what is needed at least."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from bench.importers.gpulet import read_gpulet_pairs
from cms import Configuration, MachineGroup, Mix, Schedule, Status, check, solve
from cms.errors import CmsError, FileError, InvalidOption, InvalidProblem, InvalidSchedule
from cms.fleet import get_gpu
from cms.fleet.report.proofs import explain_gap
from cms.fleet.serving import (
    Interference,
    LinearSlowdown,
    NeighbourServing,
    OperatingPoint,
    Pair,
    Plan,
    Service,
    build_problem,
    neighbour_faults,
    read_interference,
    read_utilisations,
)
from cms.fleet.serving.interference import INTERFERENCE_COLUMNS, Batch, Utilisation
from cms.fleet.serving.neighbours import classes_in, plain_block, rank_kinds
from tests.fleet.plans import A100, colocate
from tests.references.interference import lengths_in, optimum, toy
from tests.samples import few

HEAD = ",".join(INTERFERENCE_COLUMNS) + "\n"
ROW = f"bert,{A100},mps:60,8,vgg,4,1.25\n"


@pytest.mark.parametrize("seed", few(4, range(400)))
def test_the_inner_image_keeps_the_true_limits_and_the_outer_one_bounds(seed: int) -> None:
    rng = random.Random(seed)
    of = toy(rng)
    serving = of.pose(rng.choice([1, 2, 3, 7]))
    best = optimum(of)
    inner, outer = solve(serving.problem), solve(serving.outer)
    if best is None:  # a service that no share serves within its limit
        assert inner.status is Status.INFEASIBLE
        return
    assert check(serving.problem, inner.schedule) == ()
    assert neighbour_faults(serving, inner.schedule) == ()
    assert inner.cost is not None
    assert outer.lower_bound <= best <= inner.cost


@pytest.mark.parametrize("seed", few(10, range(400)))
def test_lengths_lie_in_order_and_grow_with_the_neighbours_class(seed: int) -> None:
    rng = random.Random(seed)
    serving = toy(rng).pose(rng.choice([1, 2, 3, 7]))
    found = lengths_in(serving)
    for block, own in found.items():
        for (name, amount), length in own.items():
            alone = serving.solo.problem.job(name).point(plain_block(block), amount)
            least = serving.outer.job(name).point(block, amount)
            assert alone is not None
            assert least is not None
            assert alone.length <= least.length <= length
            if (classes := classes_in(block)) is None:
                assert length == alone.length
            else:
                higher = f"{plain_block(block)} ({classes[0]} beside {classes[1] + 1})"
                assert found.get(higher, own)[name, amount] >= length


POINTS = [colocate("bert", 60, 8, 10), colocate("vgg", 40, 4, 20), colocate("vgg", 40, 8, 30)]
FACTORS = {
    Pair("bert", A100, "mps:60", 8, "vgg", 4): "1.1",
    Pair("bert", A100, "mps:60", 8, "vgg", 8): "1.5",
    Pair("vgg", A100, "mps:40", 4, "bert", 8): "0.9",
    Pair("vgg", A100, "mps:40", 8, "bert", 8): "1.2",
}
SERVICES = [Service("chat", "bert", 600, 29), Service("see", "vgg", 150, 80)]


def serving(classes: int = 3, **terms: Any) -> NeighbourServing:
    table = Interference(FACTORS)
    return build_problem(
        SERVICES, POINTS, A100, sharing="time", interference=table, classes=classes, **terms
    )


def test_blocks_say_what_may_be_on_them_and_beside_them() -> None:
    posed = serving()
    assert [str(shape) for shape in posed.problem.configurations] == [
        "mps:40",
        "mps:60",
        "mps:40 (2 beside 1) + mps:60 (1 beside 2)",
        "mps:40 (3 beside 1) + mps:60 (1 beside 3)",
    ]
    lengths = lengths_in(posed)
    assert lengths["mps:60 (1 beside 2)"] == {("chat", 8): Fraction(11, 1000)}
    assert lengths["mps:40 (3 beside 1)"] == {
        ("see", 4): Fraction(20, 1000),  # 0.9 counts as 1
        ("see", 8): Fraction(36, 1000),
    }
    assert posed.instance_of("mps:40 (3 beside 1)") == (A100, "mps:40")
    assert posed.profile_of("mps:40") == "mps:40"
    (only,) = posed.served(Mix({"see": 8}), "mps:40 (3 beside 1)")
    assert (only.length_ms, only.slack_ms, only.point) == (36, 80 - 72, POINTS[2])


def cut(first: str, mixes: dict[tuple[str, Mix], int], count: int = 1) -> MachineGroup:
    return MachineGroup(Configuration({first: 1, "mps:40 (3 beside 1)": 1}, A100), mixes, count)


def test_batches_that_keep_no_limit_count_where_kinds_are_ordered() -> None:
    """They were measured, and say how much a kind slows others: images come out tighter."""
    slow = {(4, 4): "1.1", (4, 8): "1.2", (16, 4): "1.9", (16, 8): "1.1"}
    factors = {
        Pair("m", A100, "mps:50", own, "m", other): factor for (own, other), factor in slow.items()
    }
    for classes, four in ((2, 2), (1, 1)):
        found = rank_kinds(Interference(factors), [("m", 4), ("m", 8)], classes)
        assert found == {("m", 8): 1, ("m", 4): four}


def test_the_exact_check_finds_what_a_neighbour_breaks_and_refuses_what_it_cannot_judge() -> None:
    posed = serving()
    chat, four, eight = Mix({"chat": 8}), Mix({"see": 4}), Mix({"see": 8})
    here, there = "mps:60 (1 beside 3)", "mps:40 (3 beside 1)"
    good = Schedule([cut(here, {(here, chat): 1, (there, four): 1})])
    assert neighbour_faults(posed, good) == ()  # 2 x 11 ms <= 29 ms, 8 / 11 ms >= 600 a second
    bad = Schedule([cut(here, {(here, chat): 1, (there, eight): 1})])
    assert [fault.kind for fault in neighbour_faults(posed, bad)] == ["cycle", "demand"]
    assert {fault.kind for fault in check(posed.problem, bad)} == {"cycle", "demand"}
    low = "mps:40 (2 beside 1)"  # a mix of a higher class than its block
    shape = Configuration({"mps:60 (1 beside 2)": 1, low: 1}, A100)
    planted = Schedule([MachineGroup(shape, {(low, eight): 1}, 1)])
    assert "point" in {fault.kind for fault in check(posed.problem, planted)}
    here = "mps:60 (1 beside 3)"
    for content, message in (
        (Mix({"chat": 4}), r"takes 4 of 'chat' at a time, which was not measured there"),
        (Mix({"chatt": 8}), r"the service 'chatt', which the plan does not have"),
        ("chat", r"is given to 'chat'; expected a Mix"),
    ):
        schedule = Schedule([MachineGroup(Configuration({here: 1}, A100), {(here, content): 1}, 1)])
        with pytest.raises(InvalidSchedule, match=message):
            neighbour_faults(serving(), schedule)


def test_what_was_found_is_proved_or_not_denied_by_the_outer_problem_alone() -> None:
    posed = serving(classes=1)
    inner, outer = solve(posed.problem), solve(posed.outer)
    assert (inner.cost, inner.lower_bound, outer.cost, outer.lower_bound) == (2, 2, 1, 1)
    plan = Plan(posed, inner, outer)
    assert plan.answer.certificate == outer.certificate
    assert (
        "more than 1 of them (classes in [time_sharing]) may bring the two nearer"
        in explain_gap(plan)
    )
    for word, bound, status, proof in (
        (outer, 1, "feasible", "none"),
        (None, 0, "feasible", "none"),  # its own certificate says nothing of other plans
        (replace(outer, claimed_bound=Fraction(2)), 1, "optimal", "solver"),
        (replace(outer, lower_bound=Fraction(2)), 2, "optimal", "checked"),
    ):
        answer = Plan(posed, inner, word).answer
        said = answer.cost, answer.lower_bound, answer.status, answer.proof
        assert said == (2, bound, status, proof)
    high = replace(outer, lower_bound=Fraction(9))
    for wrong, message in (
        (high, r"costs 2, and what any costs is said to be >= 9"),
        (inner, r"the outer solution is of another problem"),
    ):
        with pytest.raises(InvalidSchedule, match=message):
            Plan(posed, inner, wrong)
    with pytest.raises(InvalidSchedule, match="of a plan without interference"):
        Plan(posed.solo, solve(posed.solo.problem), outer)
    posed = serving(classes=1, limits={A100: 1})
    inner, outer = solve(posed.problem), solve(posed.outer)
    assert (inner.status, outer.cost) == ("infeasible", 1)
    plan = Plan(posed, inner, outer)
    assert plan.answer.status == "no_schedule"
    assert "(classes in [time_sharing]) may find one" in explain_gap(plan)


def test_pairs_are_measured_and_mig_does_not_slow() -> None:
    points = [OperatingPoint("bert", A100, "3g.40gb", 1, 8, 800, 10)]
    posed = build_problem(
        SERVICES[:1], points, sharing="time", interference=Interference({}), classes=1
    )
    assert posed.problem == posed.outer == posed.solo.problem
    few_pairs = Interference(dict([*FACTORS.items()][1:]))
    with pytest.raises(
        InvalidProblem, match=r"pairs .*, 1 in all; the first: bert on .*, batch 8, beside v"
    ):
        build_problem(SERVICES, POINTS, A100, sharing="time", interference=few_pairs)
    pair = Pair("bert", A100, "mps:60", 8, "vgg", 4)
    for key, value, message in (
        (pair._replace(batch=0), 1, "batch of a pair"),
        (pair, 0, "is 0; expected a factor > 0"),
    ):
        with pytest.raises(CmsError, match=message):
            Interference({key: value})
    both = Interference({pair: 1, pair._replace(device="A100-SXM4-80GB"): 1})
    with pytest.raises(InvalidProblem, match="twice, under two names"):
        both.on(get_gpu(A100))


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"splits": "any"}, r"splits is 'any'.* expected 'pairs'"),
        ({"classes": 0}, r"the number of classes is 0"),
        ({"interference": {}}, r"expected an Interference"),
        ({"interference": None, "classes": 3}, r"classes is 3 and there is no interference"),
        ({"sharing": None}, r"interference is Interference\(4 pairs\) and nothing is shared"),
    ],
)
def test_terms_that_cannot_be_meant_are_refused(terms: dict[str, Any], message: str) -> None:
    given = {"sharing": "time", "interference": Interference(FACTORS), **terms}
    with pytest.raises(InvalidOption, match=message):
        build_problem(SERVICES, POINTS, A100, **given)


def test_wrong_rows_are_refused_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    for rows, message in (
        (ROW + ROW, r"pairs\.csv:3: a second row for bert on .*; the first is line 2"),
        (ROW.replace("mps:60", "3g.40gb"), r"expected a share under MPS"),
        (ROW.replace(",8,", ",0,"), r'batch is "0", expected a whole number >= 1'),
    ):
        path.write_text(HEAD + rows)
        with pytest.raises(FileError, match=message):
            read_interference(path)


def test_published_pairs_become_slowdowns_against_the_batch_alone(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    row = "bert,8,60,vgg,4,throughput,640,latency,0.0125,1\n"
    path.write_text(row + row.replace("vgg,4", "vgg,8").replace(",1\n", ",0\n"))
    table = read_gpulet_pairs(path, POINTS, device=A100)
    assert dict(table.pairs) == {Pair("bert", A100, "mps:60", 8, "vgg", 4): Fraction(5, 4)}
    for wrong, message in (
        (row + row, r"pairs\.csv:2: a second row for bert on .*; the first is line 1"),
        (row.replace(",60,", ",100,"), r"the share is 100 %, expected 1 to 99"),
        (row.replace("bert", "brt"), r"brt on mps:60, batch 8, was not measured alone"),
    ):
        path.write_text(wrong)
        with pytest.raises(FileError, match=message):
            read_gpulet_pairs(path, POINTS, device=A100)


def test_a_linear_model_is_found_again_from_its_own_pairs() -> None:
    rng = random.Random(7)
    used = {
        Batch(model, A100, f"mps:{percent}", batch): Utilisation(
            Fraction(rng.randint(1, 60)), Fraction(rng.randint(1, 60))
        )
        for model in "xyz" for percent in (40, 60) for batch in (1, 8)
    }  # fmt: skip
    model = LinearSlowdown(*map(Fraction, ("0.001", "0.004", "0.002", "0.006", "1")))
    assert LinearSlowdown.fit(model.table(used), used) == model
    assert len(model.table(used)) == 2 * 6 * 6
    some = dict([*used.items()][1:])
    with pytest.raises(InvalidOption, match=r"no utilisation of x on .*, mps:40, batch 1, which"):
        LinearSlowdown.fit(model.table(used), some)
    alike = dict.fromkeys(used, Utilisation(Fraction(5), Fraction(5)))
    with pytest.raises(InvalidOption, match=r"72 pairs do not tell the five coefficients"):
        LinearSlowdown.fit(model.table(alike), alike)
    here, there = (Pair("m", card, "mps:50", 8, "m", 8) for card in ("a100-80gb", "h100-80gb"))
    used = {Batch(*pair[:4]): Utilisation(Fraction(3), Fraction(5)) for pair in (here, there)}
    with pytest.raises(InvalidOption, match=r"are of a100-80gb, h100-80gb, and coeff.* alone"):
        LinearSlowdown.fit(Interference({here: 1, there: 1}), used)


def test_utilisations_are_read_and_stand_once(tmp_path: Path) -> None:
    path = tmp_path / "used.csv"
    row = f"bert,{A100},mps:60,8,30,20.5\n"
    path.write_text("model,device,profile,batch,l2_util,dram_util\n" + row)
    key = Batch("bert", A100, "mps:60", 8)
    assert read_utilisations(path) == {key: (30, Fraction(41, 2))}
    path.write_text("model,device,profile,batch,l2_util,dram_util\n" + row + row)
    with pytest.raises(FileError, match=r"used\.csv:3: a second row for bert on"):
        read_utilisations(path)
