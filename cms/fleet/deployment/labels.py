"""The labels and names that tie objects of Kubernetes to services and operating points."""

from __future__ import annotations

import hashlib
import re

from .instance import Work

#: What ties a pod to a node.
HOSTNAME = "kubernetes.io/hostname"
SERVICE_LABEL = "cms.service"
POINT_LABEL = "cms.point"
_MOST = 63


def _shorten(text: str, plain: str, letters: str, inside: str, kept: str) -> str:
    """Return a text, or a plainer one of letters and what is kept of it, with a hash."""
    if len(text) <= _MOST and re.fullmatch(rf"[{letters}]([{letters}{inside}]*[{letters}])?", text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    plain = re.sub(rf"[^{letters}{kept}]+", "-", plain)[: _MOST - 7].strip(inside)
    return f"{plain or 'x'}-{digest}"


def label_value(text: str) -> str:
    """Return a text as a label's value: itself if it can be one, else shortened, with a hash.

    Examples
    --------
    >>> label_value("resnet50"), label_value("Übersetzer 2")
    ('resnet50', 'bersetzer-2-38496e')
    """
    return _shorten(text, text, "A-Za-z0-9", "._-", "._-")


def dns_label(text: str) -> str:
    """Return a text as a name of Kubernetes: itself if it can be one, else shortened, with a hash.

    Examples
    --------
    >>> dns_label("chat-1g10gb-1x4"), dns_label("Chat (EU)-2")
    ('chat-1g10gb-1x4', 'chat-eu-2-74e483')
    """
    return _shorten(text, text.lower(), "a-z0-9", "-", "")


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
