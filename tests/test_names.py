"""Names: plain texts, unique, printable, and lazy where they are only numbers."""

from __future__ import annotations

import enum
import pickle
import random
import string
from typing import Any

import numpy as np
import pytest

from cms.errors import InvalidProblem
from cms.values.names import NumberedNames, checked_names, nearest
from tests.samples import refusal


class Colour(str, enum.Enum):  # noqa: UP042 - which prints as its value
    RED = "red"


@pytest.mark.parametrize("name", [np.str_("red"), Colour.RED])
def test_a_subclass_of_str_becomes_a_plain_text(name: str) -> None:
    # numpy prints its own as np.str_('red') in every message, and str(Colour.RED) is 'Colour.RED'
    names = checked_names(iter(["b", name, "猫 größe"]), "job")
    assert [*map(type, names)] == [str] * 3
    assert names == ("b", "red", "猫 größe")


@pytest.mark.parametrize(
    "names",
    [["good", name] for name in ("", None, 5, 1.5, b"bert", ("a",), ["a"], object)]
    + ["abc", 5, None, np.array("abc"), ["a", "c", "b", "c", "b"]],
    ids=str,
)
def test_what_are_no_names_is_refused(names: Any) -> None:
    said = refusal(InvalidProblem, checked_names, names, "job")
    assert "job" in said


@pytest.mark.parametrize(
    "code",
    [0, 9, 10, 13, 0x1B, 0x1F, 0x7F, 0x80, 0x85, 0x9B, 0x9F, 0x2028, 0x2029, 0xD800, 0xDFFF],
    ids=hex,
)
def test_a_control_character_is_refused_wherever_it_stands(code: int) -> None:
    for form in ("{}", "a{}", "{}a", "a{}b"):
        name = form.format(chr(code))
        said = refusal(InvalidProblem, checked_names, ["good", name, "fine"], "block")
        assert repr(name) in said
        assert said.isprintable()


def test_numbered_names_are_a_sequence_like_any_other() -> None:
    names, plain = NumberedNames("j", 12), [f"j{i}" for i in range(12)]
    assert list(names) == plain
    assert (len(names), names[0], names[-1], names[2:9:3]) == (12, "j0", "j11", plain[2:9:3])
    with pytest.raises(IndexError):
        names[12]
    assert names == NumberedNames("j", 12) == pickle.loads(pickle.dumps(names))
    assert hash(names) == hash(NumberedNames("j", 12))
    assert names != NumberedNames("j", 13)
    assert names != NumberedNames("k", 12)
    for span in [(), (3,), (0, 3), (4, 100), (-2,), (0, -1), (-100, 100)]:
        for name in [*plain, "j12", "j-1", "j", "", "k1", "j01", "j00", "j1 ", "j1\n", "J1", "j٣",
                     "j1.0", "j+1", "j" + "1" * 5000, 1, None, b"j1", ("j1",)]:  # fmt: skip
            assert found(names, name, span) == found(plain, name, span)


def found(names: Any, name: Any, span: tuple[int, ...]) -> int | None:
    try:
        return int(names.index(name, *span))
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("wrong", "known", "hint"),
    [
        ("bert-lrage", ["bert-large", "resnet"], "; nearest: 'bert-large'"),
        ("3G.40GB", ["1g.10gb", "3g.40gb"], "; nearest: '3g.40gb'"),
        ("BERT", ["Bert-Large", "berts"], "; nearest: 'berts'"),
        ("vgg", ["bert-large"], ""),
        ("", ["a"], ""),
        ("REDD", [Colour.RED], "; nearest: 'red'"),
        (5, ["5"], ""),
    ],
)
def test_the_nearest_name_is_found_whatever_its_case(
    wrong: Any, known: list[str], hint: str
) -> None:
    assert nearest(wrong, known) == hint
    assert nearest(wrong, iter(known), lead="") == hint.removeprefix("; ")


def test_very_long_names_are_not_compared_letter_by_letter() -> None:
    rng = random.Random(1)  # compared in full, these would take minutes
    long = ["".join(rng.choices(string.ascii_letters, k=10**5)) for _ in range(3)]
    assert nearest(long[0], [long[1], "short"]) == ""
    assert nearest("shirt", [*long, "short"]) == "; nearest: 'short'"
