"""YAML becomes JSON text, token by token, so that one set of checks reads both.

Device files are JSON here and may be YAML at a user's. A YAML file is turned into the JSON document
that says the same, together with where each of its values stands in the YAML: errors found in the
one then name line and column of the other.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...errors import FileError
from ...files.source import Source

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node as YamlNode

_TAG = "tag:yaml.org,2002:"
#: Levels and characters of a device in YAML: real ones have 5, and less than 10,000. The parser
#: takes 20 microseconds a character, and time that grows with the square of the depth.
DEEPEST, LONGEST = 50, 50_000
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class YamlSource(Source):
    """A YAML file as JSON text, whose positions are those of the YAML.

    Parameters
    ----------
    name : str
    text : str
        JSON.
    marks : tuple of (int, int, int)
        Offset into `text` where a key or value begins, and its line and column in the YAML.

    Examples
    --------
    >>> source = yaml_source(Source("a.yaml", "key: a100\\nmax: [1, 2]\\n"))
    >>> source.text
    '{"key":"a100","max":[1,2]}'
    >>> source.position(source.text.index("2"))
    (2, 10)
    """

    marks: tuple[tuple[int, int, int], ...] = ()

    def position(self, offset: int) -> tuple[int, int]:
        """Turn an offset into the JSON text into a line and a column of the YAML."""
        before = max(bisect_right(self.marks, offset, key=lambda mark: mark[0]) - 1, 0)
        return self.marks[before][1:]


def yaml_source(source: Source) -> YamlSource:
    """Read YAML 1.2 as far as JSON can say the same: no aliases, no tags of its own.

    Parameters
    ----------
    source : Source
        One YAML document.

    Returns
    -------
    YamlSource
        Numbers that JSON writes otherwise (``0x10``, ``.5``) and dates are texts in it.

    Raises
    ------
    FileError
        On a syntax error, an alias, a tag or a key that is no scalar.
    """
    from ruamel.yaml import YAML  # a fifth of the time of a whole cold run: only for users' YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    if len(source.text or "") > LONGEST:
        raise FileError(
            source.name,
            f"the file has {len(source.text or '')} characters",
            expected=f"at most {LONGEST} of YAML",
            fix="write the device as JSON",
        )
    writer, yaml = _Writer(source), YAML(typ="safe", pure=True)
    yaml.max_depth = DEEPEST  # versions that do not know it stop where Python does
    try:
        root = yaml.compose(source.text or "")
        if root is not None:
            writer.write(root)
    except MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        if "maximum depth" in str(fault.problem):
            what = f"a value is nested in more than {DEEPEST} others"
            raise source.error(what, mark.index if mark else None) from None
        words = " ".join(str(fault.problem or fault.context).split())
        raise source.error(f"this is no YAML: {words}", mark.index if mark else None) from None
    except YAMLError as fault:  # a character that YAML does not allow
        raise source.error(f"this is no YAML: {' '.join(str(fault).split())}") from None
    except RecursionError:
        raise source.error("the document is nested too deeply to be read") from None
    if root is None:
        raise source.error("the file holds only comments", expected="a device")
    return YamlSource(source.name, "".join(writer.parts), tuple(writer.marks))


class _Writer:
    """Writes a YAML tree as JSON and notes where every key and value came from."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parts: list[str] = []
        self.marks: list[tuple[int, int, int]] = []
        self._length = 0
        self._seen: set[int] = set()

    def write(self, node: YamlNode) -> None:
        from ruamel.yaml.nodes import MappingNode, SequenceNode

        # An alias is the anchored node, met again: a few nested ones make a text of any size.
        if id(node) in self._seen:
            raise self.source.error(
                "a value is used again by an alias (*name)",
                node.start_mark.index,
                fix="write it out in each place",
            )
        self._seen.add(id(node))
        self.marks.append((self._length, node.start_mark.line + 1, node.start_mark.column + 1))
        if isinstance(node, MappingNode):
            self._put("{")
            for position, (key, value) in enumerate(node.value):
                self._put("," if position else "")
                self.marks.append(
                    (self._length, key.start_mark.line + 1, key.start_mark.column + 1)
                )
                self._put(json.dumps(self._key(key)) + ":")
                self.write(value)
            self._put("}")
        elif isinstance(node, SequenceNode):
            self._put("[")
            for position, value in enumerate(node.value):
                self._put("," if position else "")
                self.write(value)
            self._put("]")
        else:
            self._put(self._scalar(node))

    def _put(self, part: str) -> None:
        self.parts.append(part)
        self._length += len(part)

    def _key(self, node: YamlNode) -> str:
        if not isinstance(node.value, str):
            raise self.source.error(
                "a key is no plain text", node.start_mark.index, expected='a key such as "starts"'
            )
        return node.value

    def _scalar(self, node: YamlNode) -> str:
        text, kind = str(node.value), str(node.tag).removeprefix(_TAG)
        if kind == "null":
            return "null"
        if kind == "bool":
            return text.lower()
        if kind in ("int", "float") and _JSON_NUMBER.fullmatch(text):
            return text
        if kind not in ("int", "float", "str", "timestamp"):
            raise self.source.error(
                f"the tag {node.tag} is not read here", node.start_mark.index, fix="remove it"
            )
        return json.dumps(text)
