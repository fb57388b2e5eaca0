"""The labels that tie pods to services and operating points."""

from __future__ import annotations

import hashlib
import re

from .instance import Work

__all__ = ["HOSTNAME", "POINT_LABEL", "SERVICE_LABEL", "label_value", "point_label"]

#: What ties a pod to a node.
HOSTNAME = "kubernetes.io/hostname"
SERVICE_LABEL = "cms.service"
POINT_LABEL = "cms.point"
_MOST = 63
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def label_value(text: str) -> str:
    """Return a text as a label's value: itself if it can be one, else shortened, with a hash.

    Examples
    --------
    >>> label_value("resnet50"), label_value("Übersetzer 2")
    ('resnet50', 'bersetzer-2-38496e')
    """
    if len(text) <= _MOST and _VALUE.fullmatch(text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text)[: _MOST - 7].strip("._-")
    return f"{plain}-{digest}" if plain else f"x-{digest}"


def point_label(work: Work) -> str:
    """Return the value of the label that names an operating point of a service.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cms.fleet import OperatingPoint
    >>> point = OperatingPoint("bert", "a100-80gb", "1g.10gb+me", 2, 8, 100, 20)
    >>> point_label(Work("chat", point, Fraction(80)))
    '1g.10gb.me-2x8'
    """
    point = work.point
    profile = point.profile.replace("+", ".").replace(":", "-")
    return label_value(f"{profile}-{point.processes}x{point.batch}")
