"""What branching comes to on a problem, every claim checked, the tree by both checkers."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import NamedTuple

from algorithms.branch_and_price.tree import branch_and_price
from cms import Certificate, Problem, Schedule, check
from cms.certificate.certificate import round_up
from cms.files import problem_to_json
from proofs_checks.checker import parse_document
from proofs_checks.checker.certificate import tree_bound
from proofs_checks.checker.problem import read_problem
from tests.algorithms.branch_and_price.parts import Unlimited


class Proof(NamedTuple):
    """What a run came to: the best bound, rounded up, its certificate, and the best schedule."""

    bound: Fraction
    certificate: Certificate | None
    schedule: Schedule | None
    claims: list[Certificate | Schedule]


def proof(problem: Problem, cost: Fraction | int | None, *, most_nodes: int = 4_000) -> Proof:
    """Run ``branch_and_price`` and check every claim."""
    claims, bound, best, certificate = [], Fraction(0), None, None
    given = None if cost is None else Fraction(cost)
    for claim in branch_and_price(problem, Unlimited(), given, node_limit=most_nodes):
        claims.append(claim)
        if isinstance(claim, Schedule):
            assert check(problem, claim) == ()
            assert best is None or claim.cost(problem) < best.cost(problem)
            assert given is None or claim.cost(problem) < given
            best = claim
            continue
        now = round_up(claim.bound(problem), problem.cost_step)
        assert now > bound, "a certificate that says nothing new"
        bound, certificate = now, claim
    if certificate is not None:
        ask_the_second_checker(problem, certificate)
    return Proof(bound, certificate, best, claims)


def ask_the_second_checker(problem: Problem, certificate: Certificate) -> None:
    """Both checkers must come to the same bound; the second one reads documents only."""
    tree, given = (
        parse_document(json.dumps(document))
        for document in (certificate.to_json(), problem_to_json(problem))
    )
    proved = None if certificate.proves_infeasible(problem) else certificate.bound(problem)
    assert tree_bound(tree, read_problem(given)) == proved
