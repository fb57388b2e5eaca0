"""Guarantees: what they allow, and what a finished run shows of them."""

from __future__ import annotations

import pickle
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from cms.plugin.guarantee import Guarantee, Reference, Verdict, judge

numbers = st.fractions(min_value=0, max_value=20, max_denominator=6)


@given(numbers, numbers, numbers, numbers, numbers)
def test_a_verdict_is_what_its_definition_says(
    factor: Fraction, additive: Fraction, bound: Fraction, above: Fraction, cost: Fraction
) -> None:
    guarantee = Guarantee(factor, additive, Reference.OPT, "T")
    value = bound + above  # the optimum lies between the bound and an upper value
    verdict = judge(guarantee, cost=cost, lower_bound=bound, upper_value=value).verdict
    if verdict is Verdict.VERIFIED:
        assert cost <= factor * bound + additive
    elif verdict is Verdict.BREACHED:
        assert cost > factor * value + additive
    else:
        assert factor * bound + additive < cost <= factor * value + additive


def test_numbers_are_exact_whatever_they_are_written_as() -> None:
    guarantee = Guarantee("3/2", 0.1, "LP_DW", "Theorem B")
    assert (guarantee.factor, guarantee.additive) == (Fraction(3, 2), Fraction(1, 10))
    assert guarantee.against is Reference.LP_DW
    assert str(guarantee) == "cost <= 1.5 LP_DW + 0.1 (Theorem B)"
    assert str(Guarantee(1, 0, "OPT", "exact")) == "cost <= OPT (exact)"
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee
