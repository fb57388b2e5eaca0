"""What both checkers say of a certificate: the same, of the same documents."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from cms import FileError, InvalidCertificate, Problem
from cms.files import certificate_from_json, problem_from_json
from proofs_checks.checker import Fault, certificate_bound, parse_document
from tests.proofs_checks.documents import Document
from tests.samples import refusal


def read(document: Document) -> Any:
    """As a file would hold it."""
    return parse_document(json.dumps(document, default=str))


def plain_problem(document: Document) -> Problem:
    """Read a problem whose blocks serve one job."""
    problem = problem_from_json(document)
    assert isinstance(problem, Problem)
    return problem


def proved(of: Document, tree: Document) -> Fraction | None:
    """What both checkers say a tree proves; None: that there is no schedule."""
    about, certificate = problem_from_json(of), certificate_from_json(tree)
    bound = None if certificate.proves_infeasible(about) else certificate.bound(about)
    assert certificate_bound(read(of), read(tree)) == bound
    return bound


def refused(of: Document, tree: Document) -> str:
    """What the package says of a tree that neither checker takes."""
    refusal(Fault, certificate_bound, read(of), read(tree))
    return refusal(
        (FileError, InvalidCertificate),  # type: ignore[arg-type]
        lambda: certificate_from_json(tree).bound(problem_from_json(of)),
    )
