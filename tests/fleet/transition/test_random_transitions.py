"""Transitions between random deployments: whatever is on them, what is found is safe."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cms.fleet import gpu
from cms.fleet.deployment import FleetGpu, FleetNode
from cms.fleet.deployment.transition import Impossible, check_transition, transition
from cms.fleet.deployment.transition.document import transition_from_json, transition_to_json
from tests.property.problems import share
from tests.references.transitions import run

from ..deployments import deployments, promises

FREE = gpu("a30-24gb")


@share(4)
@given(st.data())
def test_what_is_found_is_safe_and_survives_its_file(data: st.DataObject) -> None:
    """GPUs with others' instances, idle and hollow ones, shares, and changes of mode."""
    now = data.draw(deployments(most_nodes=2, most_gpus=2, keys=("a30-24gb",)))
    spare = tuple(FleetGpu("spare", i, FREE) for i in range(data.draw(st.integers(0, 2))))
    now = replace(now, nodes=(*now.nodes, FleetNode("spare", spare)))
    wanted = data.draw(promises(now))
    found = transition(now, wanted, floor=data.draw(st.sampled_from(("1", "0.5"))))
    if isinstance(found, Impossible):
        return
    assert run(found, random.Random(data.draw(st.integers(0, 9)))) == []
    assert check_transition(transition_from_json(transition_to_json(found))) == ()
