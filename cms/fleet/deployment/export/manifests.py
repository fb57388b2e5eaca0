"""Manifests of Kubernetes: written as YAML, named as it wants names, and read back."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import TypeAlias

from ....errors import FileError
from ....files.node import Node
from ....files.source import Source
from ....files.yaml_text import read_yaml_or_json
from .export import without_head

__all__ = ["Value", "dns_label", "documents_in", "kustomization", "yaml_of"]

Value: TypeAlias = "str | int | bool | list[Value] | dict[str, Value] | None"

_LONGEST = 63
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", re.ASCII)
# What every version of YAML takes for a text; all else is quoted, as are its words for values.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9./_-]*", re.ASCII)
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def dns_label(text: str) -> str:
    """Return a text as a name of Kubernetes: itself if it can be one, else shortened, with a hash.

    Examples
    --------
    >>> dns_label("chat-1g10gb-1x4"), dns_label("Übersetzer 2")
    ('chat-1g10gb-1x4', 'bersetzer-2-38496e')
    """
    if len(text) <= _LONGEST and _LABEL.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower(), flags=re.ASCII)[: _LONGEST - 7].strip("-")
    return f"{plain}-{digest}" if plain else f"x-{digest}"


def yaml_of(value: Value, indent: str = "") -> str:
    """Write a value as YAML that all its versions read alike, a line a key.

    Examples
    --------
    >>> print(yaml_of({"kind": "Pod", "spec": {"on": ["no", 1, {"a.b/c": "x-y"}]}}), end="")
    kind: Pod
    spec:
      "on":
      - "no"
      - 1
      - a.b/c: x-y
    """
    if isinstance(value, dict):
        return "".join(
            f"{indent}{_scalar(key)}:{_after(each, indent)}" for key, each in value.items()
        )
    if isinstance(value, list):
        lines = ""
        for each in value:
            if isinstance(each, dict) and each:
                lines += f"{indent}- " + yaml_of(each, indent + "  ")[len(indent) + 2 :]
            else:
                lines += f"{indent}- {_scalar(each)}\n"
        return lines
    return f"{indent}{_scalar(value)}\n"


def _after(value: Value, indent: str) -> str:
    if isinstance(value, dict) and value:
        return "\n" + yaml_of(value, indent + "  ")
    if isinstance(value, list) and value:
        return "\n" + yaml_of(value, indent)
    return f" {_scalar(value)}\n"


def _scalar(value: Value) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return json.dumps(value)


def kustomization(resources: list[str], **more: Value) -> str:
    """Write a ``kustomization.yaml``.

    Examples
    --------
    >>> print(kustomization(["claims.yaml"], namespace="prod"), end="")
    apiVersion: kustomize.config.k8s.io/v1beta1
    kind: Kustomization
    resources:
    - claims.yaml
    namespace: prod
    """
    head: dict[str, Value] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(resources),
    }
    return yaml_of(head | {key: value for key, value in more.items() if value is not None})


def documents_in(files: Mapping[str, str], path: str) -> tuple[Node, ...]:
    """Read the documents of a file that was written.

    Raises
    ------
    FileError
        If it is not there, or no YAML.
    """
    if path not in files:
        raise FileError(path, "there is no such file", expected="the files as they were written")
    text = files[path]
    own = without_head(text)
    # as many empty lines stand for the comment, which takes the reader longer than all the rest
    lines = text.count("\n") - own.count("\n")
    return read_yaml_or_json(Source(path, "\n" * lines + own), holds="a manifest")
