"""The overlay with claims: what a claim is for, and that all claims can be served at once."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache

import celpy
import pytest
from celpy.adapter import json_to_cel
from hypothesis import given
from hypothesis import strategies as st

from cms.errors import FileError, InvalidProblem
from cms.fleet.deployment import Deployment, Mode
from cms.fleet.deployment.export import ExportOptions, dra, export
from cms.fleet.deployment.export.export import bare
from tests.fleet.deployments import deployments
from tests.fleet.export.cases import MIXED, card, node, serving
from tests.fleet.export.manifests import Manifest, applied, documents
from tests.property.problems import share

HALVES = node(card(0, serving("3g.40gb", 0), serving("3g.40gb", 4)))


@share(6)
@given(
    deployment=deployments(most_nodes=2, most_gpus=2),
    pin_nodes=st.booleans(),
    pin_gpus=st.booleans(),
)
def test_what_is_written_is_read_back_as_the_target_sees_it(
    deployment: Deployment, pin_nodes: bool, pin_gpus: bool
) -> None:
    written = export(deployment, "dra", ExportOptions(pin_nodes=pin_nodes, pin_gpus=pin_gpus))
    seen = dra.as_seen(deployment, pin_nodes=pin_nodes, pin_gpus=pin_gpus)
    assert dra.read(written.files, bare(deployment)) == seen
    made = applied(written)
    assert len({each["metadata"]["name"] for each in made}) == len(made) == len(seen)
    claims = documents(written.files["claims.yaml"]) if made else []
    names = [each["metadata"]["name"] for each in claims]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in names)
    for each in made:
        pod = each["spec"]["template"]["spec"]
        (claim,) = pod["resourceClaims"]
        named = claim.get("resourceClaimName") or claim["resourceClaimTemplateName"]
        assert named in names
        assert pod["containers"][0]["resources"] == {"claims": [{"name": claim["name"]}]}


def test_a_claim_names_a_profile_and_a_pinned_one_its_gpu() -> None:
    (claim,) = documents(export(HALVES, "dra").files["claims.yaml"])
    assert claim["metadata"]["name"] == "cms-3g40gb"
    assert request(claim) == (
        "mig.nvidia.com",
        "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'",
    )
    named = node(replace(HALVES.nodes[0].gpus[0], uuid="GPU-7"))
    (claim,) = documents(export(named, "dra", ExportOptions(pin_gpus=True)).files["claims.yaml"])
    assert claim["metadata"]["name"] == "cms-3g40gb-node-a-0"
    assert request(claim)[1].endswith(
        " && device.attributes['gpu.nvidia.com'].parentUUID == 'GPU-7'"
    )
    with pytest.raises(InvalidProblem, match="UUID of node-a/0 is not known"):
        export(HALVES, "dra", ExportOptions(pin_gpus=True))


def request(claim: Manifest) -> tuple[str, str]:
    spec = claim["spec"]["spec"] if claim["kind"] == "ResourceClaimTemplate" else claim["spec"]
    (asked,) = spec["devices"]["requests"]
    (selector,) = asked["exactly"]["selectors"]
    return str(asked["exactly"]["deviceClassName"]), str(selector["cel"]["expression"])


def test_shares_of_a_gpu_hold_one_claim_together() -> None:
    claims = documents(export(MIXED, "dra").files["claims.yaml"])
    (shared,) = [each for each in claims if each["kind"] == "ResourceClaim"]
    assert shared["metadata"]["name"] == "cms-mps-node-a-2"
    (config,) = shared["spec"]["devices"]["config"]
    sharing = config["opaque"]["parameters"]["sharing"]
    assert sharing == {"strategy": "MPS", "mpsConfig": {"defaultActiveThreadPercentage": 40}}
    users = [
        each["metadata"]["name"]
        for each in applied(export(MIXED, "dra"))
        if each["spec"]["template"]["spec"]["resourceClaims"][0].get("resourceClaimName")
    ]
    assert len(users) == 2


def test_the_old_names_are_served_by_classes() -> None:
    found = {
        each["spec"]["extendedResourceName"]: each["metadata"]["name"]
        for each in documents(export(MIXED, "dra").files["device-classes.yaml"])
    }
    assert found["nvidia.com/mig-3g.40gb"] == "cms-mig-3g-40gb.gpu.nvidia.com"
    assert all(re.fullmatch(r"[a-z0-9.-]{1,63}", name) for name in found.values())


def test_all_claims_find_a_device_at_once() -> None:
    """On the devices of the deployment; of one profile they are alike, so counting is enough."""
    whole = card(3, replace(serving("7g.80gb", 0), profile="whole", start=None), mode=Mode.WHOLE)
    fleet = node(*MIXED.nodes[0].gpus[:3], whole)
    written = export(fleet, "dra")
    devices: list[dict[str, str]] = []
    for each in fleet.gpus():
        if each.mode is not Mode.MIG:
            devices.append({"type": "gpu", "uuid": each.name})
        devices += [
            {"type": "mig", "profile": part.profile, "parentUUID": each.name}
            for part in each.instances
            if each.mode is Mode.MIG
        ]
    claims = {each["metadata"]["name"]: each for each in documents(written.files["claims.yaml"])}
    needs: Counter[str] = Counter()
    for made in applied(written):
        (held,) = made["spec"]["template"]["spec"]["resourceClaims"]
        if "resourceClaimTemplateName" in held:
            needs[held["resourceClaimTemplateName"]] += made["spec"]["replicas"]
        else:
            needs[held["resourceClaimName"]] = 1
    served: set[int] = set()
    for name, count in needs.items():
        kind, expression = request(claims[name])
        wanted = [
            at
            for at, device in enumerate(devices)
            if at not in served
            and device["type"] == kind.partition(".")[0]
            and holds(expression, device)
        ]
        assert len(wanted) >= count, name
        served |= set(wanted[:count])
    assert len(served) == sum(needs.values()) == 5


def holds(expression: str, device: dict[str, str]) -> bool:
    program = environment().program(environment().compile(expression))
    inner = json_to_cel({"driver": "gpu.nvidia.com", "attributes": {"gpu.nvidia.com": device}})
    return bool(program.evaluate({"device": inner}))


@cache
def environment() -> celpy.Environment:
    """Its grammar is read once, and not where tests are collected."""
    return celpy.Environment()


def test_claims_that_do_not_fit_are_refused() -> None:
    named = node(replace(HALVES.nodes[0].gpus[0], uuid="GPU-7"))
    files = dict(export(named, "dra", ExportOptions(pin_gpus=True)).files)
    claims = files["claims.yaml"]
    for old, new, message in (
        ("== '3g.40gb'", "== '4g.40gb'", "its claim is for 4g.40gb, expected 3g.40gb"),
        ("GPU-7", "GPU-8", "not of the fleet"),
        (".profile ==", ".profil ==", "conditions as they were written"),
        ("cms-3g40gb", "cms-other", "expected a claim of claims.yaml"),
        ("resource.k8s.io/v1", "resource.k8s.io/v1beta1", "resource.k8s.io/v1"),
    ):
        assert old in claims
        files["claims.yaml"] = claims.replace(old, new)
        with pytest.raises(FileError, match=message):
            dra.read(files, bare(named))
