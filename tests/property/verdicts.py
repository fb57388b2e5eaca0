"""What both checkers, and the definition, say of a certificate or a schedule in a document."""

from __future__ import annotations

import json
from typing import Any

from cms import FileError, InvalidCertificate, Problem, check
from cms.files import Parsed, certificate_from_json, problem_from_json, schedule_from_json
from proofs_checks.checker import Fault, certificate_bound, check_schedule, parse_document
from tests.files.documents import parsed
from tests.oracle import optimum
from tests.property.definition import INFEASIBLE, INVALID, Verdict, evaluate, is_valid


def read(document: Any) -> Parsed:
    return parsed(json.dumps(document))


def judge_certificate(problem: Any, tree: Any) -> str:
    """Compare all three, and an accepted bound with the optimum; say what the verdict was."""
    mine: Verdict = INVALID
    theirs: Verdict = INVALID
    definition: Verdict = INVALID
    try:
        about, certificate = problem_from_json(read(problem)), certificate_from_json(read(tree))
        assert isinstance(about, Problem)
        definition = evaluate(about, certificate)
        bound = certificate.bound(about)
        mine = INFEASIBLE if certificate.proves_infeasible(about) else bound
    except (FileError, InvalidCertificate):
        pass
    try:
        documents = parse_document(json.dumps(problem)), parse_document(json.dumps(tree))
        value = certificate_bound(*documents)
        theirs = INFEASIBLE if value is None else value
    except Fault:
        pass
    assert mine == theirs == definition
    if mine == INVALID:
        return INVALID
    assert isinstance(about, Problem)
    best = optimum(about)
    if mine == INFEASIBLE:
        assert best is None
        return INFEASIBLE
    assert best is None or (not isinstance(mine, str) and mine <= best)
    return "tight" if mine == best else "bound"


def judge_schedule(problem: Any, schedule: Any) -> bool:
    """Compare all three; whether the schedule is valid."""
    mine = definition = False
    try:
        about, made = problem_from_json(read(problem)), schedule_from_json(read(schedule))
        assert isinstance(about, Problem)
        definition, mine = is_valid(about, made), not check(about, made)
    except FileError:
        pass
    documents = parse_document(json.dumps(problem)), parse_document(json.dumps(schedule))
    assert mine == (not check_schedule(*documents)) == definition
    return mine
