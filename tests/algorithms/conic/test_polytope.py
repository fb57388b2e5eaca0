"""The polytope of a machine's contents."""

from __future__ import annotations

import pytest

from algorithms.conic.polytope import HalfSpace, Polytope, contents
from cms import SizeBoundedConfigurations
from tests.algorithms.conic.parts import inside, listed, polytopes
from tests.samples import spread


@pytest.mark.parametrize("polytope", spread(16, polytopes()), ids=str)
def test_points_are_those_that_keep_all_rows(polytope: Polytope) -> None:
    points = listed(polytope)
    assert list(polytope.points(len(points)) or ()) == points
    assert polytope.points(len(points) - 1) is None


@pytest.mark.parametrize("polytope", spread(16, polytopes()), ids=str)
def test_a_full_machine_holds_what_it_held_and_takes_no_more(polytope: Polytope) -> None:
    for point in listed(polytope):
        full = polytope.filled(point)
        assert inside(polytope, full)
        assert all(a >= b for a, b in zip(full, point, strict=True))
        for i in range(polytope.dimension):
            assert not inside(polytope, (*full[:i], full[i] + 1, *full[i + 1 :]))


def test_points_can_be_limited_to_half_spaces_while_all_are_counted() -> None:
    polytope = Polytope(((2, 3),), (6,))
    near = [HalfSpace((-2, -3), -6)]
    assert polytope.points(7, near) == ((0, 2), (3, 0))
    assert polytope.points(6, near) is None


def test_rational_sizes_become_integers_without_a_common_divisor() -> None:
    shape = SizeBoundedConfigurations({"a": "0.6", "b": "1/5"}, capacity="1.5", max_blocks=4)
    assert contents(shape, ["a", "b"]) == Polytope(((3, 1), (1, 1)), (7, 4))


@pytest.mark.parametrize(
    ("rows", "right"), [((), ()), (((1, 0),), (3,)), (((1, -1),), (3,)), (((1, 1),), (-1,))]
)
def test_what_is_no_such_polytope_is_refused(
    rows: tuple[tuple[int, ...], ...], right: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="a polytope"):
        Polytope(rows, right)
