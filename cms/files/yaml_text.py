"""YAML becomes JSON text, token by token, so that one set of checks reads both.

What clusters, their tools and users write comes as either. A YAML document is turned into the JSON
document that says the same, together with where each of its values stands in the YAML: errors found
in the one then name line and column of the other.
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
#: Levels of values in each other, and characters: of a device in YAML, which has 5 and less than
#: 10,000, and of a stream of documents, where an alias after so many of JSON is one too many. The
#: parser takes 20 microseconds a character, and time that grows with the square of the depth.
DEEPEST, LONGEST, LONGEST_STREAM = 50, 50_000, 500_000
_NOT_BLANK = re.compile(r"\S")
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class YamlSource(Source):
    """A YAML file as JSON text, whose positions are those of the YAML.

    Each of `marks` is an offset into the text, and its line and column in the YAML.
    """

    marks: tuple[tuple[int, int, int], ...] = ()

    def position(self, offset: int) -> tuple[int, int]:
        """Turn an offset into the JSON text into a line and a column of the YAML."""
        before = max(bisect_right(self.marks, offset, key=lambda mark: mark[0]) - 1, 0)
        return self.marks[before][1:]


def read_yaml_or_json(source: Source, *, holds: str = "a document") -> tuple[Node, ...]:
    """Parse a file that is JSON or YAML, of which either may hold several documents.

    It is JSON if it begins with a bracket and its name does not end in ``.yaml`` or ``.yml``. Empty
    documents of a stream are left out. In YAML, aliases (``*name``) and merge keys (``<<``) are
    what they stand for; numbers that JSON writes otherwise (``0x10``, ``.5``) and dates are texts.
    """
    is_yaml = source.name.lower().endswith((".yaml", ".yml"))
    documents: list[Source] = []
    if not is_yaml and (source.text or "").lstrip().startswith(("{", "[")):
        documents += _json_parts(source)
    else:
        documents += _yaml_documents(source, holds, LONGEST_STREAM)
    return tuple(Node(parse_json(document), document) for document in documents)


def yaml_source(source: Source, *, holds: str = "a document") -> YamlSource:
    """Read a single document of YAML; see :func:`read_yaml_or_json`."""
    document, *others = _yaml_documents(source, holds, LONGEST)
    if others:
        line, column = others[0].position(0)
        what = "a second document begins here"
        raise FileError(source.name, what, line=line, column=column, expected=holds)
    return document


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part(Source):
    """A part of a file, whose positions are those in the file."""

    whole: Source
    begin: int

    def position(self, offset: int) -> tuple[int, int]:
        return self.whole.position(self.begin + offset)


def _json_parts(source: Source) -> Iterator[Source]:
    """Iterate over the JSON documents of a file, as ``cat`` puts them after each other."""
    text, end = source.text or "", 0
    decoder = json.JSONDecoder(parse_int=str, parse_float=str)
    while match := _NOT_BLANK.search(text, end):
        begin = match.start()
        try:
            _, end = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):  # `parse_json` says what is wrong, and where
            end = len(text)
        yield _Part(source.name, text[begin:end], whole=source, begin=begin)


def _yaml_documents(source: Source, holds: str, longest: int) -> list[YamlSource]:
    """Turn every document that is not empty into JSON."""
    from ruamel.yaml import YAML  # a fifth of the time of a whole cold run: only for users' YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    text, found = source.text or "", []
    if len(text) > longest:
        raise FileError(
            source.name,
            f"the file has {len(text)} characters",
            expected=f"at most {longest} of YAML",
            fix="write the file as JSON",
        )
    yaml = YAML(typ="safe", pure=True)
    yaml.max_depth = DEEPEST  # versions that do not know it stop where Python does
    try:
        for root in yaml.compose_all(text):
            if root is not None and root.tag != _TAG + "null":
                writer = _Writer(source)
                writer.write(root)
                found.append(YamlSource(source.name, "".join(writer.parts), tuple(writer.marks)))
    except MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        what = f"this is no YAML: {' '.join(str(fault.problem or fault.context).split())}"
        if "maximum depth" in what:
            what = f"a value is nested in more than {DEEPEST} others"
        raise source.error(what, mark.index if mark else None) from None
    except YAMLError as fault:  # a character that YAML does not allow
        raise source.error(f"this is no YAML: {' '.join(str(fault).split())}") from None
    except RecursionError:
        raise source.error("the document is nested too deeply to be read") from None
    if not found:
        raise source.error("the file holds only comments", expected=holds)
    return found


class _Writer:
    """Writes a YAML tree as JSON and notes where every key and value came from."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.parts: list[str] = []
        self.marks: list[tuple[int, int, int]] = []
        self._length = 0
        self._seen: set[int] = set()
        self._within: set[int] = set()
        self._pairs: dict[int, list[tuple[YamlNode, YamlNode]]] = {}

    def write(self, node: YamlNode) -> None:
        from ruamel.yaml.nodes import MappingNode, SequenceNode

        # An alias is the anchored node, met again: a few nested ones make a text of any size.
        if id(node) in self._within or (id(node) in self._seen and self._length > LONGEST_STREAM):
            what = "holds itself" if id(node) in self._within else "is used again too often"
            raise self._error(f"a value {what} by an alias (*name)", node)
        self._seen.add(id(node))
        self._within.add(id(node))
        if isinstance(node, MappingNode):
            self._put("{", node)
            for position, (key, value) in enumerate(self._entries(node)):
                self._put("," if position else "")
                if not isinstance(key.value, str):
                    raise self._error("a key is no plain text", key, 'a key such as "starts"')
                self._put(json.dumps(key.value) + ":", key)
                self.write(value)
            self._put("}")
        elif isinstance(node, SequenceNode):
            self._put("[", node)
            for position, value in enumerate(node.value):
                self._put("," if position else "")
                self.write(value)
            self._put("]")
        else:
            self._put(self._scalar(node), node)
        self._within.remove(id(node))

    def _put(self, part: str, node: YamlNode | None = None) -> None:
        if node is not None:
            mark = node.start_mark
            self.marks.append((self._length, mark.line + 1, mark.column + 1))
        self.parts.append(part)
        self._length += len(part)

    def _error(
        self, what: str, node: YamlNode, expected: str | None = None, fix: str | None = None
    ) -> FileError:
        return self.source.error(what, node.start_mark.index, expected=expected, fix=fix)

    def _entries(self, node: MappingNode) -> list[tuple[YamlNode, YamlNode]]:
        """Return a mapping's keys and values, with those that merge keys (``<<``) bring."""
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
                        expected = "an alias of a mapping, or a list of them"
                        raise self._error("a merge key (<<) brings no keys", one, expected)
                    yield from self._entries(one)

    def _scalar(self, node: YamlNode) -> str:
        text, kind = str(node.value), str(node.tag).removeprefix(_TAG)
        if kind == "null":
            return "null"
        if kind == "bool":
            return text.lower()
        if kind in ("int", "float") and _JSON_NUMBER.fullmatch(text):
            return text
        if kind not in ("int", "float", "str", "timestamp"):
            raise self._error(f"the tag {node.tag} is not read here", node, fix="remove it")
        return json.dumps(text)
