"""Weighted routes: weights in the ratio of capacities, pods that are selected, and the schemas."""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from cms import solve
from cms.errors import FileError, InvalidProblem
from cms.files.source import Source
from cms.fleet import Plan, build_problem
from cms.fleet.deployment import Deployment
from cms.fleet.deployment.export import ExportOptions, export
from cms.fleet.deployment.export.kubernetes import find_weights
from cms.fleet.deployment.kubernetes_objects import MAX_WEIGHT
from tests.fleet.deployments import SERVICES, deployments, point
from tests.fleet.export.cases import A100, MIXED, card, node, serving
from tests.fleet.export.manifests import Manifest, applied, documents
from tests.fleet.export.test_kubernetes import BASE, TARGETS
from tests.fleet.stand_ins.kubernetes import validators
from tests.property.problems import share

GATEWAY = ExportOptions(gateway="infra/shared.gateway")
DNS = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
_NAME = {"type": "string", "minLength": 1, "maxLength": 253, "pattern": rf"^{DNS}(\.{DNS})*$"}
_ONE: dict[str, Any] = {"type": "array", "minItems": 1, "maxItems": 1}


def record(**properties: Any) -> dict[str, Any]:
    keys = [*properties]
    return {
        "type": "object", "properties": properties, "required": keys, "additionalProperties": False,
    }  # fmt: skip


#: The part of HTTPRoute that is written, after the specification of the Gateway API, version 1.
ROUTE = record(
    parentRefs={**_ONE, "items": record(name=_NAME, namespace=_NAME)},
    rules={**_ONE, "items": record(
        matches={**_ONE, "items": record(path=record(
            type={"const": "PathPrefix"}, value={"type": "string", "pattern": rf"^/{DNS}$"},
        ))},
        filters={**_ONE, "items": record(
            type={"const": "URLRewrite"}, urlRewrite=record(path=record(
                type={"const": "ReplacePrefixMatch"}, replacePrefixMatch={"const": "/"},
            )),
        )},
        backendRefs={"type": "array", "minItems": 1, "maxItems": 16, "items": record(
            name={"type": "string", "pattern": f"^[a-z]{DNS}$", "maxLength": 63},
            port={"type": "integer", "minimum": 1, "maximum": 65535},
            weight={"type": "integer", "minimum": 0, "maximum": 1_000_000},
        )},
    )},
)  # fmt: skip


def routes_of(text: str) -> tuple[list[Manifest], list[Manifest]]:
    every = documents(text)
    kinds = ("Service", "HTTPRoute")
    services, routes = ([each for each in every if each["kind"] == kind] for kind in kinds)
    assert len(services) + len(routes) == len(every)
    return services, routes


def faults(routes: Sequence[Manifest]) -> list[str]:
    """What the specification has against routes, and the CRD itself where it is at hand."""
    schemas: list[Any] = [{"properties": {"spec": ROUTE}}]
    if path := os.environ.get("GATEWAY_API_HTTPROUTE_CRD"):
        (crd,) = documents(Path(path).read_text("utf-8"))
        (v1,) = [each for each in crd["spec"]["versions"] if each["name"] == "v1"]
        schemas.append(v1["schema"]["openAPIV3Schema"])
    checks = map(Draft202012Validator, schemas)
    return [fault.message for each in checks for one in routes for fault in each.iter_errors(one)]


@given(st.lists(st.fractions(0, 10**7, max_denominator=10**5), min_size=1, max_size=16))
def test_weights_are_in_the_ratio_of_capacities(capacities: list[Fraction]) -> None:
    weights, total = find_weights(capacities), sum(capacities)
    assert all(0 <= each <= MAX_WEIGHT for each in weights)
    if not total:
        assert set(weights) == {1}
        return
    for weight, capacity in zip(weights, capacities, strict=True):
        assert (weight > 0) == (capacity > 0)
        off = abs(Fraction(weight, sum(weights)) - capacity / total)
        raised = sum(each * 10**6 < max(capacities) for each in capacities)
        assert off <= Fraction(1 + raised, 10**6)
    small = [Fraction(each.numerator % 1000, 7) for each in capacities]
    ratios = {n / each for n, each in zip(find_weights(small), small, strict=True) if each}
    assert len(ratios) <= 1  # exact where whole numbers are


@pytest.mark.parametrize("target", TARGETS)
@share(5)
@given(deployment=deployments(most_nodes=2, most_gpus=2), nodes=st.booleans())
def test_each_group_of_like_pods_gets_its_share(
    target: str, deployment: Deployment, nodes: bool
) -> None:
    written = export(deployment, target, replace(GATEWAY, pin_nodes=nodes))
    if "routes.yaml" not in written.files:
        assert applied(written) == []
        return
    services, routes = routes_of(written.files["routes.yaml"])
    assert [*validators.manifests(json.dumps({"kind": "List", "items": services}))] == []
    assert faults(routes) == []
    supplies: defaultdict[str, dict[str, Fraction]] = defaultdict(dict)
    pods: Counter[str] = Counter()
    for each in applied(written):
        template = each["spec"]["template"]
        group, service = (template["metadata"]["labels"][f"cms.{k}"] for k in ("group", "service"))
        supply = Fraction(template["metadata"]["annotations"]["cms.items-per-second"])
        pods[group] += each["spec"]["replicas"]
        own = supplies[service]
        own[group] = own.get(group, Fraction(0)) + supply * each["spec"]["replicas"]
    assert sum(pods.values()) == sum(each["spec"]["replicas"] for each in applied(written))
    assert {s["spec"]["selector"]["cms.group"]: s["metadata"]["name"] for s in services} == {
        name: name for name in pods
    }
    assert all(s["spec"]["ports"][0]["targetPort"] == "http" for s in services)
    for route in routes:
        (rule,) = route["spec"]["rules"]
        weights = {each["name"]: each["weight"] for each in rule["backendRefs"]}
        own = supplies.pop(route["metadata"]["labels"]["cms.service"])
        assert weights.keys() == own.keys()
        assert len({Fraction(weights[name]) / supply for name, supply in own.items()}) == 1
    assert not supplies
    assert not any(each.startswith("Traffic") for each in written.losses)


def test_a_route_leads_to_the_port_of_the_users_container_and_needs_one() -> None:
    with pytest.raises(FileError, match=r"^mine.yaml: the container 'model' names no port"):
        export(MIXED, "kubernetes", replace(GATEWAY, base=(BASE,)))
    for entry, port in (("containerPort: 8080", 8080), ("containerPort: 1, name: rest", "rest")):
        text = BASE.text.replace("model:7\n", f"model:7\n        ports: [{{{entry}}}]\n")
        written = export(MIXED, "kubernetes", replace(GATEWAY, base=(Source("mine.yaml", text),)))
        services, _ = routes_of(written.files["routes.yaml"])
        assert {each["spec"]["ports"][0]["targetPort"] for each in services} == {port}
    for gateway in ("", "a/b/c", "/b", "Shared", "a b"):
        with pytest.raises(InvalidProblem, match=r"gateway in \[export\] is"):
            export(MIXED, "kubernetes", ExportOptions(gateway=gateway))
    many = [card(at, serving("7g.80gb", 0, batch=at + 1)) for at in range(17)]
    with pytest.raises(InvalidProblem, match="has 17 groups of like instances; expected at"):
        export(node(*many), "kubernetes", GATEWAY)


def test_without_a_gateway_the_limits_that_equal_shares_break_are_counted() -> None:
    services = tuple(replace(each, rate_rps=Fraction(50)) for each in SERVICES)
    uneven = node(card(0, serving("4g.40gb", 0)), card(1, serving("1g.10gb", 2)))
    written = export(replace(uneven, services=services), "kubernetes")
    assert "routes.yaml" not in written.files
    said = " ".join(each for each in written.losses if re.match("Traffic|Routes", each))
    for words in (
        "limits of 1 service: chat.",
        "12, 33 requests/s",
        "24 of their 45",
        "for the 50",
    ):
        assert words in said
    assert any("overrun no pod" in each for each in export(uneven, "kubernetes").losses)
    even = node(card(0, serving("3g.40gb", 0), serving("3g.40gb", 4)))
    assert not any(each.startswith("Traffic") for each in export(even, "kubernetes").losses)


def test_a_plan_for_equal_shares_needs_a_service_alone() -> None:
    works = [point("chat", A100.key, profile) for profile in ("4g.40gb", "3g.40gb")]
    problem = build_problem(SERVICES[:1], [each.point for each in works], routing="equal")
    plan = Plan(problem, solve(problem.problem))
    held = node(card(0, serving("4g.40gb", 0), serving("3g.40gb", 4))).nodes
    meant = Deployment(held, SERVICES, None, plan)
    for options, kinds in ((ExportOptions(), [1, 0]), (GATEWAY, [1, 1])):
        written = export(meant, "kubernetes", options)
        found = routes_of(written.files["routes.yaml"])
        assert [*map(len, found)] == kinds
        labels = [each["spec"]["template"]["metadata"]["labels"] for each in applied(written)]
        assert {each["cms.group"] for each in labels} == {"cms-chat"}
        assert not any(re.match("Traffic|Routes", each) for each in written.losses)
