"""What a block can carry: held against every mix there is, in rationals."""

from __future__ import annotations

from fractions import Fraction

import pytest

from algorithms.mixes.hosting import Hosting
from bench.time_sharing.hosting import RULES, require_hosting
from cms import Configuration, FrameRule, TimeSharedJob, TimeSharedProblem
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
