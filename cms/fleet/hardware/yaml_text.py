"""YAML becomes the values that JSON would give, and each knows where it stands in the YAML."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from ...errors import FileError
from ...files.json_text import number_at, parse_part, skip_blanks, twice
from ...files.parsed import Parsed
from ...files.source import Source

if TYPE_CHECKING:
    from ruamel.yaml.nodes import Node as YamlNode

_TAG = "tag:yaml.org,2002:"
_MERGE = _TAG + "merge"
#: Levels of values in each other, and characters: of a device in YAML, which has 5 and less than
#: 10,000, and of a stream of documents, after which an alias is refused. The parser
#: takes 20 microseconds a character, and time that grows with the square of the depth.
DEEPEST, LONGEST, LONGEST_STREAM = 50, 50_000, 500_000
_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII)


def read_yaml_or_json(source: Source, *, holds: str = "a document") -> tuple[Parsed, ...]:
    """Parse a file that is JSON or YAML, of which either may hold several documents.

    It is JSON if it begins with a bracket and its name does not end in ``.yaml`` or ``.yml``. In
    YAML, aliases (``*name``) and merge keys (``<<``) are what they stand for; numbers that JSON
    writes otherwise (``0x10``, ``.5``) and dates are texts.
    """
    is_yaml = source.name.lower().endswith((".yaml", ".yml"))
    if is_yaml or not source.text.lstrip().startswith(("{", "[")):
        return tuple(_yaml_documents(source, holds, LONGEST_STREAM))
    found, end = list[Parsed](), 0
    while (begin := skip_blanks(source.text, end)) < len(source.text):
        value, end = parse_part(source, begin)
        found.append(Parsed(value, replace(source, begin=begin)))
    return tuple(found)


def read_yaml(source: Source, *, holds: str = "a document") -> Parsed:
    """Parse a single document of YAML; see :func:`read_yaml_or_json`."""
    document, *others = _yaml_documents(source, holds, LONGEST)
    if others:
        raise others[0].error("a second document begins here", expected=holds)
    return document


def _yaml_documents(source: Source, holds: str, longest: int) -> list[Parsed]:
    from ruamel.yaml import YAML  # a fifth of the time of a whole cold run: only for users' YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    text, found = source.text, []
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
                reader = _Reader(source)
                value = reader.read(root, ())
                found.append(Parsed(value, replace(source, places=reader.places)))
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


class _Reader:
    """Turns a YAML tree into values and notes where each of them and its key stand."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.places: dict[tuple[str | int, ...], tuple[int, int | None]] = {}
        self._length = 0
        self._seen: set[int] = set()
        self._within: set[int] = set()

    def read(self, node: YamlNode, path: tuple[str | int, ...], key_at: int | None = None) -> Any:
        from ruamel.yaml.nodes import MappingNode, SequenceNode

        # An alias is the anchored node, met again: a few nested ones make a text of any size.
        if id(node) in self._within or (id(node) in self._seen and self._length > LONGEST_STREAM):
            what = "holds itself" if id(node) in self._within else "is used again too often"
            raise self._error(f"a value {what} by an alias (*name)", node)
        self._seen.add(id(node))
        self._within.add(id(node))
        self._length += 2
        value: Any
        if isinstance(node, MappingNode):
            value, merged = {}, dict[str, Any]()
            brought = [each for key, each in node.value if key.tag == _MERGE]
            lists = (each.value if isinstance(each, SequenceNode) else [each] for each in brought)
            for one in reversed([*chain.from_iterable(lists)]):  # the first before the others
                if not isinstance(one, MappingNode):
                    expected = "an alias of a mapping, or a list of them"
                    raise self._error("a merge key (<<) brings no keys", one, expected=expected)
                merged |= self.read(one, path)
            for key, entry in node.value:
                if key.tag == _MERGE:
                    continue
                if not isinstance(key.value, str):
                    expected = 'a key such as "starts"'
                    raise self._error("a key is no plain text", key, expected=expected)
                at, name = key.start_mark.index, _joined(key.value)
                if name in value:
                    raise twice(self._source, name, at)
                self._length += len(name)
                value[name] = self.read(entry, (*path, name), at)
            value = merged | value
        elif isinstance(node, SequenceNode):
            value = [self.read(each, (*path, at)) for at, each in enumerate(node.value)]
        else:
            value = self._scalar(node)
        self.places[path] = node.start_mark.index, key_at
        self._within.remove(id(node))
        return value

    def _error(self, what: str, node: YamlNode, **told: Any) -> FileError:
        return self._source.error(what, node.start_mark.index, **told)

    def _scalar(self, node: YamlNode) -> Any:
        text, kind = _joined(str(node.value)), str(node.tag).removeprefix(_TAG)
        self._length += len(text)
        if kind in ("null", "bool"):
            return None if kind == "null" else text.lower() == "true"
        if kind in ("int", "float") and _JSON_NUMBER.fullmatch(text):
            return number_at(self._source, text, node.start_mark.index)
        if kind not in ("int", "float", "str", "timestamp"):
            raise self._error(f"the tag {node.tag} is not read here", node, fix="remove it")
        return text


def _joined(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
