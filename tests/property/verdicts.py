"""What both checkers, and the definition, say of a certificate in a document."""

from __future__ import annotations

import json
from typing import Any

from cms import Problem
from cms.errors import FileError, InvalidCertificate
from cms.files import Parsed, Source, certificate_from_json, parse_json, problem_from_json
from proofs_checks.checker import Fault, certificate_bound, parse_document
from tests.oracle import optimum
from tests.property.definition import INFEASIBLE, INVALID, Verdict, evaluate


def read(document: Any) -> Parsed:
    source = Source("a file", json.dumps(document))
    return Parsed(parse_json(source), source)


def proved_thrice(problem: Any, tree: Any) -> tuple[Problem, tuple[Verdict, Verdict, Verdict]]:
    """What each side, and the definition, says a certificate proves."""
    about = problem_from_json(read(problem))
    assert isinstance(about, Problem)
    mine: Verdict = INVALID
    definition: Verdict = INVALID
    try:
        certificate = certificate_from_json(read(tree))
        definition = evaluate(about, certificate)
        bound = certificate.bound(about)
        mine = INFEASIBLE if certificate.proves_infeasible(about) else bound
    except (FileError, InvalidCertificate):
        pass
    theirs: Verdict = INVALID
    try:
        value = certificate_bound(
            parse_document(json.dumps(problem)), parse_document(json.dumps(tree))
        )
        theirs = INFEASIBLE if value is None else value
    except Fault:
        pass
    return about, (mine, theirs, definition)


def judge_certificate(problem: Any, tree: Any, *, wrong: bool) -> str:
    """Compare all sides, and an accepted bound with the optimum; say what the verdict was."""
    about, (mine, theirs, definition) = proved_thrice(problem, tree)
    assert mine == theirs == definition
    if mine == INVALID:
        return INVALID
    assert not wrong
    best = optimum(about)
    if mine == INFEASIBLE:
        assert best is None
        return INFEASIBLE
    assert best is None or (not isinstance(mine, str) and mine <= best)
    return "tight" if mine == best else "bound"
