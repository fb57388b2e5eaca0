"""Errors: one family, that survives the way between processes, and says where the fault is."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from cms import errors
from cms.errors import AlgorithmError, ClusterError, CmsError, FileError, GuaranteeBreached

ERRORS = [
    thing
    for thing in vars(errors).values()
    if isinstance(thing, type) and issubclass(thing, Exception)
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_bad_data_is_a_value_error_and_a_bad_algorithm_is_not(error: type[Exception]) -> None:
    assert issubclass(error, CmsError)
    if error is ClusterError:  # neither: the data may be whole
        assert issubclass(error, RuntimeError)
    elif error is not CmsError:
        assert issubclass(error, ValueError) != issubclass(error, AlgorithmError)
        assert issubclass(error, RuntimeError) == issubclass(error, AlgorithmError)


@pytest.mark.parametrize("kind", [AlgorithmError, GuaranteeBreached])
def test_an_algorithms_error_names_it_and_can_be_sent_between_processes(
    kind: type[AlgorithmError],
) -> None:
    error = kind("liar", "claims too much")
    for twin in (error, pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(twin) is kind
        assert (twin.algorithm, twin.message) == ("liar", "claims too much")
        assert str(twin) == "algorithm 'liar': claims too much"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileError("p.json", "is empty"), "p.json: is empty"),
        (FileError(Path("d/p.json"), "is empty"), "d/p.json: is empty"),
        (FileError("p.json", "bad", line=3), "p.json:3: bad"),
        (FileError("p.json", "bad", line=3, column=7), "p.json:3:7: bad"),
        (FileError("p", "x is 1", expected="2"), "p: x is 1, expected 2"),
        (FileError("p", "x is 1", fix="write 2"), "p: x is 1; write 2"),
        (
            FileError("p", "x is 1", line=1, column=2, expected="2", fix="write 2"),
            "p:1:2: x is 1, expected 2; write 2",
        ),
        (FileError("p", "x is 1", expected="", fix=""), "p: x is 1"),
    ],
)
def test_a_file_error_says_where_what_expected_and_the_fix(error: FileError, text: str) -> None:
    assert str(error) == text
    twin = pickle.loads(pickle.dumps(error))
    assert (type(twin), str(twin), vars(twin)) == (FileError, text, vars(error))
