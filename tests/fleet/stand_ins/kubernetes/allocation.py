"""Can the claims of an export be met, all at once and in whatever order they come?

Selectors are evaluated as CEL on the ResourceSlices of a node that is cut as the plan says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import networkx

from tests.fleet.stand_ins.kubernetes import dra
from tests.fleet.stand_ins.kubernetes.nodes import Gpu, Json, Machine
from tests.fleet.stand_ins.kubernetes.schemas import VERSIONS, documents, schema_faults

STATES = 20_000  # of the search for the worst order


def synthetic_slices(nodes: Mapping[str, Sequence[Gpu]]) -> str:
    """The ResourceSlices of nodes cut like this, as a text."""
    slices = [dra.resource_slice(Machine(name, list(gpus))) for name, gpus in nodes.items()]
    return "\n---\n".join(json.dumps(each, indent=1) for each in slices)


Wants = list[list[Json]]  # of each device wanted: the requests that may be met with it, in order


def _wants(items: Sequence[Json], counts: Mapping[str, int] | None) -> Iterator[tuple[str, Wants]]:
    """Each claim that will be there: the name of its template and what it wants."""
    if counts is None:
        counts = _replicas(items)
    for item in items:
        if item.get("kind") not in ("ResourceClaimTemplate", "ResourceClaim"):
            continue
        name = item["metadata"]["name"]
        spec = item["spec"]["spec"] if item["kind"] == "ResourceClaimTemplate" else item["spec"]
        wants: Wants = []
        for request in spec["devices"].get("requests") or []:
            if "exactly" in request:
                wants += [[request["exactly"]]] * request["exactly"].get("count", 1)
            else:
                wants.append(request["firstAvailable"])
        for _ in range(counts.get(name, 0 if item["kind"] != "ResourceClaim" else 1)):
            yield name, wants


def _replicas(items: Sequence[Json]) -> dict[str, int]:
    """How many claims the Deployments of a text will have made from each template."""
    counts: dict[str, int] = {}
    for item in items:
        if item.get("kind") == "Deployment":
            for claim in item["spec"]["template"]["spec"].get("resourceClaims") or []:
                name = claim.get("resourceClaimTemplateName", "")
                counts[name] = counts.get(name, 0) + item["spec"].get("replicas", 1)
    return counts


def claims(text: str, slices: str, counts: Mapping[str, int] | None = None) -> list[str]:
    """Can all claims be met at once, in whatever order they come?

    Without `counts` (claims by template) the replicas of the Deployments in the text count.
    """
    items, said = documents(text)
    said += [f"{e['metadata']['name']}: {f}" for e in items for f in schema_faults(e, VERSIONS[-1])]
    if said:
        return said
    wanted, devices = list(_wants(items, counts)), dra.listed(documents(slices)[0])
    try:
        met = _met(items, wanted, devices)
    except dra.CelError as error:
        return [str(error)]
    for name, wants in dict(wanted).items():
        for want in wants:
            if not met[_key(want)]:
                said.append(f"{name}: no device meets {_key(want)}")
    graph: Any = networkx.Graph()
    wishes = []
    for number, (_, wants) in enumerate(wanted):
        for place, want in enumerate(wants):
            wishes.append((number, place))
            graph.add_edges_from(((number, place), f"device {d}") for d in met[_key(want)])
    graph.add_nodes_from(wishes)
    pairs = networkx.bipartite.hopcroft_karp_matching(graph, wishes)
    found = sum(wish in pairs for wish in wishes)
    if found < len(wishes):
        return [*said, f"{found} of {len(wishes)} devices can be had at once"]
    worst = worst_first_fit(text, slices, counts)
    if worst < len(wanted):
        said.append(f"in the worst order only {worst} of {len(wanted)} claims are met")
    return said


def _key(want: Sequence[Json]) -> str:
    return " or ".join(
        f"{r['deviceClassName']}: {[s['cel']['expression'] for s in r.get('selectors') or []]}"
        for r in want
    )


def _met(
    items: Sequence[Json], wanted: Sequence[tuple[str, Wants]], devices: Sequence[dra.Listed]
) -> dict[str, list[int]]:
    """The devices that meet each want, in the order in which the scheduler tries them."""
    installed = [dra.device_class(kind) for kind in ("gpu", "mig")]
    given = [item for item in items if item.get("kind") == "DeviceClass"]
    classes = {each["metadata"]["name"]: each for each in [*installed, *given]}
    met: dict[str, list[int]] = {}
    for want in (want for _, wants in dict(wanted).items() for want in wants):
        ordered = [
            number
            for request in want
            for number, device in enumerate(devices)
            if dra.takes(request, device, classes)
        ]
        met[_key(want)] = list(dict.fromkeys(ordered))
    return met


def worst_first_fit(text: str, slices: str, counts: Mapping[str, int] | None = None) -> int:
    """The fewest claims that are met in any order, each taking the first devices that are left."""
    items, _ = documents(text)
    wanted, devices = list(_wants(items, counts)), dra.listed(documents(slices)[0])
    met, by_name = _met(items, wanted, devices), dict(wanted)
    names = sorted(by_name)
    exact = {tuple(sorted(found)) for found in met.values()}
    disjoint = sum(map(len, exact)) == len({device for found in exact for device in found})
    if disjoint and all(len(wants) == 1 for wants in by_name.values()):
        # Devices of one class are interchangeable: every order serves as many as any other.
        total = 0
        for group in exact:
            asked = [n for n, wants in wanted if tuple(sorted(met[_key(wants[0])])) == group]
            total += min(len(asked), len(group))
        return total
    known: dict[tuple[tuple[int, ...], frozenset[int]], int] = {}

    def fewest(left: tuple[int, ...], gone: frozenset[int]) -> int:
        """Met from here on; a claim that finds nothing waits, and finds nothing later either."""
        if (left, gone) in known:
            return known[left, gone]
        if len(known) >= STATES:
            raise ValueError(f"more than {STATES} states: too many orders to try")
        best: int | None = None
        for number, name in enumerate(names):
            taken: list[int] = []
            for want in by_name[name] if left[number] else ():
                free = (d for d in met[_key(want)] if d not in gone and d not in taken)
                if (device := next(free, None)) is not None:
                    taken.append(device)
            if left[number] and len(taken) == len(by_name[name]):
                rest = (*left[:number], left[number] - 1, *left[number + 1 :])
                here = 1 + fewest(rest, gone | set(taken))
                best = here if best is None else min(best, here)
        known[left, gone] = best or 0
        return known[left, gone]

    start = tuple(sum(name == each for name, _ in wanted) for each in names)
    return fewest(start, frozenset())
