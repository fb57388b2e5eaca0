"""What a block can carry: held against every mix there is, in rationals."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from algorithms.mixes.hosting import Hosted, Hosting
from bench.time_sharing.hosting import RULES, all_mixes, require_hosting
from cms import Configuration, FrameRule, Mix, TimeSharedJob, TimeSharedProblem
from instances.families.time_sharing import random_mix
from tests.samples import few


@pytest.mark.parametrize("part", few(1, range(34)))
def test_hosting_is_what_all_mixes_say(part: int) -> None:
    for seed in range(300 * part, 300 * (part + 1)):
        require_hosting(seed)


def test_a_rate_that_a_mix_gives_exactly_is_hosted_and_a_hair_more_is_not() -> None:
    points = {"b": [(8, "0.0149"), (16, "0.0271")]}
    for rule, limit in (("round_robin", "0.0569"), ("collect_then_run", "0.084")):
        problem = TimeSharedProblem(
            configurations=Configuration({"b": 1}),
            jobs=[TimeSharedJob(name, 1, limit, points) for name in ("x", "y")],
            rule=rule,
        )
        exact = Fraction(8) / Fraction("0.042"), Fraction(16) / Fraction("0.042")
        hosting = Hosting(problem)
        hosted = hosting.host("b", dict(zip("xy", exact, strict=True)))
        if rule == "collect_then_run":
            assert hosted is not None
            assert hosted.amounts == {"x": 8, "y": 16}
        else:  # y's slot ends 0.0122 s later than its limit
            assert hosted is None
        more = {"x": exact[0], "y": exact[1] + Fraction(1, 10**15)}
        assert hosting.host("b", more) is None


def test_a_job_that_the_block_does_not_serve_is_never_hosted() -> None:
    problem = TimeSharedProblem(
        configurations=[Configuration({"a": 1}), Configuration({"b": 1})],
        jobs=[TimeSharedJob("x", 1, 9, {"a": [(1, 1)]}), TimeSharedJob("y", 1, 9, {"b": [(1, 1)]})],
    )
    hosting = Hosting(problem)
    assert hosting.host("b", {"x": Fraction(1, 9)}) is None
    assert hosting.most("b", {}, "x") is None
    assert hosting.host("b", {"y": Fraction(1)}) == Hosted({"y": Fraction(1)}, {"y": Fraction(1)})
    assert hosting.saturated == {"x": {"a": 1}, "y": {"b": 1}}


@pytest.mark.parametrize("rule", RULES)
def test_alone_a_job_has_what_plain_cms_gives_it(rule: FrameRule) -> None:
    problem = random_mix(3, rule=rule)
    hosting, plain = Hosting(problem), problem.unshared()
    for at, job in enumerate(problem.job_names):
        supply = plain.jobs[at].demand_function
        for block in problem.blocks:
            most = hosting.most(block, {}, job)
            assert (most.rates[job] if most else 0) == supply(block)
            assert hosting.saturated[job].get(block, 0) == supply(block)


def test_lengths_of_many_denominators_stay_exact() -> None:
    """As throughputs of measured tables give them: 8 / 331.7 and the like."""
    random = Random(5)
    jobs = [
        TimeSharedJob(
            f"j{j}",
            1,
            Fraction(random.randint(90, 200), 1000),
            {"b": [(2**b, 2**b / Fraction(random.randint(500, 9999), 10)) for b in range(7)]},
        )
        for j in range(12)
    ]
    problem = TimeSharedProblem(configurations=Configuration({"b": 1}), jobs=jobs)
    hosting = Hosting(problem)
    for _ in range(20):
        chosen = tuple(random.sample(problem.job_names, 2))
        for mix, frame in all_mixes(problem, chosen):
            hosted = hosting.host("b", dict(frame.rates))
            assert hosted is not None
            assert problem.frame("b", Mix(hosted.amounts)).length <= frame.length, mix
