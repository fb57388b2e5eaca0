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
                found.append(_read_tree(source, root))
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


def _read_tree(source: Source, root: YamlNode) -> Parsed:
    """Turn a YAML tree into values, and note where each of them and its key stand."""
    from ruamel.yaml.nodes import MappingNode, SequenceNode

    places: dict[tuple[str | int, ...], tuple[int, int | None]] = {}
    length, seen, within = 0, set[int](), set[int]()

    def fault(what: str, node: YamlNode, **told: Any) -> FileError:
        return source.error(what, node.start_mark.index, **told)

    def read(node: YamlNode, path: tuple[str | int, ...], key_at: int | None = None) -> Any:
        nonlocal length
        # An alias is the anchored node, met again: a few nested ones make a text of any size.
        if id(node) in within or (id(node) in seen and length > LONGEST_STREAM):
            what = "holds itself" if id(node) in within else "is used again too often"
            raise fault(f"a value {what} by an alias (*name)", node)
        seen.add(id(node))
        within.add(id(node))
        length += 2
        value: Any
        if isinstance(node, MappingNode):
            value, merged = {}, dict[str, Any]()
            brought = [each for key, each in node.value if key.tag == _TAG + "merge"]
            lists = (each.value if isinstance(each, SequenceNode) else [each] for each in brought)
            for one in reversed([*chain.from_iterable(lists)]):  # the first before the others
                if not isinstance(one, MappingNode):
                    expected = "an alias of a mapping, or a list of them"
                    raise fault("a merge key (<<) brings no keys", one, expected=expected)
                merged |= read(one, path)
            for key, entry in node.value:
                if key.tag == _TAG + "merge":
                    continue
                if not isinstance(key.value, str):
                    raise fault("a key is no plain text", key, expected='a key such as "starts"')
                at, name = key.start_mark.index, _joined(key.value)
                if name in value:
                    raise twice(source, name, at)
                length += len(name)
                value[name] = read(entry, (*path, name), at)
            value = merged | value
        elif isinstance(node, SequenceNode):
            value = [read(each, (*path, at)) for at, each in enumerate(node.value)]
        else:
            text, kind = _joined(str(node.value)), str(node.tag).removeprefix(_TAG)
            length += len(text)
            value = text
            if kind in ("null", "bool"):
                value = None if kind == "null" else text.lower() == "true"
            elif kind in ("int", "float") and _JSON_NUMBER.fullmatch(text):
                value = number_at(source, text, node.start_mark.index)
            elif kind not in ("int", "float", "str", "timestamp"):
                raise fault(f"the tag {node.tag} is not read here", node, fix="remove it")
        places[path] = node.start_mark.index, key_at
        within.remove(id(node))
        return value

    return Parsed(read(root, ()), replace(source, places=places))


def _joined(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
