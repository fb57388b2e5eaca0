"""Families: names, seeds, parameters, what each promises; services that share GPUs."""

from __future__ import annotations

import hashlib
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bench.suites.stock import LINES
from cms import InvalidOption
from instances.families import VARIANTS, UnknownFamily, families, family, generate, suite
from instances.families import time_sharing as shared
from tests.families import held

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "reference" / "families.md"
KINDS = ("hair", "one-block", "full", "triplets", "non-irup", "non-irup-listed")
ALL_VARIANTS: dict[str, list[dict[str, Any]]] = {
    **{name: [{}] for name in families()},
    **{name: [dict(one) for one in variants] for name, variants in VARIANTS.items()},
    "rounding": [{"kind": kind} for kind in KINDS],
    "mixed-fleet-infeasible": [{"types": types} for types in (1, 3, 5)],
    "mig-serving": [{"rates": "normal"}, {"rates": "lognormal"}],
    "few-jobs-many-shares": [{}, {"types": 4, "step": 1}],
}
for line in LINES:
    ALL_VARIANTS[line.family] += [{**line.always, **variant} for variant in line.variants]

# A family's number is part of all its seeds: it never changes, and a new family gets a new one.
# The digests are of the problems of all variants with seed 5 and 40 jobs; fleets, whose limits
# hang on few jobs, have 400.
FOR_EVER = {
    "real-rows": "888d15b07083d71f",
    "arbitrary": "f0cc82f203d1c05a",
    "sparse": "73f93ae588f94dd0",
    "near-ties": "dccb2c59c569765a",
    "superlinear": "a99403790657ac3e",
    "sublinear": "dad914efa6ab9b3a",
    "mixed-fleet": "d87304680222b9d9",
    "mixed-fleet-infeasible": "68eef2ab42d74b2d",
    "size-bounded": "22762c0052da3214",
    "size-bounded-mixed": "164100c511242389",
    "random-configurations": "2cb48005168b5851",
    "huge-demands": "717401f517622e95",
    "equal-jobs": "ee9060191fbcb6d7",
    "rounding": "343d5a60661bc421",
    "mig-serving": "06ffc41be269d3d2",
    "stock-triplets": "4bc09651d13d3fda",
    "stock-uniform": "677da66ee1c93a12",
    "stock-cutgen": "61faa16b48cfcd35",
    "stock-residual": "0c0217ad7a8edd7e",
    "stock-divisible": "53a42d2c44204727",
    "measured-shares": "ebcee15e561f05ff",
    "memory-shares": "b92f4e4dacd58f48",
    "cluster-fleet": "55f7cac4427b56fb",
    "few-jobs-many-shares": "4b38cf90625e35d1",
}


def test_a_family_and_a_seed_name_a_problem_for_ever() -> None:
    for number, (name, digest) in enumerate(FOR_EVER.items(), 1):
        assert family(name).number == number
        n = 400 if name == "mixed-fleet" else 40
        problems = [generate(name, n=n, seed=5, **more) for more in ALL_VARIANTS[name]]
        together = " ".join(problem.sha256 for problem in problems)
        assert (name, hashlib.sha256(together.encode()).hexdigest()[:16]) == (name, digest)
        other = generate(name, n=n, seed=6, **ALL_VARIANTS[name][0])
        assert other.sha256 != problems[0].sha256
    assert tuple(FOR_EVER) == families()
    selected = repr(list(suite(100, 300, seed=1))).encode()
    assert hashlib.sha256(selected).hexdigest().startswith("9185b35032c1b51a")
    # jobs beyond the first piece
    many = generate("near-ties", n=40_000, seed=5).sha256
    assert many.startswith("547f41a2cee46d66")


def test_the_document_lists_every_family_with_its_parameters_and_defaults() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|(.*)\|$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    cells = {name: rest.split(" | ") for name, rest in rows}
    assert [name for name, _ in rows][: len(families())] == list(families())
    for name in families():
        written = dict(re.findall(r"`(\w+)` = ([\w./-]+)", cells[name][1]))
        assert written == {p: str(v) for p, v in family(name).parameters().items()}
    assert set(KINDS) <= cells.keys()


@pytest.mark.parametrize("name", families())
def test_rows_are_integers_with_a_demand_and_a_block_that_serves_it(name: str) -> None:
    for seed, parameters in enumerate(ALL_VARIANTS[name]):
        for n in (0, 1, 2, 3, 60)[name == "mixed-fleet-infeasible" :]:
            problem = generate(name, n=n, seed=seed, **parameters)
            assert problem.n_jobs == n
            assert not problem.rows.wide
            assert (problem.rows.denominators == 1).all()
            assert (problem.rows.demands >= 1).all()
            columns = [problem.block_index[block] for block in held(problem.configurations)]
            assert (problem.rows.supplies[:, columns] > 0).any(axis=1).all()
            if not n and parameters.get("limits") in ("ample", "tight"):
                assert {machine.limit for machine in problem.machine_types} == {0}


#: Values that the parameters of a family do not have.
REFUSED: dict[str, list[tuple[str, Any]]] = {
    "sparse": [(which, x) for which in ("n", "seed") for x in (-1, 2.5, "3", None, True)],
    "real-rows": [("m", 0), ("m", "five")],
    "arbitrary": [("largest", 0)],
    "superlinear": [("exponent", 1)],
    "sublinear": [("exponent", "1.1")],
    "mixed-fleet": [("types", 2.0), ("cost_step", 0), ("limits", "tigth"), ("typs", 3)],
    "mixed-fleet-infeasible": [("n", 0)],
    "size-bounded": [("step", 51), ("floor", 4)],
    "size-bounded-mixed": [("mig_cost", 0)],
    "random-configurations": [("k", 0), ("configurations", 0)],
    "huge-demands": [("low", 18), ("high", 6)],
    "equal-jobs": [("kinds", 0)],
    "rounding": [("kind", ["hair"])],
    "mig-serving": [("rates", "log-normal"), ("m", 0)],
    "stock-cutgen": [("low", 0), ("high", "0.001"), ("demand", 2.5)],
    "stock-divisible": [("miss", 21)],
    "few-jobs-many-shares": [("types", 11)],
    "measured-shares": [("step", "0.4")],
    "memory-shares": [("compute", 51), ("memory", 41)],
    "cluster-fleet": [("types", 8), ("blocks", 6), ("serving", "pod")],
}


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [(name, *each) for name, several in REFUSED.items() for each in several],
)
def test_a_parameter_out_of_its_range_is_refused_by_name(
    name: str, parameter: str, value: Any
) -> None:
    with pytest.raises(InvalidOption, match=f"'?{parameter}'?.*'{name}'|'{name}'.*'{parameter}'"):
        generate(name, **{"n": 1, "seed": 1, parameter: value})


def test_an_unknown_family_and_a_suite_of_nonsense_are_refused() -> None:
    with pytest.raises(UnknownFamily, match="nearest: 'real-rows'"):
        generate("real-row", n=1, seed=1)
    wrong: list[Any] = [(-1, 5, 1), (5, 0, 1), (5, 5, "x"), (5, 5, 1, ["sparse", "dense"])]
    for arguments in wrong:
        with pytest.raises(InvalidOption):
            list(suite(*arguments))


TABLE = Path(__file__).resolve().parents[2] / "instances" / "data" / "made_up_shares.csv"


def test_the_file_is_what_the_family_says_and_within_the_noise_of_the_formula() -> None:
    rows, steps = ["model,device,profile,processes,batch,throughput_rps,latency_ms"], 0
    for curve in shared.CURVES:
        for share in shared.SHARES:
            for batch in shared.BATCHES:
                scaled = batch**curve.gamma * (100 / share) ** curve.delta
                plain = (curve.c0 + curve.c1 * scaled) / 1000
                seconds = curve.length(batch, share)
                assert abs(float(seconds) / plain - 1) <= 0.1201
                rate, latency = round(batch / seconds * 1000) / 1000, float(seconds * 1000)
                head = f"{curve.name},a100-80gb,mps:{share},1,{batch}"
                rows.append(f"{head},{rate:.3f},{latency:.4f}")
            lengths = [curve.length(batch, share) for batch in shared.BATCHES]
            steps += sum(high < low for low, high in pairwise(lengths))
    assert TABLE.read_text("utf-8").splitlines() == rows
    assert steps == 4  # to a batch twice as large that takes less time, as the document says


# The digests rest on every length, limit and rate.
@pytest.mark.parametrize(
    ("problem", "digest"),
    [
        (shared.scenario_3(600, rule="collect_then_run", max_jobs=3), "5f77cffcd9e656af"),
        (shared.random_mix(1), "58c72f7370e9680c"),
        (shared.larger_mix(20, seed=1), "06f592110cd648bb"),
    ],
)
def test_a_seed_names_a_mix_for_ever(problem: object, digest: str) -> None:
    assert problem.sha256.startswith(digest)  # type: ignore[attr-defined]
