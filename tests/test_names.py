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


class Colour(str, enum.Enum):  # noqa: UP042 - which prints as its value
    RED = "red"


def test_names_come_back_in_their_order_as_a_tuple() -> None:
    assert checked_names(iter(["b", "a", "1g.10gb+me", "猫 größe"]), "job") == (
        "b", "a", "1g.10gb+me", "猫 größe",
    )  # fmt: skip
    assert checked_names([], "job") == ()


@pytest.mark.parametrize("name", [np.str_("red"), Colour.RED])
def test_a_subclass_of_str_becomes_a_plain_text(name: str) -> None:
    # numpy prints its own as np.str_('red') in every message, and str(Colour.RED) is 'Colour.RED'
    (plain,) = checked_names([name], "job")
    assert (type(plain), plain) == (str, "red")


@pytest.mark.parametrize("name", ["", None, 5, 1.5, b"bert", ("a",), ["a"], object])
def test_what_is_no_text_or_empty_is_refused(name: Any) -> None:
    with pytest.raises(InvalidProblem) as error:
        checked_names(["good", name], "job")
    assert str(error.value) == f"job name is {name!r}; expected a text that is not empty"


@pytest.mark.parametrize("names", ["abc", 5, None, np.array("abc")])
def test_a_text_is_no_list_of_names(names: Any) -> None:
    with pytest.raises(InvalidProblem, match=r"^job names are .*; expected a list of names$"):
        checked_names(names, "job")


@pytest.mark.parametrize(
    "code",
    [0, 9, 10, 13, 0x1B, 0x1F, 0x7F, 0x80, 0x85, 0x9B, 0x9F, 0x2028, 0x2029, 0xD800, 0xDFFF],
    ids=hex,
)
@pytest.mark.parametrize("form", ["{}", "a{}", "{}a", "a{}b"])
def test_a_control_character_is_refused_wherever_it_stands(code: int, form: str) -> None:
    name = form.format(chr(code))
    with pytest.raises(InvalidProblem) as error:
        checked_names(["good", name, "fine"], "block")
    assert str(error.value) == f"block name {name!r} contains a control character; remove it"
    assert str(error.value).isprintable()


def test_two_equal_names_are_refused_and_the_first_pair_is_named() -> None:
    with pytest.raises(InvalidProblem) as error:
        checked_names(["a", "c", "b", "c", "b"], "machine type")
    assert str(error.value) == (
        "two machine types are called 'c'; every machine type needs a name of its own"
    )
    # another case, another accent, another form of the same accent is another name
    assert len(checked_names(["é", "e\u0301", "É", "e"], "job")) == 4


# --- numbered names -------------------------------------------------------------------------------


def test_numbered_names_are_a_sequence_like_any_other() -> None:
    names = NumberedNames("j", 12)
    plain = [f"j{i}" for i in range(12)]
    assert list(names) == plain
    assert (len(names), names[0], names[11], names[-1]) == (12, "j0", "j11", "j11")
    assert names[2:9:3] == plain[2:9:3]
    assert names[::-1] == plain[::-1]
    with pytest.raises(IndexError):
        names[12]
    assert names == NumberedNames("j", 12) == pickle.loads(pickle.dumps(names))
    assert hash(names) == hash(NumberedNames("j", 12))
    assert names != NumberedNames("j", 13)
    assert names != NumberedNames("k", 12)
    assert repr(names) == "NumberedNames('j', 12)"


@pytest.mark.parametrize(
    "wrong",
    ["j12", "j-1", "j", "", "k1", "j01", "j00", "j1 ", " j1", "j1\n", "J1", "j٣", "j1.0", "j+1",
     "j" + "1" * 5000, 1, None, b"j1", ("j1",)],
)  # fmt: skip
def test_what_is_not_one_of_the_numbered_names_is_not_found(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"is not one of j0 \.\.\. j11$"):
        NumberedNames("j", 12).index(wrong)


@pytest.mark.parametrize("span", [(), (3,), (0, 3), (4, 100), (-2,), (0, -1), (-100, 100)])
@pytest.mark.parametrize("name", ["j0", "j2", "j3", "j10", "j11"])
def test_a_numbered_name_is_found_where_a_list_finds_it(name: str, span: tuple[int, ...]) -> None:
    plain = [f"j{i}" for i in range(12)]
    try:
        expected: int | None = plain.index(name, *span)
    except ValueError:
        expected = None
    try:
        found: int | None = NumberedNames("j", 12).index(name, *span)
    except ValueError:
        found = None
    assert found == expected


# --- the nearest name -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "known", "hint"),
    [
        ("bert-lrage", ["bert-large", "resnet"], "; nearest: 'bert-large'"),
        ("3G.40GB", ["1g.10gb", "3g.40gb"], "; nearest: '3g.40gb'"),
        ("1G", ["1g", "2g"], "; nearest: '1g'"),
        ("BERT", ["Bert-Large", "berts"], "; nearest: 'berts'"),
        ("vgg", ["bert-large"], ""),
        ("vgg", [], ""),
        ("", ["a"], ""),
        ("REDD", [Colour.RED], "; nearest: 'red'"),
        (5, ["5"], ""),
        (None, ["None"], ""),
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
