"""A deployment with something of everything, and how it is written down shortly."""

from __future__ import annotations

from cms.fleet import get_gpu
from cms.fleet.deployment import Deployment, FleetGpu, FleetNode, Instance, Mode
from tests.fleet.deployments import SERVICES, point

A100, A30 = get_gpu("a100-80gb"), get_gpu("a30-24gb")


def node(*cards: FleetGpu) -> Deployment:
    return Deployment((FleetNode("node-a", cards),), SERVICES)


def card(index: int, *instances: Instance, mode: Mode = Mode.MIG) -> FleetGpu:
    return FleetGpu("node-a", index, A100, mode, instances)


def serving(profile: str, start: int | None, service: str = "chat", batch: int = 4) -> Instance:
    return Instance(profile, start, point(service, "a100-80gb", profile, batch=batch))


MIXED = node(
    card(0, serving("4g.40gb", 0), serving("3g.40gb", 4, "code")),
    card(1, serving("1g.10gb", 2), Instance("2g.20gb", 4, owner="pod team-x/a")),
    card(2, serving("mps:40", None), serving("mps:20", None, "code"), mode=Mode.MPS),
    card(3),
)


def body(text: str) -> str:
    return text.partition("# (end of what cms says)\n")[2]
