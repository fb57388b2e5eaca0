"""Errors: one family, that survives the way between processes, and says where the fault is."""

from __future__ import annotations

import copy
import pickle

import pytest

from cms import errors
from cms.errors import AlgorithmError, ClusterError, CmsError, GuaranteeBreached

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
