"""Certificates in JSON: what is read, and what is no tree at all."""

from __future__ import annotations

from typing import Any

import pytest

from cms.certificate.certificate import Branch
from cms.certificate.quantity import MachinesOfType
from cms.errors import FileError
from cms.files import certificate_from_json


def test_a_type_counted_once_is_written_in_the_shorter_form() -> None:
    sums = MachinesOfType({"h100": 10, "a100": 3})
    assert sums.to_json() == {"machines_of_type": {"a100": 3, "h100": 10}}
    assert MachinesOfType({"a100": 1}).to_json() == {"machines_of_type": "a100"}
    read = certificate_from_json(GOOD | {"branch": {"machines_of_type": {"a100": 1}}})
    assert isinstance(read, Branch)
    assert read.quantity == MachinesOfType("a100")


LEAF: dict[str, Any] = {"prices": {}}
GOOD: dict[str, Any] = {"branch": {"blocks_of": "b"}, "at_most": 0, "below": LEAF, "above": LEAF}


@pytest.mark.parametrize("depth", [201, 900, 5_000])
def test_a_document_with_too_many_branches_is_refused_before_python_gives_up(depth: int) -> None:
    tree: dict[str, Any] = {"prices": {}}
    for _ in range(depth):
        tree = {"branch": {"blocks_of": "a"}, "at_most": 0, "below": {"prices": {}}, "above": tree}
    with pytest.raises(FileError, match="more than 200 branches"):
        certificate_from_json(tree)
