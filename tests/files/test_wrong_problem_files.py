"""Wrong problem files, each with the whole message it gets: where, what, expected what, the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from cms import FileError, read_problem
from tests.files.documents import PROBLEM

NUMBER = 'a number such as 12, "12.5" or "1/3"'
FORMAT = '"format": "cms-problem" (a problem)'
BERT = "(job 'bert')"

BLOCKS = '"blocks": ["1g"'


def group(name: str, m: str = "a100", n: int = 1, most: int = 9) -> str:
    one = f'{{"name": "{name}", "weights": {{"{m}": {n}}}, "at_most": {most}}}'
    return f'"group_limits": [{one}], {BLOCKS}'


# what is replaced in the example, by what, and the message
SLIPS = [
    # numbers
    ("1200", "-3", f"14:32: jobs[0].demand {BERT} is -3, expected a number >= 0"),
    ("1200", '"12,5"', f'14:32: jobs[0].demand {BERT} is "12,5", expected {NUMBER}; write 12.5 (d'),
    ("1200", "NaN", "14:32: NaN is no number, expected a finite number"),
    ("1200", "9" * 5000, "14:32: the number 999999999999... (5000 characters) is out of range, "),
    ('"1g": 4', '"1g": 4.5', "10:42: configurations[0].blocks.1g is 4.5, expected a whole numbe"),
    ('"half": "0.5"', '"half": 0', "11:45: configurations[1].sizes.half is 0, expected a number"),
    # names
    ('"bert"', '"a\\u0007"', "14:14: jobs[0].name (job 'a\\x07'): job name 'a\\x07' contains a c"),
    ('"half"]', '"3g"]', "8:26: blocks[2]: there are two blocks '3g', expected a name of its ow"),
    ('"1g": 90', '"1G": 90', f"14:58: jobs[0].demand_function.1G {BERT} is about a block that is "),
    ('"machine": "a100", ', "", '10:5: configurations[0] has no "machine", expected the key "ma'),
    # keys
    (
        '"demand":',
        '"demnad":',
        f'14:22: jobs[0].demnad {BERT}: unknown key "demnad", expected only name',
    ),
    # groups
    (
        BLOCKS,
        group("a100"),
        "8:29: group_limits[0].name (group limit 'a100'): there is a machine t",
    ),
    (BLOCKS, group("g", m="b200"), "8:46: group_limits[0].weights.b200 (group limit 'g') is about"),
    (BLOCKS, group("g", n=0), "8:54: group_limits[0].weights.a100 (group limit 'g') is 0, expecte"),
    (BLOCKS, group("g", most=-1), "8:69: group_limits[0].at_most (group limit 'g') is -1, expecte"),
    # the head
    ('"schema": 2', '"schema": 1', "3:13: schema is 1, expected 2; configurable-machines 0.1.0"),
    ('"schema": 2', '"schema": 3', "3:13: schema is 3, expected 2; a newer version of c"),
    (
        '"format": "cms-problem",',
        "",
        f"1:1: the document is an object, expected an object with {FORMAT}",
    ),
    # syntax
    ("1200,", "1200", '14:37: unexpected "demand_function", expected a comma or the closing bra'),
    ('"bert"', "'bert'", '14:14: unexpected "\'", expected a value'),
    ('"bert"', '"be\nrt"', "14:17: '\\n' inside a text, expected an escape: "),
]


def message_of(path: str | Path) -> str:
    with pytest.raises(FileError) as caught:
        read_problem(path)
    return str(caught.value)


@pytest.mark.parametrize(("old", "new", "message"), SLIPS, ids=[slip[2][:40] for slip in SLIPS])
def test_a_slip_gets_its_message(old: str, new: str, message: str, tmp_path: Path) -> None:
    assert PROBLEM.count(old) >= 1
    path = tmp_path / "p.json"
    path.write_bytes(PROBLEM.replace(old, new, 1).encode())
    assert message_of(path).startswith(f"{path}:{message}")


FILES = [
    (b"", " the file is empty, expected a JSON document"),
    (b"\x1f\x8b\x08\x00", "1:2: byte 0x8b is not UTF-8, expected a JSON doc"),
    (PROBLEM.encode("utf-16"), "1:1: byte 0xff is not UTF-8, expected a JSON doc"),
    (b"[" * 100_000, " the document is nested too deeply to be read"),
]


@pytest.mark.parametrize(("data", "message"), FILES)
def test_a_file_that_is_no_document_is_told_what_it_is(
    data: bytes, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(data)
    assert message_of(path).startswith(f"{path}:{message}")


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    lost = tmp_path / "no" / "p.json"
    assert message_of(lost) == f"{lost}: there is no such file"
