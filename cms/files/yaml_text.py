"""YAML becomes JSON text, token by token, so that one set of checks reads both.

Device files are JSON here and may be YAML at a user's; what clusters and their tools print comes as
either. A YAML document is turned into the JSON document that says the same, together with where
each of its values stands in the YAML: errors found in the one then name line and column of the
other.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import FileError
from .json_text import parse_json
from .node import Node
from .source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ruamel.yaml.nodes import MappingNode
    from ruamel.yaml.nodes import Node as YamlNode

_TAG = "tag:yaml.org,2002:"
#: Levels and characters of a device in YAML: real ones have 5, and less than 10,000. The parser
#: takes 20 microseconds a character, and time that grows with the square of the depth.
DEEPEST, LONGEST = 50, 50_000
#: Characters of a stream of documents, and of the JSON after which an alias is one too many.
LONGEST_STREAM = 500_000
_NOT_BLANK = re.compile(r"\S")
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


def read_yaml_or_json(source: Source, *, holds: str = "a document") -> tuple[Node, ...]:
    """Parse a file that is JSON or YAML, of which YAML may hold several documents.

    Parameters
    ----------
    source : Source
        It is JSON, of one document or several after each other, if it begins with a bracket and
        its name does not end in ``.yaml`` or ``.yml``.
    holds : str
        What it should hold, for the errors.

    Returns
    -------
    tuple of Node
        At least one; empty documents of a stream are left out. In YAML, aliases (``*name``) and
        merge keys (``<<``) are what they stand for.

    Raises
    ------
    FileError
        With line and column, if it is neither, holds nothing, or is longer than what is read.

    Examples
    --------
    >>> text = 'kind: Pod\\n---\\nkind: Node\\nallocatable: {"nvidia.com/mig-1g.10gb": "2"}\\n'
    >>> _, node = read_yaml_or_json(Source("list.yaml", text))
    >>> node.at("allocatable").value
    {'nvidia.com/mig-1g.10gb': '2'}
    >>> node.at("kind").error("here it is").line
    3
    >>> [document.value for document in read_yaml_or_json(Source("<stdin>", '{"kind": "Pod"}'))]
    [{'kind': 'Pod'}]
    """
    is_yaml = source.name.lower().endswith((".yaml", ".yml"))
    if not is_yaml and (source.text or "").lstrip().startswith(("{", "[")):
        return tuple(Node(parse_json(part), part) for part in _json_parts(source))
    if len(source.text or "") > LONGEST_STREAM:
        raise _too_long(source, LONGEST_STREAM)
    documents = _sources(source, holds, one=False)
    return tuple(Node(parse_json(document), document) for document in documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part(Source):
    """A part of a file, whose positions are those in the file."""

    whole: Source
    begin: int

    def position(self, offset: int) -> tuple[int, int]:
        """Turn an offset into the part into a line and a column of the file."""
        return self.whole.position(self.begin + offset)


def _json_parts(source: Source) -> list[Source]:
    """Return the JSON documents of a file, as ``cat`` and ``jq`` put them after each other."""
    text, end = source.text or "", 0
    parts: list[Source] = []
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    while match := _NOT_BLANK.search(text, end):
        begin = match.start()
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):  # `parse_json` says what is wrong, and where
            end = len(text)
        parts.append(_Part(source.name, text[begin:end], whole=source, begin=begin))
    return parts


def yaml_source(source: Source, *, holds: str = "a document") -> YamlSource:
    """Read YAML 1.2 as far as JSON can say the same: no aliases, no tags of its own.

    Parameters
    ----------
    source : Source
        One YAML document.
    holds : str
        What it should hold, for the errors.

    Returns
    -------
    YamlSource
        Numbers that JSON writes otherwise (``0x10``, ``.5``) and dates are texts in it.

    Raises
    ------
    FileError
        On a syntax error, an alias, a tag or a key that is no scalar.
    """
    if len(source.text or "") > LONGEST:
        raise _too_long(source, LONGEST)
    (document,) = _sources(source, holds, one=True)
    return document


def _too_long(source: Source, longest: int) -> FileError:
    return FileError(
        source.name,
        f"the file has {len(source.text or '')} characters",
        expected=f"at most {longest} of YAML",
        fix="write the file as JSON",
    )


def _sources(source: Source, holds: str, *, one: bool) -> list[YamlSource]:
    """Turn every document that is not empty into JSON; one alone is read without aliases."""
    from ruamel.yaml import YAML  # a fifth of the time of a whole cold run: only for users' YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = DEEPEST  # versions that do not know it stop where Python does
    found = []
    try:
        text = source.text or ""
        for root in [yaml.compose(text)] if one else yaml.compose_all(text):
            if root is None or (not one and root.tag == _TAG + "null"):
                continue
            writer = _Writer(source, aliases=not one)
            writer.write(root)
            found.append(YamlSource(source.name, "".join(writer.parts), tuple(writer.marks)))
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
    if not found:
        raise source.error("the file holds only comments", expected=holds)
    return found


class _Writer:
    """Writes a YAML tree as JSON and notes where every key and value came from."""

    def __init__(self, source: Source, *, aliases: bool) -> None:
        self.source = source
        self.aliases = aliases
        self.parts: list[str] = []
        self.marks: list[tuple[int, int, int]] = []
        self._length = 0
        self._seen: set[int] = set()
        self._within: set[int] = set()
        self._pairs: dict[int, list[tuple[YamlNode, YamlNode]]] = {}

    def write(self, node: YamlNode) -> None:
        from ruamel.yaml.nodes import MappingNode, SequenceNode

        self._admit(node)
        self.marks.append((self._length, node.start_mark.line + 1, node.start_mark.column + 1))
        self._within.add(id(node))
        if isinstance(node, MappingNode):
            self._put("{")
            for position, (key, value) in enumerate(self._entries(node)):
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
        self._within.remove(id(node))

    def _admit(self, node: YamlNode) -> None:
        """Refuse a value that an alias has led to, where it may not, or to more than can be."""
        # An alias is the anchored node, met again: a few nested ones make a text of any size.
        if id(node) not in self._seen:
            self._seen.add(id(node))
        elif not self.aliases:
            raise self.source.error(
                "a value is used again by an alias (*name)",
                node.start_mark.index,
                fix="write it out in each place",
            )
        elif id(node) in self._within or self._length > LONGEST_STREAM:
            what = "holds itself" if id(node) in self._within else "is used again too often"
            raise self.source.error(f"a value {what} by an alias (*name)", node.start_mark.index)

    def _entries(self, node: MappingNode) -> list[tuple[YamlNode, YamlNode]]:
        """Return a mapping's keys and values, with those that merge keys (``<<``) bring."""
        if not self.aliases:
            return list(node.value)
        if id(node) not in self._pairs:
            own = [pair for pair in node.value if pair[0].tag != _TAG + "merge"]
            names = {str(key.value) for key, _ in own}
            for key, value in self._merged(node):
                if str(key.value) not in names:
                    names.add(str(key.value))
                    own.append((key, value))
            self._pairs[id(node)] = own
        return self._pairs[id(node)]

    def _merged(self, node: MappingNode) -> Iterator[tuple[YamlNode, YamlNode]]:
        from ruamel.yaml.nodes import MappingNode, SequenceNode

        for key, value in node.value:
            if key.tag == _TAG + "merge":
                for one in value.value if isinstance(value, SequenceNode) else [value]:
                    if not isinstance(one, MappingNode):
                        raise self.source.error(
                            "a merge key (<<) brings no keys",
                            one.start_mark.index,
                            expected="an alias of a mapping, or a list of them",
                        )
                    yield from self._entries(one)

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
